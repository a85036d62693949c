"""Cost per row of the Dirichlet functions: exact CDF, exact quantile, saddlepoint quantile."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import brmdp
from benchmarks.timing import Case, interleave, print_table

ROWS = 200


def _heavy(shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    concentration = np.ones(shape)
    concentration[:, 0] = 1e6
    return concentration


REGIMES: dict[str, Callable[[tuple[int, int], np.random.Generator], np.ndarray]] = {
    "prior: all 1": lambda shape, rng: np.ones(shape),
    "counts: 1 + a few visits": lambda shape, rng: (
        1.0 + rng.poisson(rng.exponential(3, size=shape))
    ),
    "tiny: all 0.01": lambda shape, rng: np.full(shape, 0.01),
    "large: all 1000": lambda shape, rng: np.full(shape, 1e3),
    "one of 1e6, others 1": _heavy,
}


def run(quick: bool) -> dict:
    """µs per row for n = 2 to 200 successors in every concentration regime."""
    rows, report = [], {}
    for regime, concentrations in REGIMES.items():
        for n in (2, 16, 200) if quick else (2, 3, 5, 8, 16, 32, 64, 128, 200):
            seconds = _seconds_per_row(concentrations, n, rounds=3 if quick else 7)
            report[f"{regime}, n = {n}"] = seconds
            rows.append((regime, n, *(f"{1e6 * value:.2f}" for value in seconds.values())))
    print_table(
        f"µs per row, {ROWS} rows at levels from 0.02 to 0.98 in one call",
        ("concentrations", "successors", "CDF", "exact quantile", "saddlepoint quantile"),
        rows,
    )
    return report


def _seconds_per_row(concentrations: Callable, n: int, rounds: int) -> dict[str, float]:
    rng = np.random.default_rng(n)
    concentration, values = concentrations((ROWS, n), rng), rng.random((ROWS, n))
    levels = rng.uniform(0.02, 0.98, size=ROWS)
    points = brmdp.dirichlet.quantile(concentration, values, levels)
    cases = {
        "cdf": Case(lambda _: brmdp.dirichlet.cdf(concentration, values, points)),
        "exact": Case(lambda _: brmdp.dirichlet.quantile(concentration, values, levels)),
        "saddlepoint": Case(
            lambda _: brmdp.dirichlet.quantile(concentration, values, levels, method="saddlepoint")
        ),
    }
    return {
        name: float(np.median(times)) / ROWS for name, times in interleave(cases, rounds).items()
    }
