"""The r-th smallest of many numbers, by counting.

In XLA, sorting 800 numbers takes a hundred times longer than counting how many of them do not
exceed x. So the order statistic is bracketed, low < answer ≤ high, with the counts at both ends.
The next x is where the answer would lie if the numbers in between were evenly spread, and every
third time the midpoint, so that no data make the search slow. When the counts show that the answer
is the smallest number above ``low``, or the largest up to ``high``, that number is returned:
exactly the number that sorting would give, ties included. A row that contains NaN gives NaN.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

__all__ = ["STRIPES", "order_statistics"]

ROWS_AT_A_TIME = 64
"""Number of rows searched together, few enough for the processor's cache."""

STRIPES = 16
"""Number of pieces of a row that are compared side by side, to use vector instructions."""


def order_statistics(values: jax.Array, ranks: jax.Array, counts: jax.Array) -> jax.Array:
    """The ``ranks``-th smallest (from 1) of the first ``counts`` numbers of every row.

    Parameters
    ----------
    values : (..., n) array
        The rows.
    ranks, counts : (...) integers
        One rank and one count per row, 1 ≤ rank ≤ count ≤ n. This is not checked.
    """
    length = values.shape[-1]
    padded = -(-length // STRIPES) * STRIPES
    rows = jnp.where(jnp.arange(length) < counts[..., None], values, jnp.inf).reshape(-1, length)
    rows = jnp.pad(rows, ((0, 0), (0, padded - length)), constant_values=jnp.inf)
    arguments = (
        rows.reshape(-1, STRIPES, padded // STRIPES),
        ranks.reshape(-1),
        counts.reshape(-1),
    )
    found: jax.Array = lax.map(_search, arguments, batch_size=ROWS_AT_A_TIME)
    return found.reshape(ranks.shape)


class _Bracket(NamedTuple):
    steps: jax.Array
    low: jax.Array
    high: jax.Array
    below: jax.Array
    """How many numbers are at most ``low``; less than the rank."""
    up_to: jax.Array
    """How many numbers are at most ``high``; at least the rank."""

    @property
    def middle(self) -> jax.Array:
        return self.low + 0.5 * (self.high - self.low)


def _search(arguments: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
    values, rank, count = arguments

    def number_up_to(x: jax.Array) -> jax.Array:
        in_columns: jax.Array = functools.reduce(
            jnp.add, [(stripe <= x).astype(jnp.int32) for stripe in values]
        )
        return in_columns.sum()

    def unfinished(bracket: _Bracket) -> jax.Array:
        undecided = (bracket.below != rank - 1) & (bracket.up_to != rank)
        return undecided & (bracket.low < bracket.middle) & (bracket.middle < bracket.high)

    def narrowed(bracket: _Bracket) -> _Bracket:
        steps, low, high, below, up_to = bracket
        even = low + (high - low) * ((rank - 0.5 - below) / (up_to - below))
        x = jnp.where((steps % 3 == 2) | (even <= low) | (even >= high), bracket.middle, even)
        number = number_up_to(x)
        lower = _Bracket(steps + 1, low, x, below, number)
        upper = _Bracket(steps + 1, x, high, number, up_to)
        return _Bracket(
            *(jnp.where(number >= rank, *ends) for ends in zip(lower, upper, strict=True))
        )

    smallest = values.min()
    largest = jnp.where(jnp.isinf(values), smallest, values).max()
    ties = number_up_to(smallest)
    at_bottom = ties >= rank
    high, up_to = jnp.where(at_bottom, smallest, largest), jnp.where(at_bottom, ties, count)
    found = lax.while_loop(
        unfinished, narrowed, _Bracket(jnp.array(0), smallest, high, ties, up_to)
    )
    just_above = jnp.where(values > found.low, values, jnp.inf).min()
    just_below = jnp.where(values <= found.high, values, -jnp.inf).max()
    ordered = jnp.where(found.below == rank - 1, just_above, just_below)
    # NaN is not at most infinity; the minimum does not reveal it, because XLA's may ignore NaN
    return jnp.where(
        number_up_to(jnp.array(jnp.inf, values.dtype)) == values.size, ordered, jnp.nan
    )
