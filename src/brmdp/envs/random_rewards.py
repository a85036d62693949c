"""Known worlds with random rewards, for agents that have to learn the rewards.

An :class:`OutcomeLaw` lists the outcomes (s', r) of every pair with their probabilities. Its
:attr:`~OutcomeLaw.mdp` is the same world with the mean rewards: all that values and regret depend
on. An agent may know which rewards are possible (:attr:`~OutcomeLaw.possible_rewards`, one list for
all transitions, so that it does not give away which pair pays what), but not how likely they are::

    world = brmdp.World(brmdp.envs.BanditEnv(), discount=0.0, rewards="unknown")
    agent = brmdp.agents.continuing_psrl(world.prior(), world.rewards, 0.0, rng=1)
    history = brmdp.simulate(agent, world, 1000, seed=1)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from brmdp._validation import (
    FloatArray,
    IntArray,
    as_float_array,
    as_number,
    check_transition_count,
    sum_tolerance,
)
from brmdp.envs.rendering import GridPainter, Painter
from brmdp.envs.riverswim import riverswim
from brmdp.envs.tabular_env import RenderMode, TabularEnv
from brmdp.errors import InvalidInputError
from brmdp.mdp import TabularMDP

__all__ = [
    "ARMS",
    "BanditEnv",
    "BernoulliRiverSwimEnv",
    "OutcomeEnv",
    "OutcomeLaw",
    "bandit",
    "bernoulli_riverswim",
    "with_bernoulli_rewards",
]

ARMS = (0.15, 0.20, 0.25, 0.30, 0.35, 0.40, 0.45, 0.50, 0.55, 0.60)
"""The default arms: the chance that each pays 1."""


@dataclass(frozen=True, eq=False)
class OutcomeLaw:
    """A known MDP with random rewards: the law of the outcome (s', r) of every pair.

    Attributes
    ----------
    mdp : TabularMDP
        The same world with mean rewards r(s, a, s').
    indptr : (S·A + 1,) integers
        Pair s·A + a owns the outcomes ``indptr[pair]`` to ``indptr[pair + 1]``.
    next_states, rewards, probabilities : (outcomes,) arrays
        The outcomes of all pairs, one after another.

    Examples
    --------
    >>> import brmdp
    >>> law = brmdp.envs.bandit([0.2, 0.7])
    >>> law.rewards, law.probabilities.round(2)
    (array([0., 1., 0., 1.]), array([0.8, 0.2, 0.3, 0.7]))
    >>> law.mdp.rewards.ravel()
    array([0.2, 0.7])
    >>> law.possible_rewards
    (0.0, 1.0)
    """

    mdp: TabularMDP
    indptr: IntArray
    next_states: IntArray
    rewards: FloatArray
    probabilities: FloatArray

    @cached_property
    def possible_rewards(self) -> tuple[float, ...]:
        """All rewards that any pair may pay, in increasing order."""
        paid = self.rewards[self.probabilities > 0.0]
        return tuple(np.unique(paid).tolist())


def bandit(arms: Any = ARMS, *, discount: float = 0.0) -> OutcomeLaw:
    """A bandit: one state, K arms, each with a reward law of its own.

    Parameters
    ----------
    arms : sequence
        For each arm the chance that it pays 1, and not 0, or its law as ``{reward: probability}``
        or as pairs [reward, probability].
    discount : float in [0, 1)
        γ. With 0, true regret is what is usually meant in a bandit: the mean reward of the best arm
        minus that of the arm pulled.

    Returns
    -------
    OutcomeLaw

    Examples
    --------
    >>> import brmdp
    >>> law = brmdp.envs.bandit([0.3, {0.0: 0.9, 5.0: 0.1}])
    >>> law.mdp.rewards.ravel()
    array([0.3, 0.5])
    """
    if isinstance(arms, str | Mapping) or not hasattr(arms, "__len__") or len(arms) == 0:
        raise InvalidInputError(
            f"arms must be a non-empty sequence of chances or reward laws; got {arms!r:.60}"
        )
    laws = [_as_law(arm, f"arms[{k}]") for k, arm in enumerate(arms)]
    check_transition_count(sum(rewards.size for rewards, _ in laws), "arms")
    means = [[float(rewards @ chances) for rewards, chances in laws]]
    n = len(laws)
    mdp = TabularMDP(
        np.ones((1, n, 1)),
        means,
        discount,
        state_names=[f"a bandit with {n} arm{'' if n == 1 else 's'}"],
        action_names=[f"arm {k}" for k in range(n)],
    )
    rewards = np.concatenate([rewards for rewards, _ in laws])
    return OutcomeLaw(
        mdp,
        np.cumsum([0, *(chances.size for _, chances in laws)]).astype(np.int64),
        np.zeros(rewards.size, dtype=np.int64),
        rewards,
        np.concatenate([chances for _, chances in laws]),
    )


def with_bernoulli_rewards(mdp: TabularMDP) -> OutcomeLaw:
    """The same MDP, but every reward r(s, a, s') in [0, 1] is paid as 1 with that chance, else 0.

    Examples
    --------
    >>> import brmdp
    >>> law = brmdp.envs.with_bernoulli_rewards(brmdp.envs.riverswim(3))
    >>> law.possible_rewards
    (0.0, 1.0)
    """
    if not isinstance(mdp, TabularMDP):
        raise InvalidInputError(f"mdp must be a brmdp.TabularMDP; got {type(mdp).__name__}")
    means = mdp.transition_rewards
    if not ((means >= 0.0) & (means <= 1.0)).all():
        bad = float(means[(means < 0.0) | (means > 1.0)][0])
        raise InvalidInputError(f"mdp must have rewards in [0, 1], as chances to pay 1; got {bad}")
    chances = np.column_stack([1.0 - means, means]) * mdp.probabilities[:, None]
    return OutcomeLaw(
        mdp,
        2 * mdp.pattern.indptr,
        np.repeat(mdp.pattern.next_states, 2),
        np.tile([0.0, 1.0], means.size),
        chances.ravel(),
    )


def bernoulli_riverswim(n: int = 6, *, discount: float = 0.9) -> OutcomeLaw:
    """RiverSwim with random rewards: each is 1 with the paper's reward as its chance, else 0.

    Parameters
    ----------
    n, discount
        As in :func:`brmdp.envs.riverswim`.

    Returns
    -------
    OutcomeLaw

    Examples
    --------
    >>> import brmdp
    >>> brmdp.envs.bernoulli_riverswim(6).mdp
    TabularMDP(6 states, 2 actions, 22 possible transitions, discount=0.9)
    """
    return with_bernoulli_rewards(riverswim(n, discount=discount))


class OutcomeEnv(TabularEnv):
    """A Gymnasium environment that simulates a known MDP with random rewards.

    One uniform random number per step decides on the next state and the reward together.

    Parameters
    ----------
    law : OutcomeLaw
        The world.
    render_mode, painter
        As in :class:`TabularEnv`.

    Attributes
    ----------
    law : OutcomeLaw
        The truth, for regret and for checks. A learning agent may look at ``possible_rewards``.

    Examples
    --------
    >>> import brmdp
    >>> env = brmdp.envs.OutcomeEnv(brmdp.envs.bandit([0.0, 1.0]), render_mode="ansi")
    >>> state, info = env.reset(seed=1)
    >>> env.step(1)
    (0, 1.0, False, False, {})
    >>> print(env.render().rstrip())
    a bandit with 2 arms, after arm 1, which paid 1
    [.]
    """

    def __init__(
        self, law: OutcomeLaw, render_mode: RenderMode | None = None, painter: Painter | None = None
    ) -> None:
        if not isinstance(law, OutcomeLaw):
            raise InvalidInputError(f"law must be an OutcomeLaw; got {type(law).__name__}")
        self.law = law
        super().__init__(law.mdp, render_mode, painter)
        self._reward: float | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """As in :class:`TabularEnv`."""
        self._reward = None
        return super().reset(seed=seed, options=options)

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Take an action; returns (next state, random reward, False, False, {})."""
        found = super().step(action)
        self._reward = found[1]
        return found

    def _outcomes(self, state: int, action: int) -> tuple[FloatArray, IntArray, FloatArray]:
        """One outcome per next state and reward."""
        law, pair = self.law, state * self.mdp.n_actions + action
        row = slice(int(law.indptr[pair]), int(law.indptr[pair + 1]))
        return law.probabilities[row], law.next_states[row], law.rewards[row]

    @cached_property
    def P(self) -> dict[int, dict[int, list[tuple[float, int, float, bool]]]]:
        """Gymnasium's table, with one entry per outcome."""
        n_states, n_actions = self.mdp.n_states, self.mdp.n_actions
        table: dict[int, dict[int, list[tuple[float, int, float, bool]]]] = {}
        for s in range(n_states):
            table[s] = {}
            for a in range(n_actions):
                columns = (column.tolist() for column in self._outcomes(s, a))
                table[s][a] = [(p, t, r, False) for p, t, r in zip(*columns, strict=True)]
        return table

    def _title(self) -> str:
        paid = "" if self._reward is None else f", which paid {self._reward:g}"
        return f"{super()._title()}{paid}"


class BanditEnv(OutcomeEnv):
    """A bandit as an environment: one state, and a random reward for the arm that is pulled.

    Parameters
    ----------
    arms, discount
        As in :func:`brmdp.envs.bandit`.
    render_mode : {None, "ansi", "rgb_array"}
        As in :class:`TabularEnv`.

    Examples
    --------
    >>> from brmdp.envs import BanditEnv
    >>> env = BanditEnv()
    >>> state, _ = env.reset(seed=1)
    >>> state, int(env.action_space.n)
    (0, 10)
    """

    def __init__(
        self, arms: Any = ARMS, *, discount: float = 0.0, render_mode: RenderMode | None = None
    ) -> None:
        super().__init__(bandit(arms, discount=discount), render_mode)


class BernoulliRiverSwimEnv(OutcomeEnv):
    """RiverSwim with random rewards as an environment, drawn like :class:`RiverSwimEnv`.

    Parameters
    ----------
    n, discount
        As in :func:`brmdp.envs.bernoulli_riverswim`.
    render_mode : {None, "ansi", "rgb_array"}
        As in :class:`TabularEnv`.

    Examples
    --------
    >>> from brmdp.envs import BernoulliRiverSwimEnv
    >>> env = BernoulliRiverSwimEnv(4, render_mode="ansi")
    >>> state, _ = env.reset(seed=1)
    >>> state, reward, *_ = env.step(0)
    >>> print(env.render().rstrip())
    state 0, after left, which paid 0
    [S] ~  ~  G
    """

    def __init__(
        self, n: int = 6, *, discount: float = 0.9, render_mode: RenderMode | None = None
    ) -> None:
        law = bernoulli_riverswim(n, discount=discount)
        river = "S" + "~" * (law.mdp.n_states - 2) + "G"
        super().__init__(law, render_mode, GridPainter((river,)))


def _as_law(arm: Any, name: str) -> tuple[FloatArray, FloatArray]:
    """Rewards and their probabilities, from a chance, a mapping or pairs."""
    if isinstance(arm, Mapping):
        arm = list(arm.items())
    if isinstance(arm, Sequence | np.ndarray) and not isinstance(arm, str) and np.ndim(arm) > 0:
        return _listed_law(arm, name)
    chance = as_number(arm, name, "a chance in [0, 1] or a reward law")
    if not 0.0 <= chance <= 1.0:
        raise InvalidInputError(f"{name} must be a chance in [0, 1] or a reward law; got {arm!r}")
    return np.array([0.0, 1.0]), np.array([1.0 - chance, chance])


def _listed_law(arm: ArrayLike, name: str) -> tuple[FloatArray, FloatArray]:
    pairs = as_float_array(arm, name)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or len(pairs) == 0:
        raise InvalidInputError(
            f"{name} must map rewards to probabilities; got shape {pairs.shape}"
        )
    order = np.argsort(pairs[:, 0], kind="stable")
    rewards, chances = pairs[order].T
    if (np.diff(rewards) <= 0.0).any():
        raise InvalidInputError(f"{name} must name every reward once; got {rewards.tolist()}")
    total = float(chances.sum())
    if (chances < 0.0).any() or abs(total - 1.0) > sum_tolerance(0.0, chances.size):
        raise InvalidInputError(
            f"{name} must have probabilities that are not negative and sum to one; got "
            f"{chances.tolist()}"
        )
    return np.ascontiguousarray(rewards), np.ascontiguousarray(chances / total)
