"""Second implementation of Theorem 1: sums over paths and series instead of linear systems."""

import itertools
import math

import numpy as np
from scipy import stats


def long_run_shares(matrix, start, steps=200_000):
    """Share of time in each state over ``steps`` steps, from the distributions of s_t.

    The chain may be periodic.
    """
    distribution = np.zeros(len(matrix))
    distribution[start] = 1.0
    total = np.zeros(len(matrix))
    for _ in range(steps):
        total += distribution
        distribution = distribution @ matrix
    return total / steps


def discounted_visits(matrix, discount, tolerance=1e-16):
    """(I − γP)⁻¹ = Σ γ^t P^t, term by term."""
    total = np.zeros_like(matrix)
    term = np.eye(len(matrix))
    while np.max(term) > tolerance:
        total += term
        term = discount * (term @ matrix)
    return total


def target_deviation(row, rewards, discount, values):
    """Standard deviation of X = r(s') + γV(s') under a row, from Var X = ½ ΣΣ p p' (x − x')²."""
    targets = [rewards[s] + discount * values[s] for s in range(len(row))]
    variance = 0.5 * math.fsum(
        p * q * (x - y) ** 2
        for (p, x), (q, y) in itertools.product(list(zip(row, targets, strict=True)), repeat=2)
    )
    return math.sqrt(variance)


def limit(kernel, rewards, discount, policy, alpha, shares):
    """Mean and covariance of both limits, entry by entry; dense (S, A, S) kernel and rewards."""
    n = len(kernel)
    rows = np.array([kernel[s, policy[s]] for s in range(n)])
    visits = discounted_visits(rows, discount)
    paid = [math.fsum(rows[s] * rewards[s, policy[s]]) for s in range(n)]
    values = [math.fsum(visits[s] * paid) for s in range(n)]
    z = stats.norm.ppf(alpha)
    sd = [
        target_deviation(rows[s], rewards[s, policy[s]], discount, values) / math.sqrt(shares[s])
        for s in range(n)
    ]
    mean = [math.fsum(visits[s, j] * z * sd[j] for j in range(n)) for s in range(n)]
    covariance = [
        [math.fsum(visits[s, j] * sd[j] ** 2 * visits[t, j] for j in range(n)) for t in range(n)]
        for s in range(n)
    ]
    return np.array(values), np.array(sd), z * np.array(sd), np.array(mean), np.array(covariance)


def expected_counts(matrix, start, steps):
    """Expected number of moves s → s' in ``steps`` steps."""
    distribution = np.zeros(len(matrix))
    distribution[start] = 1.0
    total = np.zeros_like(matrix)
    for _ in range(steps):
        total += distribution[:, None] * matrix
        distribution = distribution @ matrix
    return total


def path_probabilities(matrix, start, steps):
    """Probability of every table of counts, by enumerating all paths.

    The keys are tuples of the flattened counts.
    """
    n = len(matrix)
    found = {}
    for path in itertools.product(range(n), repeat=steps):
        probability, counts, state = 1.0, [0] * (n * n), start
        for following in path:
            probability *= matrix[state, following]
            counts[state * n + following] += 1
            state = following
        found[tuple(counts)] = found.get(tuple(counts), 0.0) + probability
    return {counts: probability for counts, probability in found.items() if probability > 0.0}


def expansion_of_the_proof(kernel, rewards, discount, policy, alpha, counts):
    """V + R[(P̃ − P)w + z_α sd(w)/√N(s)] for one (S, S) table of counts.

    The proof compares it with V_{φ,α}.
    """
    n = len(kernel)
    rows = np.array([kernel[s, policy[s]] for s in range(n)])
    paid = np.array([rows[s] @ rewards[s, policy[s]] for s in range(n)])
    visits = discounted_visits(rows, discount)
    values = visits @ paid
    moved = np.empty(n)
    for s in range(n):
        targets = rewards[s, policy[s]] + discount * values
        seen = counts[s].sum()
        moved[s] = (counts[s] / seen - rows[s]) @ targets
        moved[s] += (
            stats.norm.ppf(alpha)
            * target_deviation(rows[s], rewards[s, policy[s]], discount, values)
            / math.sqrt(seen)
        )
    return values, values + visits @ moved


def two_state_risk(concentration, alpha):
    """Quantile of w·P = w_low + (w_high − w_low) B with B ~ Beta(φ_high, φ_low)."""

    def risk(s, a, targets):
        low, high = np.argsort(targets)
        share = stats.beta.ppf(alpha, concentration[s, a, high], concentration[s, a, low])
        return targets[low] + (targets[high] - targets[low]) * share

    return risk
