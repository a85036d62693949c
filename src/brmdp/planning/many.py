"""Many plans at once: one belief at many levels, many beliefs, or both.

Plans of the same belief and problem form a family. Within one, levels are taken in order, from the
highest down, and each plan starts from its neighbour, whose values of small problems also bound
what need not be computed (:mod:`brmdp.planning.compiled`). Small problems are solved in several
threads: a family is cut into chains of at most :data:`CHAIN` plans, whose first starts from
nothing. The chains do not depend on the number of threads, so neither does any result. Plans of a
large problem follow each other, since their backups are split over threads already.

Measures and beliefs from outside the library, and measures that draw, are solved one by one in the
order given: they may remember something from plan to plan, and need not be safe in threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from brmdp._validation import FloatArray, as_discount, as_float_array
from brmdp.beliefs.base import Belief
from brmdp.beliefs.checked import is_builtin, require_belief
from brmdp.beliefs.disturbance import Rewards
from brmdp.errors import BrmdpError, ConvergenceError, InvalidInputError
from brmdp.planning.planner import Method, Problem, reliance_of
from brmdp.planning.prior import PriorReliance, check_start, warn_about_prior
from brmdp.planning.solution import Solution
from brmdp.risk.base import RiskMeasure
from brmdp.risk.boundary import require_risk
from brmdp.risk.measures import CVaR, Mean, Quantile
from brmdp.risk.threads import (
    MANY_STATES,
    WORTH_SPLITTING,
    one_blas_thread,
    over_threads,
)

__all__ = ["Task", "attempts", "plan_many", "solve_all"]

CHAIN = 20
"""Largest number of plans of a small problem that start one from another."""

POINTS = 4
"""Number of plans from which the values of the next level are extrapolated."""

LARGEST_WEIGHT = 20.0
"""Largest weight of a plan in that; levels may be spaced unevenly."""

MANY = 100_000
"""Largest number of plans made at once; each is kept."""


def plan_many(
    beliefs: Belief | Sequence[Belief],
    rewards: Rewards | tuple[Rewards, ...],
    discount: float | Sequence[float],
    *,
    risk: RiskMeasure | Sequence[RiskMeasure],
    tolerance: float | None = None,
    method: Method = "newton",
    max_iterations: int = 10_000,
    raise_on_failure: bool = True,
    start: ArrayLike | None = None,
) -> tuple[Solution, ...]:
    """Make many plans, faster than one by one: :func:`brmdp.plan` for each item of the sequences.

    Whatever is given once serves all plans; sequences must have the same length n. Plan k is the
    one that ``plan`` makes of the k-th items: values agree within both error bounds, and policy and
    ties are the same.

    Parameters
    ----------
    beliefs : belief, or list of n beliefs
        As in :func:`brmdp.plan`.
    rewards : as in plan, or tuple of n such
        Only a tuple counts as a sequence, since a list may be an (S, A) array.
    discount : float in [0, 1], or n of them
    risk : risk measure, or list of n measures
        Levels need no order.
    tolerance, method, max_iterations, start
        As in :func:`brmdp.plan`, for all plans.
    raise_on_failure : bool
        If a plan fails, raise :class:`ConvergenceError`, which says which. If False, its result is
        the last accepted iterate.

    Returns
    -------
    tuple of n Solution

    Warns
    -----
    PriorWarning
        Once, for the first plan of those for which ``plan`` would warn.

    Examples
    --------
    A belief at three levels:

    >>> import brmdp
    >>> belief = brmdp.DirichletBelief([[[9, 1], [1, 9]], [[9, 1], [1, 9]]])
    >>> rewards = [[0.0, 0.0], [1.0, 1.0]]
    >>> risks = [brmdp.Quantile(level) for level in (0.1, 0.5, 0.9)]
    >>> plans = brmdp.plan_many(belief, rewards, 0.5, risk=risks)
    >>> [plan.values[0].round(4).item() for plan in plans]
    [0.7743, 0.9259, 0.9884]
    """
    discounts = as_float_array(discount, "discount") if np.ndim(discount) else None
    if discounts is not None and discounts.ndim != 1:
        raise InvalidInputError(
            f"discount must be a number, or one for each plan; got shape {discounts.shape}"
        )
    if discounts is None:
        discount = as_discount(discount, one_allowed=True)
    several = {
        "beliefs": beliefs if isinstance(beliefs, list | tuple) else None,
        "rewards": rewards if isinstance(rewards, tuple) else None,
        "discount": None if discounts is None else discounts.tolist(),
        "risk": risk if isinstance(risk, list | tuple) else None,
    }
    count = _count(several)
    each: list[list[Any]] = [
        list(one) if one is not None else [given] * count
        for one, given in zip(several.values(), (beliefs, rewards, discount, risk), strict=True)
    ]
    for belief in {id(one): one for one in each[0]}.values():
        require_belief(belief)
        check_start(belief, start)
    problems: dict[tuple[int, int, float], Problem] = {}
    tasks = []
    for belief, paid, gamma, measure in zip(*each, strict=True):
        require_risk(measure)
        key = (id(belief), id(paid), gamma)
        if key not in problems:
            problems[key] = Problem.of(
                belief, paid, gamma, tolerance, method, max_iterations, undiscounted=True
            )
        tasks.append(Task(problems[key], belief, measure, raise_on_failure))
    reliances: dict[tuple[int, int, float, bytes], PriorReliance | None] = {}
    found = []
    for solution, belief, paid, gamma in zip(solve_all(tasks), *each[:3], strict=True):
        key_of_policy = (id(belief), id(paid), gamma, solution.policy.tobytes())
        if key_of_policy not in reliances:
            reliances[key_of_policy] = reliance_of(solution, belief, paid, gamma, start)
        found.append(replace(solution, prior=reliances[key_of_policy]))
    first = next((one for one in reliances.values() if one is not None and one.outweighs), None)
    warn_about_prior(first, "plan", 2)
    return tuple(found)


@dataclass(frozen=True, eq=False, slots=True)
class Task:
    """One plan to make: a problem, a belief on its pattern, and a measure."""

    problem: Problem
    belief: Belief
    risk: RiskMeasure
    raise_on_failure: bool = True

    @property
    def family(self) -> tuple[int, int]:
        """Tasks with the same may start from each other's values."""
        return id(self.problem), id(self.belief)

    @property
    def is_pure(self) -> bool:
        """Whether the measure neither draws nor remembers anything, and may run in any thread."""
        kind = type(self.risk)
        if not is_builtin(self.belief) or self.problem.discount == 1.0:
            return False
        return kind in (CVaR, Mean) or (
            kind is Quantile and isinstance(getattr(self.risk, "method", None), str)
        )

    @property
    def score(self) -> float | None:
        """The normal score of a quantile's level, if all pairs have the same."""
        level: Any = getattr(self.risk, "alpha", None)
        if not self.is_pure or type(self.risk) is not Quantile or level.ndim:
            return None
        return float(ndtri(level))

    @property
    def place(self) -> tuple[str, str, float]:
        """Sorts measures of one kind together, and those with one level by falling level."""
        level: Any = getattr(self.risk, "alpha", None)
        single = isinstance(level, np.ndarray) and level.ndim == 0
        return (
            type(self.risk).__name__,
            str(getattr(self.risk, "method", "")),
            -float(level) if single else 0.0,
        )


def solve_all(tasks: Sequence[Task]) -> list[Solution]:
    """The solutions of all tasks, in their order.

    Raises
    ------
    ConvergenceError
        If a plan fails that must not; with several, for the first of them.
    """
    found = attempts(tasks)
    for k, one in enumerate(found):
        if isinstance(one, ConvergenceError):
            raise ConvergenceError(f"plan {k} of {len(tasks)}: {one}", one.solution) from one
        if isinstance(one, BrmdpError):
            raise one
    return [one for one in found if isinstance(one, Solution)]


def attempts(tasks: Sequence[Task]) -> list[Solution | BrmdpError]:
    """The solution of every task, or the error that it ended with."""
    found: list[Any] = [None] * len(tasks)

    def follow(chain: list[int]) -> None:
        made: dict[tuple[int, int], list[tuple[float | None, Solution]]] = {}
        for k in chain:
            task = tasks[k]
            before = made.setdefault(task.family, [])
            try:
                solution = _follow(task, before)
            except BrmdpError as error:
                found[k] = error
                continue
            # what it remembers serves the next, and need not be kept for longer
            found[k] = replace(solution, memory=None)
            before.append((task.score, solution))
            del before[:-POINTS]

    chains, large, in_order = [], [], []
    families: dict[tuple[int, int], list[int]] = {}
    for k, task in enumerate(tasks):
        if task.is_pure:
            families.setdefault(task.family, []).append(k)
        else:
            in_order.append(k)
    for family in families.values():
        family.sort(key=lambda k: tasks[k].place)
        if tasks[family[0]].problem.pattern.n_transitions >= WORTH_SPLITTING:
            large += family
        else:
            chains += [family[i : i + CHAIN] for i in range(0, len(family), CHAIN)]
    many = any(task.problem.pattern.n_states >= MANY_STATES for task in tasks)
    with one_blas_thread if many and len(tasks) > 1 else nullcontext():
        over_threads(follow, chains)
        follow(large)
        follow(in_order)
    return found


def _follow(task: Task, before: list[tuple[float | None, Solution]]) -> Solution:
    """The plan of a task, started from those ``before`` it if that leads anywhere."""
    solve = partial(task.problem.solve, task.belief, task.risk, remember=task.is_pure)
    start = _extrapolated(before, task.score)
    if before and task.is_pure:
        try:
            return solve(start, memory=before[-1][1].memory)
        except ConvergenceError:
            # a plan fails only if it would alone
            start = None
    return solve(start, raise_on_failure=task.raise_on_failure)


def _extrapolated(
    before: list[tuple[float | None, Solution]], score: float | None
) -> FloatArray | None:
    """Values to start from: a polynomial through those of the last plans of falling level.

    As a function of the level's normal score, values are smooth as long as the policy is the same.
    """
    if not before:
        return None
    near = [(at, plan.values) for at, plan in before if at is not None]
    last: FloatArray = before[-1][1].values
    if score is None or before[-1][0] is None or len({at for at, _ in near}) < len(near):
        return last
    total: FloatArray = np.zeros_like(last)
    for at, values in near:
        weight = 1.0
        for other, _ in near:
            if other != at:
                weight *= (score - other) / (at - other)
        if not abs(weight) <= LARGEST_WEIGHT:
            return last
        total += weight * values
    return total


def _count(several: dict[str, Any]) -> int:
    """The common length of the sequences; 1 if there is none."""
    lengths = {name: len(items) for name, items in several.items() if items is not None}
    if not lengths:
        return 1
    first, count = next(iter(lengths.items()))
    for name, length in lengths.items():
        if length != count:
            raise InvalidInputError(
                f"{name} must have as many items as {first}, one for each plan; got {length} and "
                f"{count}"
            )
    if not 1 <= count <= MANY:
        raise InvalidInputError(f"{first} must have 1 to {MANY:,} items; got {count}")
    return count
