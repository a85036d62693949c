"""What is run: coins are tossed, and a Bayesian interval is computed from the tosses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from brmdp.runs import REQUIRED, Columns, Computation, Experiment, Program, column


@dataclass(frozen=True, eq=False)
class CoinColumns(Columns):
    """One row per coin. Everything that stores, reads or documents runs uses this declaration."""

    bias: NDArray[np.float64] = column("probability of heads, drawn from the uniform prior")
    width: NDArray[np.float64] = column("width of the interval")
    covered: NDArray[np.bool_] = column("whether the interval covers the bias")


def _toss(seed: np.random.SeedSequence, *, tosses: int, confidence: float, coins: int):
    rng = np.random.default_rng(seed)
    bias = rng.random(coins)
    heads = rng.binomial(tosses, bias)
    tail = 0.5 * (1.0 - confidence)
    low, high = (betaincinv(1 + heads, 1 + tosses - heads, p) for p in (tail, 1.0 - tail))
    return CoinColumns(bias, high - low, (low <= bias) & (bias <= high))


COIN = Program(_toss, CoinColumns, {"tosses": REQUIRED, "confidence": 0.9, "coins": 50})

EXPERIMENT = Experiment(
    "coin",
    "Intervals for the bias of a coin",
    tuple(Computation(f"tosses-{n}", "coin.experiment:COIN", {"tosses": n}) for n in (1, 10, 100)),
    runs=20,
)
