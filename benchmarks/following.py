"""Plans that compute only what may matter, and the compiled solver, against the full Python path.

The reference is the specification: the same agents and runs with every solve done by
``planning.fixed_point``, all actions computed at every sweep and nothing remembered.
"""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

import brmdp
from benchmarks.timing import Ratio, print_table, verdict
from brmdp.agents import EveryStep
from brmdp.envs import TabularEnv
from brmdp.planning import Problem

AFTER = 2000
STEP_TARGETS = {"fixed level 0.3": 5.0, "adaptive, delta = 10": 3.0}
RUN_TARGETS = {"without diagnostics": 3.0, "with diagnostics": 3.5}


def run(quick: bool) -> dict:
    """Steps of an agent that plans at every step, whole runs, and how the gain grows with size."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", brmdp.PriorWarning)
        return {"steps": _steps(quick), "runs": _runs(quick), "sizes": _sizes(quick)}


@contextmanager
def specification() -> Iterator[None]:
    """A context in which nothing is compiled but single sweeps, and nothing is remembered."""
    with patch.object(Problem, "solve_compiled", lambda *_: None):
        yield


def _world() -> tuple[brmdp.World, float]:
    mdp = brmdp.envs.frozenlake(shortcut_risk=0.7)
    return brmdp.World(TabularEnv(mdp), mdp.discount), mdp.discount


def _agent(kind: str, world: brmdp.World, discount: float, **parts: Any) -> brmdp.Agent:
    settings = {"rng": 1, **parts}
    if kind.startswith("fixed"):
        return brmdp.agents.fixed_quantile(
            world.prior(), world.rewards, discount, alpha=0.3, **settings
        )
    return brmdp.agents.aq_brmdp(world.prior(), world.rewards, discount, delta=10.0, **settings)


def _walk(agent: brmdp.Agent, world: brmdp.World, state: int, steps: int) -> tuple[int, float]:
    """Where ``steps`` steps lead, and the processor time of the agent in them."""
    spent = 0
    for _ in range(steps):
        begin = time.process_time_ns()
        action = agent.act(state)
        spent += time.process_time_ns() - begin
        following, _, resumed, _ = world.step(action)
        begin = time.process_time_ns()
        agent.observe(state, action, following)
        spent += time.process_time_ns() - begin
        state = resumed
    return state, 1e-9 * spent


def _steps(quick: bool) -> dict:
    rounds = 10 if quick else 40
    rows, report = [], {}
    for kind, target in STEP_TARGETS.items():
        world, discount = _world()
        agent = _agent(kind, world, discount, restart=EveryStep())
        state, _ = _walk(agent, world, world.reset(1), AFTER - 5 * rounds)
        twin, twin_world, twin_state = copy.deepcopy(agent), copy.deepcopy(world), state
        seconds: dict[str, list[float]] = {"full": [], "following": []}
        for _ in range(rounds):
            state, spent = _walk(agent, world, state, 10)
            seconds["following"].append(spent / 10)
            with specification():
                twin_state, spent = _walk(twin, twin_world, twin_state, 10)
            seconds["full"].append(spent / 10)
            assert state == twin_state
            assert (agent.policy == twin.policy).all()
        faster = Ratio.of(seconds["full"], seconds["following"])
        report[kind] = {"seconds": seconds, "times_faster": asdict(faster), "target": target}
        rows.append(
            (
                kind,
                f"{1e6 * np.median(seconds['full']):.0f}",
                f"{1e6 * np.median(seconds['following']):.0f}",
                faster,
                verdict(faster.median, at_least=target),
            )
        )
    print_table(
        f"A step (act, observe) of an agent that plans at every step, around step {AFTER:,}",
        ("levels", "full, µs", "µs", "times faster (range)", "target"),
        rows,
    )
    return report


def _runs(quick: bool) -> dict:
    steps, rounds = (600, 2) if quick else (4500, 5)
    wanted = {
        "without diagnostics": None,
        "with diagnostics": brmdp.Diagnostics(robust_level=0.2, quantile_level=0.1),
    }

    def once(diagnostics: brmdp.Diagnostics | None, seed: int) -> tuple[float, brmdp.History]:
        world, discount = _world()
        agent = _agent("adaptive", world, discount, rng=seed)
        begin = time.process_time()
        history = brmdp.simulate(
            agent, world, steps, seed=seed, diagnostics=diagnostics, diagnostics_rng=seed
        )
        return time.process_time() - begin, history

    rows, report = [], {}
    for kind, target in RUN_TARGETS.items():
        seconds: dict[str, list[float]] = {"full": [], "following": []}
        once(wanted[kind], 0)
        for number in range(rounds):
            spent, history = once(wanted[kind], number)
            seconds["following"].append(spent)
            with specification():
                spent, full = once(wanted[kind], number)
            seconds["full"].append(spent)
            assert (history.action == full.action).all()
        faster = Ratio.of(seconds["full"], seconds["following"])
        report[kind] = {"seconds": seconds, "times_faster": asdict(faster), "target": target}
        rows.append(
            (
                kind,
                f"{np.median(seconds['full']):.3g}",
                f"{np.median(seconds['following']):.3g}",
                faster,
                verdict(faster.median, at_least=target),
            )
        )
    print_table(
        f"An AQ-BRMDP run of {steps} steps on risky FrozenLake, exact",
        ("run", "full, s", "s", "times faster (range)", "target"),
        rows,
    )
    return report


def _sizes(quick: bool) -> dict:
    """One observation more, at a fixed level: the gain by number of states, 8 successors each."""
    rows, report = [], {}
    for n in (16, 100) if quick else (16, 100, 500):
        rng = np.random.default_rng(n)
        possible = np.zeros((n, 4, n))
        for row in possible.reshape(-1, n):
            row[rng.choice(n, 8, replace=False)] = 1.0
        belief = brmdp.DirichletBelief.uniform(n, 4, possible=possible)
        pattern = belief.pattern
        for _ in range(20):
            for entry in rng.integers(pattern.n_transitions, size=n * 4):
                _observe(belief, int(entry))
        problem = Problem.of(belief, rng.random((n, 4)), 0.9)
        risk = brmdp.Quantile(0.2)
        seconds: dict[str, list[float]] = {"full": [], "following": []}
        plan = problem.solve(belief, risk, remember=True)
        plan = problem.solve(belief, risk, plan.values, memory=plan.memory, remember=True)
        for _ in range(5 if quick else 15):
            _observe(belief, int(rng.integers(pattern.n_transitions)))
            following = partial(
                problem.solve, belief, risk, plan.values, memory=plan.memory, remember=True
            )
            plan = _clock(following, seconds["following"])
            with specification():
                _clock(following, seconds["full"])
        faster = Ratio.of(seconds["full"], seconds["following"])
        report[str(n)] = {"seconds": seconds, "times_faster": asdict(faster)}
        rows.append((f"{n} states", f"{1e3 * np.median(seconds['following']):.3g}", faster))
    print_table(
        "A plan after one more observation, 4 actions, 8 successors, level 0.2",
        ("size", "ms", "times faster (range)"),
        rows,
    )
    return report


def _clock(call: Callable[[], brmdp.Solution], seconds: list[float]) -> brmdp.Solution:
    begin = time.process_time()
    found = call()
    seconds.append(time.process_time() - begin)
    return found


def _observe(belief: brmdp.DirichletBelief, entry: int) -> None:
    pattern = belief.pattern
    state, action = divmod(int(pattern.pair_of_transition[entry]), pattern.n_actions)
    belief.observe(state, action, int(pattern.next_states[entry]))
