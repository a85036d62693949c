"""Oracles for batch methods: linear programs, enumeration and plain value iteration."""

import itertools

import numpy as np
from scipy.optimize import linprog


def least_mean(centre, weights, radius, targets):
    """Min p·w over the ball, as a linear program in p and the distances by entry."""
    n = len(centre)
    unit = np.eye(n)
    found = linprog(
        np.concatenate((targets, np.zeros(n))),
        A_ub=np.block([[unit, -unit], [-unit, -unit], [np.zeros((1, n)), np.array([weights])]]),
        b_ub=np.concatenate((centre, -np.asarray(centre), [radius])),
        A_eq=np.concatenate((np.ones(n), np.zeros(n)))[None],
        b_eq=[1.0],
        method="highs",
    )
    assert found.status == 0
    return found.fun


def robust_values(kernel, rewards, discount, radii, weights, sweeps=100):
    """Value iteration over dense (S, A, S) rows, each minimum by a linear program."""
    n_states, n_actions, _ = kernel.shape
    values = np.zeros(n_states)
    for _ in range(sweeps):
        q = [
            [
                least_mean(
                    kernel[s, a], weights[s, a], radii[s, a], rewards[s, a] + discount * values
                )
                for a in range(n_actions)
            ]
            for s in range(n_states)
        ]
        following = np.max(q, axis=1)
        if np.abs(following - values).max() < 1e-9:
            break
        values = following
    return values


def policy_value(kernel, rewards, discount, policy):
    """Value of (S, A) probabilities in a dense kernel."""
    rows = np.einsum("sa,sat->st", policy, kernel)
    paid = np.einsum("sa,sat,sat->s", policy, kernel, rewards)
    return np.linalg.solve(np.eye(len(kernel)) - discount * rows, paid)


def deterministic_policies(n_states, n_actions):
    """All of them, as (S,) actions."""
    return itertools.product(range(n_actions), repeat=n_states)


def lower_tail(values, level):
    """Mean of the worst ``level`` of equally likely values; the last one counts in part."""
    total, left = 0.0, level
    for value in sorted(values):
        share = min(1.0 / len(values), left)
        total += share * value
        left -= share
    return total / level


def improvement(q, baseline, errors, distance):
    """Soft-SPIBB's step in one state: the best Σ π q within the distance, as a linear program."""
    return -least_mean(baseline, errors, distance, -np.asarray(q))


def touches(centre, radius, targets, thresholds):
    """Whether the ball around a centre reaches every half-space {p : p·w ≤ g}."""
    return all(
        least_mean(centre, np.ones(len(centre)), radius, w) <= g + 1e-7
        for w, g in zip(targets, thresholds, strict=True)
    )
