"""Plans and evaluations over a finite horizon, by backward induction.

With H steps to go, terminal values V_H and any discount γ in [0, 1],

    V_h(s) = max_a ρ[ r(s,a,s') + γ V_{h+1}(s') ],    h = H − 1, …, 0,

and the policy may differ from step to step. An evaluation has Σ_a π_h(a|s) in place of the maximum.

**What a risk measure means over H steps.** It is applied at every step, as in the discounted
problem. A quantile of a quantile treats the kernel as if it were drawn anew at every step; it is
not the quantile of the H-step value under one unknown kernel, which stays the same (for that, see
:mod:`brmdp.decisions`). Measures that draw do so once per plan, and all H steps use the same draws:
a plan with ``PosteriorSample`` is the optimal one for one drawn kernel, held over all steps, and
``MonteCarlo`` takes the same order statistic of the same draws at every step.

**Errors.** Backups are non-expansive up to γ, so the numerical errors η_h of the backups add up:

    e_h = η_h + γ e_{h+1},    e_H = 0,

bounds |values[h] − V_h|. Following the policy loses at most e_h + f_h, where f_h = η_h + ξ_h +
γ f_{h+1} and ξ_h is what a tied action gives away at step h: the policy's own values are at least
values[h] − f_h, by induction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from brmdp._kernels import linear
from brmdp._validation import (
    BoolArray,
    FloatArray,
    IntArray,
    as_array,
    as_float_array,
    as_policies,
    as_policy,
    as_policy_weights,
    as_positive_int,
)
from brmdp.errors import InvalidInputError
from brmdp.planning.bellman import FLOOR, Bellman
from brmdp.planning.fixed_point import RELATIVE, TINY, UNSTATED, coarsest
from brmdp.planning.mixture import pairs_used
from brmdp.planning.prior import PriorReliance
from brmdp.planning.solution import CONVERGED, NOT_CONVERGED
from brmdp.planning.text import call_like, extent, wrapped
from brmdp.risk.base import APPROXIMATE, EXACT, SAMPLED
from brmdp.risk.boundary import CheckedRisk

__all__ = ["HorizonSolution", "as_horizon", "as_stages", "as_terminal", "backward_induction"]

KEPT_Q_VALUES = 20_000_000
"""Beyond this many numbers H·S·A, q-values are not kept; ``brmdp.backup`` gives those of a step."""

LARGEST_PLAN = 50_000_000
"""Largest number of values, (H + 1)·S."""


@dataclass(frozen=True, eq=False, repr=False)
class HorizonSolution:
    """Values and policy of every step; the result of planning or evaluating with a ``horizon``.

    Step h = 0 is the first of H, and values[h] are those of the steps h, …, H − 1 and of the end.
    Printing the object describes it in words.

    Attributes
    ----------
    values : (H + 1, S) array
        V_h; the last row holds the terminal values.
    q_values : (H, S, A) array or None
        Backup of every action at V_{h+1}; −inf for inadmissible actions. None if it would hold more
        than 20 million numbers: ``brmdp.backup(…, values[h + 1])`` computes those of a step.
    policy : (H, S) integers, or (H, S, A) probabilities
        The lowest-index action among those tied with the best. For an evaluation, the policy that
        was evaluated.
    tied : (H, S) booleans
        Where several actions are within ``tie_width`` of the best; all False for an evaluation.
    error_bound : (H + 1,) array
        Bounds on max|values[h] − V_h|, from the numerical errors of the backups. If ``basis`` is
        "sampled", V_h belongs to the draws, and the bound does *not* say how far these are from the
        belief. If it is "approximate", the bounds are infinite.
    policy_gap : (H + 1,) array
        Bounds on the loss of following ``policy`` from step h on; zero for an evaluation.
    status : str
        "converged": the error bound holds for the requested problem. "sampled", "approximate": as
        in :class:`brmdp.Solution`. "not converged": the error bound exceeds ``tolerance``.
    basis : str
        What the values are computed from: "exact", "sampled" or "approximate".
    tolerance : float
        Largest error bound accepted.
    tie_width : (H,) array
        Differences between q-values of a step up to this size are not resolved.
    discount : float
        Discount factor γ.
    prior : PriorReliance or None
        How far the policy rests on the prior instead of data, over the H steps; None for beliefs
        that do not separate the two.

    Examples
    --------
    >>> import brmdp
    >>> river = brmdp.envs.riverswim(6)
    >>> plan = brmdp.solve(river, horizon=10)
    >>> plan.values.shape, plan.policy[0].tolist(), plan.policy[-1].tolist()
    ((11, 6), [1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 1])
    >>> print(plan)
    Plan for 10 steps in 6 states, with discount 0.9.
    Values at the start: 0.09348, 0.1798, 0.4104, 0.801, 1.381, 2.188, with an error of at most
    4e-14.
    Several actions are equally good in 6 of 60 cases (step and state).
    """

    values: FloatArray
    q_values: FloatArray | None
    policy: IntArray | FloatArray
    tied: NDArray[np.bool_]
    error_bound: FloatArray
    policy_gap: FloatArray
    status: str
    basis: str
    tolerance: float
    tie_width: FloatArray
    discount: float
    evaluation: bool
    prior: PriorReliance | None = None

    @property
    def horizon(self) -> int:
        """Number of steps H."""
        return len(self.values) - 1

    def tied_actions(self, step: int) -> NDArray[np.bool_]:
        """(S, A) mask of the actions tied with the best at a step.

        Raises
        ------
        InvalidInputError
            If the q-values were too many to be kept.
        """
        if self.q_values is None:
            raise InvalidInputError(
                f"q_values are not kept beyond {KEPT_Q_VALUES:,} numbers, so tied actions are not "
                "known; brmdp.backup(…, values[step + 1]) gives the q-values of a step"
            )
        q = self.q_values[step]
        mask: NDArray[np.bool_] = q >= q.max(axis=1, keepdims=True) - self.tie_width[step]
        return mask

    def __str__(self) -> str:
        steps, states = self.horizon, self.values.shape[1]
        what = "Values of a policy" if self.evaluation else "Plan"
        made = {
            SAMPLED: ", made from draws: the error is that for these draws, and says nothing of "
            "others",
            APPROXIMATE: ", made with an approximation that has no error bound",
        }.get(self.basis, "")
        parts = [
            f"{what} for {steps} step{'' if steps == 1 else 's'} in {states} states, with discount "
            f"{self.discount:g}{made}.",
            f"Values at the start: {extent(self.values[0])}"
            + (
                "."
                if self.basis == APPROXIMATE
                else f", with an error of at most {self.error_bound[0]:.1g}."
            ),
        ]
        if self.status == NOT_CONVERGED:
            parts.append(f"This is more than the tolerance of {self.tolerance:.3g}.")
        if not self.evaluation:
            tied = int(self.tied.sum())
            if tied:
                parts.append(
                    f"Several actions are equally good in {tied} of {self.tied.size} cases (step "
                    "and state)."
                )
        if self.prior is not None and self.prior.outweighs:
            parts += ["The policy rests heavily on the prior:", *str(self.prior).splitlines()]
        return "\n".join(map(wrapped, parts))

    def __repr__(self) -> str:
        note = " (of the sampled problem)" if self.basis == SAMPLED else ""
        parts = [
            f"status={self.status!r}",
            f"{self.horizon} steps",
            f"{self.values.shape[1]} states",
            f"values at the start {extent(self.values[0])}",
            f"error_bound={self.error_bound[0]:.2g}{note}",
            f"policy_gap={self.policy_gap[0]:.2g}",
            f"tied={int(self.tied.sum())} of {self.tied.size}",
        ]
        if self.prior is not None and self.prior.outweighs:
            parts.append("rests on the prior")
        return call_like("HorizonSolution", parts)


def as_horizon(value: Any, n_states: int) -> int:
    """A number of steps, such that (H + 1)·S values can be kept."""
    horizon = as_positive_int(value, "horizon")
    if (horizon + 1) * n_states > LARGEST_PLAN:
        raise InvalidInputError(
            f"horizon must be at most {LARGEST_PLAN // n_states - 1:,} for {n_states:,} states, so "
            f"that the values of all steps can be kept; got {horizon:,}"
        )
    return horizon


def as_terminal(value: ArrayLike | None, n_states: int) -> FloatArray:
    """Terminal values (S,); zero by default."""
    if value is None:
        return np.zeros(n_states)
    array = as_float_array(value, "terminal")
    if array.shape != (n_states,):
        raise InvalidInputError(
            f"terminal must hold one value per state, shape ({n_states},); got {array.shape}"
        )
    return np.array(array)


def as_stages(
    policy: Any, admissible: BoolArray, horizon: int, name: str = "policy"
) -> IntArray | FloatArray:
    """A policy for H steps: (H, S) actions or (H, S, A) probabilities.

    It may be given without steps, as (S,) actions or (S, A) probabilities, and is then the same at
    every step. If (H, S) and (S, A) are the same shape, integers are actions (H, S), and other
    numbers are probabilities (S, A).
    """
    n, n_actions = admissible.shape
    given = as_array(policy, name, "actions or probabilities")
    if given.ndim == 1:
        return np.broadcast_to(as_policy(given, admissible, name), (horizon, n))
    stationary, by_step = given.shape == (n, n_actions), given.shape == (horizon, n)
    if by_step and (given.dtype.kind in "iuO" or not stationary):
        return as_policies(given, admissible, name)
    if stationary:
        weights = as_policy_weights(given, admissible, name)
        return np.broadcast_to(weights, (horizon, n, n_actions))
    if given.shape == (horizon, n, n_actions):
        return np.stack(
            [as_policy_weights(one, admissible, f"{name}[{h}]") for h, one in enumerate(given)]
        )
    raise InvalidInputError(
        f"{name} must hold actions, ({n},) or ({horizon}, {n}), or probabilities of actions, "
        f"({n}, {n_actions}) or ({horizon}, {n}, {n_actions}), for {horizon} steps; got shape "
        f"{given.shape}"
    )


def backward_induction(
    bellman: Bellman,
    terminal: FloatArray,
    horizon: int,
    stages: IntArray | FloatArray | None = None,
    *,
    tolerance: float | None = None,
    all_actions: bool = True,
) -> HorizonSolution:
    """Optimal values over ``horizon`` steps, or those of the policy ``stages``.

    Arguments have been checked; ``bellman`` is the operator of all actions.
    """
    pattern, gamma = bellman.pattern, bellman.discount
    n, n_actions = pattern.n_states, pattern.n_actions
    keep = horizon * n * n_actions <= KEPT_Q_VALUES
    values = np.empty((horizon + 1, n))
    values[horizon] = terminal
    q_values = np.empty((horizon, n, n_actions)) if keep else None
    policy = np.empty((horizon, n), dtype=np.int64)
    tied = np.zeros((horizon, n), dtype=bool)
    width = np.zeros(horizon)
    error, loss = np.zeros(horizon + 1), np.zeros(horizon + 1)
    noise = 0.0
    approximate = bellman.risk.basis == APPROXIMATE
    for h in range(horizon - 1, -1, -1):
        if stages is None:
            # a copy: numba would compile again for other kinds of arrays
            sweep = bellman.sweep(np.array(values[h + 1]), bellman.pairs)
            q, best, eta = sweep.q, sweep.best, sweep.numerical_error
            width[h] = 2.0 * (eta + gamma * noise)
            policy[h], _, tied[h], given_away = linear.lowest_tied(q, best, width[h])
            values[h] = best
            largest = float(np.abs(best).max())
            # as for ties of a discounted plan: rounding may differ, the operator does not
            noise = gamma * noise + (
                UNSTATED * largest if approximate else min(eta, FLOOR * largest)
            )
            loss[h] = eta + given_away + gamma * loss[h + 1]
        else:
            q, values[h], eta = _followed(bellman, values[h + 1], stages[h], keep and all_actions)
        error[h] = eta + gamma * error[h + 1]
        if q_values is not None:
            q_values[h] = q
    gap = error + loss if stages is None else np.zeros(horizon + 1)
    required = _required(bellman, values, error, tolerance)
    converged = bool(np.isfinite(values).all()) and float(error.max()) <= required
    if isinstance(bellman.risk, CheckedRisk) and np.isfinite(values).all():
        bellman.risk.require_contraction(bellman.targets(np.array(values[min(1, horizon)])))
    basis = bellman.risk.basis
    if approximate:
        error = np.append(np.full(horizon, np.inf), 0.0)
        gap = np.array(error)
    followed: Any = policy if stages is None else np.array(stages)
    for array in (values, followed, tied, error, gap, width):
        array.flags.writeable = False
    if q_values is not None:
        q_values.flags.writeable = False
    return HorizonSolution(
        values=values,
        q_values=q_values,
        policy=followed,
        tied=tied,
        error_bound=error,
        policy_gap=gap,
        status=(CONVERGED if basis == EXACT else basis) if converged else NOT_CONVERGED,
        basis=basis,
        tolerance=required,
        tie_width=width,
        discount=gamma,
        evaluation=stages is not None,
    )


def _followed(
    bellman: Bellman, following: FloatArray, stage: NDArray[Any], all_actions: bool
) -> tuple[FloatArray, FloatArray, float]:
    """Backups of a policy at one step: q, values and the numerical error of the values."""
    pattern = bellman.pattern
    targets = bellman.targets(np.array(following))
    pairs = pairs_used(stage, pattern.n_actions)
    if stage.ndim == 1:
        q, error = bellman.backup(targets, pairs)
        values = q.reshape(-1)[pairs]
    else:
        q, error = bellman.backup(targets, pairs)
        values = np.where(stage > 0.0, stage * np.where(stage > 0.0, q, 0.0), 0.0).sum(axis=1)
        # the rounding of the sum over actions
        size = float(np.abs(q.reshape(-1)[pairs]).max())
        error += (pattern.n_actions + 1) * float(np.finfo(np.float64).eps) * size
    if all_actions:
        q, _ = bellman.backup(targets, pattern.pairs)
    return q, values, error


def _required(
    bellman: Bellman, values: FloatArray, error: FloatArray, tolerance: float | None
) -> float:
    """The error bound that is good enough: the given one, or as for a discounted plan."""
    if tolerance is not None:
        return tolerance
    largest = float(np.abs(values).max())
    wanted = max(RELATIVE * largest, TINY)
    resolved = float(error.max())
    if resolved <= wanted:
        return wanted
    return max(wanted, min(4.0 * resolved, coarsest(bellman, bellman.pairs, largest)))
