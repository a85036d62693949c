"""Your own belief: a Dirichlet belief whose observations fade, for a world that drifts.

With every new observation of a pair, its earlier ones count ``memory`` times as much. The belief
provides its concentrations, so quantiles are exact; without ``concentration_entries`` and
``concentration_offsets`` they would be estimated from draws. Run this file, or write ``prior = {
name = "own_belief:fading_prior", memory = 0.99 }`` in a sweep.
"""

from __future__ import annotations

import numpy as np

import brmdp


class FadingBelief:
    """Independent Dirichlet rows over the successors that are possible under ``start``."""

    rows_independent = True

    def __init__(self, start: brmdp.DirichletBelief, memory: float) -> None:
        self.pattern = start.pattern
        self.memory = float(memory)
        self._prior = start.concentration_entries.copy()
        self._counts = np.zeros_like(self._prior)

    # --- what planning needs ----------------------------------------------------------------------

    @property
    def concentration_entries(self):
        """φ of every possible transition."""
        return self._prior + self._counts

    @property
    def concentration_offsets(self):
        """Index of the first concentration of each pair."""
        return self.pattern.indptr

    def mean_entries(self):
        """Mean probability of every possible transition."""
        phi, owner = self.concentration_entries, self.pattern.pair_of_transition
        return phi / np.bincount(owner, phi, self.pattern.n_pairs)[owner]

    def sample_entries(self, n, pairs=None, *, rng):
        """``n`` joint draws of the kernel."""
        chosen = self.pattern.pairs if pairs is None else pairs
        ends, phi = self.pattern.indptr, self.concentration_entries
        rows = [rng.dirichlet(phi[ends[pair] : ends[pair + 1]], n) for pair in chosen]
        return np.concatenate(rows, axis=1)

    def gather_rewards(self, rewards):
        """Rewards in any accepted form as one number per possible transition."""
        return self.pattern.gather(rewards)

    # --- what agents need besides -----------------------------------------------------------------

    def observe(self, state, action, next_state) -> None:
        """Learn from one transition, after the earlier observations of its pair have faded."""
        pair = state * self.pattern.n_actions + action
        here = slice(self.pattern.indptr[pair], self.pattern.indptr[pair + 1])
        position = self.pattern.locate(state, action, next_state)
        self._counts[here] *= self.memory
        self._counts[position] += 1.0

    def copy(self) -> FadingBelief:
        """An independent belief with the same content."""
        other = object.__new__(FadingBelief)
        other.pattern, other.memory, other._prior = self.pattern, self.memory, self._prior
        other._counts = self._counts.copy()
        return other

    # --- optional: to say how far a plan rests on the prior, and to be saved ----------------------

    def evidence(self, pairs):
        """Weight of the prior and of the data in each of ``pairs``."""
        owner, n = self.pattern.pair_of_transition, self.pattern.n_pairs
        prior, counts = (np.bincount(owner, part, n) for part in (self._prior, self._counts))
        return prior[pairs], counts[pairs]

    def arrays(self):
        """Everything that matters, as named arrays."""
        dense = [self.pattern.dense(part) for part in (self._prior, self._counts)]
        return {"prior": dense[0], "counts": dense[1], "memory": np.array(self.memory)}

    @classmethod
    def from_arrays(cls, arrays, source) -> FadingBelief:
        """The belief that :meth:`arrays` described."""
        belief = cls(brmdp.DirichletBelief(arrays["prior"]), float(arrays["memory"]))
        belief._counts = belief.pattern.gather(arrays["counts"])
        return belief


def fading_prior(world: brmdp.World, memory: float) -> FadingBelief:
    """The prior of a world, with a memory that fades."""
    return FadingBelief(world.prior(), memory)


if __name__ == "__main__":
    world = brmdp.World("brmdp/RiverSwim-v0", discount=0.9)
    agent = brmdp.agents.fixed_quantile(
        fading_prior(world, 0.99), world.rewards, 0.9, alpha=0.6, rng=0
    )
    print(brmdp.simulate(agent, world, 500, seed=0))
    agent.save("fading-agent.npz")
    print(brmdp.Agent.load("fading-agent.npz", belief=FadingBelief))
