"""What is recorded of an interaction: every column declared once, here.

:mod:`brmdp.runs` stores and reads these columns, :mod:`brmdp.report` sums up those that have a
total, and the documentation lists them; none of them names a column that it does not need.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from brmdp._columns import column
from brmdp._validation import FloatArray, IntArray

__all__ = ["Episodes", "History", "Steps"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Steps:
    """One entry per step; in the records of several runs, (R, T) arrays."""

    state: IntArray = column("s_t, the state in which the agent acts")
    action: IntArray = column("a_t, the action it takes")
    reward: FloatArray = column("r_t, as the environment paid it", total="reward")
    next_state: IntArray | None = column(
        "where the transition led; the next step begins elsewhere after a reset", since=3
    )
    disturbance: IntArray | None = column(
        "what drove the transition, where one disturbance drives them all and the agent is told",
        since=3,
    )
    episode: IntArray = column("number of the pseudo-episode, from 1")
    true_regret: FloatArray | None = column(
        "V*(s_t) − V^{π_k}(s_t), by exact evaluation in the true world", total="true regret"
    )
    robust_regret: FloatArray | None = column(
        "V*_{φ_k,α̲}(s_t) − V^{π_k}_{φ_k,α̲}(s_t), under what the agent believes at its plan",
        total="robust regret",
    )


@dataclass(slots=True)
class Episodes:
    """One entry per pseudo-episode: how it was planned; None where an agent does not say."""

    first_step: list[int] = field(default_factory=list)
    """The step that follows the plan first."""

    policy: list[int] = field(default_factory=list)
    """Number of the policy followed, in the order of first appearance: equal numbers, equal policies."""

    levels: list[FloatArray | None] = column(
        "α_k(s,a), state by state, action by action", empty=True
    )
    iterations: list[int | None] = column("sweeps of the solver", empty=True)
    residual: list[float | None] = column("max|TV − V| where the solver stopped", empty=True)
    error_bound: list[float | None] = column(
        "bound on the distance to the true fixed point", empty=True
    )
    status: list[str | None] = column('"converged", "sampled" or "approximate"', empty=True)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class History(Steps):
    """A recorded interaction of T steps.

    Beside the columns of :class:`Steps`, regrets per step and not accumulated:

    Attributes
    ----------
    quantile_step : (D,) integers
        When the posterior quantile value was looked at.
    quantile_value : (D,) array
        Posterior quantile of the policy's value at the first state; empty if not asked for.
    episodes : Episodes
        How each pseudo-episode was planned.
    """

    quantile_step: IntArray
    quantile_value: FloatArray = column(
        "posterior quantile of the policy's value at the first state, at the diagnostic times"
    )
    episodes: Episodes

    def __len__(self) -> int:
        return int(self.state.size)

    def __repr__(self) -> str:
        parts = [f"{len(self)} steps", f"{len(self.episodes.first_step)} pseudo-episodes"]
        if len(self):
            parts.append(f"mean reward {self.reward.mean():.4g}")
        if self.true_regret is not None:
            parts.append(f"true regret {self.true_regret.sum():.4g}")
        if self.robust_regret is not None:
            parts.append(f"robust regret {self.robust_regret.sum():.4g}")
        return f"History({', '.join(parts)})"
