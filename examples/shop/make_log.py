"""Make the log of four shops that sell light bulbs of three sizes, and lose sales.

Every morning the bulbs on the shelf are counted, and an order arrives before the doors open. Who
finds the shelf empty goes elsewhere, and nobody counts them. Demand has a law of its own for each
size, the same in all shops and on all days. Now and then somebody forgets to count.

Run ``python examples/shop/make_log.py`` to write ``log.csv`` again.
"""

from __future__ import annotations

import csv
import datetime
from pathlib import Path

import numpy as np
from scipy import stats

SIZES = {"small": 5.5, "medium": 3.0, "large": 1.2}
"""Mean demand of a day."""

SPREAD = 1.5
"""Variance of the demand over its mean."""

SHOPS, DAYS = 4, 150
CAPACITY, LARGEST_DEMAND, LARGEST_ORDER = 12, 24, 8
MISSING = 0.004


def demand_of(size: str) -> np.ndarray:
    """True probabilities of the demands 0, 1, …: a negative binomial law, cut off."""
    mean = SIZES[size]
    law = stats.nbinom(mean / (SPREAD - 1.0), 1.0 / SPREAD)
    chances = law.pmf(np.arange(LARGEST_DEMAND + 1))
    return chances / chances.sum()


def days_of(size: str, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Stock in the morning and order of each day of a shop, ordered by feeling."""
    law, stock, rows = demand_of(size), 4, []
    for _ in range(DAYS):
        order = 0
        if stock <= rng.integers(1, 4):
            order = min(int(rng.integers(3, 8)), CAPACITY - stock)
        rows.append((stock, order))
        demand = int(rng.choice(law.size, p=law))
        stock = max(stock + order - demand, 0)
    return rows


def main() -> None:
    """Write the log beside this file."""
    rng = np.random.default_rng(2026)
    first = datetime.date(2026, 1, 5)
    with open(Path(__file__).with_name("log.csv"), "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["size", "shop", "day", "stock", "order"])
        for size in SIZES:
            for shop in range(1, SHOPS + 1):
                for day, (stock, order) in enumerate(days_of(size, rng)):
                    date = first + datetime.timedelta(days=day)
                    counted = "" if rng.random() < MISSING else stock
                    writer.writerow([size, shop, date.isoformat(), counted, order])


if __name__ == "__main__":
    main()
