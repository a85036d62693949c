"""Bayesian regret bounds of AQ-BRMDP with explicit constants.

These are the bounds of Theorem 3, in the paper's appendix "Proofs of Regret Analysis".

For kernels drawn from the prior Dir(1, …, 1), rewards r(s,a) in [0, 1] and T steps, let q = 1 − γ,

    u = max{e, T/q²},  ℓ = ln u + ln ln u,  m = ⌈(ℓ + 2)/q⌉,  T̄ = T + m,
    M = 2(S + 1)(T̄ + SA)√T̄ / (SA δ ln 2).

Pseudo-episodes longer than m hardly ever occur. BR(T), the regret against V*, is at most the sum of

    robustness floor         γm/q · √(16 SA T̄ ln 1/(1 − α̲))
    optimistic schedule      γm/q · √(16 SA (T̄ + S²A)(ln(1 + SA·M/(T̄ + S²A)) + 2))
    posterior concentration  γm/q · √(16 SA T̄ ln(2SA T³ m))
    doubled counts           γ/q · SA m² ⌈log₂ m⌉
    concentration failures   π²/(6q)
    long episodes            4γ/q · (ℓ + 4)²
    lost optimism            2δSA √T ln(2T)/q²

The first three bound the upper deviation at the floor α̲, that of levels α_k close to one, and the
deviation of the truth from the posterior mean. "Doubled counts" are episodes that double a count,
"lost optimism" are episodes without optimism.

BR-R(T), the regret against the robust benchmark V*_{φ,α̲}, is at most the sum of the first two
terms, a term "robust deviation" γm/q · √(16 SA T̄ ln 1/α̲), and twice the others except the last.
The last is absent because optimism over the robust benchmark is certain.

If the reward depends on the next state, the targets w = r + γV range over 1/q instead of γ/q, and
the factor γ is dropped.

No regret exceeds T/q, so a bound above that says nothing. In the paper's Õ notation (Theorem 2,
for T ≥ S²A), the bounds are terms of order √T plus a constant one, SA/q³; the √T terms dominate it
from T ≥ SA·max{S, 1/q²}.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from brmdp._validation import (
    as_discount,
    as_float_array,
    as_level,
    as_positive_int,
    as_positive_number,
    first_bad,
)
from brmdp.errors import InvalidInputError

__all__ = [
    "RegretBound",
    "balanced_delta",
    "first_informative_horizon",
    "regret_bound",
    "robust_regret_bound",
]

Benchmark: TypeAlias = Literal["true", "robust"]

LARGEST_HORIZON = 10**30
"""Largest horizon accepted; longer ones count as never."""

LARGEST_DELTA = 1e100
"""Largest δ accepted, so that no bound overflows."""

IRREGULAR = 16
"""Up to this horizon the bound may grow faster than T, so horizons are tried one by one."""


@dataclass(frozen=True, eq=False)
class RegretBound:
    """A bound on the Bayesian regret over T steps, term by term.

    Attributes
    ----------
    benchmark : {"true", "robust"}
        "true" for BR(T), "robust" for BR-R(T).
    steps : int
        Number of steps T.
    terms : mapping of str to float
        The terms by name, in the order given in :mod:`brmdp.theory.regret_bounds`.
    total : float
        Sum of the terms.
    trivial : float
        T/(1 − γ), which no regret exceeds.
    order_horizon : int
        S²A, the horizon from which the paper's bound in Õ notation holds.
    dominant_horizon : float
        SA·max{S, (1 − γ)⁻²}, the horizon from which the √T terms of that bound dominate its
        constant term.

    Examples
    --------
    >>> from brmdp.theory import balanced_delta, regret_bound
    >>> bound = regret_bound(5, 2, 0.9, 10**12, balanced_delta(5, 2), floor=0.2)
    >>> max(bound.terms, key=bound.terms.get)
    'posterior concentration'
    >>> bound.informative, bound.value == bound.total
    (True, True)
    """

    benchmark: Benchmark
    steps: int
    terms: Mapping[str, float]
    total: float
    trivial: float
    order_horizon: int
    dominant_horizon: float

    @property
    def informative(self) -> bool:
        """Whether the total is below the trivial bound."""
        return self.total < self.trivial

    @property
    def value(self) -> float:
        """The smaller of the total and the trivial bound."""
        return min(self.total, self.trivial)

    def __str__(self) -> str:
        name = "BR" if self.benchmark == "true" else "BR-R"
        lines = [f"{name}({self.steps}) ≤ {self.total:.4g}"]
        lines += [f"  {term:<24} {size:.4g}" for term, size in self.terms.items()]
        verdict = "informative" if self.informative else "not informative"
        return "\n".join([*lines, f"{verdict}: no regret exceeds T/(1 − γ) = {self.trivial:.4g}"])


def regret_bound(
    n_states: int,
    n_actions: int,
    discount: float,
    steps: int,
    delta: float,
    floor: float,
    *,
    rewards: ArrayLike | None = None,
) -> RegretBound:
    """Bound on BR(T), the Bayesian regret of AQ-BRMDP against the true optimum.

    Parameters
    ----------
    n_states, n_actions : int
        S and A.
    discount : float in [0, 1)
        Discount factor γ.
    steps : int
        Number of steps T.
    delta : float
        Sensitivity δ > 0 of the schedule (:func:`balanced_delta` is one choice).
    floor : float in (0, 1)
        α̲.
    rewards : (S, A) or (S, A, S) array, optional
        Rewards, which must lie in [0, 1]. If they depend on the next state, the bound accounts for
        it. None stands for the paper's r(s,a).

    Examples
    --------
    >>> from brmdp.theory import regret_bound
    >>> regret_bound(5, 2, 0.9, 4500, delta=0.3, floor=0.2).informative
    False
    """
    return _bound(_Setting.of(n_states, n_actions, discount, delta, floor, rewards, "true"), steps)


def robust_regret_bound(
    n_states: int,
    n_actions: int,
    discount: float,
    steps: int,
    delta: float,
    floor: float,
    *,
    rewards: ArrayLike | None = None,
) -> RegretBound:
    """Bound on BR-R(T), the Bayesian regret of AQ-BRMDP against the robust optimum.

    Parameters
    ----------
    n_states, n_actions, discount, steps, delta, floor, rewards
        As in :func:`regret_bound`.

    Examples
    --------
    >>> from brmdp.theory import robust_regret_bound
    >>> "lost optimism" in robust_regret_bound(5, 2, 0.9, 4500, delta=0.3, floor=0.2).terms
    False
    """
    return _bound(
        _Setting.of(n_states, n_actions, discount, delta, floor, rewards, "robust"), steps
    )


def balanced_delta(n_states: int, n_actions: int) -> float:
    """δ = 1/√(SA), with which the cost of early robustness grows like the other terms, √(SAT).

    Parameters
    ----------
    n_states, n_actions : int
        S and A.

    Examples
    --------
    >>> from brmdp.theory import balanced_delta
    >>> balanced_delta(8, 2)
    0.25
    """
    return 1.0 / math.sqrt(
        as_positive_int(n_states, "n_states") * as_positive_int(n_actions, "n_actions")
    )


def first_informative_horizon(
    n_states: int,
    n_actions: int,
    discount: float,
    delta: float,
    floor: float,
    *,
    benchmark: Benchmark = "true",
    rewards: ArrayLike | None = None,
) -> int | None:
    """The smallest T for which the bound is below T/(1 − γ), or None if there is none up to 10³⁰.

    Parameters
    ----------
    n_states, n_actions, discount, delta, floor, rewards
        As in :func:`regret_bound`.
    benchmark : {"true", "robust"}
        Which bound: :func:`regret_bound` or :func:`robust_regret_bound`.

    Notes
    -----
    Let m be the length that pseudo-episodes hardly ever exceed (defined in
    :mod:`brmdp.theory.regret_bounds`); it grows with T. While m is constant, total/T falls with T
    (beyond the first few steps), so the last T with a given m is the most informative one. Among
    these, total/T falls with m while ⌈log₂ m⌉ is constant. Because of the jumps in between, a
    single bisection over T is not enough.

    Examples
    --------
    >>> from brmdp.theory import balanced_delta, first_informative_horizon
    >>> first_informative_horizon(5, 2, 0.9, balanced_delta(5, 2), floor=0.2)
    2372742822
    """
    setting = _Setting.of(n_states, n_actions, discount, delta, floor, rewards, benchmark)

    def informative(steps: int) -> bool:
        return math.fsum(_terms(setting, steps).values()) < _trivial(setting, steps)

    def last_with(length: int) -> int:
        return (
            _first(lambda steps: _usual_length(setting, steps)[1] > length, 0, LARGEST_HORIZON + 1)
            - 1
        )

    for steps in range(1, IRREGULAR + 1):
        if informative(steps):
            return steps
    low, longest = (
        _usual_length(setting, IRREGULAR)[1] - 1,
        _usual_length(setting, LARGEST_HORIZON)[1],
    )
    while low < longest:
        high = min(2 ** (low.bit_length()), longest)
        if informative(last_with(high)):
            length = _first(lambda m: informative(last_with(m)), low, high)
            return _first(informative, max(last_with(length - 1), IRREGULAR), last_with(length))
        low = high
    return None


@dataclass(frozen=True)
class _Setting:
    """All parameters except the horizon.

    ``factor`` is γ, or 1 if the rewards depend on the next state.
    """

    states: int
    pairs: int
    discount: float
    delta: float
    floor: float
    factor: float
    robust: bool

    @classmethod
    def of(
        cls,
        n_states: int,
        n_actions: int,
        discount: float,
        delta: float,
        floor: float,
        rewards: ArrayLike | None,
        benchmark: Benchmark,
    ) -> _Setting:
        if benchmark not in get_args(Benchmark):
            raise InvalidInputError(f"benchmark must be 'true' or 'robust'; got {benchmark!r}")
        states, actions = (
            as_positive_int(n_states, "n_states"),
            as_positive_int(n_actions, "n_actions"),
        )
        if states * states * actions > LARGEST_HORIZON:
            raise InvalidInputError(
                f"n_states²·n_actions must be at most {LARGEST_HORIZON:g}; got n_states = "
                f"{states}, n_actions = {actions}"
            )
        gamma = as_discount(discount)
        sensitivity = as_positive_number(delta, "delta")
        if sensitivity > LARGEST_DELTA:
            raise InvalidInputError(f"delta must be at most {LARGEST_DELTA:g}; got {delta!r}")
        return cls(
            states=states,
            pairs=states * actions,
            discount=gamma,
            delta=sensitivity,
            floor=as_level(floor, "floor"),
            factor=1.0 if _depends_on_next_state(rewards, states, actions) else gamma,
            robust=benchmark == "robust",
        )


def _depends_on_next_state(rewards: ArrayLike | None, n_states: int, n_actions: int) -> bool:
    """Check the rewards and say whether r(s,a,s') differs between next states."""
    if rewards is None:
        return False
    array = as_float_array(rewards, "rewards")
    by_pair = (n_states, n_actions)
    if array.shape not in (by_pair, (*by_pair, n_states)):
        raise InvalidInputError(
            f"rewards must have shape {by_pair} or {(*by_pair, n_states)}; got {array.shape}"
        )
    outside = (array < 0.0) | (array > 1.0)
    if outside.any():
        where = first_bad(outside)
        raise InvalidInputError(
            f"rewards must lie in [0, 1] for the bound to hold; got {array[where]} at {where}"
        )
    return array.ndim == 3 and bool((array != array[:, :, :1]).any())


def _bound(setting: _Setting, steps: int) -> RegretBound:
    horizon = as_positive_int(steps, "steps")
    if horizon > LARGEST_HORIZON:
        raise InvalidInputError(f"steps must be at most {LARGEST_HORIZON:g}; got {steps!r}")
    terms = _terms(setting, horizon)
    return RegretBound(
        benchmark="robust" if setting.robust else "true",
        steps=horizon,
        terms=MappingProxyType(terms),
        total=math.fsum(terms.values()),
        trivial=_trivial(setting, horizon),
        order_horizon=setting.states * setting.pairs,
        dominant_horizon=setting.pairs * max(float(setting.states), (1.0 - setting.discount) ** -2),
    )


def _trivial(setting: _Setting, steps: int) -> float:
    return steps / (1.0 - setting.discount)


def _usual_length(setting: _Setting, steps: int) -> tuple[float, int]:
    """ℓ = ln u + ln ln u, and m, the length that pseudo-episodes hardly ever exceed."""
    left = 1.0 - setting.discount
    log_u = max(1.0, math.log(steps) - 2.0 * math.log(left))
    logs = log_u + math.log(log_u)
    return logs, math.ceil((logs + 2.0) / left)


def _terms(setting: _Setting, steps: int) -> dict[str, float]:
    """The terms of the bound by name."""
    pairs, left = setting.pairs, 1.0 - setting.discount
    logs, length = _usual_length(setting, steps)
    extended = steps + length
    with_prior = extended + setting.states * pairs
    # logarithm of SA·M/(T̄ + S²A), which may itself overflow
    log_spread = math.log(
        2.0 * (setting.states + 1) * (extended + pairs) * math.sqrt(extended) / with_prior
    )
    log_spread -= math.log(setting.delta) + math.log(math.log(2.0))
    weight = setting.factor * length / left

    def deviation(log_factor: float, count: float = extended) -> float:
        return weight * math.sqrt(16.0 * pairs * count * log_factor)

    concentration = deviation(math.log(2.0 * pairs * length) + 3.0 * math.log(steps))
    # (m − 1).bit_length() is ⌈log₂ m⌉
    doubled = setting.factor / left * pairs * length**2 * (length - 1).bit_length()
    failures = math.pi**2 / (6.0 * left)
    long = 4.0 * setting.factor / left * (logs + 4.0) ** 2
    terms = {
        "robustness floor": deviation(-math.log1p(-setting.floor)),
        "optimistic schedule": deviation(float(np.logaddexp(0.0, log_spread)) + 2.0, with_prior),
    }
    if setting.robust:
        terms["robust deviation"] = deviation(-math.log(setting.floor))
    twice = 2.0 if setting.robust else 1.0
    terms |= {
        "posterior concentration": twice * concentration,
        "doubled counts": twice * doubled,
        "concentration failures": twice * failures,
        "long episodes": twice * long,
    }
    if not setting.robust:
        terms["lost optimism"] = (
            2.0 * setting.delta * pairs * math.sqrt(steps) * math.log(2.0 * steps) / left**2
        )
    return terms


def _first(true: Callable[[int], bool], low: int, high: int) -> int:
    """Smallest number in (low, high] with a property that holds from there up to ``high``."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if true(middle) else (middle, high)
    return high
