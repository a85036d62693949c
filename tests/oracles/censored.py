"""Posteriors of a disturbance that is seen exactly or as "at least c", slow and obvious.

Data are a list of sets: the values that an observation leaves possible. The likelihood is the
product of the probabilities of these sets; nothing here knows that it is conjugate.
"""

from __future__ import annotations

from itertools import product
from math import lgamma, prod

import numpy as np

import brmdp


def _moments(points, weights):
    """Mean and variance of each coordinate."""
    weights = weights / weights.sum()
    mean = weights @ points
    return mean, weights @ (points - mean) ** 2


def _likelihood(points, seen):
    return prod(points[:, sorted(possible)].sum(axis=1) for possible in seen)


def on_the_simplex(prior, seen, n=700):
    """Moments of p for three values, by the midpoints of a grid on the simplex."""
    axis = (np.arange(n) + 0.5) / n
    first, second = (grid.ravel() for grid in np.meshgrid(axis, axis, indexing="ij"))
    inside = first + second < 1.0
    points = np.stack([first, second, 1.0 - first - second], axis=1)[inside]
    density = np.prod(points ** (np.asarray(prior) - 1.0), axis=1)
    return _moments(points, density * _likelihood(points, seen))


def on_the_hazards(prior, seen, n=24):
    """Moments of p for four values, by a Gauss rule over their three hazards.

    The change of variables has the Jacobian Π_j (1 − h_j)^{2−j}. With integer concentrations the
    integrands are polynomials, for which the rule is exact.
    """
    nodes, weights = np.polynomial.legendre.leggauss(n)
    h = np.array(list(product((nodes + 1.0) / 2.0, repeat=3)))
    weight = np.array([prod(chosen) for chosen in product(weights, repeat=3)])
    left = np.cumprod(1.0 - h, axis=1)
    points = np.column_stack([h[:, 0], left[:, 0] * h[:, 1], left[:, 1] * h[:, 2], left[:, 2]])
    jacobian = (1.0 - h[:, 0]) ** 2 * (1.0 - h[:, 1])
    density = np.prod(points ** (np.asarray(prior) - 1.0), axis=1)
    return _moments(points, weight * jacobian * density * _likelihood(points, seen))


def as_a_mixture(prior, seen):
    """The posterior as a mixture of Dirichlet laws: (weights, concentrations).

    Every observation is completed in all possible ways; each way gives a Dirichlet law, with the
    probability of the completed data as its weight.
    """
    prior = np.asarray(prior, dtype=float)
    completed = {(0,) * prior.size: 1}
    for possible in seen:
        following: dict[tuple[int, ...], int] = {}
        for counts, ways in completed.items():
            for j in possible:
                key = (*counts[:j], counts[j] + 1, *counts[j + 1 :])
                following[key] = following.get(key, 0) + ways
        completed = following
    phis = prior + np.array(list(completed))
    logs = [
        np.log(float(ways)) + sum(lgamma(x) for x in phi)
        for ways, phi in zip(completed.values(), phis, strict=True)
    ]
    weights = np.exp(np.array(logs) - max(logs))
    return weights / weights.sum(), phis


def cdf(prior, seen, values, z):
    """Pr(w·p ≤ z) under the posterior, exactly."""
    weights, phis = as_a_mixture(prior, seen)
    return float(weights @ [brmdp.dirichlet.cdf(phi, values, z) for phi in phis])
