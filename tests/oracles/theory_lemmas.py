"""Second implementations of the lemmas behind the regret bounds: bisection, series, loops.

Nothing is imported from the package.
"""

from __future__ import annotations

import math

import numpy as np

from oracles import online


def smallest_deviation(tail: float, total: float, discount: float) -> float:
    """The ε at which exp(−φ₀(1 − γ)²ε²/2) falls to ``tail``, by bisection."""
    low, high = 0.0, 1.0
    while math.exp(-total * (1 - discount) ** 2 * high**2 / 2) > tail:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if math.exp(-total * (1 - discount) ** 2 * middle**2 / 2) > tail:
            low = middle
        else:
            high = middle
    return high


def nested_values(
    phi: np.ndarray, rewards: np.ndarray, discount: float, policy: np.ndarray, levels: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """V^π_{φ,α} and ρ^α(w·P) at it, (S,) each, by value iteration.

    φ and rewards are (S, A, S), levels (S, A).
    """
    s = np.arange(len(policy))
    rows, paid, alpha = phi[s, policy], rewards[s, policy], levels[s, policy]
    values, q_values = online.quantile_value_iteration(
        rows[None, :, None], paid[:, None], discount, alpha[None, :, None], accuracy=1e-11
    )
    return values[0], q_values[0, :, 0]


def decomposition_series(
    difference: np.ndarray, discrepancy: np.ndarray, rows: np.ndarray, discount: float
) -> tuple[np.ndarray, np.ndarray]:
    """Σ_i γ^{i−1} E[Δ(s_i)] and Σ_i i γ^{i−1} E[D(s_i)] for every first state, term by term."""
    left, right = np.zeros(len(difference)), np.zeros(len(difference))
    law = np.eye(len(difference))  # distribution of s_i, one row per first state
    i = 1
    while i * discount ** (i - 1) > 1e-18:
        left += discount ** (i - 1) * law @ difference
        right += i * discount ** (i - 1) * law @ discrepancy
        law = law @ rows
        i += 1
    return left, right


def simulated_pseudo_episode(
    difference: np.ndarray,
    discrepancy: np.ndarray,
    rows: np.ndarray,
    discount: float,
    state: int,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Both sums along one trajectory, which ends after every step with probability 1 − γ."""
    left = right = 0.0
    i = 1
    while True:
        left += difference[state]
        right += i * discrepancy[state]
        if rng.random() >= discount:
            return left, right
        state = int(rng.choice(len(rows), p=rows[state]))
        i += 1


def optimism(
    phi: np.ndarray,
    rewards: np.ndarray,
    discount: float,
    kernel: np.ndarray,
    levels: np.ndarray,
    floor: float,
) -> tuple[bool, bool, bool, float]:
    """Whether G_k, V* ≤ V_k and V*_{φ,α̲} ≤ V_k hold, and the smallest margin of a comparison.

    Arrays are (S, A, S).
    """
    (values,), _ = online.quantile_value_iteration(
        phi[None], rewards, discount, levels[None], accuracy=1e-10
    )
    (robust,), _ = online.quantile_value_iteration(
        phi[None], rewards, discount, floor, accuracy=1e-10
    )
    best, _ = online.policy_iteration(kernel, rewards, discount)
    n_states, n_actions, _ = phi.shape
    event, margins = True, list(np.abs(values - best))
    for s in range(n_states):
        for a in range(n_actions):
            w = rewards[s, a] + discount * values
            quantile = online.dirichlet_quantiles(phi[s, a][None], w[None], levels[s, a][None])[0]
            true = float(kernel[s, a] @ w)
            margins.append(abs(quantile - true))
            event = event and true <= quantile
    return (
        event,
        bool((best <= values).all()),
        bool((robust <= values + 1e-9).all()),
        float(min(margins)),
    )


def first_informative(scale: float, for_good: bool, most: int) -> int:
    """The first k at which 1 − scale·ln(2k)/√k is positive, by a plain scan.

    If ``for_good``, the first k from which it stays positive, up to ``most``.
    """
    positive = [1 - scale * math.log(2 * k) / math.sqrt(k) > 0 for k in range(1, most + 1)]
    if not for_good:
        return positive.index(True) + 1
    last_silent = max((k for k, says in enumerate(positive, 1) if not says), default=0)
    assert last_silent < most
    return last_silent + 1
