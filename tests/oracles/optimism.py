"""Second, obvious implementations of the optimistic methods: plain loops, nothing of the package.

``model`` is a tuple (φ₀, counts, rewards, γ): prior concentrations and counts of transitions as
(S, A, S) arrays, and rewards r(s,a,s'). Each method is a function q(model, s, a, w) of the targets
w = r + γV of one pair; :func:`fixed_point` iterates V(s) = max_a q.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import optimize


def fixed_point(model, q, rounds=400):
    """(S, A) values at the fixed point, by value iteration from zero."""
    prior, _, rewards, discount = model
    n_states, n_actions, _ = prior.shape
    values, found = np.zeros(n_states), np.zeros((n_states, n_actions))
    for _ in range(rounds):
        for s in range(n_states):
            for a in range(n_actions):
                found[s, a] = q(model, s, a, rewards[s, a] + discount * values)
        values = found.max(axis=1)
    return found


def phi(model, s, a):
    return model[0][s, a] + model[1][s, a]


def mean(model, s, a):
    return phi(model, s, a) / phi(model, s, a).sum()


def doubt(model, s, a):
    """√Σ Var P, from the variance of each Beta marginal."""
    own = phi(model, s, a)
    total = own.sum()
    return math.sqrt(sum(x * (total - x) / (total**2 * (total + 1)) for x in own))


def largest_value(model):
    return model[2].max() / (1 - model[3])


def beb(beta):
    return lambda model, s, a, w: (
        mean(model, s, a) @ w + beta / (1 + model[0][s, a].sum() + model[1][s, a].sum())
    )


def vbrb(beta):
    return lambda model, s, a, w: mean(model, s, a) @ w + beta * doubt(model, s, a)


def eubrl(eta):
    """The reward is replaced before planning: (1 − P_U) r + P_U η E."""

    def q(model, s, a, w):
        before = (model[0], np.zeros_like(model[1]), *model[2:])
        pairs = [(i, j) for i in range(w.size) for j in range(model[0].shape[1])]
        share = min(doubt(model, s, a) / max(doubt(before, *pair) for pair in pairs), 1.0)
        p, r = mean(model, s, a), model[2][s, a]
        reward = (1 - share) * (p @ r) + share * eta * doubt(model, s, a)
        return reward + p @ (w - r)

    return q


def r_max(visits):
    def q(model, s, a, w):
        if model[1][s, a].sum() < visits:
            return largest_value(model)
        return mean(model, s, a) @ w

    return q


def ball(model, s, a, w, radius):
    """The best row in an L1 ball, as a linear programme over p and u ≥ |p − m|."""
    n, m = w.size, mean(model, s, a)
    above = np.block([[np.eye(n), -np.eye(n)], [-np.eye(n), -np.eye(n)]])
    sizes = np.concatenate([np.zeros(n), np.ones(n)])[None]
    found = optimize.linprog(
        np.concatenate([-w, np.zeros(n)]),
        A_ub=np.vstack([above, sizes]),
        b_ub=np.concatenate([m, -m, [radius]]),
        A_eq=1.0 - sizes,
        b_eq=[1.0],
        bounds=(0, None),
    )
    assert found.status == 0
    return -found.fun


def ucrl2(delta, scale=1.0):
    def q(model, s, a, w):
        t = model[1].sum() + 1
        log = math.log(2 * model[0].shape[1] * t / delta)
        radius = scale * math.sqrt(14 * w.size * log / max(1, model[1][s, a].sum()))
        return ball(model, s, a, w, radius)

    return q


def ucbvi_gamma(delta, scale=1.0):
    def q(model, s, a, w):
        prior, counts, rewards, discount = model
        n, p = max(1, counts[s, a].sum()), mean(model, s, a)
        log = math.log(2 * prior.shape[0] * prior.shape[1] * (counts.sum() + 1) / delta)
        variance = p @ w**2 - (p @ w) ** 2
        span = (rewards.max() - rewards.min()) / (1 - discount)
        bonus = scale * max(math.sqrt(2 * log * max(variance, 0.0) / n), 3 * log * span / n)
        return min(p @ w + bonus, largest_value(model))

    return q


def best_of_draws(draws, value):
    """The largest w·p over given draws of (S + 1)-vectors, whose last entry is worth ``value``."""
    return lambda model, s, a, w: max(draw @ np.append(w, value) for draw in draws[s][a])


def q_learning(steps, n_states, n_actions, discount, power):
    """Q after the transitions (s, a, r, s')."""
    q = {(s, a): 0.0 for s in range(n_states) for a in range(n_actions)}
    n = dict.fromkeys(q, 0)
    for s, a, r, following in steps:
        n[s, a] += 1
        target = r + discount * max(q[following, b] for b in range(n_actions))
        q[s, a] += n[s, a] ** -power * (target - q[s, a])
    return np.array([[q[s, a] for a in range(n_actions)] for s in range(n_states)])
