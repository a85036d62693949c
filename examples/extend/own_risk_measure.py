"""Your own risk measure: entropic risk.

q(w) = −(1/θ) log E[exp(−θ w·P)], where the expectation is over posterior draws of the row P. It is
monotone in the targets w and grows by c if all targets do; planning relies on both. Run this file,
or write ``risk = { name = "own_risk_measure:Entropic", theta = 2 }`` in a sweep.
"""

from __future__ import annotations

import numpy as np

import brmdp


class Entropic:
    """Entropic risk with aversion ``theta``, from ``samples`` posterior draws."""

    def __init__(self, theta: float, samples: int = 500, rng=0) -> None:
        self.theta, self.samples, self.rng = float(theta), int(samples), rng

    def bind(self, belief: brmdp.Belief) -> EntropicOperator:
        """The measure for one belief, with kernels drawn once and used for a whole plan."""
        rng = np.random.default_rng(self.rng)
        draws = belief.sample_entries(self.samples, rng=rng)
        return EntropicOperator(belief.pattern, draws, self.theta)


class EntropicOperator:
    """Maps targets to values and risk-adjusted rows."""

    basis = "sampled"  # the status of plans: their error bounds hold for these draws

    def __init__(self, pattern, draws, theta) -> None:
        self.pattern, self.draws, self.theta = pattern, draws, theta

    def _weighted(self, targets, pair):
        here = slice(self.pattern.indptr[pair], self.pattern.indptr[pair + 1])
        rows = self.draws[:, here]
        exponents = -self.theta * (rows @ targets[here])
        largest = exponents.max()
        weights = np.exp(exponents - largest)
        return rows, weights, largest

    def evaluate(self, targets, pairs, out) -> float:
        """Write q into out[pairs] and return a bound on the numerical error of each value."""
        for pair in pairs:
            _, weights, largest = self._weighted(targets, pair)
            out[pair] = -(largest + np.log(weights.mean())) / self.theta
        return 1e-12 * (1.0 + float(np.abs(targets).max(initial=0.0)))

    def rows(self, targets, values, pairs, *, precise=True):
        """The gradient of q: a probability vector for each pair, one after another."""
        found = []
        for pair in pairs:
            rows, weights, _ = self._weighted(targets, pair)
            found.append(weights @ rows / weights.sum())
        return np.concatenate(found)

    def fixed_entries(self):
        """Rows depend on the targets, so there are none."""
        return None

    def approximation(self):
        """Nothing cheaper to start from."""
        return None


if __name__ == "__main__":
    mdp = brmdp.envs.riverswim(6)
    belief = brmdp.DirichletBelief.uniform(6, 2, possible=mdp)
    for theta in (0.1, 1.0, 10.0):
        plan = brmdp.plan(belief, mdp.rewards, discount=0.9, risk=Entropic(theta))
        print(f"theta {theta:4}: value {plan.values[0]:.4f} at the left bank, {plan.status}")
