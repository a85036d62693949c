"""Second implementations of sample sizes: costs pair by pair, allocations by trying all."""

import itertools
import math

import numpy as np
from scipy import stats

from oracles.theory_normality import discounted_visits, target_deviation


def contributions(kernel, rewards, discount, policy, alpha, state, counts):
    """−z_α d_s sd_s/√n_s for every s; kernel and rewards are dense (S, A, S)."""
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
    return math.fsum(
        c / math.sqrt(n + x) for c, n, x in zip(coefficients, counts, further, strict=True)
    )


def fewest_steps(coefficients, counts, frequencies, epsilon):
    """The smallest N with Σ c/√(n + N n̄) ≤ ε, counting up."""
    steps = 0
    while cost(coefficients, counts, [steps * share for share in frequencies]) > epsilon:
        steps += 1
    return steps


def fewest_observations(coefficients, counts, epsilon, most):
    """The least total of whole numbers x ≤ most with Σ c/√(n + x) ≤ ε.

    All values of all but the last coordinate are tried.
    """
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
    """Concentrations (S, A, S) after ``further[s]`` more observations of (s, π(s)), for all s."""
    grown = np.array(concentration, dtype=float)
    for s, n in enumerate(further):
        grown[s, policy[s]] += rng.multinomial(int(n), kernel[s, policy[s]])
    return grown


def long_run_shares(chain, start):
    """Shares of time from high powers of the chain's matrix, averaged over two of them.

    What remains of transient states is set to zero.
    """
    many = np.linalg.matrix_power(np.asarray(chain), 1 << 16)
    shares = 0.5 * (many[start] + (many @ chain)[start])
    return np.where(shares > 1e-12, shares, 0.0)


def shared_value(outcomes, law, rewards, discount, policy):
    """Value of every state under a law of the disturbance; rewards are by (s, a, d)."""
    system, earned = np.eye(len(outcomes)), np.zeros(len(outcomes))
    for s, action in enumerate(policy):
        for d, chance in enumerate(law):
            system[s, outcomes[s, action, d]] -= discount * chance
            earned[s] += chance * rewards[s, action, d]
    return np.linalg.solve(system, earned)


def shared_contributions(outcomes, law, rewards, discount, policy, alpha, state, count):
    """−z_α d_s sd[w_s(D)]/√n for every s, one disturbance at a time."""
    n = len(outcomes)
    values = shared_value(outcomes, law, rewards, discount, policy)
    chain = np.zeros((n, n))
    for s in range(n):
        for d, chance in enumerate(law):
            chain[s, outcomes[s, policy[s], d]] += chance
    visits = discounted_visits(chain, discount)[state]
    found = []
    for s in range(n):
        targets = [
            rewards[s, policy[s], d] + discount * values[outcomes[s, policy[s], d]]
            for d in range(len(law))
        ]
        centre = math.fsum(p * w for p, w in zip(law, targets, strict=True))
        variance = math.fsum(p * (w - centre) ** 2 for p, w in zip(law, targets, strict=True))
        found.append(-stats.norm.ppf(alpha) * visits[s] * math.sqrt(variance / count))
    return found


def value_gradient(outcomes, law, rewards, discount, policy, state, step=1e-5):
    """Gradient of the value in the probabilities, by finite differences."""
    found = []
    for d in range(len(law)):
        ends = []
        for sign in (1.0, -1.0):
            moved = np.array(law)
            moved[d] += sign * step
            # outside the simplex there is still a value, by the same formula
            ends.append(shared_value(outcomes, moved, rewards, discount, policy)[state])
        found.append((ends[0] - ends[1]) / (2.0 * step))
    return np.array(found)
