"""Against the paper's planner: all competitors plan the same consecutive pseudo-episodes."""

from __future__ import annotations

import statistics
from dataclasses import asdict

import numpy as np

import brmdp
from benchmarks import paper_planner
from benchmarks.scenario import Moment, Scenario, moments, scenarios
from benchmarks.timing import Case, Ratio, interleave, milliseconds, print_table, verdict

PAPER = "paper's planner (NumPy)"
TARGETS = {"saddlepoint, cold": 100, "exact, cold": 25, "exact, warm": 60}


def run(quick: bool) -> dict:
    """Time every method on both worlds; return medians, ratios and disagreements."""
    return {
        scenario.name: _measure(scenario, rounds=3 if quick else 15) for scenario in scenarios()
    }


def _measure(scenario: Scenario, rounds: int) -> dict:
    history = moments(scenario, rounds + 1)
    cases = _cases(scenario, history)
    seconds = interleave(cases, rounds)
    results = {
        name: cases[name].run(cases[name].prepare(rounds)) for name in cases if "reused" not in name
    }
    exact = results["exact, cold"]

    rows, report = [], {}
    for name, times in seconds.items():
        faster = Ratio.of(seconds[PAPER], times)
        target = TARGETS.get(name) if scenario.name == "risky FrozenLake" else None
        values, iterations = _outcome(results.get(name))
        error = float(np.max(np.abs(values - exact.values))) if values is not None else None
        report[name] = {
            "median_seconds": statistics.median(times),
            "seconds": times,
            "times_faster_than_paper": asdict(faster),
            "target": target,
            "iterations": iterations,
            "max_difference_to_exact": error,
        }
        rows.append(
            (
                name,
                milliseconds(times),
                faster,
                verdict(faster.median, at_least=target),
                iterations or "",
                "" if error is None else f"{error:.1e}",
            )
        )
    levels = history[-1].levels
    print_table(
        f"Planning {scenario.name} from step {history[0].step} on, "
        f"levels {levels.min():.3f} to {levels.max():.3f}, {rounds} alternating rounds",
        ("method", "ms (range)", "times faster (range)", "target", "sweeps", "|V - exact|"),
        rows,
    )
    reuse = Ratio.of(seconds["Monte Carlo, fresh draws"], seconds["Monte Carlo, reused draws"])
    print(f"reused draws against fresh draws: {reuse} times faster")
    report["reused_times_faster_than_fresh"] = asdict(reuse)
    return report


def _cases(scenario: Scenario, history: tuple[Moment, ...]) -> dict[str, Case]:
    def paper(moment: Moment):
        return paper_planner.plan(
            moment.concentration,
            scenario.rewards,
            scenario.discount,
            moment.levels,
            scenario.coefficient,
            np.random.default_rng(1),
        )

    def plan(belief, levels, method="exact", initial=None):
        risk = brmdp.Quantile(levels, method=method)
        return brmdp.plan(belief, scenario.rewards, scenario.discount, risk=risk, initial=initial)

    def cold(method):
        return Case(
            run=lambda prepared: plan(*prepared, method=method),
            prepare=lambda number: (history[number].belief.copy(), history[number].levels),
        )

    solutions = [plan(moment.belief, moment.levels) for moment in history]
    fresh = brmdp.MonteCarlo(coefficient=scenario.coefficient, rng=np.random.default_rng(2))
    reused = brmdp.MonteCarlo(
        coefficient=scenario.coefficient, reuse=True, rng=np.random.default_rng(3)
    )
    growing = history[0].belief.copy()

    def observe(number: int):
        for transition in history[number].observed if number else ():
            growing.observe(*transition)
        return growing, history[number].levels

    return {
        PAPER: Case(paper, history.__getitem__, seconds=0.0),
        "exact, cold": cold("exact"),
        "exact, warm": Case(
            run=lambda prepared: plan(*prepared),
            prepare=lambda number: (
                history[number].belief.copy(),
                history[number].levels,
                "exact",
                solutions[max(number - 1, 0)],
            ),
        ),
        "saddlepoint, cold": cold("saddlepoint"),
        "Monte Carlo, fresh draws": cold(fresh),
        "Monte Carlo, reused draws": Case(
            run=lambda prepared: plan(*prepared, method=reused), prepare=observe, seconds=0.0
        ),
    }


def _outcome(result) -> tuple[np.ndarray | None, int | None]:
    """Values and sweeps of either planner's result."""
    if result is None:
        return None, None
    if isinstance(result, tuple):
        values, _, iterations = result
        return values, iterations
    return result.values, result.iterations
