"""Small problems with Dirichlet rows, solved in one compiled call; and plans that follow another.

:mod:`brmdp._kernels.solve` does what :mod:`brmdp.planning.fixed_point` specifies. A plan after
another one, such as an agent's, may be given a :class:`Memory` of it. Then only those actions are
computed that may matter, and the error bound and the ties are still those of a full plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from brmdp._kernels import dirichlet, solve
from brmdp._validation import BoolArray, FloatArray, IntArray, as_float_array, as_index_array
from brmdp.errors import InvalidInputError
from brmdp.pattern import TransitionPattern
from brmdp.planning import bellman as sweeping
from brmdp.planning import fixed_point
from brmdp.planning.bellman import Bellman, Sweep
from brmdp.planning.fixed_point import FixedPoint
from brmdp.risk.base import RiskOperator
from brmdp.risk.dirichlet import DirichletMeasure
from brmdp.risk.threads import WORTH_SPLITTING

__all__ = ["COARSE_SWEEPS", "Memory", "Solved", "is_small", "solve_compiled"]

COARSE_SWEEPS = 60
"""Largest number of sweeps of a cheaper approximation."""

assert (
    solve.FLOOR,
    solve.PATIENCE,
    solve.COARSEST,
    solve.RELATIVE,
    solve.TINY,
    solve.FINE,
    solve.SETTLING_STEPS,
    solve.UNSTATED,
) == (
    sweeping.FLOOR,
    fixed_point.PATIENCE,
    fixed_point.COARSEST,
    fixed_point.RELATIVE,
    fixed_point.TINY,
    fixed_point.FINE,
    fixed_point.SETTLING_STEPS,
    fixed_point.UNSTATED,
), "the compiled solver must use the constants of its specification"


@dataclass(frozen=True, eq=False, slots=True)
class Memory:
    """What a plan found out, for the next one; never changed.

    Attributes
    ----------
    measure : int
        Kind of the measure.
    concentration : (entries,) array
        The concentrations it was made with.
    offsets : integers
        Where those of each pair begin.
    chosen : (S,) integers
        The pairs of its policy.
    facts, targets, corrections : arrays
        See :class:`brmdp._kernels.solve.Knowledge`.
    """

    measure: int
    concentration: FloatArray
    offsets: IntArray
    chosen: IntArray
    facts: FloatArray
    targets: FloatArray
    corrections: FloatArray

    def fits(self, bound: DirichletMeasure, n_states: int) -> bool:
        """Whether it is about a measure of this kind and size."""
        data = bound.data
        return (
            self.measure == bound.measure
            and self.concentration.shape == data.phi.shape
            and (self.offsets is data.offsets or np.array_equal(self.offsets, data.offsets))
            and len(self.facts) == data.levels.size
            and self.targets.size == bound.pattern.n_transitions
            and self.chosen.size == n_states
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What cannot be found in the plan and its belief, as named arrays."""
        return {
            "kind": np.array(self.measure),
            "chosen": self.chosen,
            "facts": self.facts,
            "known": np.stack([self.targets, self.corrections]),
        }

    @classmethod
    def from_arrays(
        cls,
        arrays: Mapping[str, NDArray[Any]],
        concentration: FloatArray,
        offsets: IntArray,
        pattern: TransitionPattern,
    ) -> Self:
        """The memory that :meth:`arrays` described, of a plan with these concentrations.

        Every fact is computed again: one that is not so would make later plans wrong.

        Raises
        ------
        InvalidInputError
            If an array has the wrong shape, or holds what no plan can have found.
        """
        n_pairs, n_states = pattern.n_pairs, pattern.n_states
        facts = as_float_array(arrays["facts"], "memory.facts")
        known = as_float_array(arrays["known"], "memory.known")
        chosen = as_index_array(arrays["chosen"], n_pairs, "memory.chosen")
        kind = int(as_index_array(arrays["kind"], 3, "memory.kind"))
        shapes = ((n_pairs, 5), (2, pattern.n_transitions), (n_states,))
        if (facts.shape, known.shape, chosen.shape) != shapes:
            raise InvalidInputError(
                f"memory.facts, memory.known and memory.chosen must have the shapes {shapes}; got "
                f"{(facts.shape, known.shape, chosen.shape)}"
            )
        if (chosen // pattern.n_actions != np.arange(n_states)).any() or (
            pattern.widths[chosen] == 0
        ).any():
            raise InvalidInputError("memory.chosen must hold one admissible pair of each state")
        if (facts[:, 1:] < 0.0).any() or (facts[:, 2:] > 1.0).any():
            raise InvalidInputError("memory.facts must hold errors, levels and kinds of facts")
        found = cls(
            kind,
            concentration,
            offsets,
            np.array(chosen),
            np.array(facts),
            np.array(known[0]),
            np.array(known[1]),
        )
        found._require_truth(pattern)
        return found

    def _require_truth(self, pattern: TransitionPattern) -> None:
        """Raise unless every fact is so, and all corrections are differences of rows."""
        facts = self.facts
        known = np.flatnonzero(facts[:, 2] > 0.0)
        levels = np.ones(pattern.n_pairs)
        levels[known] = facts[known, 2]
        if self.measure != dirichlet.CVAR:
            # a bound for the largest of all levels
            levels = np.minimum(levels, np.nextafter(1.0, 0.0))
        rows = dirichlet.Rows.of(
            pattern.indptr, self.offsets, self.concentration, levels, pattern.widest
        )
        out = np.zeros(pattern.n_pairs)
        errors = np.zeros(pattern.n_pairs)
        for pair in known[pattern.widths[known] > 0]:
            errors[pair] = dirichlet.evaluate_pairs(
                self.measure, np.array([pair]), rows, self.targets, solve.SHARPNESS, out
            )
        above = out[known] - facts[known, 0]
        allowed = facts[known, 1] + errors[known]
        is_value = facts[known, 3] == solve.VALUE
        if not (
            (above <= allowed).all()
            and (-above <= allowed)[is_value].all()
            and (is_value | (facts[known, 3] == solve.BOUND)).all()
            and (pattern.widths[known] > 0).all()
        ):
            raise InvalidInputError("memory.facts must be true of the belief of the plan")
        # what cannot be confirmed is forgotten
        scale = fixed_point.RELATIVE * float(np.abs(self.targets).max())
        facts[errors > scale, 2:] = 0.0
        if (np.abs(self.corrections) > 1.0 + 1e-9).any():
            raise InvalidInputError("memory.known must hold differences of probabilities")


class Solved(NamedTuple):
    """A fixed point, which of its values are not bounds, its ties, and what it found out."""

    found: FixedPoint
    exact: BoolArray | None
    """(S·A,) pairs with values; None if all have one."""
    ties: tuple[IntArray, IntArray, BoolArray, float]
    """As from ``linear.lowest_tied``."""
    width: float
    memory: Memory | None


def is_small(bellman: Bellman) -> bool:
    """Whether the compiled solver takes the problem."""
    pattern = bellman.pattern
    return (
        type(bellman.risk) is DirichletMeasure
        and pattern.n_states <= sweeping.DENSE_STATES
        and pattern.n_transitions < WORTH_SPLITTING
    )


def solve_compiled(
    bellman: Bellman,
    values: FloatArray,
    *,
    tolerance: float | None,
    relative: float,
    coarse: float,
    max_iterations: int,
    settles: bool,
    memory: Memory | None = None,
    remember: bool = False,
) -> Solved | None:
    """Solve a small problem from ``values``; None if that must be left to the Python solver.

    Parameters
    ----------
    bellman : Bellman
    values : (S,) array
    tolerance, relative
        The error bound that is good enough; see :class:`brmdp.planning.fixed_point.Accuracy`.
    coarse : float
        Error bound for the saddlepoint problem that is solved first for an exact quantile.
    max_iterations : int
    settles : bool
        Whether to settle ties; not for the pairs of one policy.
    memory : Memory, optional
        What an earlier plan on the same pattern found out.
    remember : bool
        Whether to return a memory.
    """
    bound: RiskOperator = bellman.risk
    assert isinstance(bound, DirichletMeasure)
    pattern, data = bellman.pattern, bound.data
    task = solve.Task(
        bound.measure,
        data,
        pattern.next_states,
        bellman.rewards,
        bellman.discount,
        pattern.n_actions,
        bellman.pairs,
        -1.0 if tolerance is None else tolerance,
        relative,
    )
    # an approximation is not monotone, so nothing follows from what was known
    remember = remember and bound.measure != dirichlet.SADDLEPOINT
    lazy = remember and memory is not None and memory.fits(bound, pattern.n_states)
    start, before, knowledge = bellman.pairs, data.phi, None
    if lazy:
        assert memory is not None
        start = memory.chosen if settles else start
        before = memory.concentration
        knowledge = solve.Knowledge(
            memory.facts.copy(), memory.targets.copy(), memory.corrections.copy()
        )
    state, sweeps, required, fields, ties, width = solve.solve(
        task,
        values,
        start,
        dirichlet.SADDLEPOINT if bound.measure == dirichlet.EXACT else -1,
        coarse,
        COARSE_SWEEPS,
        settles,
        max_iterations,
        before,
        knowledge,
    )
    if state == solve.FALLBACK:
        # it must not see what the attempt left behind
        data.starts[:] = 0.0
        return None
    last = solve.Sweep(*fields)
    residual, size_of_values, error = last.numbers.tolist()
    sweep = Sweep(
        last.values,
        last.targets,
        last.q,
        last.policy,
        last.chosen,
        last.best,
        residual,
        size_of_values,
        error,
    )
    kept = None
    if remember and state == solve.CONVERGED:
        known = _values_of(last, data.levels, bellman.pairs) if knowledge is None else knowledge
        kept = Memory(bound.measure, data.phi, data.offsets, last.chosen, *known)
    found = FixedPoint(sweep, sweeps, required, state == solve.CONVERGED)
    return Solved(found, last.exact if lazy else None, ties, width, kept)


def _values_of(last: solve.Sweep, levels: FloatArray, pairs: IntArray) -> solve.Knowledge:
    """What is known after a full sweep: the values of all its pairs."""
    facts = np.zeros((levels.size, 5))
    facts[pairs, 0] = last.q.reshape(-1)[pairs]
    facts[pairs, 1] = last.numbers[2]
    facts[pairs, 2] = levels[pairs]
    facts[pairs, 3] = solve.VALUE
    return solve.Knowledge(facts, last.targets.copy(), np.zeros(last.targets.size))
