"""Whole runs against straightforward NumPy, where the time goes, and how two workers scale."""

from __future__ import annotations

import cProfile
import os
import pstats
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import asdict
from pathlib import Path

import numpy as np
from loky import get_reusable_executor

import brmdp
from benchmarks.numpy_agents import NumpyRun
from benchmarks.timing import Ratio, print_table, verdict
from brmdp.envs import TabularEnv

THETA, DELTA, FLOOR, COEFFICIENT = 0.7, 10.0, 0.2, 250.0
TARGETS = {"AQ-BRMDP, exact": 30, "AQ-BRMDP, saddlepoint": 80, "Continuing PSRL": 5}


def run(quick: bool) -> dict:
    """Runs of T = 4,500 steps on risky FrozenLake."""
    steps, rounds = (600, 2) if quick else (4500, 3)
    return {"runs": _runs(steps, rounds), "profile": _profile(steps), "workers": _workers(steps)}


def _library_run(kind: str, steps: int, seed: int = 1) -> brmdp.History:
    mdp = brmdp.envs.frozenlake(shortcut_risk=THETA)
    world = brmdp.World(TabularEnv(mdp), mdp.discount)
    if kind == "Continuing PSRL":
        agent = brmdp.agents.continuing_psrl(world.prior(), world.rewards, mdp.discount, rng=seed)
    else:
        method = kind.removeprefix("AQ-BRMDP, ")
        agent = brmdp.agents.aq_brmdp(
            world.prior(),
            world.rewards,
            mdp.discount,
            delta=DELTA,
            floor=FLOOR,
            method=method,
            rng=seed,
        )
    return brmdp.simulate(agent, world, steps, seed=seed)


def _runs(steps: int, rounds: int) -> dict:
    mdp = brmdp.envs.frozenlake(shortcut_risk=THETA)
    for kind in TARGETS:
        _library_run(kind, 200)
    seconds: dict[str, list[float]] = {}

    def clock(name: str, call: Callable[[], object]) -> None:
        begin = time.perf_counter()
        call()
        seconds.setdefault(name, []).append(time.perf_counter() - begin)

    for number in range(rounds):
        clock(
            "NumPy AQ-BRMDP",
            lambda n=number: NumpyRun(mdp, steps, n).aq_brmdp(DELTA, FLOOR, COEFFICIENT),
        )
        clock("AQ-BRMDP, exact", lambda n=number: _library_run("AQ-BRMDP, exact", steps, n))
        clock(
            "AQ-BRMDP, saddlepoint",
            lambda n=number: _library_run("AQ-BRMDP, saddlepoint", steps, n),
        )
        # the short ones alternate several times within a round
        for again in range(5):
            clock(
                "NumPy Continuing PSRL",
                lambda n=number, a=again: NumpyRun(mdp, steps, 10 * n + a).continuing_psrl(),
            )
            clock(
                "Continuing PSRL",
                lambda n=number, a=again: _library_run("Continuing PSRL", steps, 10 * n + a),
            )

    rows, report = [], {}
    for name, target in TARGETS.items():
        yardstick = "NumPy Continuing PSRL" if name == "Continuing PSRL" else "NumPy AQ-BRMDP"
        faster = Ratio.of(seconds[yardstick], seconds[name])
        report[name] = {
            "seconds": seconds[name],
            "numpy_seconds": seconds[yardstick],
            "times_faster": asdict(faster),
            "target": target,
        }
        rows.append(
            (
                name,
                f"{np.median(seconds[yardstick]):.3g}",
                f"{np.median(seconds[name]):.3g}",
                faster,
                verdict(faster.median, at_least=target),
            )
        )
    print_table(
        f"One run of {steps} steps on risky FrozenLake, true regret included",
        ("agent", "NumPy s", "brmdp s", "times faster (range)", "target"),
        rows,
    )
    return report


# --- where the time goes --------------------------------------------------------------------------

PARTS = {
    "quantiles and their rows": ("_kernels/dirichlet.py",),
    "Newton's systems, sums, greedy actions": ("_kernels/linear.py",),
    "planner (Python)": ("planning/", "risk/"),
    "belief": ("beliefs/", "pattern.py"),
    "agent": ("agents/",),
    "environment": ("envs/",),
    "loop and regret": ("simulation/",),
}


def _profile(steps: int) -> dict:
    """Share of each part in the time of an exact AQ-BRMDP run."""
    profile = cProfile.Profile()
    profile.runcall(_library_run, "AQ-BRMDP, exact", steps)
    shares = dict.fromkeys((*PARTS, "other (NumPy, validation, profiler)"), 0.0)
    stats = pstats.Stats(profile)
    for (file, _, _), (_, _, own, _, _) in stats.stats.items():  # type: ignore[attr-defined]
        place = Path(file).as_posix().partition("src/brmdp/")[2]
        part = next((name for name, where in PARTS.items() if place.startswith(where)), None)
        shares[part or "other (NumPy, validation, profiler)"] += own
    total = sum(shares.values())
    shares = {name: own / total for name, own in shares.items()}
    print_table(
        "Where the time of an exact AQ-BRMDP run goes (under the profiler)",
        ("part", "share"),
        [(name, f"{100 * share:.0f} %") for name, share in shares.items()],
    )
    return shares


# --- two workers ----------------------------------------------------------------------------------


def _spin(_: int) -> int:
    """Pure computation that uses hardly any memory."""
    total = 0
    for i in range(4_000_000):
        total += i & 3
    return total


def _one_run(seed: int) -> float:
    return float(_library_run("AQ-BRMDP, exact", 1500, seed).reward.sum())


def _speed_up(executor: Executor, task: Callable[[int], object], count: int) -> float:
    """Time of ``count`` tasks in this process divided by their time in two workers."""
    begin = time.perf_counter()
    for number in range(count):
        task(number)
    alone = time.perf_counter() - begin
    begin = time.perf_counter()
    list(executor.map(task, range(count)))
    return alone / (time.perf_counter() - begin)


def _workers(steps: int) -> dict:
    """Speed-up of two workers for runs, next to that of a control that only computes."""
    threads = dict.fromkeys(("BRMDP_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    executor = get_reusable_executor(max_workers=2, env=threads)
    count = 4 if steps < 4500 else 12
    for task in (_spin, _one_run):
        list(executor.map(task, range(4)))
    runs, control = [], []
    for _ in range(3):
        control.append(_speed_up(executor, _spin, count))
        runs.append(_speed_up(executor, _one_run, count))
    executor.shutdown()
    efficiency = float(np.median(runs)) / float(np.median(control))
    print_table(
        f"Two workers ({os.cpu_count()} processors)",
        ("task", "speed-up", "of the control's", "target"),
        [
            ("pure computation", f"{np.median(control):.2f}", "", ""),
            (
                "AQ-BRMDP runs",
                f"{np.median(runs):.2f}",
                f"{100 * efficiency:.0f} %",
                verdict(efficiency, at_least=0.9),
            ),
        ],
    )
    return {"control": control, "runs": runs, "efficiency": efficiency}
