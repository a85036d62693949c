"""Traps by looking at every set of states; nothing is imported from the package."""

from __future__ import annotations

from itertools import combinations

import numpy as np


def reachable(possible: np.ndarray, start: int) -> set[int]:
    """States that can be reached from ``start``, itself included."""
    seen, waiting = {start}, [start]
    while waiting:
        here = waiting.pop()
        for there in np.flatnonzero(possible[here]).tolist():
            if there not in seen:
                seen.add(there)
                waiting.append(there)
    return seen


def communicates(possible: np.ndarray, chosen: list[int]) -> bool:
    """Whether every state of the set leads to every other, and to itself, within the set."""
    inner = possible[np.ix_(chosen, chosen)]
    paths = inner.copy()
    for _ in chosen:
        paths = paths | (paths @ inner)
    return bool(paths.all())


def least_outflow(phi: np.ndarray, ends: set[int], start: int) -> float:
    """The least concentration out of a trap that can be reached from ``start``."""
    possible = phi > 0.0
    others = sorted(reachable(possible, start) - ends)
    least = np.inf
    for size in range(1, len(others) + 1):
        for chosen in combinations(others, size):
            if communicates(possible, list(chosen)):
                outside = [t for t in range(len(phi)) if t not in chosen]
                least = min(least, float(phi[np.ix_(list(chosen), outside)].sum()))
    return least
