"""Many plans at once against one, and against as many made one by one."""

from __future__ import annotations

import os
import statistics
import warnings
from dataclasses import asdict
from functools import partial

import numpy as np

import brmdp
from benchmarks.scenario import moments, scenarios
from benchmarks.timing import Case, Ratio, interleave, milliseconds, print_table, verdict

ONE = "one plan"
LEVELS = 40
TARGET = 8.0
"""Largest price of 40 levels, in plans."""


def run(quick: bool) -> dict:
    """Levels of one belief, with one thread and with all, and beliefs at one level."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", brmdp.PriorWarning)
        return {scenario.name: _measure(scenario, 5 if quick else 25) for scenario in scenarios()}


def _measure(scenario, rounds: int) -> dict:
    now, *others = moments(scenario, LEVELS)
    rewards, discount = scenario.rewards, scenario.discount
    beliefs = [now.belief, *(moment.belief for moment in others)]

    def measures(count: int) -> list[brmdp.Quantile]:
        return [brmdp.Quantile(level) for level in np.linspace(0.01, 0.9, count)]

    def levels(count: int, threads: str, _: int) -> None:
        os.environ["BRMDP_NUM_THREADS"] = threads
        brmdp.plan_many(now.belief, rewards, discount, risk=measures(count))

    def one_by_one(_: int) -> None:
        for risk in measures(LEVELS):
            brmdp.plan(now.belief, rewards, discount, risk=risk)

    def at_one_level(_: int) -> None:
        os.environ["BRMDP_NUM_THREADS"] = every
        brmdp.plan_many(beliefs, rewards, discount, risk=brmdp.Quantile(0.3))

    every, before = str(os.cpu_count()), os.environ.get("BRMDP_NUM_THREADS")
    single = Case(lambda _: brmdp.plan(now.belief, rewards, discount, risk=brmdp.Quantile(0.3)))
    cases = {
        ONE: single,
        f"{LEVELS} levels one by one": Case(one_by_one),
        "10 levels, one thread": Case(partial(levels, 10, "1")),
        f"{LEVELS} levels, one thread": Case(partial(levels, LEVELS, "1")),
        f"{LEVELS} levels, {every} threads": Case(partial(levels, LEVELS, every)),
        f"{LEVELS} beliefs, {every} threads": Case(at_one_level),
    }
    seconds = interleave(cases, rounds)
    if before is None:
        del os.environ["BRMDP_NUM_THREADS"]
    else:
        os.environ["BRMDP_NUM_THREADS"] = before
    rows, report = [], {}
    for name, times in seconds.items():
        price = Ratio.of(times, seconds[ONE])
        target = TARGET if name.startswith(f"{LEVELS} levels,") else None
        report[name] = {
            "median_seconds": statistics.median(times),
            "plans": asdict(price),
            "target": target,
        }
        rows.append((name, milliseconds(times), price, verdict(price.median, at_most=target)))
    report["most_threads"] = report[f"{LEVELS} levels, {every} threads"]
    print_table(
        f"Exact plans of {scenario.name} at step {now.step}, {rounds} alternating rounds",
        ("what", "ms (range)", "in plans (range)", "target"),
        rows,
    )
    return report
