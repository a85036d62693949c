"""Make the log of a fleet with three types of buses, which wear at different rates.

Every month each bus is read (miles since its engine was replaced) and somebody decides: keep the
engine, or replace it. The month of a replacement is spent in the workshop. City buses run about
1,500 miles a month, regional ones 4,000 and coaches 9,000, so one rule for all of them is wrong for
most. Now and then a reading is missing, as in real logs.

Run ``python examples/fleet/make_log.py`` to write ``log.csv`` again.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

TYPES = {"city": (60, 1_500.0), "regional": (56, 4_000.0), "coach": (50, 9_000.0)}
"""Number of buses, and miles per month."""

MONTHS = 100
LARGEST = 449_000
MISSING = 0.002


def months_of(rate: float, rng: np.random.Generator) -> list[tuple[int, int, str]]:
    """Month, reading and decision of one bus."""
    rows = []
    miles = float(rng.uniform(0.0, 25.0 * rate))
    for month in range(1, MONTHS + 1):
        # practice: by feeling, more often as the engine gets older, whatever the type
        wish = 0.004 + 0.10 / (1.0 + np.exp(-(miles - 260_000.0) / 25_000.0))
        replace = bool(rng.random() < wish) or miles > LARGEST - 3.0 * rate
        rows.append((month, int(miles), "replace" if replace else "keep"))
        miles = rng.uniform(0.0, 400.0) if replace else miles + rng.gamma(9.0, rate / 9.0)
    return rows


def main() -> None:
    """Write the log beside this file."""
    rng = np.random.default_rng(2026)
    with open(Path(__file__).with_name("log.csv"), "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["model", "bus", "month", "miles", "decision"])
        for name, (buses, rate) in TYPES.items():
            for bus in range(1, buses + 1):
                for month, miles, decision in months_of(rate, rng):
                    shown = "" if rng.random() < MISSING else miles
                    writer.writerow([name, bus, month, shown, decision])


if __name__ == "__main__":
    main()
