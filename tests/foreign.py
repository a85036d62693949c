"""Custom beliefs and risk measures, good and bad, written from the protocols alone."""

from __future__ import annotations

import numpy as np

import brmdp
from brmdp.pattern import pattern_and_entries


class Jittered:
    """Dirichlet rows that do not say so: only what the protocol ``Belief`` requires."""

    rows_independent = True

    def __init__(self, concentration):
        self._phi = np.array(concentration, dtype=float)
        self.pattern, self._flat = pattern_and_entries(self._phi, "concentration")

    @property
    def n_states(self):
        return self.pattern.n_states

    @property
    def n_actions(self):
        return self.pattern.n_actions

    def copy(self):
        return type(self)(self._phi)

    def observe(self, state, action, next_state):
        self._phi[state, action, next_state] += 1.0
        _, self._flat = pattern_and_entries(self._phi, "concentration")

    def mean_entries(self):
        totals = np.bincount(self.pattern.pair_of_transition, self._flat, self.pattern.n_pairs)
        return self._flat / totals[self.pattern.pair_of_transition]

    def sample_entries(self, n, pairs=None, *, rng):
        pairs = self.pattern.pairs if pairs is None else pairs
        rows = [self._flat[self.pattern.indptr[p] : self.pattern.indptr[p + 1]] for p in pairs]
        return np.concatenate([rng.dirichlet(row, n) for row in rows], axis=1)

    def gather_rewards(self, rewards):
        return self.pattern.gather(rewards)


class Storable(Jittered):
    """A belief that can also be saved."""

    def arrays(self):
        return {"phi": self._phi}

    @classmethod
    def from_arrays(cls, arrays, source):
        return cls(arrays["phi"])


class Boastful(Jittered):
    """Claims concentrations a hundred times those it draws from."""

    @property
    def concentration_entries(self):
        return 100.0 * self._flat

    @property
    def concentration_offsets(self):
        return self.pattern.indptr


class Sure(Jittered):
    """Says that its kernel is known."""

    kernel_known = True


class MeanPlus:
    """Mean plus ``weight`` standard deviations under the posterior mean kernel.

    It is translation invariant but not monotone.
    """

    def __init__(self, weight, honest=True):
        self.weight = weight
        self.honest = honest

    def bind(self, belief):
        return _BoundMeanPlus(
            belief.pattern, belief.mean_entries().copy(), self.weight, self.honest
        )


class _BoundMeanPlus:
    basis = "exact"

    def __init__(self, pattern, mean, weight, honest):
        self.pattern, self.mean, self.weight, self.honest = pattern, mean, weight, honest

    def _moments(self, targets, pair):
        here = slice(self.pattern.indptr[pair], self.pattern.indptr[pair + 1])
        p, w = self.mean[here], targets[here]
        mean = p @ w
        return p, w, mean, np.sqrt(max(p @ (w - mean) ** 2, 1e-300))

    def evaluate(self, targets, pairs, out):
        for pair in pairs:
            _, _, mean, deviation = self._moments(targets, pair)
            out[pair] = mean + self.weight * deviation
        return 1e-14

    def rows(self, targets, values, pairs, *, precise=True):
        found = []
        for pair in pairs:
            p, w, mean, deviation = self._moments(targets, pair)
            found.append(p * (1 + self.weight * (w - mean) / deviation) if self.honest else p)
        return np.concatenate(found)

    def fixed_entries(self):
        return None

    def approximation(self):
        return None


class Altered:
    """A library measure with some methods of its bound object replaced by the given functions."""

    def __init__(self, inner=None, *, without=(), **methods):
        self.inner = inner or brmdp.Quantile(0.2)
        self.without = without
        self.methods = methods

    def bind(self, belief):
        bound = self.inner.bind(belief)
        names = ("basis", "evaluate", "rows", "fixed_entries", "approximation")
        members = {name: getattr(bound, name) for name in names if name not in self.without}
        for name, change in self.methods.items():
            members[name] = change(bound) if callable(change) else change
        return type("Bound", (), {name: _plain(member) for name, member in members.items()})()


def _plain(member):
    return staticmethod(member) if callable(member) else member
