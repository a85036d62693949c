"""Finite horizons the slow way: plain loops, and the same problem with time as part of the state.

A problem over H steps is an infinite one with the states (h, s), h = 0, …, H, and one end: states
of layer H pay their terminal value and go to the end, which pays nothing. Nothing is imported from
the package.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Risk = Callable[[int, int, np.ndarray], float]


def backward(
    risk: Risk,
    rewards: np.ndarray,
    discount: float,
    horizon: int,
    terminal: np.ndarray,
    policy: np.ndarray | None = None,
    admissible: np.ndarray | None = None,
) -> np.ndarray:
    """(H + 1, S) values: optimal, or of a policy (H, S) or (H, S, A); dense rewards (S, A, S)."""
    n_states, n_actions, _ = rewards.shape
    values = np.empty((horizon + 1, n_states))
    values[horizon] = terminal
    for h in reversed(range(horizon)):
        for s in range(n_states):
            q = {}
            for a in range(n_actions):
                if admissible is None or admissible[s, a]:
                    q[a] = risk(s, a, rewards[s, a] + discount * values[h + 1])
            if policy is None:
                values[h, s] = max(q.values())
            elif policy.ndim == 2:
                values[h, s] = q[int(policy[h, s])]
            else:
                values[h, s] = sum(policy[h, s, a] * q[a] for a in q if policy[h, s, a] > 0)
    return values


def with_time(table: np.ndarray, horizon: int, last: float) -> np.ndarray:
    """A table (…, S, A, S) for the states (h, s) and the end; the moves to the end get ``last``."""
    *leading, n_states, n_actions, _ = table.shape
    n = (horizon + 1) * n_states + 1
    out = np.zeros((*leading, n, n_actions, n))
    for h in range(horizon):
        rows, columns = h * n_states, (h + 1) * n_states
        out[..., rows : rows + n_states, :, columns : columns + n_states] = table
    out[..., horizon * n_states :, :, n - 1] = last
    return out


def rewards_with_time(rewards: np.ndarray, horizon: int, terminal: np.ndarray) -> np.ndarray:
    """Rewards (S, A, S) for the states (h, s) and the end."""
    n_states = rewards.shape[0]
    out = with_time(rewards, horizon, 0.0)
    out[horizon * n_states : -1, :, -1] = terminal[:, None]
    return out


def outcomes_with_time(outcomes: np.ndarray, horizon: int) -> np.ndarray:
    """Next states (S, A, D) of a disturbance for the states (h, s) and the end; −1 stays −1."""
    n_states, n_actions, n_disturbances = outcomes.shape
    n = (horizon + 1) * n_states + 1
    out = np.full((n, n_actions, n_disturbances), n - 1)
    for h in range(horizon):
        moved = np.where(outcomes < 0, -1, outcomes + (h + 1) * n_states)
        out[h * n_states : (h + 1) * n_states] = moved
    return out


def mask_with_time(admissible: np.ndarray, horizon: int) -> np.ndarray:
    """Admissible actions (S, A) for the states (h, s) and the end."""
    end = np.ones((1, admissible.shape[1]), dtype=bool)
    return np.concatenate([np.tile(admissible, (horizon + 1, 1)), end])
