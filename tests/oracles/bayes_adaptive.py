"""Values of learning optimally for a few steps: every history is written out."""

from __future__ import annotations

import numpy as np


def action_values(concentration, rewards, discount, state, steps, leaf=None):
    """(A,) values of each action followed by optimal learning; afterwards, ``leaf`` of the state.

    The belief after a history is the prior with its counts, and the next state is drawn from its
    mean.
    """
    values = []
    for action in range(concentration.shape[1]):
        row = concentration[state, action]
        total = 0.0
        for following in np.flatnonzero(row):
            after = concentration.copy()
            after[state, action, following] += 1.0
            later = 0.0 if leaf is None else leaf[following]
            if steps > 1:
                later = max(action_values(after, rewards, discount, following, steps - 1, leaf))
            worth = rewards[state, action, following] + discount * later
            total += row[following] / row.sum() * worth
        values.append(total)
    return values
