"""BAMCP: plans how to learn, by simulation, and anew for every action."""

from __future__ import annotations

import json
import os
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from brmdp._streams import stream_from_state, stream_state
from brmdp._validation import (
    FloatArray,
    Seed,
    as_discount,
    as_float_array,
    as_index,
    as_index_array,
    as_json,
    as_number,
    as_positive_int,
    as_rng,
)
from brmdp.agents.episodic import MAX_PARTS_LENGTH, arrays_with_prefix, corrupt_if_undecodable
from brmdp.agents.parts import build_part, describe_part, require_foreign_parts
from brmdp.beliefs import DirichletBelief
from brmdp.beliefs.disturbance import Rewards
from brmdp.beliefs.storage import Saveable, corrupt_if_invalid, load_arrays
from brmdp.errors import InvalidInputError
from brmdp.planning import Problem
from brmdp.planning.trees import (
    SearchResult,
    bayes_adaptive_search,
    depth_for,
    require_dirichlet,
)
from brmdp.risk.base import RiskMeasure

__all__ = ["BAMCP"]

ACCURACY = 0.01
"""By default, a search ends where all later rewards together weigh 1 %."""

LEARNING_POWER = 0.77
"""Learning rates of Q-learning are n^(−0.77) (Even-Dar and Mansour, JMLR 2003)."""


class BAMCP(Saveable):
    """Bayes-adaptive Monte-Carlo planning (Guez, Silver and Dayan, NIPS 2012).

    For every action a tree is grown from the current state by ``simulations`` simulations. Each
    follows one kernel drawn from the belief: inside the tree by UCB1, mean return +
    c·√(ln N(h)/N(h,a)), below it by a rollout, and every simulation adds one node. The action with
    the highest mean return is taken.

    Parameters
    ----------
    belief : DirichletBelief
        The belief before the first step. The agent keeps a copy.
    rewards
        As in :func:`brmdp.plan`.
    discount : float in [0, 1)
        γ.
    simulations : int
        K, per action.
    exploration : float
        c ≥ 0 of UCB1, in units of the return (3 in the source).
    epsilon : float in [0, 1]
        Probability of a random action in a rollout (0.5 in the source).
    guide : RiskMeasure, optional
        Rollouts follow, ε-greedily, the plan of this measure, made anew before every search, such
        as ``brmdp.Mean()`` or ``brmdp.Quantile(0.7)``. By default they follow Q-learning from real
        transitions, as in the source.
    rollout : int, optional
        Most steps of a rollout; by default, rollouts go on to ``depth``. What comes afterwards is
        worth the plan's value of the state reached if there is a ``guide``, otherwise nothing. With
        0 the plan's values are all there is below the tree.
    depth : int, optional
        Steps of a simulation; by default the smallest d such that γ^d ≤ 0.01.
    rng : numpy.random.Generator or seed, optional
        Source of the simulations.

    Notes
    -----
    The source does not say how its Q-learning rates fall; here they are n^(−0.77). The tree is not
    kept from one action to the next.

    Examples
    --------
    >>> import brmdp
    >>> river, belief = brmdp.envs.riverswim(3), brmdp.DirichletBelief.uniform(3, 2)
    >>> agent = brmdp.agents.BAMCP(belief, river.rewards, 0.9, simulations=100, rng=0)
    >>> action = agent.act(0)
    >>> agent.observe(0, action, next_state=1)
    >>> agent
    BAMCP(3 states, 2 actions, simulations=100, exploration=3.0, guide=None, 1 steps observed)
    """

    def __init__(
        self,
        belief: DirichletBelief,
        rewards: Rewards,
        discount: float,
        *,
        simulations: int = 500,
        exploration: float = 3.0,
        epsilon: float = 0.5,
        guide: RiskMeasure | None = None,
        rollout: int | None = None,
        depth: int | None = None,
        rng: Seed = None,
    ) -> None:
        require_dirichlet(belief)
        self._problem = Problem.of(belief, rewards, as_discount(discount))
        self.simulations = as_positive_int(simulations, "simulations")
        self.exploration = as_number(exploration, "exploration", "a number ≥ 0")
        if not 0.0 <= self.exploration < np.inf:
            raise InvalidInputError(f"exploration must be at least 0; got {exploration!r}")
        self.epsilon = as_number(epsilon, "epsilon", "a number in [0, 1]")
        if not 0.0 <= self.epsilon <= 1.0:
            raise InvalidInputError(f"epsilon must lie in [0, 1]; got {epsilon!r}")
        if guide is not None and (
            isinstance(guide, type)
            or not hasattr(guide, "bind")
            or (hasattr(guide, "memory") and guide.memory())
        ):
            raise InvalidInputError(
                "guide must be None or a risk measure that draws nothing, such as Mean(); got "
                f"{guide!r}"
            )
        self.guide = guide
        if depth is None:
            depth = depth_for(self._problem.discount, ACCURACY)
        self.depth = as_positive_int(depth, "depth")
        if rollout is None:
            rollout = self.depth
        self.rollout = 0 if rollout == 0 else as_positive_int(rollout, "rollout")
        self._belief = belief.copy()
        pattern = belief.pattern
        self._rewards: FloatArray = np.array(self._problem.rewards)
        self._q: FloatArray = np.zeros(pattern.admissible.shape)
        self._plan: FloatArray | None = None
        self._visits = np.zeros(pattern.admissible.shape, dtype=np.int64)
        self._rng = as_rng(rng)

    @property
    def belief(self) -> DirichletBelief:
        """The belief with all data, as a copy."""
        return self._belief.copy()

    @property
    def rewards(self) -> FloatArray:
        """Rewards of the possible transitions."""
        return self._rewards

    @property
    def discount(self) -> float:
        """γ."""
        return self._problem.discount

    def act(self, state: int) -> int:
        """The action with the highest mean return in a new search."""
        return self.search(state).action

    def search(self, state: int) -> SearchResult:
        """Grow a tree from ``state``; every call uses new random numbers."""
        state = as_index(state, self._belief.n_states, "state")
        guide, leaf = self._q, np.zeros(self._belief.n_states)
        if self.guide is not None:
            solution = self._problem.solve(self._belief, self.guide, self._plan)
            assert solution.q_values is not None
            guide, leaf = np.array(solution.q_values), np.array(solution.values)
            self._plan = leaf
        return bayes_adaptive_search(
            self._belief,
            self._rewards,
            self.discount,
            state,
            simulations=self.simulations,
            depth=self.depth,
            rollout=self.rollout,
            exploration=self.exploration,
            epsilon=self.epsilon,
            guide=guide,
            leaf=leaf,
            rng=self._rng,
        )

    def observe(self, state: int, action: int, next_state: int) -> None:
        """Learn from a transition, whoever chose the action.

        Raises
        ------
        InvalidInputError, ImpossibleTransitionError
            As for the belief's ``observe``. The agent is then unchanged.
        """
        entry = self._belief.pattern.locate(state, action, next_state)
        self._belief.observe(state, action, next_state)
        self._visits[state, action] += 1
        allowed = self._belief.pattern.admissible[next_state]
        target = self._rewards[entry] + self.discount * self._q[next_state, allowed].max()
        rate = float(self._visits[state, action]) ** -LEARNING_POWER
        self._q[state, action] += rate * (target - self._q[state, action])

    # --- files ------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that future steps depend on, as named arrays, for :meth:`save`."""
        parts = {
            "guide": describe_part(self.guide),
            "simulations": self.simulations,
            "depth": self.depth,
            "rollout": self.rollout,
        }
        return {
            **{f"belief.{name}": array for name, array in self._belief.arrays().items()},
            **({} if self._plan is None else {"plan": self._plan.copy()}),
            "parts": np.array(json.dumps(parts)),
            "numbers": np.array([self.discount, self.exploration, self.epsilon]),
            "rewards": self._rewards.copy(),
            "q": self._q.copy(),
            "visits": self._visits.copy(),
            "stream": stream_state(self._rng),
        }

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, guide: RiskMeasure | None = None) -> Self:
        """Load an agent that :meth:`save` wrote; it continues exactly as the saved one would have.

        Parameters
        ----------
        path : path
            The file.
        guide : RiskMeasure, optional
            The guide, if it is not one of the library's measures; files cannot store others.

        Raises
        ------
        CorruptFileError
            If the file is truncated, altered, of another kind or of an unknown version.
        """
        return cls.from_arrays(load_arrays(path, cls.__name__), path, guide=guide)

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, NDArray[Any]], source: object, *, guide: RiskMeasure | None = None
    ) -> Self:
        """The agent that :meth:`arrays` described; other arguments as in :meth:`load`."""
        with corrupt_if_undecodable(source):
            with corrupt_if_invalid(source):
                parts = as_json(arrays["parts"], "parts", MAX_PARTS_LENGTH)
            require_foreign_parts({"guide": parts["guide"]}, {"guide": guide})
            belief = DirichletBelief.from_arrays(arrays_with_prefix(arrays, "belief."), source)
            with corrupt_if_invalid(source):
                discount, exploration, epsilon = as_float_array(
                    arrays["numbers"], "numbers"
                ).tolist()
                agent = cls(
                    belief,
                    as_float_array(arrays["rewards"], "rewards"),
                    discount,
                    simulations=parts["simulations"],
                    exploration=exploration,
                    epsilon=epsilon,
                    guide=build_part(parts["guide"], guide),
                    rollout=parts["rollout"],
                    depth=parts["depth"],
                )
                agent._resume(arrays)
        return agent

    def _resume(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take over what was learned and the stream."""
        shape = self._q.shape
        q, visits = as_float_array(arrays["q"], "q"), arrays["visits"]
        visits = as_index_array(visits, int(self._belief.counts("flat").sum()) + 1, "visits")
        if q.shape != shape or visits.shape != shape:
            raise InvalidInputError(
                f"q and visits must have shape {shape}; got {q.shape} and {visits.shape}"
            )
        self._q, self._visits = np.array(q), np.array(visits)
        self._plan = self._problem.start(arrays.get("plan"), "plan")
        self._rng = stream_from_state(arrays["stream"])

    def __repr__(self) -> str:
        belief = self._belief
        return (
            f"BAMCP({belief.n_states} states, {belief.n_actions} actions, "
            f"simulations={self.simulations}, exploration={self.exploration!r}, "
            f"guide={self.guide!r}, {int(self._visits.sum())} steps observed)"
        )
