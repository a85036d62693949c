"""A Gymnasium environment as a tabular agent sees it: numbered states, known rewards, and an end that is a state.

A terminated transition goes to a known absorbing state that pays nothing, and is followed by a reset; resets and
truncations are not transitions, so no agent learns from them.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from brmdp._validation import IntArray, as_discount, as_float_array, as_positive_number
from brmdp.errors import InvalidInputError
from brmdp.mdp import TabularMDP
from brmdp.posterior import DirichletPosterior, DisturbancePosterior, DisturbanceRewards

__all__ = ["World"]

LARGEST_DENSE = 4_000_000
"""Most numbers in a dense array of rewards."""


class World:
    """An environment with discrete spaces, and what is known of it.

    Parameters
    ----------
    env : gymnasium.Env or str
        An environment, or the id of a registered one.
    discount : float in [0, 1)
        For the truth, where it is known.
    rewards : (S, A) or (S, A, S + 1) array, optional
        Known rewards, for environments without ``env.unwrapped.P``; the last successor is the end of an episode. Otherwise
        they come from the environment.

    Attributes
    ----------
    n_states, n_actions : int
        Of the tabular model: the states of the environment, then the ends.
    rewards : array, sparse matrix or DisturbanceRewards
        In a form that :func:`brmdp.plan` takes.
    truth : TabularMDP or None
        The true kernel, for regret; None if the environment does not tell.
    """

    def __init__(self, env: Any, discount: float, *, rewards: Any = None) -> None:
        self.env: Any = _made(env) if isinstance(env, str) else env
        self.discount: float = as_discount(discount)
        self._observed = _size(self.env, "observation_space")
        self.n_actions: int = _size(self.env, "action_space")
        unwrapped: Any = self.env.unwrapped
        self.truth: TabularMDP | None = None
        self._ends: dict[int, int] = {}
        self._outcomes: IntArray | None = None
        if rewards is not None:
            self.n_states: int = self._observed + 1
            self._ends = dict.fromkeys(range(self._observed), self._observed)
            self.rewards: Any = _with_end(rewards, self._observed, self.n_actions)
        elif isinstance(getattr(unwrapped, "mdp", None), TabularMDP):
            known: TabularMDP = unwrapped.mdp
            self.n_states = known.n_states
            self.rewards = known.rewards
            self.truth = known
            if hasattr(unwrapped, "problem"):
                self._outcomes = unwrapped.problem.outcomes
                self.rewards = DisturbanceRewards(unwrapped.problem.disturbance_rewards)
            if known.discount != self.discount:
                self.truth = TabularMDP(
                    known.kernel("csr"), known.rewards, self.discount, known.start, admissible=known.admissible
                )
        elif isinstance(getattr(unwrapped, "P", None), dict):
            self._ends = _ends(unwrapped.P, self._observed)
            self.truth = _with_absorbing_ends(unwrapped, self._ends, self._observed, self.discount)
            self.n_states = self.truth.n_states
            self.rewards = _beyond_the_table(self.truth)
        else:
            raise InvalidInputError(
                f"rewards must be given for {self.env}: it has no env.unwrapped.P to take them from"
            )

    def prior(
        self, concentration: float = 1.0, *, known_successors: bool | None = None
    ) -> DirichletPosterior | DisturbancePosterior:
        """A prior for this world: independent Dirichlet rows, with the ends known to be absorbing.

        Where one disturbance drives all transitions (the inventory), a Dirichlet prior for that.

        Parameters
        ----------
        concentration : float
            Of every possible successor.
        known_successors : bool, optional
            Whether only the truth's successors are possible. By default yes for an environment that ends and gives its
            table ``P``, whose rewards are defined for those transitions alone, and no otherwise (the paper's setting).
        """
        value = as_positive_number(concentration, "concentration")
        if self._outcomes is not None:
            return DisturbancePosterior(self._outcomes, value)
        if known_successors is None:
            known_successors = bool(self._ends) and self.truth is not None
        if known_successors and self.truth is None:
            raise InvalidInputError("known_successors=True needs an environment that tells its successors")
        if known_successors:
            assert self.truth is not None
            return DirichletPosterior.uniform(self.n_states, self.n_actions, value, possible=self.truth)
        possible = np.ones((self.n_states, self.n_actions, self.n_states))
        for end in set(self._ends.values()):
            possible[end] = 0.0
            possible[end, :, end] = 1.0
        if self.truth is not None:
            possible[~self.truth.admissible] = 0.0
        return DirichletPosterior(value * possible, admissible=None if self.truth is None else self.truth.admissible)

    def reset(self, seed: int | None = None) -> int:
        """Begin; the first state."""
        observation, _ = self.env.reset(seed=seed)
        return int(observation)

    def step(self, action: int) -> tuple[int, float, int, dict[str, Any]]:
        """Act; next state of the transition, reward, state to go on from (another after a reset), and Gymnasium's info."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        following = self.end_of(int(observation)) if terminated else int(observation)
        then = self.reset() if terminated or truncated else following
        return following, reward, then, info

    def end_of(self, observation: int) -> int:
        """The absorbing state of an episode that terminated with ``observation``."""
        try:
            return self._ends[observation]
        except KeyError:
            raise InvalidInputError(
                f"the environment terminated in state {observation}, where its table P never ends"
            ) from None


def _made(name: str) -> Any:
    try:
        return gymnasium.make(name)
    except gymnasium.error.Error as error:
        raise InvalidInputError(
            f"env must be an environment or the id of a registered one; got {name!r}: {error}"
        ) from None


def _size(env: Any, name: str) -> int:
    space = getattr(env, name, None)
    if not isinstance(space, gymnasium.spaces.Discrete) or int(space.start) != 0:
        raise InvalidInputError(f"env must have a Discrete {name} that begins at 0; got {space}")
    return int(space.n)


def _with_end(rewards: Any, n_states: int, n_actions: int) -> Any:
    array = as_float_array(rewards, "rewards")
    if array.shape == (n_states, n_actions):
        return np.concatenate([array, np.zeros((1, n_actions))])
    if array.shape == (n_states, n_actions, n_states + 1):
        return np.concatenate([array, np.zeros((1, n_actions, n_states + 1))])
    raise InvalidInputError(
        f"rewards must have shape ({n_states}, {n_actions}) or ({n_states}, {n_actions}, {n_states + 1}), the last "
        f"successor being the end of an episode; got {array.shape}"
    )


def _ends(table: Any, n: int) -> dict[int, int]:
    """A number for the end of each episode: one for all, unless an action can end in ways that pay differently."""
    last = sorted({int(s) for row in table.values() for outcomes in row.values() for _, s, _, end in outcomes if end})
    several = any(
        len({reward for _, _, reward, end in outcomes if end}) > 1
        for row in table.values()
        for outcomes in row.values()
    )
    return {s: n + (position if several else 0) for position, s in enumerate(last)}


def _with_absorbing_ends(unwrapped: Any, ends: dict[int, int], n: int, discount: float) -> TabularMDP:
    table: dict[int, Any] = {
        s: {a: [(p, ends[int(t)] if end else t, r, False) for p, t, r, end in outcomes] for a, outcomes in row.items()}
        for s, row in unwrapped.P.items()
    }
    actions = range(max(len(row) for row in table.values()))
    for end in set(ends.values()):
        table[end] = {a: [(1.0, end, 0.0, False)] for a in actions}
    start = getattr(unwrapped, "initial_state_distrib", None)
    if start is not None:
        start = np.append(np.asarray(start, dtype=float), np.zeros(len(table) - n))
    return TabularMDP.from_gymnasium(table, discount, start)


def _beyond_the_table(truth: TabularMDP) -> Any:
    """Rewards for transitions that the table does not list too: the least that the pair can pay.

    Only for a model in which those are thought possible, and only where a dense array fits.
    """
    pattern = truth.pattern
    if pattern.n_pairs * pattern.n_states > LARGEST_DENSE:
        return truth.rewards
    least = np.full(pattern.n_pairs, np.inf)
    np.minimum.at(least, pattern.pair_of_transition, truth.transition_rewards)
    dense = np.repeat(np.where(np.isfinite(least), least, 0.0), pattern.n_states).reshape(pattern.n_pairs, -1)
    dense[pattern.pair_of_transition, pattern.next_states] = truth.transition_rewards
    return dense.reshape(pattern.n_states, pattern.n_actions, pattern.n_states)
