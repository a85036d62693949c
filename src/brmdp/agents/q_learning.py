"""Q-learning with an ε-greedy policy: no model and no belief, the floor of comparisons."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from brmdp._streams import stream_from_state, stream_state
from brmdp._validation import (
    BoolArray,
    FloatArray,
    Seed,
    as_discount,
    as_float_array,
    as_index,
    as_index_array,
    as_number,
    as_rng,
)
from brmdp.agents.episodic import corrupt_if_undecodable
from brmdp.beliefs.base import Belief
from brmdp.beliefs.checked import require_belief
from brmdp.beliefs.disturbance import Rewards
from brmdp.beliefs.storage import Saveable, corrupt_if_invalid, require_arrays
from brmdp.errors import InvalidInputError
from brmdp.planning.planner import LARGEST_VALUE

__all__ = ["QLearning"]

_ARRAYS = ("q", "visits", "admissible", "numbers", "stream")


class QLearning(Saveable):
    """ε-greedy Q-learning (Watkins 1989) with learning rates n^(−power).

    The n-th visit of a pair moves its Q by n^(−power) of the way to r + γ max Q(s', ·). All Q begin
    at zero. A polynomial rate with power 0.77 is what Even-Dar and Mansour ("Learning rates for
    Q-learning", JMLR 2003) find best.

    Parameters
    ----------
    belief : Belief
        It only says which actions are admissible.
    rewards
        Ignored: Q-learning is told what it is paid. Given so that it is made like the presets.
    discount : float in [0, 1)
        γ.
    epsilon : float in [0, 1]
        Probability of a random action.
    power : float in (0, 1]
        How fast learning rates fall.
    rng : numpy.random.Generator or seed, optional
        Source of random actions; ties are broken at random, too.

    Examples
    --------
    >>> import brmdp
    >>> world = brmdp.World("brmdp/RiverSwim-v0", discount=0.9)
    >>> agent = brmdp.agents.QLearning(world.prior(), world.rewards, 0.9, rng=0)
    >>> history = brmdp.simulate(agent, world, 100, seed=1)
    >>> agent.policy[0]
    array([0.95, 0.05])
    """

    def __init__(
        self,
        belief: Belief,
        rewards: Rewards,
        discount: float,
        *,
        epsilon: float = 0.1,
        power: float = 0.77,
        rng: Seed = None,
    ) -> None:
        require_belief(belief)
        self._set(belief.pattern.admissible.copy(), discount, epsilon, power)
        self._rng = as_rng(rng)

    def _set(self, admissible: BoolArray, discount: Any, epsilon: Any, power: Any) -> None:
        self.discount = as_discount(discount)
        self.epsilon = as_number(epsilon, "epsilon", "a number in [0, 1]")
        if not 0.0 <= self.epsilon <= 1.0:
            raise InvalidInputError(f"epsilon must lie in [0, 1]; got {epsilon!r}")
        self.power = as_number(power, "power", "a number in (0, 1]")
        if not 0.0 < self.power <= 1.0:
            raise InvalidInputError(f"power must lie in (0, 1]; got {power!r}")
        self._admissible = admissible
        self._q: FloatArray = np.where(admissible, 0.0, -np.inf)
        self._visits = np.zeros(admissible.shape, dtype=np.int64)

    @property
    def q_values(self) -> FloatArray:
        """(S, A) values learned so far; −inf for inadmissible actions."""
        return self._q.copy()

    @property
    def policy(self) -> FloatArray:
        """(S, A) probabilities of the actions."""
        best = self._q == self._q.max(axis=1, keepdims=True)
        allowed = self._admissible
        random: FloatArray = allowed / allowed.sum(axis=1, keepdims=True)
        greedy: FloatArray = best / best.sum(axis=1, keepdims=True)
        return self.epsilon * random + (1.0 - self.epsilon) * greedy

    def act(self, state: int) -> int:
        """A random admissible action with probability ε, otherwise one of the best."""
        row = self._q[as_index(state, len(self._q), "state")]
        among = self._admissible[state] if self._rng.random() < self.epsilon else row == row.max()
        choices = np.flatnonzero(among)
        return int(choices[self._rng.integers(choices.size)])

    def observe(self, state: int, action: int, next_state: int, *, reward: float) -> None:
        """Learn from a transition and what it paid.

        Raises
        ------
        InvalidInputError
            If an index is out of range, the action inadmissible, or the reward no finite number.
            The agent is then unchanged.
        """
        n_states, n_actions = self._q.shape
        s, following = (
            as_index(state, n_states, "state"),
            as_index(next_state, n_states, "next_state"),
        )
        a = as_index(action, n_actions, "action")
        if not self._admissible[s, a]:
            raise InvalidInputError(f"action must be admissible in state {s}; got {a}")
        paid = as_number(reward, "reward", "a finite number")
        if not abs(paid) <= LARGEST_VALUE * (1.0 - self.discount):
            raise InvalidInputError(
                f"reward must be a finite number, and reward/(1 − discount) lie within "
                f"±{LARGEST_VALUE:g}; got {reward!r}"
            )
        target = paid + self.discount * self._q[following].max()
        count = self._visits[s, a] + 1
        self._q[s, a] += (target - self._q[s, a]) * float(count) ** -self.power
        self._visits[s, a] = count

    # --- files ------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that future steps depend on, as named arrays, for :meth:`save`."""
        return {
            "q": np.where(self._admissible, self._q, 0.0),
            "visits": self._visits.copy(),
            "admissible": self._admissible.copy(),
            "numbers": np.array([self.discount, self.epsilon, self.power]),
            "stream": stream_state(self._rng),
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], source: object) -> Self:
        """The agent that :meth:`arrays` described; it continues exactly as it would have."""
        require_arrays(arrays, _ARRAYS, source)
        agent = cls.__new__(cls)
        with corrupt_if_undecodable(source), corrupt_if_invalid(source):
            admissible = arrays["admissible"]
            if admissible.dtype != np.bool_ or admissible.ndim != 2:
                raise InvalidInputError("admissible must be booleans of shape (S, A)")
            if not admissible.any(axis=1).all():
                raise InvalidInputError("admissible must leave an action in every state")
            agent._set(admissible, *as_float_array(arrays["numbers"], "numbers").tolist())
            q = as_float_array(arrays["q"], "q")
            visits = as_index_array(arrays["visits"], 2**62, "visits")
            if not q.shape == visits.shape == admissible.shape:
                raise InvalidInputError(f"q and visits must have shape {admissible.shape}")
            agent._q = np.where(admissible, q, -np.inf)
            agent._visits = visits
            agent._rng = stream_from_state(arrays["stream"])
        return agent

    def __repr__(self) -> str:
        return (
            f"QLearning({self._q.shape[0]} states, {self._q.shape[1]} actions, "
            f"epsilon={self.epsilon!r}, power={self.power!r}, {int(self._visits.sum())} steps)"
        )
