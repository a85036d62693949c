"""Checks of what custom beliefs return, before compiled loops rely on it.

The library's own beliefs are trusted, so nothing is checked twice in a hot loop.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from brmdp._validation import SUM_TOLERANCE, FloatArray, IntArray, as_float_array, first_bad
from brmdp.beliefs.base import Belief
from brmdp.beliefs.censored import CensoredDisturbanceBelief
from brmdp.beliefs.dirichlet import DirichletBelief
from brmdp.beliefs.disturbance import DisturbanceBelief
from brmdp.beliefs.gammas import check_concentrations
from brmdp.beliefs.outcomes import OutcomeBelief
from brmdp.beliefs.scenarios import ScenarioBelief, as_weights
from brmdp.errors import InvalidInputError
from brmdp.mdp import TabularMDP
from brmdp.pattern import TransitionPattern

__all__ = [
    "caveat_of",
    "dirichlet_rows_of",
    "draws_of",
    "evidence_of",
    "has_known_kernel",
    "is_builtin",
    "learns_rewards",
    "mean_of",
    "method_of",
    "require_belief",
    "require_kernels",
    "require_posterior",
    "rewards_of",
    "scenarios_of",
]

_BUILTIN = (
    DirichletBelief,
    DisturbanceBelief,
    CensoredDisturbanceBelief,
    OutcomeBelief,
    ScenarioBelief,
    TabularMDP,
)


def is_builtin(belief: object) -> bool:
    """Whether the belief is of one of the library's classes; a subclass may override anything."""
    return type(belief) in _BUILTIN


def has_known_kernel(belief: object) -> bool:
    """Whether the kernel is known: a TabularMDP, or a belief with ``kernel_known = True``."""
    if isinstance(belief, TabularMDP) or getattr(belief, "kernel_known", False) is True:
        return True
    if getattr(belief, "without_doubt", False) is True:
        warnings.warn(
            f"{type(belief).__name__}.without_doubt is now kernel_known; the old name will be "
            "removed in the next version",
            FutureWarning,
            stacklevel=2,
        )
        return True
    return False


def learns_rewards(belief: object) -> bool:
    """Whether rewards are part of the belief: ``learns_rewards = True``, as for OutcomeBelief."""
    return getattr(belief, "learns_rewards", False) is True


def caveat_of(belief: object) -> str:
    """What results from this belief must say about it; usually nothing."""
    return str(getattr(belief, "caveat", ""))


def require_posterior(belief: object) -> None:
    """Refuse to certify with a belief that is only an approximation of a posterior."""
    caveat = caveat_of(belief)
    if caveat:
        advice = (
            " Rewards rounded down to a finite list (OutcomeBelief.uniform) allow one: the true "
            "value is at least the value with these"
            if isinstance(belief, OutcomeBelief)
            else ""
        )
        raise InvalidInputError(
            f"belief must be a posterior for a certificate; this {type(belief).__name__} is not. "
            f"{caveat}{advice}"
        )


def require_belief(belief: Any) -> None:
    """Raise an error unless this is a belief with a consistent pattern."""
    if is_builtin(belief):
        return
    if isinstance(belief, type) or not hasattr(belief, "pattern"):
        raise InvalidInputError(
            f"belief must be a brmdp belief or a TabularMDP; got {type(belief).__name__}"
        )
    pattern = belief.pattern
    name = type(belief).__name__
    if not isinstance(pattern, TransitionPattern):
        raise InvalidInputError(
            f"{name}.pattern must be a brmdp TransitionPattern; got {type(pattern).__name__}"
        )
    pointers, columns = np.asarray(pattern.indptr), np.asarray(pattern.next_states)
    if not (
        pointers.shape == (pattern.n_pairs + 1,)
        and columns.ndim == 1
        and pointers.dtype == columns.dtype == np.int64
        and pointers[0] == 0
        and pointers[-1] == columns.size
        and (np.diff(pointers) >= 0).all()
    ):
        raise InvalidInputError(
            f"{name}.pattern.indptr must run from 0 to the number of next states over "
            f"{pattern.n_pairs} pairs, as int64"
        )
    if columns.size and not 0 <= columns.min() <= columns.max() < pattern.n_states:
        raise InvalidInputError(f"{name}.pattern.next_states must lie in 0..{pattern.n_states - 1}")


def method_of(belief: Any, name: str, purpose: str) -> Callable[..., Any]:
    """A method of the belief; an error names it if it is missing."""
    method = getattr(belief, name, None)
    if not callable(method):
        raise InvalidInputError(
            f"belief must have a method {name}() {purpose}; {type(belief).__name__} has none"
        )
    found: Callable[..., Any] = method
    return found


def dirichlet_rows_of(belief: Any) -> tuple[FloatArray, IntArray]:
    """A copy of the concentrations, and where those of each pair begin; checked.

    Neither changes with the belief.
    """
    if is_builtin(belief):
        return belief.concentration_entries.copy(), belief.concentration_offsets
    pattern, name = belief.pattern, type(belief).__name__
    if not hasattr(belief, "concentration_offsets"):
        raise InvalidInputError(
            f"belief must have concentration_offsets as well as concentration_entries; {name} has "
            "none"
        )
    entries = as_float_array(belief.concentration_entries, f"{name}.concentration_entries")
    offsets = np.asarray(belief.concentration_offsets)
    if (
        offsets.dtype != np.int64
        or offsets.size < pattern.n_pairs
        or offsets.ndim != 1
        or entries.ndim != 1
    ):
        raise InvalidInputError(
            f"{name}.concentration_offsets must be int64, one per pair ({pattern.n_pairs}); got "
            f"{offsets.dtype} of shape {offsets.shape}"
        )
    begins = offsets[pattern.pairs]
    if (begins < 0).any() or (begins > entries.size - pattern.row_widths).any():
        raise InvalidInputError(
            f"{name}.concentration_entries must hold, from each pair's offset on, one number per "
            f"successor; got only {entries.size}"
        )
    check_concentrations(entries)
    return entries.copy(), offsets.copy()


def evidence_of(
    belief: Any, n_pairs: int, purpose: str = "this measure"
) -> tuple[FloatArray, FloatArray]:
    """Weight of the prior, and number of observations, of every pair s·A + a; checked."""
    name = type(belief).__name__
    evidence = getattr(belief, "evidence", None)
    if not callable(evidence):
        raise InvalidInputError(
            f"{purpose} needs a belief with a method evidence(pairs); {name} has none"
        )
    prior, observed = (
        as_float_array(part, f"{name}.evidence") for part in evidence(np.arange(n_pairs))
    )
    for part in (prior, observed):
        if part.shape != (n_pairs,):
            raise InvalidInputError(
                f"{name}.evidence must return one number per pair, shape ({n_pairs},); got "
                f"{part.shape}"
            )
        if (part < 0.0).any():
            raise InvalidInputError(
                f"{name}.evidence must return numbers that are not negative; got {part.min():g}"
            )
    return prior, observed


def scenarios_of(belief: ScenarioBelief) -> tuple[FloatArray, FloatArray]:
    """Kernels (K, transitions) and weights (K,); copied and checked for a subclass."""
    if is_builtin(belief):
        return belief.scenario_entries, belief.weights
    weights = np.array(as_weights(belief.weights, np.size(belief.weights)))
    return _kernels(
        belief, belief.scenario_entries, weights.size, None, "scenario_entries"
    ), weights


def mean_of(belief: Belief) -> FloatArray:
    """Mean probability of every possible transition."""
    if is_builtin(belief):
        return belief.mean_entries()
    mean = method_of(belief, "mean_entries", "for its mean kernel")()
    found: FloatArray = _kernels(belief, np.asarray(mean)[None], 1, None, "mean_entries")[0]
    return found


def draws_of(
    belief: Belief, n: int, rng: np.random.Generator, pairs: IntArray | None = None
) -> FloatArray:
    """``n`` joint draws of the kernel, (n, transitions), or only of the rows of ``pairs``."""
    if is_builtin(belief):
        return belief.sample_entries(n, pairs, rng=rng)
    sample = method_of(belief, "sample_entries", "to be planned from draws")
    return _kernels(belief, sample(n, pairs=pairs, rng=rng), n, pairs, "sample_entries")


def rewards_of(belief: Belief, rewards: Any) -> FloatArray:
    """Lay rewards out as one number per possible transition; checked for a custom belief."""
    if rewards is None and not learns_rewards(belief):
        raise InvalidInputError(
            f"rewards must be given for a {type(belief).__name__}, which knows only transitions; "
            "got None. Without rewards, a belief about them is needed, such as OutcomeBelief"
        )
    if is_builtin(belief):
        return belief.gather_rewards(rewards)
    gathered = as_float_array(
        method_of(belief, "gather_rewards", "to lay out the rewards")(rewards), "rewards"
    )
    if gathered.shape != (belief.pattern.n_transitions,):
        raise InvalidInputError(
            f"{type(belief).__name__}.gather_rewards must return one number per possible "
            f"transition, ({belief.pattern.n_transitions},); got {gathered.shape}"
        )
    return np.array(gathered)


def _kernels(belief: Belief, entries: Any, n: int, pairs: IntArray | None, name: str) -> FloatArray:
    """Check kernels: shape, sign and sums; rescale rows whose sums are within 1e-8 of one."""
    pattern = belief.pattern
    source = f"{type(belief).__name__}.{name}"
    given = as_float_array(entries, source)
    owners = pattern.pairs if pairs is None else pairs
    widths = pattern.widths[owners]
    if given.shape != (n, int(widths.sum())):
        got = given.shape[1:] if name == "mean_entries" else given.shape
        wanted = (int(widths.sum()),) if name == "mean_entries" else (n, int(widths.sum()))
        raise InvalidInputError(f"{source} must have shape {wanted}; got {got}")
    sums = _sums(pattern, given, owners, source)
    exact: FloatArray = given / np.repeat(sums, widths, axis=1)
    return exact


def require_kernels(pattern: TransitionPattern, kernels: Any, name: str = "kernels") -> FloatArray:
    """Kernels (n, transitions) as they are, if their rows are probabilities."""
    given = as_float_array(kernels, name)
    if given.ndim != 2 or given.shape[1] != pattern.n_transitions:
        raise InvalidInputError(
            f"{name} must have shape (n, {pattern.n_transitions}), one number per possible "
            f"transition; got {given.shape}"
        )
    _sums(pattern, given, pattern.pairs, name)
    return given


def _sums(
    pattern: TransitionPattern, given: FloatArray, owners: IntArray, source: str
) -> FloatArray:
    """Sums of the rows of some pairs, close to one, if no entry is negative."""
    if (given < 0.0).any():
        where = first_bad(given < 0.0)
        raise InvalidInputError(
            f"{source} must not be negative; got {given[where]} at entry {where[-1]}"
        )
    starts = np.concatenate(([0], np.cumsum(pattern.widths[owners])[:-1]))
    sums: FloatArray = np.add.reduceat(given, starts, axis=1)
    off = np.abs(sums - 1.0) > SUM_TOLERANCE
    if off.any():
        where = first_bad(off)
        s, a = divmod(int(owners[where[1]]), pattern.n_actions)
        raise InvalidInputError(
            f"{source} must sum to one over s'; got {sums[where]:.12g} at (s={s}, a={a})"
        )
    return sums
