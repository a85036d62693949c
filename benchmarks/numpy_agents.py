"""The paper's agents in straightforward NumPy: the yardstick for whole runs."""

from __future__ import annotations

import numpy as np

import brmdp
from benchmarks import paper_planner


class NumpyRun:
    """One run in a known world.

    Regret is measured as in the library, with one linear solve per pseudo-episode.
    """

    def __init__(self, mdp: brmdp.TabularMDP, steps: int, seed: int) -> None:
        self.kernel = mdp.kernel()
        self.rewards = np.asarray(mdp.rewards)
        self.discount = mdp.discount
        self.steps = steps
        self.rng = np.random.default_rng(seed)
        self.best = brmdp.solve(mdp).values

    def aq_brmdp(self, delta: float, floor: float, coefficient: float) -> float:
        """Cumulative true regret of AQ-BRMDP with the paper's Monte Carlo budgets."""

        def plan(
            counts: np.ndarray, episode: int, values: np.ndarray
        ) -> tuple[np.ndarray, np.ndarray]:
            visits = np.maximum(counts.sum(axis=2), 1)
            scale = np.log(2 * episode) / np.sqrt(episode)
            levels = np.maximum(1 - delta * visits / visits.mean() * scale, floor)
            values, q_values, _ = paper_planner.plan(
                1 + counts,
                self.rewards,
                self.discount,
                levels,
                coefficient,
                self.rng,
                initial=values,
            )
            return values, q_values.argmax(axis=1)

        return self._interact(plan)

    def continuing_psrl(self) -> float:
        """Cumulative true regret of Continuing PSRL with plain value iteration."""

        def plan(
            counts: np.ndarray, episode: int, values: np.ndarray
        ) -> tuple[np.ndarray, np.ndarray]:
            gammas = self.rng.standard_gamma(1 + counts)
            sampled = gammas / gammas.sum(axis=2, keepdims=True)
            expected = (sampled * self.rewards).sum(axis=2)
            for _ in range(10_000):
                q_values = expected + self.discount * sampled @ values
                following = q_values.max(axis=1)
                change = np.abs(following - values).max()
                values = following
                if change <= 1e-8:
                    break
            return values, q_values.argmax(axis=1)

        return self._interact(plan)

    def _interact(self, plan) -> float:
        n_states = self.kernel.shape[0]
        counts = np.zeros_like(self.kernel)
        states = np.arange(n_states)
        state, episode, regret, restart = 0, 0, 0.0, True
        values = np.zeros(n_states)
        for _ in range(self.steps):
            if restart:
                episode += 1
                values, policy = plan(counts, episode, values)
                followed = self.kernel[states, policy]
                paid = (followed * self.rewards[states, policy]).sum(axis=1)
                gap = self.best - np.linalg.solve(np.eye(n_states) - self.discount * followed, paid)
            regret += gap[state]
            action = policy[state]
            successor = self.rng.choice(n_states, p=self.kernel[state, action])
            counts[state, action, successor] += 1
            state = successor
            restart = self.rng.random() >= self.discount
        return regret
