"""Plans and rows with fractional concentrations against the same with integer ones."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import asdict

import numpy as np
from scipy import sparse

import brmdp
from benchmarks.growth import ACTIONS, SUCCESSORS, random_levels, successors, visit_counts
from benchmarks.scenario import moments, scenarios
from benchmarks.timing import Case, Ratio, interleave, milliseconds, print_table, verdict

TARGET = 1.7
ROWS = 1000
FRACTIONS: dict[str, Callable[[tuple[int, ...], np.random.Generator], np.ndarray | float]] = {
    "integers": lambda shape, rng: 0.0,
    "+ 0.5": lambda shape, rng: 0.5,
    "+ about 1e-9": lambda shape, rng: 1e-9 * rng.uniform(0.5, 1.5, shape),
    "+ any fraction": lambda shape, rng: rng.uniform(0.01, 0.99, shape),
}


def run(quick: bool) -> dict:
    """Planning 16 states and many, and single rows, for each kind of fraction."""
    n_states = 2_000 if quick else 100_000
    problems = {
        "risky FrozenLake, adaptive levels": (_lake(), 5 if quick else 25),
        f"{n_states} states": (_large(n_states), 3),
        f"{ROWS} rows of 16 successors": (_rows(1.0, 30.0), 5 if quick else 25),
        f"{ROWS} rows of 16 successors, up to 1e6": (_rows(1e3, 1e6), 5 if quick else 25),
    }
    rows, report = [], {}
    for problem, (make, rounds) in problems.items():
        cases = {name: make(fraction) for name, fraction in FRACTIONS.items()}
        seconds = interleave(cases, rounds)
        report[problem] = {"target": TARGET, "rounds": rounds}
        for name, times in seconds.items():
            ratio = Ratio.of(times, seconds["integers"])
            report[problem][name] = {
                "median_seconds": statistics.median(times),
                "as_long_as_integers": asdict(ratio),
            }
            known = name == "integers"
            rows.append(
                (
                    problem,
                    name,
                    milliseconds(times),
                    "" if known else ratio,
                    "" if known else verdict(ratio.median, at_most=TARGET),
                )
            )
    print_table(
        "Fractional concentrations against integer ones, alternating rounds",
        ("problem", "concentrations", "ms (range)", "times as long (range)", "target"),
        rows,
    )
    return report


def _lake() -> Callable:
    scenario = scenarios()[0]
    moment = moments(scenario, 1)[0]

    def make(fraction: Callable) -> Case:
        concentration = moment.concentration
        more = fraction(concentration.shape, np.random.default_rng(16))
        belief = brmdp.DirichletBelief(concentration + more * (concentration > 0))
        risk = brmdp.Quantile(moment.levels)
        return Case(
            lambda prepared: brmdp.plan(prepared, scenario.rewards, scenario.discount, risk=risk),
            prepare=lambda _: belief.copy(),
        )

    return make


def _large(n_states: int) -> Callable:
    rng = np.random.default_rng(n_states)
    n_rows = n_states * ACTIONS
    pointers = np.arange(0, n_rows * SUCCESSORS + 1, SUCCESSORS)
    columns = successors(n_states, "random", rng).ravel()
    counts = 1.0 + visit_counts(n_rows, rng).ravel()
    shape = (n_rows, n_states)
    rewards = sparse.csr_array((rng.random(columns.size), columns, pointers), shape=shape)
    risk = brmdp.Quantile(random_levels(n_states, rng))

    def make(fraction: Callable) -> Case:
        more = fraction(counts.shape, np.random.default_rng(17))
        belief = brmdp.DirichletBelief(
            sparse.csr_array((counts + more, columns, pointers), shape=shape)
        )
        return Case(
            lambda _: brmdp.plan(belief, rewards, 0.95, risk=risk, tolerance=1e-6), seconds=0.0
        )

    return make


def _rows(least: float, most: float) -> Callable:
    rng = np.random.default_rng(18)
    counts = np.floor(least * (most / least) ** rng.random((ROWS, 16)))
    values, levels = rng.random((ROWS, 16)), rng.uniform(0.02, 0.98, ROWS)

    def make(fraction: Callable) -> Case:
        concentration = counts + fraction(counts.shape, np.random.default_rng(19))
        return Case(lambda _: brmdp.dirichlet.quantile(concentration, values, levels))

    return make
