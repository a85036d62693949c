"""How often 95 % intervals cover the mean.

``python -m benchmarks.intervals 20000`` prints the table of docs/reproduce/intervals.md.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import numpy as np
from scipy import stats

from brmdp.report.estimates import estimate

RUNS = (16, 24, 100)
BLUR = 0.01

Law = tuple[Callable[[np.random.Generator, tuple[int, int]], np.ndarray], float, float]
"""How to draw, the mean, and the share of the rarer group of runs (1 where there is one group)."""


def _two_groups(share: float, blur: float) -> Law:
    """Runs at 1 with probability ``share``, otherwise at 0.

    A ``blur`` moves them inwards by the size of a normal number with that standard deviation.
    """

    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
        far = rng.random(shape) < share
        near = np.abs(blur * rng.normal(size=shape))
        return np.where(far, 1.0 - near, near)

    moved = blur * math.sqrt(2.0 / math.pi)
    return draw, share * (1.0 - moved) + (1.0 - share) * moved, share


LAWS: dict[str, Law] = {
    "normal": (lambda rng, shape: rng.normal(size=shape), 0.0, 1.0),
    "exponential": (lambda rng, shape: rng.exponential(size=shape), 1.0, 1.0),
    "lognormal": (lambda rng, shape: rng.lognormal(size=shape), math.exp(0.5), 1.0),
    **{f"0 or 1, {share:.0%} at 1": _two_groups(share, 0.0) for share in (0.01, 0.05, 0.2)},
    **{f"near 0 or 1, {share:.0%} at 1": _two_groups(share, BLUR) for share in (0.01, 0.05, 0.2)},
    "constant": (lambda rng, shape: np.ones(shape), 1.0, 1.0),
}


def coverage(low: np.ndarray, high: np.ndarray, mean: float) -> float:
    """Share of intervals that contain the mean; a missing interval counts as containing it."""
    return float(1.0 - ((mean < low) | (high < mean)).mean())


def main(samples: int) -> None:
    print("| runs are | n | Student's t | ours | range known | no interval | all groups seen |")
    print("| :-- | --: | --: | --: | --: | --: | --: |")
    for name, (draw, mean, share) in LAWS.items():
        for runs in RUNS:
            drawn = draw(np.random.default_rng((7, runs)), (runs, samples))
            ours = estimate(drawn)
            reach = stats.t.ppf(0.975, runs - 1) * drawn.std(axis=0, ddof=1) / math.sqrt(runs)
            student = coverage(ours.mean - reach, ours.mean + reach, mean)
            bounded = ""
            if name.startswith(("0", "near")):
                within = estimate(drawn, bounds=(0.0, 1.0))
                bounded = f"{coverage(within.low, within.high, mean):.3f}"
            seen = 1.0 - (1.0 - share) ** runs - share**runs if share < 1.0 else 1.0
            cells = f"{student:.3f} | {coverage(ours.low, ours.high, mean):.3f} | {bounded}"
            print(
                f"| {name} | {runs} | {cells} | {np.isnan(ours.low).mean():.3f} | {seen:.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
