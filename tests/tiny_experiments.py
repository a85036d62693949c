"""Experiments of a few milliseconds per run, and worlds that kill their worker.

They are for tests of the store, the runner and the reports, also in other processes.
"""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

import gymnasium
import numpy as np

import brmdp
from brmdp._validation import BoolArray, FloatArray, IntArray
from brmdp.envs.tabular_env import TabularEnv
from brmdp.runs import REQUIRED, Case, Columns, Computation, Experiment, Program, column


def with_tests_on_the_path():
    """Environment variables for a process that imports this module and the same library."""
    folders = Path(__file__).parent, Path(brmdp.__file__).parents[1]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(str(folder.resolve()) for folder in folders),
    }


# --- interactions ---------------------------------------------------------------------------------


def children(process):
    """Ids of the processes that a process started, from Linux's list."""
    tasks = Path(f"/proc/{process}/task")
    return [int(pid) for task in tasks.glob("*/children") for pid in task.read_text().split()]


def tiny(runs=3, steps=60, seed=11, name="tiny"):
    """Four cases that between them use every kind of column, and random numbers for everything."""

    def case(label, agent, environment="riverswim", parameters=(("n", 4),), **agent_parameters):
        return Case(
            name=label,
            environment=environment,
            environment_parameters=dict(parameters),
            agent=agent,
            agent_parameters=agent_parameters,
            discount=0.8,
            steps=steps,
            robust_level=0.2 if label == "adaptive" else None,
            quantile_level=None if label == "sampled/reused" else 0.1,
        )

    stock = {"capacity": 4, "max_order": 2}.items()
    return Experiment(
        name,
        "A tiny experiment",
        (
            case("adaptive", "aq-brmdp", delta=5.0, floor=0.2, method="exact"),
            case("psrl", "continuing-psrl"),
            case(
                "sampled/reused",
                "aq-brmdp",
                delta=5.0,
                method="monte-carlo-reused",
                coefficient=20.0,
            ),
            case("store", "fixed-quantile", "inventory", stock, alpha=0.3),
        ),
        runs,
        seed,
    )


def longer(runs):
    """Many runs, to be killed in between."""
    return tiny(runs, steps=80, name="longer")


# --- computations ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Throws(Columns):
    """Every type that a column may have."""

    throw: IntArray = column("number of the throw")
    points: IntArray = column("points thrown")
    share: FloatArray = column("points as a share of the most")
    high: BoolArray = column("whether that is more than half")
    word: np.typing.NDArray[np.str_] = column("the same in words")


def throw_dice(seed, *, throws, sides):
    """Columns of some throws of a die."""
    rng = np.random.default_rng(seed)
    thrown = rng.integers(1, sides, size=throws, endpoint=True)
    return Throws(
        throw=np.arange(throws),
        points=thrown,
        share=thrown / sides,
        high=2 * thrown > sides,
        word=np.array([f"{points} of {sides}" for points in thrown]),
    )


DICE = Program(throw_dice, Throws, {"throws": REQUIRED, "sides": 6})

NOT_A_PROGRAM = throw_dice


def dicing(runs=4, **changes):
    """Two computations with different numbers of throws."""
    cases = (
        Computation("cube", "tiny_experiments:DICE", {"throws": 5}),
        Computation("icosahedron", "tiny_experiments:DICE", {"throws": 7, "sides": 20}, max_runs=2),
    )
    settings = {"name": "dicing", "title": "Dicing", "cases": cases, "runs": runs, "seed": 3}
    return Experiment(**(settings | changes))


# --- worlds that go wrong -------------------------------------------------------------------------


class DeadlyEnv(TabularEnv):
    """RiverSwim, but a step in a process other than ``parent`` kills it.

    It stops killing once ``deaths`` files lie in ``folder``.
    """

    def __init__(self, parent, folder, deaths):
        super().__init__(brmdp.envs.riverswim(4))
        self.parent, self.folder, self.deaths = parent, Path(folder), deaths

    def step(self, action):
        died = len(list(self.folder.iterdir()))
        if os.getpid() != self.parent and died < self.deaths:
            (self.folder / str(os.getpid())).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().step(action)


gymnasium.register("tests/Deadly-v0", entry_point=DeadlyEnv)


def deadly(folder, deaths):
    """A harmless case, and one whose first ``deaths`` workers die."""
    folder.mkdir()
    parameters = {"parent": os.getpid(), "folder": str(folder), "deaths": deaths}
    cases = (
        Case("harmless", "riverswim", "continuing-psrl", 0.8, 60, {"n": 4}),
        Case("deadly", "tiny_experiments:tests/Deadly-v0", "continuing-psrl", 0.8, 60, parameters),
    )
    return Experiment("deadly", "Workers die", cases, 3)


class LeavesEnv(gymnasium.Env):
    """Two states by its own account, but it goes to a third."""

    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(1)
    P = {s: {0: [(1.0, 1 - s, 0.0, False)]} for s in range(2)}  # noqa: RUF012

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return 0, {}

    def step(self, action):
        self.steps += 1
        return 2 if self.steps == 10 else self.steps % 2, 0.0, False, False, {}


gymnasium.register("tests/Leaves-v0", entry_point=LeavesEnv)
