"""Policies as action probabilities, and where they begin.

A policy is given as (S,) actions or as (S, A) probabilities; inside this package it is an (S, A)
array of probabilities, zero for inadmissible actions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from brmdp._validation import (
    BoolArray,
    FloatArray,
    as_float_array,
    as_policy_weights,
)
from brmdp.beliefs.base import Belief
from brmdp.errors import InvalidInputError
from brmdp.mdp import as_start
from brmdp.planning.finite_horizon import as_stages

__all__ = [
    "Policies",
    "RandomPolicy",
    "as_start_weights",
    "default_start",
    "is_deterministic",
    "mean_policy",
    "mean_stages",
    "named_policies",
    "same_policy",
]


@runtime_checkable
class RandomPolicy(Protocol):
    """A policy that is itself uncertain, such as the practice estimated from a log.

    Examples
    --------
    >>> from brmdp.decisions import RandomPolicy, practice
    >>> isinstance(practice([[3, 1], [0, 2]]), RandomPolicy)
    True
    """

    @property
    def mean(self) -> FloatArray:
        """(S, A) mean probabilities."""
        ...

    def draw(self, n: int, *, rng: np.random.Generator) -> FloatArray:
        """``n`` policies, (n, S, A)."""
        ...


Policies: TypeAlias = Mapping[str, Any] | Sequence[Any] | NDArray[Any]
"""Several policies, by name or in order, or a single one."""


def mean_policy(value: Any, admissible: BoolArray, name: str = "policy") -> FloatArray:
    """The probabilities of a policy, or the mean ones of a :class:`RandomPolicy`."""
    if is_random(value):
        return as_policy_weights(value.mean, admissible, f"{name}.mean")
    return as_policy_weights(value, admissible, name)


def mean_stages(
    value: Any, admissible: BoolArray, horizon: int | None, name: str = "policy"
) -> FloatArray:
    """The same as :func:`mean_policy`, or (H, S, A) probabilities if there is a horizon."""
    if horizon is None:
        return mean_policy(value, admissible, name)
    if is_random(value):
        stationary = mean_policy(value, admissible, name)
        return np.broadcast_to(stationary, (horizon, *stationary.shape))
    stages = as_stages(value, admissible, horizon, name)
    if stages.ndim == 3:
        return np.asarray(stages, dtype=np.float64)
    same = stages.strides[0] == 0
    certain: FloatArray = np.eye(admissible.shape[1])[stages[0] if same else stages]
    return np.broadcast_to(certain, (horizon, *certain.shape)) if same else certain


def is_random(value: Any) -> bool:
    """Whether the policy is drawn anew in every draw; arrays have a method ``mean``, too."""
    return not isinstance(value, np.ndarray) and isinstance(value, RandomPolicy)


def is_deterministic(weights: FloatArray) -> bool:
    """Whether one action is taken in every state."""
    return bool(((weights > 0.0).sum(axis=-1) == 1).all())


def same_policy(one: FloatArray, other: FloatArray) -> bool:
    """Whether two policies have the same probabilities."""
    return bool(np.array_equal(one, other))


def named_policies(policies: Policies, name: str = "policies") -> dict[str, Any]:
    """Policies by name: a mapping's own, or the position in a sequence.

    A flat sequence of numbers is a single policy.
    """
    if is_random(policies):
        return {"policy": policies}
    if isinstance(policies, Mapping):
        found = {str(key): value for key, value in policies.items()}
        if len(found) < len(policies):
            raise InvalidInputError(
                f"{name} must have names that differ as text; got {list(policies)}"
            )
    elif isinstance(policies, np.ndarray):
        if policies.ndim == 2:
            raise InvalidInputError(
                f"{name} must be a list of policies or a mapping; a two-dimensional array may be "
                "several policies or one with probabilities, so put it, or its rows, in a list"
            )
        found = {"policy": policies}
    elif isinstance(policies, Sequence) and not isinstance(policies, str | bytes):
        flat = len(policies) > 0 and all(np.ndim(item) == 0 for item in policies)
        flat = flat and not any(is_random(item) for item in policies)
        found = (
            {"policy": policies}
            if flat
            else {f"policy {k}": item for k, item in enumerate(policies)}
        )
    else:
        raise InvalidInputError(
            f"{name} must be a list of policies or a mapping; got {type(policies).__name__}"
        )
    if not found:
        raise InvalidInputError(f"{name} must hold at least one policy; got none")
    return found


def as_start_weights(start: ArrayLike, n_states: int) -> FloatArray:
    """A start, a state or a distribution, as probabilities of the states."""
    given = as_start(start, n_states)
    if isinstance(given, int):
        weights = np.zeros(n_states)
        weights[given] = 1.0
        return weights
    return np.array(given) / float(given.sum())


def default_start(belief: Belief, start: ArrayLike | None) -> tuple[FloatArray, str]:
    """Probabilities of the first state, and where they come from.

    They are the given ones, or those of the states that the data come from, or all equal.
    """
    n = belief.pattern.n_states
    if start is not None:
        return as_start_weights(start, n), "given"
    observed: Any = getattr(belief, "observed_states", None)
    if callable(observed):
        seen = as_float_array(observed(), f"{type(belief).__name__}.observed_states")
        if seen.shape != (n,) or (seen < 0.0).any():
            raise InvalidInputError(
                f"{type(belief).__name__}.observed_states must return ({n},) numbers that are not "
                "negative"
            )
        if seen.sum() > 0.0:
            return seen / seen.sum(), "observed states"
    return np.full(n, 1.0 / n), "all states equally"
