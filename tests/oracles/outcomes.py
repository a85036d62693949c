"""Beliefs over outcomes (s', r), slow and obvious: plain lists, NumPy's own Dirichlet draws."""

from __future__ import annotations

import numpy as np


def atoms_of(prior: list[tuple[int, float, float]], data: list[tuple[int, float]]):
    """Next states, rewards and concentrations of one pair, every observation an atom of its own.

    ``prior`` lists (next state, reward, concentration), ``data`` (next state, reward).
    """
    listed = [*prior, *((s, r, 1.0) for s, r in data)]
    next_states, rewards, weights = zip(*listed, strict=True)
    return np.array(next_states), np.array(rewards), np.array(weights)


def moments(pair, values, discount: float) -> tuple[float, float]:
    """Mean and variance of Σ_i P_i (r_i + γV(s'_i)) for P ~ Dirichlet, in closed form."""
    next_states, rewards, weights = pair
    targets = rewards + discount * np.asarray(values)[next_states]
    total = weights.sum()
    mean = float(weights @ targets / total)
    variance = float(weights @ targets**2 / total - mean**2) / (total + 1.0)
    return mean, variance


def draws(pair, values, discount: float, n: int, rng: np.random.Generator) -> np.ndarray:
    """``n`` draws of Σ_i P_i (r_i + γV(s'_i))."""
    next_states, rewards, weights = pair
    targets = rewards + discount * np.asarray(values)[next_states]
    return rng.dirichlet(weights, n) @ targets


def policy_values(next_states, rewards, probabilities, discount: float) -> np.ndarray:
    """Values of a policy from the outcomes of its row in each state, by a dense linear system."""
    n = len(next_states)
    kernel, paid = np.zeros((n, n)), np.zeros(n)
    for s in range(n):
        for t, r, p in zip(next_states[s], rewards[s], probabilities[s], strict=True):
            kernel[s, t] += p
            paid[s] += p * r
    return np.linalg.solve(np.eye(n) - discount * kernel, paid)
