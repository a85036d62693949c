"""The record of an interaction: every column is declared once, here.

:mod:`brmdp.runs` stores and reads these columns, :mod:`brmdp.report` sums up those that have a
total, and the documentation lists them. Each of these names only the columns that it needs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from brmdp._columns import column
from brmdp._validation import FloatArray, IntArray

__all__ = ["Episodes", "History", "Steps"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Steps:
    """Columns with one entry per step; in the records of several runs they are (R, T) arrays.

    Examples
    --------
    >>> from dataclasses import fields
    >>> from brmdp.simulation import Steps
    >>> [one.name for one in fields(Steps)][:4]
    ['state', 'action', 'reward', 'next_state']
    """

    state: IntArray = column("s_t, the state in which the agent acts")
    action: IntArray = column("a_t, the action it takes")
    reward: FloatArray = column("r_t, as paid by the environment", total="reward")
    next_state: IntArray | None = column(
        "the state that the transition leads to; after a reset the next step begins elsewhere",
        since=3,
    )
    disturbance: IntArray | None = column(
        "the disturbance that drives the transition, if one disturbance drives all transitions and "
        "the world reveals it",
        since=3,
    )
    episode: IntArray = column("number of the pseudo-episode, from 1")
    true_regret: FloatArray | None = column(
        "V*(s_t) − V^{π_k}(s_t), by exact evaluation in the true world", total="true regret"
    )
    robust_regret: FloatArray | None = column(
        "V*_{φ_k,α̲}(s_t) − V^{π_k}_{φ_k,α̲}(s_t), under the belief of the current plan",
        total="robust regret",
    )


@dataclass(slots=True)
class Episodes:
    """How each pseudo-episode was planned: lists with one entry per pseudo-episode.

    An entry is None if the agent does not provide it.

    Examples
    --------
    >>> import brmdp
    >>> world = brmdp.World("brmdp/RiverSwim-v0", discount=0.9)
    >>> agent = brmdp.agents.posterior_mean(world.prior(), world.rewards, 0.9, rng=1)
    >>> episodes = brmdp.simulate(agent, world, 20, seed=1).episodes
    >>> episodes.first_step[0], episodes.status[0]
    (0, 'converged')
    """

    first_step: list[int] = field(default_factory=list)
    """First step that follows the plan."""

    policy: list[int] = field(default_factory=list)
    """Number of the policy, in order of first appearance; equal policies have equal numbers."""

    levels: list[FloatArray | None] = column(
        "α_k(s,a), state by state and action by action", empty=True
    )
    iterations: list[int | None] = column("number of sweeps of the solver", empty=True)
    residual: list[float | None] = column("max|TV − V| when the solver stopped", empty=True)
    error_bound: list[float | None] = column(
        "bound on the distance to the fixed point that was solved for", empty=True
    )
    status: list[str | None] = column('"converged", "sampled" or "approximate"', empty=True)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class History(Steps):
    """A recorded interaction of T steps.

    It has the columns of :class:`Steps`, with regrets per step (not accumulated). In a world with a
    horizon, true regret is per episode: at the first step of an episode it is V*_0(s) − V^π_0(s),
    what the plan in force at that step loses over the H steps of the episode, and zero at all
    other steps. So its sum is that of the episodes begun; the last one counts in full, even if the
    interaction ended within it. If the agent plans again within an episode, what that changes is
    not counted. It also has:

    Attributes
    ----------
    quantile_step : (D,) integers
        Steps at which the posterior quantile value was estimated.
    quantile_value : (D,) array
        Posterior quantile of the policy's value at the first state; empty if not requested.
    episodes : Episodes
        How each pseudo-episode was planned.
    starts : (E,) integers or None
        Steps at which an episode of the world began; None if that is not known.
    horizon : int or None
        The horizon of the world.

    Examples
    --------
    >>> import brmdp
    >>> world = brmdp.World("brmdp/RiverSwim-v0", discount=0.9)
    >>> agent = brmdp.agents.posterior_mean(world.prior(), world.rewards, 0.9, rng=1)
    >>> history = brmdp.simulate(agent, world, 20, seed=1)
    >>> len(history), history.reward.shape, history.robust_regret is None
    (20, (20,), True)
    """

    quantile_step: IntArray
    quantile_value: FloatArray = column(
        "posterior quantile of the policy's value at the first state, at the diagnostic steps"
    )
    episodes: Episodes
    starts: IntArray | None = None
    horizon: int | None = None

    def __len__(self) -> int:
        return int(self.state.size)

    def __repr__(self) -> str:
        steps, episodes = len(self), len(self.episodes.first_step)
        parts = [
            f"{steps} step{'' if steps == 1 else 's'}",
            f"{episodes} pseudo-episode{'' if episodes == 1 else 's'}",
        ]
        if self.horizon is not None and self.starts is not None:
            parts.append(f"{self.starts.size} episodes of at most {self.horizon} steps")
        if len(self):
            parts.append(f"mean reward {self.reward.mean():.4g}")
        if self.true_regret is not None:
            parts.append(f"true regret {self.true_regret.sum():.4g}")
        if self.robust_regret is not None:
            parts.append(f"robust regret {self.robust_regret.sum():.4g}")
        return f"History({', '.join(parts)})"
