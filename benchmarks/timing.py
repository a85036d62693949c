"""Interleaved timing and plain-text tables."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any


@dataclass(frozen=True)
class Case:
    """One competitor: ``run(prepare(round))``, of which only ``run`` is timed.

    Within a round the call is repeated until ``seconds`` have been measured; zero means once, for
    cases that carry state from one call to the next.
    """

    run: Callable[[Any], object]
    prepare: Callable[[int], Any] = int
    seconds: float = 0.02

    def time(self, round_number: int) -> float:
        """Mean seconds per call in one round."""
        elapsed, calls = 0.0, 0
        while not calls or elapsed < self.seconds:
            prepared = self.prepare(round_number)
            begin = perf_counter()
            self.run(prepared)
            elapsed += perf_counter() - begin
            calls += 1
        return elapsed / calls


def interleave(cases: dict[str, Case], rounds: int) -> dict[str, list[float]]:
    """Seconds per call of every case in every round; round 0 warms up and is dropped.

    The cases alternate within a round, in reversed order every other round, so that a drift of the
    machine affects all of them alike.
    """
    for case in cases.values():
        case.time(0)
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    for number in range(1, rounds + 1):
        for name in list(cases)[:: 1 if number % 2 else -1]:
            seconds[name].append(cases[name].time(number))
    return seconds


def median_time(run: Callable[[], object], repeats: int = 3) -> float:
    """Median seconds of a few calls after one warm-up."""
    return statistics.median(interleave({"": Case(lambda _: run(), seconds=0.0)}, repeats)[""])


@dataclass(frozen=True)
class Ratio:
    """Ratio of two cases, round by round."""

    median: float
    lowest: float
    highest: float

    @classmethod
    def of(cls, numerator: Sequence[float], denominator: Sequence[float]) -> Ratio:
        """Median and range over the rounds."""
        ratios = [n / d for n, d in zip(numerator, denominator, strict=True)]
        return cls(statistics.median(ratios), min(ratios), max(ratios))

    def __str__(self) -> str:
        return f"{self.median:.3g} ({self.lowest:.3g} to {self.highest:.3g})"


def milliseconds(seconds: Sequence[float]) -> str:
    """Median and range in milliseconds."""
    return (
        f"{1e3 * statistics.median(seconds):.3g} ({1e3 * min(seconds):.3g} to "
        f"{1e3 * max(seconds):.3g})"
    )


def verdict(ratio: float, at_least: float | None = None, at_most: float | None = None) -> str:
    """A target, and whether it was met."""
    if at_least is not None:
        return f">= {at_least:g} {'met' if ratio >= at_least else 'MISSED'}"
    if at_most is not None:
        return f"<= {at_most:g} {'met' if ratio <= at_most else 'MISSED'}"
    return ""


def print_table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table with the first column aligned left and the others right."""
    cells = [[str(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    print(f"\n{title}")
    for index, row in enumerate(cells):
        first, *others = (
            cell.ljust(w) if c == 0 else cell.rjust(w)
            for c, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        print("  ".join((first, *others)).rstrip())
        if index == 0:
            print("  ".join("-" * width for width in widths))
