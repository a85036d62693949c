"""Undiscounted problems the slow way: closed forms, subsets, and exact rational arithmetic."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np


def closed_states(
    successors: dict[tuple[int, int], list[set[int]]], n_states: int, ends: set[int]
) -> set[int]:
    """The union of all closed sets, by looking at every set of states that are no ends.

    ``successors`` lists, for each admissible (state, action), the rows that may be met there. A set
    is closed if every state has an action and a row that stays inside.
    """
    others = [s for s in range(n_states) if s not in ends]
    found: set[int] = set()
    for size in range(1, len(others) + 1):
        for chosen in combinations(others, size):
            inside = set(chosen)
            if all(
                any(
                    any(row <= inside for row in rows)
                    for (state, _), rows in successors.items()
                    if state == s
                )
                for s in inside
            ):
                found |= inside
    return found


def ruin_probabilities(n: int, up: Fraction) -> list[Fraction]:
    """Probability to reach n before 0 from i = 0, …, n, going up with probability ``up``."""
    if up == Fraction(1, 2):
        return [Fraction(i, n) for i in range(n + 1)]
    ratio = (1 - up) / up
    return [(ratio**i - 1) / (ratio**n - 1) for i in range(n + 1)]


def ruin_durations(n: int, up: Fraction) -> list[Fraction]:
    """Expected number of steps until 0 or n is reached."""
    if up == Fraction(1, 2):
        return [Fraction(i * (n - i)) for i in range(n + 1)]
    drift = 2 * up - 1
    return [(n * win - i) / drift for i, win in enumerate(ruin_probabilities(n, up))]


def solve_exactly(kernel: np.ndarray, paid: np.ndarray) -> list[Fraction]:
    """(I − kernel)⁻¹ paid in rational arithmetic, for a kernel over states that are no ends."""
    n = len(paid)
    rows = [
        [Fraction(int(i == j)) - Fraction(float(kernel[i, j])) for j in range(n)]
        + [Fraction(float(paid[i]))]
        for i in range(n)
    ]
    for k in range(n):
        pivot = next(i for i in range(k, n) if rows[i][k] != 0)
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(n):
            if i != k and rows[i][k] != 0:
                rows[i] = [x - rows[i][k] * y for x, y in zip(rows[i], rows[k], strict=True)]
    return [row[n] for row in rows]
