"""Hierarchies to learn from: laws, rows and logs drawn from them."""

import numpy as np

from brmdp.beliefs.gammas import dirichlet_rows
from brmdp.decisions.families import family_of
from brmdp.pattern import full_pattern, pattern_and_entries


def pattern_within(n_states, n_actions, reach=None):
    if reach is None:
        return full_pattern(n_states, n_actions)
    near = abs(np.arange(n_states)[:, None] - np.arange(n_states)) <= reach
    table = np.repeat(near[:, None, :], n_actions, axis=1).astype(float)
    return pattern_and_entries(table, "possible")[0]


def entries_of(family, law):
    return family.shares(law)[family.kind_of_entry]


def rows_of(family, law):
    """Means of the rows' priors, (pairs, states)."""
    pattern = family.pattern
    return pattern.dense(entries_of(family, law)).reshape(pattern.n_pairs, pattern.n_states)


def simulated(shape, n_states, n_actions, strength, n, rng, *, reach=None, law=None):
    """A family, its law, counts with ``n`` observations per row, and the rows behind them.

    Without a law, one is drawn from the base.
    """
    family = family_of(shape, pattern_within(n_states, n_actions, reach))
    if law is None:
        law = family.base
        if family.n_categories:
            law = dirichlet_rows(family.base, 1, rng, family.law_sizes)[0]
    weight = np.maximum(strength * entries_of(family, law), 1e-30)
    rows = dirichlet_rows(weight, 1, rng, family.pattern.row_widths)[0]
    return family, law, logged(family.pattern, rows, n, rng), rows


def logged(pattern, rows, n, rng):
    table = pattern.dense(rows).reshape(pattern.n_pairs, pattern.n_states)
    counts = rng.multinomial(n, table / table.sum(axis=1, keepdims=True))
    return counts[pattern.pair_of_transition, pattern.next_states]
