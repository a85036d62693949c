"""Bayes-adaptive Monte-Carlo planning: a tree of what may happen and what would be learned from it.

The method is BAMCP of Guez, Silver and Dayan ("Efficient Bayes-Adaptive Reinforcement Learning
using Sample-Based Search", NIPS 2012). Every simulation draws one kernel from the belief and keeps
it to its end (*root sampling*), so a node of the tree, which is a history, is reached with the
probability that the belief gives it, without a posterior at any node. Rows are drawn only when a
simulation needs them. The values of a search are random: they are means over simulations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from brmdp._kernels import trees
from brmdp._validation import FloatArray, IntArray
from brmdp.beliefs import DirichletBelief
from brmdp.errors import InvalidInputError

__all__ = ["SearchResult", "bayes_adaptive_search", "depth_for", "require_dirichlet"]


@dataclass(frozen=True, eq=False)
class SearchResult:
    """What a search found out about the actions in one state.

    Attributes
    ----------
    values : (A,) array
        Mean return of the simulations that began with each action; −inf for inadmissible actions
        and for those that no simulation took.
    visits : (A,) integers
        How many simulations took it.

    Examples
    --------
    >>> import brmdp
    >>> river, belief = brmdp.envs.riverswim(3), brmdp.DirichletBelief.uniform(3, 2)
    >>> agent = brmdp.agents.BAMCP(belief, river.rewards, 0.9, simulations=50, rng=0)
    >>> int(agent.search(0).visits.sum())
    50
    """

    values: FloatArray
    visits: IntArray

    @property
    def action(self) -> int:
        """The action with the highest value."""
        return int(self.values.argmax())


def require_dirichlet(belief: object) -> None:
    """Raise unless a belief has independent Dirichlet rows, which are drawn one at a time."""
    if type(belief) is not DirichletBelief:
        raise InvalidInputError(
            "belief must be a brmdp.DirichletBelief, whose rows can be drawn one at a time; got "
            f"{type(belief).__name__}"
        )


def depth_for(discount: float, accuracy: float) -> int:
    """The depth from which on rewards weigh at most ``accuracy`` of all: γ^d ≤ accuracy."""
    if discount == 0.0 or accuracy >= 1.0:
        return 1
    return max(1, math.ceil(math.log(accuracy) / math.log(discount)))


def bayes_adaptive_search(
    belief: DirichletBelief,
    rewards: FloatArray,
    discount: float,
    state: int,
    *,
    simulations: int,
    depth: int,
    rollout: int,
    exploration: float,
    epsilon: float,
    guide: FloatArray,
    leaf: FloatArray,
    rng: np.random.Generator,
) -> SearchResult:
    """Search from ``state``; all arguments as :class:`brmdp.agents.BAMCP` has checked them.

    ``rewards`` are those of the possible transitions, ``guide`` is (S, A) and ``leaf`` (S,).
    """
    pattern = belief.pattern
    values, visits = trees.bayes_adaptive_search(
        pattern.indptr,
        pattern.next_states,
        belief.concentration_entries,
        rewards,
        discount,
        pattern.n_actions,
        state,
        simulations,
        depth,
        rollout,
        exploration,
        epsilon,
        np.ascontiguousarray(guide).reshape(-1),
        np.ascontiguousarray(leaf),
        rng,
    )
    return SearchResult(np.where(visits > 0, values, -np.inf), visits)
