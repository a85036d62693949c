"""Beliefs and levels that the paper's agent meets: a small AQ-BRMDP loop on its worlds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice

import numpy as np

import brmdp

TOLERANCE = 1e-8


@dataclass(frozen=True, eq=False)
class Scenario:
    """A world with the paper's settings: budget coefficient c, sensitivity δ and floor."""

    name: str
    mdp: brmdp.TabularMDP
    discount: float
    coefficient: float
    sensitivity: float
    floor: float = 0.2

    @property
    def rewards(self) -> np.ndarray:
        """The known r(s,a,s')."""
        return self.mdp.rewards

    def levels(self, visits: np.ndarray, episode: int) -> np.ndarray:
        """Adaptive levels (eq. alphak)."""
        adjusted = np.maximum(visits, 1)
        relative = adjusted / adjusted.mean()
        scale = np.log(2 * episode) / np.sqrt(episode)
        levels = np.maximum(1 - self.sensitivity * relative * scale, self.floor)
        assert levels.max() < 1
        return levels


@dataclass(frozen=True)
class Moment:
    """The start of a pseudo-episode: belief, levels, and what was observed since the last one."""

    step: int
    belief: brmdp.DirichletBelief
    concentration: np.ndarray
    levels: np.ndarray
    observed: tuple[tuple[int, int, int], ...]


@cache
def scenarios() -> tuple[Scenario, ...]:
    """Risky FrozenLake (θ = 0.7) and RiverSwim-6."""
    frozenlake = brmdp.envs.frozenlake(shortcut_risk=0.7)
    return (
        Scenario("risky FrozenLake", frozenlake, discount=0.8, coefficient=250, sensitivity=10),
        Scenario(
            "RiverSwim-6", brmdp.envs.riverswim(6), discount=0.9, coefficient=150, sensitivity=5
        ),
    )


def interact(scenario: Scenario, seed: int) -> Iterator[Moment]:
    """Endless AQ-BRMDP with exact quantiles and random ties, one moment per pseudo-episode."""
    rng = np.random.default_rng(seed)
    kernel = scenario.mdp.kernel()
    n_states, n_actions, _ = kernel.shape
    concentration = np.ones_like(kernel)
    belief = brmdp.DirichletBelief.uniform(n_states, n_actions)
    state, step, episode, solution, observed = 0, 0, 0, None, []
    while True:
        episode += 1
        levels = scenario.levels(concentration.sum(axis=2) - n_states, episode)
        yield Moment(step, belief.copy(), concentration.copy(), levels, tuple(observed))
        solution = brmdp.plan(
            belief,
            scenario.rewards,
            scenario.discount,
            risk=brmdp.Quantile(levels),
            tolerance=TOLERANCE,
            initial=solution,
        )
        tied = solution.q_values >= solution.q_values.max(axis=1, keepdims=True) - 10 * TOLERANCE
        policy = [rng.choice(np.flatnonzero(row)) for row in tied]
        observed = []
        while True:
            action = int(policy[state])
            successor = int(rng.choice(n_states, p=kernel[state, action]))
            observed.append((state, action, successor))
            belief.observe(state, action, successor)
            concentration[state, action, successor] += 1
            state, step = successor, step + 1
            if rng.random() >= scenario.discount:
                break


@cache
def moments(
    scenario: Scenario, count: int, after: int = 2000, seed: int = 20250
) -> tuple[Moment, ...]:
    """``count`` consecutive pseudo-episodes, from the first that begins after ``after`` steps."""
    later = (moment for moment in interact(scenario, seed) if moment.step >= after)
    return tuple(islice(later, count))
