"""Bonus rules: what a pair's value is raised by, given what is known about the pair.

A rule is any object with a method ``amounts(belief)`` that returns one number per pair s·A + a. It
may depend on nothing but the belief. The measure that adds it is :class:`brmdp.risk.Bonus`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from brmdp._validation import FloatArray, as_float_array, as_positive_int, as_positive_number
from brmdp.beliefs.base import Belief
from brmdp.beliefs.checked import dirichlet_rows_of, evidence_of, mean_of
from brmdp.errors import InvalidInputError
from brmdp.risk.dirichlet import has_dirichlet_rows

__all__ = [
    "BonusRule",
    "CountBonus",
    "GuidanceBonus",
    "RootBonus",
    "UnknownBonus",
    "VarianceBonus",
    "deviation_of_rows",
]


class BonusRule(Protocol):
    """What is added to the value of each pair.

    Examples
    --------
    A rule that pays for every pair without data:

    >>> import numpy as np
    >>> import brmdp
    >>> class New:
    ...     def amounts(self, belief):
    ...         observed = belief.evidence(np.arange(belief.pattern.n_pairs))[1]
    ...         return np.where(observed == 0, 1.0, 0.0)
    >>> belief = brmdp.DirichletBelief.uniform(2, 1)
    >>> belief.observe(0, 0, 1)
    >>> brmdp.plan(belief, [[0.0], [0.0]], 0.5, risk=brmdp.risk.Bonus(New())).values.round(4)
    array([0.6154, 1.5385])
    """

    def amounts(self, belief: Belief) -> FloatArray:
        """(S·A,) numbers; infinite ones only for a measure with a ceiling."""
        ...


@dataclass(frozen=True)
class CountBonus:
    """scale/(1 + n₀ + n), with n₀ the weight of the prior and n the observations of the pair.

    This is the Bayesian exploration bonus (Kolter and Ng 2009).

    Parameters
    ----------
    scale : float
        β > 0, in units of the rewards.

    Examples
    --------
    >>> import brmdp
    >>> belief = brmdp.DirichletBelief.uniform(2, 1)
    >>> belief.observe(0, 0, 1)
    >>> brmdp.risk.CountBonus(12.0).amounts(belief)
    array([3., 4.])
    """

    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", as_positive_number(self.scale, "scale"))

    def amounts(self, belief: Belief) -> FloatArray:
        """One bonus per pair."""
        prior, observed = evidence_of(belief, belief.pattern.n_pairs, type(self).__name__)
        return self.scale / (1.0 + prior + observed)


@dataclass(frozen=True)
class RootBonus:
    """scale/√max{n, 1}, with n the observations of the pair.

    Parameters
    ----------
    scale : float
        β > 0, in units of the rewards.

    Examples
    --------
    >>> import brmdp
    >>> belief = brmdp.DirichletBelief.uniform(2, 1)
    >>> belief.observe([0, 0, 0, 0], 0, 1)
    >>> brmdp.risk.RootBonus(3.0).amounts(belief)
    array([1.5, 3. ])
    """

    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", as_positive_number(self.scale, "scale"))

    def amounts(self, belief: Belief) -> FloatArray:
        """One bonus per pair."""
        return self.scale / np.sqrt(
            np.maximum(evidence_of(belief, belief.pattern.n_pairs, type(self).__name__)[1], 1.0)
        )


@dataclass(frozen=True)
class VarianceBonus:
    """scale·√Σ_s' Var P(s'|s,a), from the posterior variances of the pair's probabilities.

    Parameters
    ----------
    scale : float
        β > 0, in units of the rewards.

    Examples
    --------
    >>> import brmdp
    >>> belief = brmdp.DirichletBelief.uniform(2, 1)  # Beta(1, 1) has the variance 1/12
    >>> brmdp.risk.VarianceBonus(6.0).amounts(belief).round(6)
    array([2.44949, 2.44949])
    """

    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", as_positive_number(self.scale, "scale"))

    def amounts(self, belief: Belief) -> FloatArray:
        """One bonus per pair."""
        return self.scale * deviation_of_rows(belief)


@dataclass(frozen=True)
class UnknownBonus:
    """Infinite for pairs with fewer observations than ``visits``, and nothing for the others.

    With a ceiling, unknown pairs are worth the ceiling, as in R-MAX.

    Parameters
    ----------
    visits : int
        m, the number of observations that make a pair known.

    Examples
    --------
    >>> import brmdp
    >>> belief = brmdp.DirichletBelief.uniform(2, 1)
    >>> belief.observe([0, 0], 0, 1)
    >>> brmdp.risk.UnknownBonus(2).amounts(belief)
    array([ 0., inf])
    """

    visits: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "visits", as_positive_int(self.visits, "visits"))

    def amounts(self, belief: Belief) -> FloatArray:
        """One bonus per pair."""
        return np.where(
            evidence_of(belief, belief.pattern.n_pairs, type(self).__name__)[1] < self.visits,
            np.inf,
            0.0,
        )


@dataclass(frozen=True, eq=False)
class GuidanceBonus:
    """Puts curiosity in the place of reward where little is known: share·(scale·E − r).

    E(s,a) = √Σ_s' Var P(s'|s,a) is the doubt about a pair, share = min{E/largest, 1}, and r the
    mean reward, so that the reward becomes (1 − share)·r + share·scale·E (Ma and Lee 2025).

    Parameters
    ----------
    scale : float
        η > 0, in units of the rewards.
    largest : float
        The doubt at which nothing but curiosity counts; usually the largest of the prior.
    rewards : (transitions,) array
        The known reward of every possible transition.

    Examples
    --------
    >>> import brmdp
    >>> belief = brmdp.DirichletBelief.uniform(2, 1)  # E = √(1/6) for both pairs
    >>> rule = brmdp.risk.GuidanceBonus(1.0, (1 / 6) ** 0.5, [0.0, 0.0, 1.0, 1.0])
    >>> rule.amounts(belief).round(6)
    array([ 0.408248, -0.591752])
    """

    scale: float
    largest: float
    rewards: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", as_positive_number(self.scale, "scale"))
        object.__setattr__(self, "largest", as_positive_number(self.largest, "largest"))
        object.__setattr__(self, "rewards", np.array(as_float_array(self.rewards, "rewards")))

    def amounts(self, belief: Belief) -> FloatArray:
        """One bonus per pair, negative where reward outweighs doubt."""
        pattern = belief.pattern
        if self.rewards.shape != (pattern.n_transitions,):
            raise InvalidInputError(
                f"rewards must hold one number per possible transition, "
                f"({pattern.n_transitions},); got {self.rewards.shape}"
            )
        doubt = deviation_of_rows(belief)
        paid = np.bincount(
            pattern.pair_of_transition, mean_of(belief) * self.rewards, pattern.n_pairs
        )
        share = np.minimum(doubt / self.largest, 1.0)
        amounts: FloatArray = share * (self.scale * doubt - paid)
        return amounts


def deviation_of_rows(belief: Belief) -> FloatArray:
    """(S·A,) √Σ Var P over the possible successors of each pair.

    Raises
    ------
    InvalidInputError
        If the rows are not Dirichlet vectors, whose variances are known.
    """
    if not has_dirichlet_rows(belief):
        raise InvalidInputError(
            "belief must have Dirichlet rows for a bonus from their variances; got a "
            f"{type(belief).__name__}"
        )
    pattern = belief.pattern
    entries, offsets = dirichlet_rows_of(belief)
    owners, n = pattern.pair_of_transition, pattern.n_pairs
    phi = entries[np.arange(owners.size) + (offsets[:n] - pattern.indptr[:-1])[owners]]
    total = np.bincount(owners, phi, n)
    share = phi / total[owners]
    scattered = np.bincount(owners, share * (1.0 - share), n)
    deviation: FloatArray = np.sqrt(np.maximum(scattered, 0.0) / (total + 1.0))
    return deviation
