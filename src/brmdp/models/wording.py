"""Policies and numbers in words, by the labels of the log."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from brmdp._validation import BoolArray, FloatArray, IntArray
from brmdp.logs import Bins, StateSpace

__all__ = ["bound_figure", "figure", "policy_in_words"]

MOST_RUNS = 4
"""Up to this many stretches of states with one action are described as such."""

NEGLIGIBLE = 1e-3
"""Share of its time up to which a policy's states may be left out of its description."""

LARGEST_PLAIN = 1e9
"""Smaller numbers are written without an exponent."""

LISTED = 6
"""Up to this many labels are listed one by one."""


def figure(value: float, digits: int = 4) -> str:
    """A number with so many digits, without an exponent where people write none."""
    if value == 0.0 or not math.isfinite(value):
        return f"{abs(value) if value == 0.0 else value:.0f}"
    if 1e-4 <= abs(value) < LARGEST_PLAIN:
        # the digits of what is shown: 9.9996 has two before the point
        size = float(f"{abs(value):.{digits - 1}e}")
        places = max(0, digits - 1 - math.floor(math.log10(size)))
        return f"{value:,.{places}f}"
    return f"{value:.{digits - 1}e}"


def bound_figure(value: float, side: Literal["most", "least"], digits: int = 4) -> str:
    """A bound with so many digits, rounded so that it stays one."""
    text = figure(value, digits)
    shown = float(text.replace(",", ""))
    if value == 0.0 or not math.isfinite(value) or shown == value:
        return text
    if (shown > value) == (side == "most"):
        return text
    step = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
    if abs(value) < LARGEST_PLAIN:
        step = min(step, 1.0)
    moved = figure(shown + (step if side == "most" else -step), digits)
    kept = float(moved.replace(",", ""))
    holds = kept >= value if side == "most" else kept <= value
    return moved if holds else f"{value:.17g}"


def policy_in_words(
    states: StateSpace,
    actions: Sequence[str],
    policy: IntArray,
    visits: FloatArray,
    ended: IntArray,
) -> tuple[str, ...]:
    """What a policy does, in sentences; thresholds where states are ordered.

    Parameters
    ----------
    states : StateSpace
    actions : sequence of str
    policy : (S,) integers
    visits : (S,) array
        Share of discounted time that it spends in each state.
    ended : integers
        States in which nothing is decided any more.
    """
    counts = np.ones(states.n_states, dtype=bool)
    counts[ended] = False
    chosen = np.unique(policy[counts])
    if chosen.size == 0:
        return ("Nothing is decided: everything has ended.",)
    if chosen.size == 1:
        return (f"Always {actions[chosen[0]]}.",)
    if states.ordered:
        exact = _stretches(states, actions, policy, counts)
        if exact:
            return (exact,)
        visited = counts & (visits > NEGLIGIBLE / states.n_states)
        rough = _stretches(states, actions, policy, visited)
        if rough:
            left = 100.0 * float(visits[counts & ~visited].sum())
            return (
                rough,
                f"Elsewhere, where it spends {left:.2g} % of its time, it may do otherwise: see "
                "the table.",
            )
    return tuple(
        _places(states, actions[a], np.flatnonzero(counts & (policy == a)), int(counts.sum()))
        for a in chosen
    )


def _stretches(
    states: StateSpace, actions: Sequence[str], policy: IntArray, counts: BoolArray
) -> str:
    """The policy by stretches of ordered states; empty if there are too many of them."""
    where = np.flatnonzero(counts)
    numbers = states.numbers
    if where.size == 0 or numbers is None:
        return ""
    order = where[np.argsort(numbers[where], kind="stable")]
    turns = np.flatnonzero(np.diff(policy[order])) + 1
    if turns.size + 1 > MOST_RUNS or turns.size == 0:
        return ""
    name, binned = states.name, isinstance(states.axes[0], Bins)
    begins = [numbers[order[k]] for k in turns]
    parts = []
    for k, first in enumerate([0, *turns]):
        action = actions[policy[order[first]]]
        if k == 0:
            limit = f"is below {begins[0]:,.12g}"
        elif k == turns.size:
            limit = f"is {begins[-1]:,.12g} or more"
        elif binned:
            limit = f"is from {begins[k - 1]:,.12g} to below {begins[k]:,.12g}"
        else:
            low, high = begins[k - 1], numbers[order[turns[k] - 1]]
            limit = f"is {low:,.12g}" if low == high else f"is from {low:,.12g} to {high:,.12g}"
        parts.append(f"{action} while {name} {limit}" if k == 0 else f"{action} where it {limit}")
    text = "; ".join(parts) + "."
    return text[0].upper() + text[1:]


def _places(states: StateSpace, action: str, where: IntArray, total: int) -> str:
    """In which states an action is taken."""
    labels = [states.labels[s] for s in where[:LISTED]]
    listed = ", ".join(labels)
    if where.size <= LISTED:
        return f"{action}: {listed}."
    return f"{action}: in {where.size} of {total} states ({listed}, …)."
