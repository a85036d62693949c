"""A Gymnasium environment as a tabular agent sees it: numbered states and known rewards.

The end of an episode is a state too. A terminated transition leads to a known absorbing state that
pays nothing, and a reset follows. Resets and truncations are not transitions, so no agent learns
from them. The transition into the end may pay, and endings that pay differently are different
absorbing states.

With a ``horizon`` H, every episode has at most H steps: the environment is reset after H of them,
and values are those of H steps, so that no discounting is needed.

Agents plan with known rewards. So a world raises an error if the environment pays a reward that
differs from the model's reward for the outcome that happened. If agents have to learn the rewards
(``rewards="unknown"``), they are told what each transition paid, and nothing is compared.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import gymnasium
import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from brmdp._validation import (
    FloatArray,
    IntArray,
    as_discount,
    as_float_array,
    as_index,
    as_number,
    as_positive_int,
    as_positive_number,
)
from brmdp.beliefs import (
    Belief,
    CensoredDisturbanceBelief,
    DirichletBelief,
    DisturbanceBelief,
    DisturbanceRewards,
    OutcomeBelief,
)
from brmdp.beliefs.checked import learns_rewards
from brmdp.beliefs.disturbance import DrivenBelief
from brmdp.envs.random_rewards import OutcomeLaw
from brmdp.errors import ImpossibleTransitionError, InvalidInputError, RewardMismatchError
from brmdp.mdp import TabularMDP, gymnasium_entry

__all__ = ["World"]

LARGEST_DENSE = 4_000_000
"""Largest dense array, in numbers, that is made without being asked for."""

REWARD_TOLERANCE, REWARD_ROUNDING = 1e-6, 1e-9
"""Allowed difference between rewards, as fractions of the model's reward and of the largest one.

The first allows for environments that compute in single precision.
"""

UNKNOWN = "unknown"
"""Stands for rewards that agents have to learn."""

Ends: TypeAlias = Collection[int | Collection[int]]
"""States where episodes end, or groups of such states."""


class World:
    """An environment with discrete spaces, and what is known about it.

    Parameters
    ----------
    env : gymnasium.Env or str
        An environment, or the id of a registered one.
    discount : float in [0, 1), or in [0, 1] with a horizon
        Discount factor of the truth, where that is known.
    rewards : (S, A) or (S, A, S + E) array, or "unknown", optional
        Known rewards, for environments without ``env.unwrapped.P``. The last E successors are the
        ends of an episode. By default the rewards come from the environment. If they are "unknown",
        agents have to learn them, with a belief such as :class:`brmdp.OutcomeBelief`.
    ends : collection of states or of groups of states, optional
        Where episodes end, if endings pay differently; only with ``rewards`` or ``truth``. Each
        item, a state of the environment or a group of them, becomes an absorbing state of its own:
        ``ends=[dead, (home, safe)]`` makes two. By default one end, E = 1, stands for all. If the
        environment has a table ``P``, the ends are found in the table.
    truth : TabularMDP, optional
        The true world, for regret, if the environment has no table. Its states are those of the
        environment, followed by the ends, if there are any. Its rewards are used unless ``rewards``
        are given. Without extra states for the ends, an episode may end in a state that is never
        left and pays nothing.
    random_rewards : bool
        Whether the environment's rewards are random around the model's rewards, or differ from them
        on purpose. If so, rewards are not compared, and the model's rewards are taken to be the
        means.
    horizon : int, optional
        Number of steps after which an episode is over and the environment is reset. It may
        terminate earlier, but must not truncate earlier: the values of H steps would be wrong.
        :func:`brmdp.simulate` then measures regret by episode.

    Attributes
    ----------
    n_states, n_actions : int
        Sizes of the tabular model. Its states are those of the environment, followed by the ends.
    rewards : array, sparse matrix, DisturbanceRewards or None
        Rewards in a form that :func:`brmdp.plan` accepts; None if they are unknown.
    truth : TabularMDP or None
        The true kernel, for regret; None if it is unknown.
    horizon : int or None
        As given.
    restarted : bool
        Whether the last step was followed by a reset, so that a new episode has begun.

    Notes
    -----
    :meth:`step` compares the reward received with the model's r(s, a, s'). It raises
    :class:`brmdp.RewardMismatchError` if they differ by more than a millionth of the latter plus a
    billionth of the model's largest reward. If the table ``P`` lists several outcomes with the same
    next state, the reward of any of them is accepted.

    If the truth is known, :meth:`step` raises :class:`brmdp.ImpossibleTransitionError` for a
    transition that is impossible in it. An environment's own truth, ``env.unwrapped.P`` or
    ``env.unwrapped.mdp``, does not know of wrappers: one that changes the dynamics is noticed by
    its first impossible move, one that only changes probabilities cannot be noticed, and regret is
    then wrong. For such wrappers pass ``rewards``; the truth then counts as unknown.

    With ``rewards="unknown"``, :func:`brmdp.simulate` tells the agent every reward and takes no
    agent with known rewards. True regret is measured with the truth's rewards as means: a wrapper
    that changes the mean of what the environment pays cannot be noticed, and makes regret wrong.

    Examples
    --------
    >>> import brmdp
    >>> brmdp.World("FrozenLake-v1", discount=0.9)
    World(FrozenLake-v1: 17 states (including 1 end), 4 actions, discount 0.9, truth known)
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any] | str,
        discount: float,
        *,
        rewards: ArrayLike | Literal["unknown"] | None = None,
        ends: Ends | None = None,
        truth: TabularMDP | None = None,
        random_rewards: bool = False,
        horizon: int | None = None,
    ) -> None:
        self.rewards_unknown: bool = isinstance(rewards, str) and rewards == UNKNOWN
        if self.rewards_unknown and random_rewards is not False:
            raise InvalidInputError(
                "random_rewards is for agents that know the mean rewards; leave it out if rewards "
                f"are {UNKNOWN!r}"
            )
        if isinstance(rewards, str):
            if not self.rewards_unknown:
                raise InvalidInputError(
                    f"rewards must be numbers, None or {UNKNOWN!r}; got {rewards!r}"
                )
            rewards = None
        self.env: Any = _made(env) if isinstance(env, str) else env
        self.horizon: int | None = None if horizon is None else as_positive_int(horizon, "horizon")
        self.discount: float = as_discount(discount, one_allowed=horizon is not None)
        self.restarted: bool = False
        self._steps = 0
        self._observed = _size(self.env, "observation_space")
        self.n_actions: int = _size(self.env, "action_space")
        unwrapped: Any = self.env.unwrapped
        self.n_states: int
        self.rewards: Any
        self.truth: TabularMDP | None = None
        self._ends: dict[int, int] = {}
        self._outcomes: IntArray | None = None
        self._hides_disturbance = False
        self._table: dict[int, Any] = {}
        if not isinstance(random_rewards, bool | np.bool_):
            raise InvalidInputError(f"random_rewards must be True or False; got {random_rewards!r}")
        self.random_rewards: bool = bool(random_rewards)
        self._state: int | None = None
        self._paid: dict[tuple[Any, ...], tuple[float, ...]] = {}
        self._seen: set[tuple[int, int, int]] = set()
        without_model = self.rewards_unknown and not _has_model(unwrapped)
        if ends is not None and rewards is None and truth is None and not without_model:
            raise InvalidInputError(
                "ends can be given only together with rewards= or truth=; otherwise the "
                "environment's table P defines the ends"
            )
        if truth is not None:
            self._take_truth(truth, rewards, ends)
        elif without_model:
            self._ends = _given_ends(ends, self._observed)
            self.n_states = self._observed + len(set(self._ends.values()))
        elif rewards is not None:
            self._ends = _given_ends(ends, self._observed)
            n_ends = len(set(self._ends.values()))
            self.n_states = self._observed + n_ends
            self.rewards = _with_ends(rewards, self._observed, self.n_actions, n_ends)
        elif isinstance(getattr(unwrapped, "mdp", None), TabularMDP):
            known: TabularMDP = unwrapped.mdp
            self.n_states = known.n_states
            self.rewards = known.rewards
            self.truth = _with_discount(known, self.discount)
            if hasattr(unwrapped, "problem"):
                self._outcomes = unwrapped.problem.outcomes
                self.rewards = DisturbanceRewards(unwrapped.problem.disturbance_rewards)
                self._hides_disturbance = not getattr(unwrapped, "reveal_lost_sales", True)
        elif isinstance(getattr(unwrapped, "P", None), dict):
            self._table = _checked_copy(unwrapped.P, self._observed)
            self._ends = _ends(self._table, self._observed)
            start = getattr(unwrapped, "initial_state_distrib", None)
            self.truth = _with_absorbing_ends(
                self._table, start, self._ends, self._observed, self.discount
            )
            self.n_states = self.truth.n_states
            self.rewards = _beyond_the_table(self.truth)
        else:
            raise InvalidInputError(
                f"rewards must be given for {self.env}, which has no table env.unwrapped.P"
            )
        if self.rewards_unknown:
            self._outcomes = None  # the disturbance's rewards would give away what is to be learned
            self.rewards = None
        self._rounding: float = 0.0
        if self.rewards is not None:
            self._rounding = REWARD_ROUNDING * _largest(self.rewards)

    def _take_truth(self, truth: Any, rewards: Any, ends: Any) -> None:
        """Set sizes, ends and rewards from a known MDP."""
        if not isinstance(truth, TabularMDP):
            raise InvalidInputError(f"truth must be a TabularMDP; got {type(truth).__name__}")
        extra = truth.n_states - self._observed
        if truth.n_actions != self.n_actions or extra < 0:
            raise InvalidInputError(
                f"truth must have the environment's {self._observed} states, then any ends, and "
                f"its {self.n_actions} actions; got {truth.n_states} states and "
                f"{truth.n_actions} actions"
            )
        if extra:
            self._ends = _given_ends(ends, self._observed)
        elif ends is not None:
            raise InvalidInputError(
                "ends need a truth with a state for each of them, after the environment's "
                f"{self._observed} states; truth has no such states"
            )
        else:
            self._ends = {state: state for state in _absorbing(truth)}
        if extra and len(set(self._ends.values())) != extra:
            raise InvalidInputError(
                f"ends must have {extra} items, one for each state of truth beyond the "
                f"environment's {self._observed}; got {len(set(self._ends.values()))}"
            )
        left = set(range(self._observed, truth.n_states)) - set(_absorbing(truth))
        if left:
            raise InvalidInputError(
                "the ends of truth must be absorbing and pay nothing, since an episode that ends "
                f"is followed by a reset; state {min(left)} does otherwise"
            )
        own = getattr(self.env.unwrapped, "mdp", None)
        if isinstance(own, TabularMDP) and not _alike(own, truth):
            raise InvalidInputError(
                f"truth must agree with the MDP that {self.env} has itself; they differ"
            )
        if own is None and isinstance(getattr(self.env.unwrapped, "P", None), dict):
            raise InvalidInputError(
                f"{self.env} has a table P of its own; truth= is for environments without one"
            )
        self.n_states = truth.n_states
        self.truth = _with_discount(truth, self.discount)
        self.rewards = truth.rewards
        if rewards is not None:
            self.rewards = _with_ends(rewards, self._observed, self.n_actions, extra)
            self._rounding = REWARD_ROUNDING * _largest(self.rewards)
            possible = truth.probabilities > 0.0
            model = truth.pattern.gather(self.rewards)
            off = possible & ~self._agrees(model, truth.transition_rewards)
            if off.any():
                first = int(np.argmax(off))
                pair = int(truth.pattern.pair_of_transition[first])
                raise RewardMismatchError(
                    f"rewards and truth must agree; for (state={pair // self.n_actions}, "
                    f"action={pair % self.n_actions}, next_state="
                    f"{int(truth.pattern.next_states[first])}) they are {model[first]:.10g} and "
                    f"{truth.transition_rewards[first]:.10g}"
                )

    def prior(
        self,
        concentration: float = 1.0,
        *,
        known_successors: bool | None = None,
        possible_rewards: Sequence[float] | None = None,
        reward_bounds: Sequence[float] | None = None,
    ) -> DirichletBelief | DisturbanceBelief | CensoredDisturbanceBelief | OutcomeBelief:
        """A prior for this world: independent Dirichlet rows, with the ends known to be absorbing.

        If one disturbance drives all transitions (the inventory), it is a Dirichlet prior for that
        disturbance; if lost sales hide it (``InventoryEnv(reveal_lost_sales=False)``), one that
        learns from "at least" as well. If the rewards are unknown, it is a prior for next states
        and rewards together.

        Parameters
        ----------
        concentration : float
            Concentration of every possible successor, or of every possible outcome (s', r) if the
            rewards are unknown; within bounds, that of a successor is divided between them.
        known_successors : bool, optional
            Whether only the truth's successors are possible. By default True if the truth is known
            and its episodes can end, because then rewards are defined for those transitions only;
            otherwise False, as in the paper. If all successors are possible and the prior would
            hold more than four million numbers, False must be passed explicitly.
        possible_rewards : list of numbers, optional
            If the rewards are unknown: those that any transition may pay
            (:meth:`brmdp.OutcomeBelief.uniform`). By default the library's environments with random
            rewards say which are possible. The ends pay nothing.
        reward_bounds : (float, float), optional
            Instead of these: the lowest and the highest reward that may be paid
            (:meth:`brmdp.OutcomeBelief.bootstrap`, an approximation).

        Raises
        ------
        InvalidInputError
            If the prior would be very large and was not asked for explicitly.
        """
        value = as_positive_number(concentration, "concentration")
        if not isinstance(known_successors, bool | np.bool_ | None):
            raise InvalidInputError(
                f"known_successors must be True, False or None; got {known_successors!r}"
            )
        if not self.rewards_unknown and (possible_rewards, reward_bounds) != (None, None):
            raise InvalidInputError(
                "possible_rewards and reward_bounds are for a world whose rewards are unknown; "
                f"make it with World(…, rewards={UNKNOWN!r})"
            )
        if self._outcomes is not None:
            kind = CensoredDisturbanceBelief if self._hides_disturbance else DisturbanceBelief
            return kind(self._outcomes, value)
        belief = self._transition_prior(value, known_successors)
        if not self.rewards_unknown:
            return belief
        return self._outcome_prior(value, belief, possible_rewards, reward_bounds)

    def _outcome_prior(
        self, value: float, belief: DirichletBelief, possible: Any, bounds: Any
    ) -> OutcomeBelief:
        """A prior for next states and rewards, on the transitions that ``belief`` has."""
        if possible is not None and bounds is not None:
            raise InvalidInputError("possible_rewards and reward_bounds must not both be given")
        law = getattr(self.env.unwrapped, "law", None)
        if possible is None and bounds is None and isinstance(law, OutcomeLaw):
            possible = law.possible_rewards
        shape = (self.n_states, self.n_actions)
        where: dict[str, Any] = {
            "possible": belief.concentration("csr"),
            "admissible": belief.pattern.admissible,
        }
        ends = [end for end in set(self._ends.values()) if end >= self._observed]
        if bounds is not None:
            given = as_float_array(bounds, "reward_bounds")
            if given.shape != (2,):
                raise InvalidInputError(
                    "reward_bounds must be two numbers, the lowest and the highest reward; got "
                    f"shape {given.shape}"
                )
            low, high = (np.full(shape, bound) for bound in given)
            low[ends], high[ends] = 0.0, 0.0
            return OutcomeBelief.bootstrap(*shape, low, high, value, **where)
        if possible is None:
            raise InvalidInputError(
                f"possible_rewards or reward_bounds must be given for {self.env}, which does not "
                "say which rewards it may pay"
            )
        common = as_float_array(possible, "possible_rewards")
        if common.ndim != 1:
            raise InvalidInputError(
                f"possible_rewards must be a list of numbers; got shape {common.shape}"
            )
        if not ends:
            return OutcomeBelief.uniform(*shape, common, value, **where)
        pairs = belief.pattern.pairs.tolist()
        lists = {divmod(pair, self.n_actions): common for pair in pairs}
        lists |= {pair: np.zeros(1) for pair in lists if pair[0] in ends}
        return OutcomeBelief.uniform(*shape, lists, value, **where)

    def _transition_prior(self, value: float, known_successors: bool | None) -> DirichletBelief:
        """A prior for the next states."""
        size = self.n_states * self.n_actions * self.n_states
        if known_successors is None:
            known_successors = bool(self._ends) and self.truth is not None
            if not known_successors and size > LARGEST_DENSE:
                raise InvalidInputError(
                    f"a prior in which every state can follow every pair has {size:,} entries "
                    "here. If you want that, pass known_successors=False; it is better to say "
                    "which transitions are possible: DirichletBelief.uniform(n_states, n_actions, "
                    "possible=…)"
                )
        if known_successors and self.truth is None:
            raise InvalidInputError("known_successors=True needs a world whose truth is known")
        if known_successors:
            assert self.truth is not None
            return DirichletBelief.uniform(
                self.n_states, self.n_actions, value, possible=self.truth
            )
        possible = np.ones((self.n_states, self.n_actions, self.n_states))
        for end in set(self._ends.values()):
            possible[end] = 0.0
            possible[end, :, end] = 1.0
        if self.truth is not None:
            possible[~self.truth.admissible] = 0.0
        return DirichletBelief(
            value * possible, admissible=None if self.truth is None else self.truth.admissible
        )

    def __repr__(self) -> str:
        spec = getattr(self.env, "spec", None)
        name = type(self.env.unwrapped).__name__ if spec is None else spec.id
        ends = len({end for end in self._ends.values() if end >= self._observed})
        extra = f" (including {ends} end{'s' if ends > 1 else ''})" if ends else ""
        parts = [f"{self.n_states} states{extra}"]
        parts += [f"{self.n_actions} actions", f"discount {self.discount:g}"]
        if self.horizon is not None:
            parts.append(f"episodes of {self.horizon} steps")
        parts.append("truth unknown" if self.truth is None else "truth known")
        parts += ["rewards unknown"] if self.rewards_unknown else []
        return f"World({name}: {', '.join(parts)})"

    def reset(self, seed: int | None = None) -> int:
        """Reset the environment and return the first state."""
        returned = self.env.reset(seed=seed)
        try:
            observation, _ = returned
        except (TypeError, ValueError):
            raise InvalidInputError(
                "env.reset must return two values, as Gymnasium defines: observation, info; got "
                f"{returned!r:.80}"
            ) from None
        self._state = as_index(observation, self._observed, "the environment's observation")
        self._steps = 0
        return self._state

    def step(self, action: int) -> tuple[int, float, int, dict[str, Any]]:
        """Take an action.

        Returns
        -------
        next_state : int
            State that the transition leads to.
        reward : float
            The reward.
        resumed : int
            State to continue from; it differs from ``next_state`` after a reset.
        info : dict
            Gymnasium's info.

        Raises
        ------
        RewardMismatchError
            If the environment pays a reward that the model does not have for what happened.
        ImpossibleTransitionError
            If the transition is impossible in ``truth``, or no disturbance leads there.
        """
        returned = self.env.step(action)
        try:
            observation, reward, terminated, truncated, info = returned
        except (TypeError, ValueError):
            raise InvalidInputError(
                "env.step must return five values, as Gymnasium defines: observation, reward, "
                f"terminated, truncated, info; got {returned!r:.80}"
            ) from None
        if type(observation) is not int or not 0 <= observation < self._observed:
            observation = as_index(observation, self._observed, "the environment's observation")
        next_state = self.end_of(observation) if terminated else observation
        if type(reward) is not float:
            reward = _as_reward(reward)
        if not self.random_rewards and not self.rewards_unknown:
            self._check_reward(action, observation, next_state, reward, info)
        else:
            self._require_possible(action, next_state)
            if not math.isfinite(reward):
                raise InvalidInputError(f"the environment's reward must be finite; got {reward}")
        over = self._is_over(bool(terminated), bool(truncated))
        resumed = self.reset() if over else next_state
        self._state = resumed
        self.restarted = over
        return next_state, reward, resumed, info

    def _is_over(self, terminated: bool, truncated: bool) -> bool:
        """Whether the episode is over with the step just taken."""
        if self.horizon is None:
            return terminated or truncated
        self._steps += 1
        if truncated and not terminated and self._steps < self.horizon:
            raise InvalidInputError(
                f"the environment truncated an episode after {self._steps} steps, before the "
                f"world's horizon of {self.horizon}: values of {self.horizon} steps, and regret, "
                "would be wrong. Give a shorter horizon, or an environment without a time limit"
            )
        return terminated or self._steps >= self.horizon

    @property
    def ends_by_observation(self) -> dict[int, int]:
        """The absorbing state for each observation with which an episode may terminate."""
        return dict(self._ends)

    @property
    def reveals_disturbance(self) -> bool:
        """Whether one disturbance drives all transitions, and the environment reports it."""
        return self._outcomes is not None and not self._hides_disturbance

    def _require_possible(self, action: int, next_state: int) -> None:
        """Refuse a transition that is impossible in the truth, if that is known."""
        state, truth = self._state, self.truth
        if state is None or truth is None or (state, action, next_state) in self._seen:
            return
        pattern, pair = truth.pattern, state * self.n_actions + action
        row = slice(int(pattern.indptr[pair]), int(pattern.indptr[pair + 1]))
        if not truth.probabilities[row][pattern.next_states[row] == next_state].any():
            raise ImpossibleTransitionError(
                f"the environment went from state {state} to {next_state} by action {action}, "
                "which the world's truth rules out: regret would be wrong. Give the right truth, "
                "or only rewards= if a wrapper changes what the environment does"
            )
        self._seen.add((state, action, next_state))

    def _check_reward(
        self, action: int, observation: int, next_state: int, reward: float, info: dict[str, Any]
    ) -> None:
        """Compare a reward with the model's rewards for what happened."""
        state = self._state
        if state is None:
            raise InvalidInputError("call reset() before the first step()")
        disturbance = info.get("disturbance") if self._outcomes is not None else None
        key = (state, action, observation, next_state, disturbance)
        expected = self._paid.get(key)
        if expected is None:
            self._require_possible(action, next_state)
            expected = self._paid[key] = self._model_rewards(*key)
        if reward in expected:
            return
        if not any(self._agrees(reward, one) for one in expected):
            listed = " or ".join(f"{one:.10g}" for one in expected)
            end = (
                f", where the episode ended with observation {observation}"
                if next_state != observation
                else ""
            )
            raise RewardMismatchError(
                f"the environment paid {reward:.10g} for (state={state}, action={action}, "
                f"next_state={next_state}{end}), where the model has {listed}. Agents would plan "
                "with a wrong reward, and regret would be wrong. Correct the rewards of the model "
                "(for endings that pay differently, pass ends= to World), or pass "
                "random_rewards=True to World, or rewards='unknown' if agents are to learn them"
            )

    def _model_rewards(
        self, state: int, action: int, observation: int, next_state: int, disturbance: int | None
    ) -> tuple[float, ...]:
        """The model's rewards for all outcomes that may have happened."""
        if self._outcomes is not None:
            by_disturbance = self.rewards.rewards[state, action]
            if disturbance is not None:
                return (
                    float(
                        by_disturbance[
                            as_index(disturbance, by_disturbance.size, "info['disturbance']")
                        ]
                    ),
                )
            fitting = by_disturbance[self._outcomes[state, action] == next_state]
            if fitting.size == 0:
                raise ImpossibleTransitionError(
                    f"the transition (state={state}, action={action}, next_state={next_state}) is "
                    "impossible: no disturbance leads there"
                )
            return tuple(sorted(set(fitting.tolist())))
        happened = (observation, next_state != observation)
        listed = self._table.get(state, {}).get(action, ())
        paid = {float(r) for p, t, r, end in listed if p > 0 and (int(t), bool(end)) == happened}
        if paid:
            return tuple(sorted(paid))
        return (self._reward_of(state, action, next_state),)

    def _agrees(self, rewards: Any, model: Any) -> Any:
        """Whether rewards equal the model's, up to rounding."""
        return abs(rewards - model) <= REWARD_TOLERANCE * abs(model) + self._rounding

    def _reward_of(self, state: int, action: int, next_state: int) -> float:
        """The model's r(s, a, s')."""
        rewards = self.rewards
        if sparse.issparse(rewards):
            return float(rewards[state * self.n_actions + action, next_state])
        row = rewards[state, action]
        return float(row if row.ndim == 0 else row[next_state])

    def require_same_rewards(self, belief: Belief, rewards: FloatArray) -> None:
        """Raise if an agent plans with rewards that differ from this world's.

        Parameters
        ----------
        belief : Belief
            The agent's belief.
        rewards : (transitions,) array
            The agent's rewards on the pattern of its belief. If the truth is known, only its
            transitions are compared.

        Raises
        ------
        RewardMismatchError
            If a reward differs.
        """
        if self.random_rewards or self.rewards_unknown:
            return
        forms = [self.rewards] if self.truth is None else [self.rewards, self.truth.rewards]
        pattern = belief.pattern
        pairs, next_states = pattern.pair_of_transition, pattern.next_states
        compared = np.ones(rewards.size, dtype=np.bool_)
        if self.truth is not None:
            possible = self.truth.kernel("csr") > 0
            compared = np.asarray(possible[pairs, next_states]).ravel()
        for form in forms:
            if isinstance(form, DisturbanceRewards) and not isinstance(belief, DrivenBelief):
                continue
            model = belief.gather_rewards(form)
            off = compared & ~self._agrees(rewards, model)
            if not off.any():
                return
        first = int(np.argmax(off))
        s, a = divmod(int(pairs[first]), self.n_actions)
        raise RewardMismatchError(
            f"the agent plans with the reward {rewards[first]:.10g} for (state={s}, action={a}, "
            f"next_state={int(next_states[first])}), where the world's model has "
            f"{model[first]:.10g}. Give the agent world.rewards, or pass random_rewards=True to "
            "World"
        )

    def require_same_knowledge(self, agent: Any) -> None:
        """Raise if rewards are known to the agent and unknown here, or the other way round.

        Parameters
        ----------
        agent : Actor
            Nothing is required of an agent without a belief.

        Raises
        ------
        RewardMismatchError
            If regret, or what the agent learns, would be wrong.
        """
        belief = getattr(agent, "belief", None)
        if getattr(belief, "pattern", None) is None:
            return
        learns = learns_rewards(belief)
        if learns and not self.rewards_unknown:
            raise RewardMismatchError(
                f"the agent's {type(belief).__name__} learns rewards, but this world has known "
                "ones and does not tell what was paid; make it with World(…, rewards='unknown'), "
                "or give the agent a belief about transitions alone"
            )
        if self.rewards_unknown and not learns:
            raise RewardMismatchError(
                f"the agent plans with known rewards (its belief is a {type(belief).__name__}), "
                "but in this world they are unknown; give it a belief that learns them, such as "
                "world.prior(), and no rewards"
            )
        if learns and getattr(agent, "rewards", None) is not None:
            raise RewardMismatchError(
                "the agent adds known rewards to those that it learns, but this world tells only "
                "what was paid in all: they would count twice. Give the agent rewards=None"
            )

    def end_of(self, observation: int) -> int:
        """The absorbing state of an episode that terminated with ``observation``."""
        try:
            return self._ends[observation]
        except KeyError:
            reason = (
                "although no episode ends there in the model"
                if self.truth is not None
                else "which is not one of the given ends"
            )
            raise InvalidInputError(
                f"the environment terminated in state {observation}, {reason}"
            ) from None


def _has_model(env: Any) -> bool:
    """Whether an environment describes its truth."""
    return isinstance(getattr(env, "mdp", None), TabularMDP) or isinstance(
        getattr(env, "P", None), dict
    )


def _made(name: str) -> Any:
    try:
        return gymnasium.make(name)
    except gymnasium.error.Error as error:
        raise InvalidInputError(
            f"env must be a Gymnasium environment or the id of a registered one; got {name!r}: "
            f"{error}"
        ) from None


def _size(env: Any, name: str) -> int:
    space = getattr(env, name, None)
    if not isinstance(space, gymnasium.spaces.Discrete) or int(space.start) != 0:
        raise InvalidInputError(f"env must have a Discrete {name} that starts at 0; got {space}")
    return int(space.n)


def _as_reward(reward: Any) -> float:
    if isinstance(reward, bool | np.bool_):
        return float(reward)
    return as_number(reward, "the environment's reward", "a number")


def _largest(rewards: Any) -> float:
    """The largest absolute reward."""
    if isinstance(rewards, DisturbanceRewards):
        rewards = rewards.rewards
    numbers = rewards.data if sparse.issparse(rewards) else rewards
    return float(np.abs(numbers).max(initial=0.0))


def _given_ends(ends: Any, n_states: int) -> dict[int, int]:
    """The absorbing state for each last observation: one for all, or as given by ``ends``."""
    if ends is None:
        return dict.fromkeys(range(n_states), n_states)
    if isinstance(ends, str) or not isinstance(ends, Collection) or len(ends) == 0:
        raise InvalidInputError(
            f"ends must be a collection of states in 0..{n_states - 1}, or of groups of them; got "
            f"{ends!r}"
        )
    numbers: dict[int, int] = {}
    for number, item in enumerate(ends, n_states):
        single = not isinstance(item, Collection) or (
            isinstance(item, np.ndarray) and item.ndim == 0
        )
        group = (item,) if single else item
        for state in group:
            state = as_index(state, n_states, "ends")
            if state in numbers:
                raise InvalidInputError(f"ends must name each state once; got {state} twice")
            numbers[state] = number
    return numbers


def _with_ends(rewards: Any, n_states: int, n_actions: int, n_ends: int) -> Any:
    array = as_float_array(rewards, "rewards")
    if array.shape == (n_states, n_actions):
        return np.concatenate([array, np.zeros((n_ends, n_actions))])
    if array.shape == (n_states, n_actions, n_states + n_ends):
        return np.concatenate([array, np.zeros((n_ends, n_actions, n_states + n_ends))])
    ending = "successor being the end" if n_ends == 1 else f"{n_ends} successors being the ends"
    raise InvalidInputError(
        f"rewards must have shape ({n_states}, {n_actions}) or ({n_states}, {n_actions}, "
        f"{n_states + n_ends}), the last {ending} of an episode; got {array.shape}"
    )


def _with_discount(mdp: TabularMDP, discount: float) -> TabularMDP:
    if mdp.discount == discount:
        return mdp
    kernel = mdp.kernel("csr")
    return TabularMDP(kernel, mdp.rewards, discount, mdp.start, admissible=mdp.admissible)


def _alike(first: TabularMDP, second: TabularMDP) -> bool:
    """Whether two MDPs have the same kernel and rewards, up to rounding."""
    if (first.n_states, first.n_actions) != (second.n_states, second.n_actions):
        return False
    kernels = abs(first.kernel("csr") - second.kernel("csr"))
    pattern = first.pattern
    rewards = second.pattern.csr(second.transition_rewards)
    likely = first.probabilities > 0.0
    paid = np.asarray(rewards[pattern.pair_of_transition, pattern.next_states]).ravel()
    scale = 1e-9 * (1.0 + float(np.abs(first.transition_rewards).max(initial=0.0)))
    close = np.abs(first.transition_rewards - paid)[likely] <= scale
    return float(kernels.max()) <= 1e-9 and bool(close.all())


def _absorbing(mdp: TabularMDP) -> list[int]:
    """States that are never left and pay nothing."""
    pattern = mdp.pattern
    owner = pattern.pair_of_transition // pattern.n_actions
    likely = mdp.probabilities > 0.0
    leaves = likely & ((pattern.next_states != owner) | (mdp.transition_rewards != 0.0))
    states: IntArray = np.setdiff1d(np.arange(mdp.n_states), owner[leaves])
    return [int(state) for state in states]


Outcome = tuple[float, int, float, bool]
"""Probability, next state, reward, terminated."""


def _checked_copy(table: Any, n: int) -> dict[int, dict[int, tuple[Outcome, ...]]]:
    """A checked copy of Gymnasium's table ``P``; the environment may change its own."""
    if not table or not all(isinstance(row, Mapping) and row for row in table.values()):
        raise InvalidInputError(
            "env.unwrapped.P must map every state to a non-empty dictionary of actions"
        )
    copied: dict[int, dict[int, tuple[Outcome, ...]]] = {}
    for s, row in table.items():
        copied[s] = {}
        for a, listed in row.items():
            name = f"P[{s}][{a}]"
            if not isinstance(listed, Sequence):
                raise InvalidInputError(
                    f"{name} must be a list of (probability, next state, reward, terminated); got "
                    f"{listed!r}"
                )
            outcomes = (gymnasium_entry(entry, name) for entry in listed)
            copied[s][a] = tuple(
                (p, as_index(t, n, f"next state in {name}"), r, end) for p, t, r, end in outcomes
            )
    return copied


def _ends(table: Any, n: int) -> dict[int, int]:
    """The absorbing state for each last observation in the table.

    There is one for all, unless an action can end the episode in ways that pay differently.
    """
    last = sorted(
        {
            int(s)
            for row in table.values()
            for outcomes in row.values()
            for _, s, _, end in outcomes
            if end
        }
    )
    several = any(
        len({reward for _, _, reward, end in outcomes if end}) > 1
        for row in table.values()
        for outcomes in row.values()
    )
    return {s: n + (position if several else 0) for position, s in enumerate(last)}


def _with_absorbing_ends(
    known: Any, start: Any, ends: dict[int, int], n: int, discount: float
) -> TabularMDP:
    table: dict[int, Any] = {
        s: {
            a: [(p, ends[int(t)] if end else t, r, False) for p, t, r, end in outcomes]
            for a, outcomes in row.items()
        }
        for s, row in known.items()
    }
    actions = range(max(len(row) for row in table.values()))
    for end in set(ends.values()):
        table[end] = {a: [(1.0, end, 0.0, False)] for a in actions}
    if start is not None:
        start = np.append(np.asarray(start, dtype=float), np.zeros(len(table) - n))
    return TabularMDP.from_gymnasium(table, discount, start)


def _beyond_the_table(truth: TabularMDP) -> Any:
    """Rewards that also cover transitions not in the table: the least that the pair can pay.

    They matter only for beliefs under which such transitions are possible. If a dense array would
    be too large, only the table's rewards are returned.
    """
    pattern = truth.pattern
    if pattern.n_pairs * pattern.n_states > LARGEST_DENSE:
        return truth.rewards
    least = np.full(pattern.n_pairs, np.inf)
    np.minimum.at(least, pattern.pair_of_transition, truth.transition_rewards)
    dense = np.repeat(np.where(np.isfinite(least), least, 0.0), pattern.n_states).reshape(
        pattern.n_pairs, -1
    )
    dense[pattern.pair_of_transition, pattern.next_states] = truth.transition_rewards
    return dense.reshape(pattern.n_states, pattern.n_actions, pattern.n_states)
