"""Problems for the tests of decisions, one for every kind of belief, and beliefs of one's own."""

from __future__ import annotations

import numpy as np

import brmdp
from brmdp.pattern import KernelBelief, full_pattern
from problems import Problem, censored, dense, disturbance, inadmissible, scenarios, sparse_rows


class Blend(KernelBelief):
    """An unknown mixture of two kernels: rows depend on each other, and there are only draws."""

    rows_independent = False

    def __init__(self, first, second, a=2.0, b=3.0):
        self.pattern = full_pattern(*first.shape[:2])
        self._two = np.stack([first.reshape(-1), second.reshape(-1)])
        self._shape = (a, b)

    def mean_entries(self):
        a, b = self._shape
        return np.array([b, a]) / (a + b) @ self._two

    def sample_entries(self, n, pairs=None, *, rng):
        share = rng.beta(*self._shape, size=(n, 1))
        draws = (1 - share) * self._two[0] + share * self._two[1]
        return draws if pairs is None else self.pattern.take(draws, pairs)


def blend(seed, n_states=4, n_actions=2):
    rng = np.random.default_rng(seed)
    one, two = rng.dirichlet(np.ones(n_states), (2, n_states, n_actions))
    return Problem(Blend(one, two), rng.normal(size=one.shape), 0.8)


def absorbing(seed, n_states=5, n_actions=2):
    """The last state is absorbing and pays nothing: its value is known."""
    rng = np.random.default_rng(seed)
    phi = rng.uniform(0.3, 4.0, (n_states, n_actions, n_states))
    phi[-1] = 0.0
    phi[-1, :, -1] = 1.0
    rewards = rng.normal(size=phi.shape)
    rewards[-1] = 0.0
    return Problem(brmdp.DirichletBelief(phi), rewards, 0.9)


KINDS = {
    "dense": dense,
    "sparse": sparse_rows,
    "inadmissible": inadmissible,
    "disturbance": disturbance,
    "censored": censored,
    "scenarios": scenarios,
    "blend": blend,
    "absorbing": absorbing,
}


def random_policy(case, seed, stochastic=False):
    rng = np.random.default_rng(seed)
    weights = np.where(case.admissible, rng.random(case.shape), 0.0)
    if stochastic:
        weights[rng.random(case.n_states) < 0.3] **= 40  # some nearly sure, none exactly
        sure = rng.integers(case.n_states)
        weights[sure] = np.eye(case.shape[1])[weights[sure].argmax()]
        return weights / weights.sum(axis=1, keepdims=True)
    return weights.argmax(axis=1)


def dense_kernel(case, entries):
    """A drawn kernel, (S, A, S), with repeated next states added up one by one."""
    pattern = case.belief.pattern
    kernel = np.zeros((pattern.n_pairs, pattern.n_states))
    for pair in range(pattern.n_pairs):
        for i in range(pattern.indptr[pair], pattern.indptr[pair + 1]):
            kernel[pair, pattern.next_states[i]] += entries[i]
    return kernel.reshape(*case.shape, pattern.n_states)
