"""Oracles for values in draws, certificates and comparisons: plain loops over dense arrays.

Nothing is imported from the package. Kernels and rewards are dense, (S, A, S); a policy has (S, A)
probabilities.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from math import comb

import numpy as np


def policy_value(
    kernel: np.ndarray, rewards: np.ndarray, weights: np.ndarray, discount: float
) -> np.ndarray:
    """V^π by one linear system, assembled term by term."""
    n_states, n_actions, _ = kernel.shape
    system, paid = np.eye(n_states), np.zeros(n_states)
    for s in range(n_states):
        for a in range(n_actions):
            for t in range(n_states):
                chance = weights[s, a] * kernel[s, a, t]
                system[s, t] -= discount * chance
                paid[s] += chance * rewards[s, a, t]
    return np.linalg.solve(system, paid)


def optimal_value(
    kernel: np.ndarray,
    rewards: np.ndarray,
    discount: float,
    admissible: np.ndarray,
    accuracy: float = 1e-11,
) -> np.ndarray:
    """V* by value iteration from zero."""
    values = np.zeros(kernel.shape[0])
    paid = (kernel * rewards).sum(axis=2)
    while True:
        q_values = np.where(admissible, paid + discount * kernel @ values, -np.inf)
        following = q_values.max(axis=1)
        change = np.abs(following - values).max()
        values = following
        if discount * change <= accuracy * (1 - discount):
            return values


def one_hot(policy: np.ndarray, n_actions: int) -> np.ndarray:
    weights = np.zeros((len(policy), n_actions))
    for s, a in enumerate(policy):
        weights[s, a] = 1.0
    return weights


def all_policies(admissible: np.ndarray) -> Iterator[np.ndarray]:
    """Every deterministic policy."""
    choices = [np.flatnonzero(row) for row in admissible]
    for actions in itertools.product(*choices):
        yield np.array(actions)


def binomial_cdf(k: int, n: int, p: Fraction) -> Fraction:
    """Pr(Binomial(n, p) ≤ k) in exact arithmetic."""
    return sum((comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(k + 1)), Fraction(0))


def largest_rank(n: int, alpha: Fraction, beta: Fraction) -> int:
    """The largest l with Pr(Binomial(n, α) ≤ l − 1) ≤ β, by trying one after another; 0 if none."""
    rank = 0
    while rank < n and binomial_cdf(rank, n, alpha) <= beta:
        rank += 1
    return rank


def switched_gains(
    kernel: np.ndarray,
    rewards: np.ndarray,
    policy: np.ndarray,
    baseline: np.ndarray,
    discount: float,
    start: np.ndarray,
) -> np.ndarray:
    """Gain over the baseline at the start if a single state follows the policy, by state."""
    before = policy_value(kernel, rewards, baseline, discount)
    gains = np.empty(len(policy))
    for s in range(len(policy)):
        mixed = baseline.copy()
        mixed[s] = policy[s]
        gains[s] = start @ (policy_value(kernel, rewards, mixed, discount) - before)
    return gains


def visits(
    kernel: np.ndarray, weights: np.ndarray, discount: float, start: np.ndarray
) -> np.ndarray:
    """(1 − γ) Σ_t γ^t Pr(s_t = s), summed step by step."""
    chain = np.einsum("sa,sat->st", weights, kernel)
    now, total, factor = start.copy(), np.zeros_like(start), 1 - discount
    while factor > 1e-16:
        total += factor * now
        now, factor = now @ chain, factor * discount
    return total
