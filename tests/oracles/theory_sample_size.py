"""Sample sizes once more: costs pair by pair, allocations by trying them all."""

import itertools
import math

import numpy as np
from scipy import stats

from oracles.theory_normality import discounted_visits, target_deviation


def contributions(kernel, rewards, discount, policy, alpha, state, counts):
    """−z_α d_s sd_s/√n_s for every s; dense (S, A, S) kernel and rewards."""
    n = len(kernel)
    rows = np.array([kernel[s, policy[s]] for s in range(n)])
    visits = discounted_visits(rows, discount)
    values = visits @ np.array([rows[s] @ rewards[s, policy[s]] for s in range(n)])
    return [
        -stats.norm.ppf(alpha)
        * visits[state, s]
        * target_deviation(rows[s], rewards[s, policy[s]], discount, values)
        / math.sqrt(counts[s])
        for s in range(n)
    ]


def cost(coefficients, counts, further):
    return math.fsum(c / math.sqrt(n + x) for c, n, x in zip(coefficients, counts, further, strict=True))


def fewest_steps(coefficients, counts, frequencies, epsilon):
    """The smallest N with Σ c/√(n + N n̄) ≤ ε, counting up."""
    steps = 0
    while cost(coefficients, counts, [steps * share for share in frequencies]) > epsilon:
        steps += 1
    return steps


def fewest_observations(coefficients, counts, epsilon, most):
    """The least total of whole numbers x ≤ most with Σ c/√(n + x) ≤ ε, by trying all but the last coordinate."""
    best = math.inf
    *others, last = range(len(coefficients))
    for tried in itertools.product(range(most + 1), repeat=len(others)):
        spent = cost([coefficients[i] for i in others], [counts[i] for i in others], tried)
        if spent >= epsilon or sum(tried) >= best:
            continue
        needed = (coefficients[last] / (epsilon - spent)) ** 2 - counts[last]
        best = min(best, sum(tried) + max(0, math.ceil(needed - 1e-9)))
    return best


def collect(concentration, kernel, policy, further, rng):
    """Concentrations (S, A, S) after ``further[s]`` more observations of each (s, π(s)), one multinomial each."""
    grown = np.array(concentration, dtype=float)
    for s, n in enumerate(further):
        grown[s, policy[s]] += rng.multinomial(int(n), kernel[s, policy[s]])
    return grown
