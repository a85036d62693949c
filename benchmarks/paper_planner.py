"""The paper's planner in straightforward NumPy (BR-MDP-vi-k-approx), the baseline to beat."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm


def budgets(levels: np.ndarray, coefficient: float, cap: int = 2048) -> np.ndarray:
    """Posterior draws per pair (eq. app-nsa)."""
    density = norm.pdf(norm.ppf(levels))
    return np.minimum(cap, np.ceil(coefficient * levels * (1 - levels) / density**2)).astype(int)


def plan(
    concentration: np.ndarray,
    rewards: np.ndarray,
    discount: float,
    levels: np.ndarray,
    coefficient: float,
    rng: np.random.Generator,
    tolerance: float = 1e-8,
    max_iterations: int = 10_000,
    initial: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, int]:
    """Value iteration on empirical quantiles of fixed draws, from V = 0 or from a warm start.

    Returns values, Q-values and the number of sweeps.
    """
    n_states, n_actions, _ = concentration.shape
    pairs = list(np.ndindex(n_states, n_actions))
    counts = budgets(levels, coefficient)
    ranks = np.ceil(counts * levels).astype(int) - 1
    draws = {pair: rng.dirichlet(concentration[pair], size=counts[pair]) for pair in pairs}

    values = np.zeros(n_states) if initial is None else initial
    q_values = np.empty((n_states, n_actions))
    change, iterations = np.inf, 0
    while change > tolerance and iterations < max_iterations:
        for pair in pairs:
            targets = draws[pair] @ (rewards[pair] + discount * values)
            q_values[pair] = np.partition(targets, ranks[pair])[ranks[pair]]
        improved = q_values.max(axis=1)
        change, iterations = np.max(np.abs(improved - values)), iterations + 1
        values = improved
    return values, q_values, iterations
