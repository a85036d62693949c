"""Optimistic measures: bonuses, confidence bounds, and posteriors made hopeful.

All of them turn targets into a value and a row, as every measure does, so the solver is the usual
one. What its error bounds need is that T is a γ-contraction, and for that it is enough that values
never fall when targets rise, and rise by at most c if all targets rise by c. Equality, which the
other measures have, is lost where

- a *ceiling* holds a value down (its row is then zero: the value no longer depends on the targets),
- part of a row leads to a *fictitious state* of fixed value (its row then sums to less than one).

Both rules hold for a bonus that does not depend on the values, for the best row of an L1 ball, and
for the bound of :class:`BernsteinBound`, whose proof is there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from brmdp._kernels import bounds
from brmdp._validation import (
    FloatArray,
    IntArray,
    as_level,
    as_number,
    as_positive_number,
)
from brmdp.beliefs.base import Belief
from brmdp.beliefs.checked import evidence_of, learns_rewards, mean_of, require_belief
from brmdp.beliefs.dirichlet import DirichletBelief
from brmdp.errors import InvalidInputError
from brmdp.pattern import TransitionPattern
from brmdp.risk.base import EXACT, FixedKernel, RiskMeasure, RiskOperator, rounding
from brmdp.risk.bonuses import BonusRule
from brmdp.risk.measures import CVaR, Mean, PosteriorSample, Quantile

__all__ = ["BernsteinBound", "Bonus", "OptimisticBall", "OptimisticPosterior"]

BASES = (Mean, Quantile, CVaR, PosteriorSample)
"""Measures that another one may be built on; the checks of those from outside are their own."""


LARGEST = 1e100
"""Largest bonus, ceiling or value of a fictitious state, far below where values overflow."""


class _OnBase:
    """A measure built on another one, which has the level and the memory."""

    base: RiskMeasure

    @property
    def alpha(self) -> Any:
        """The level of the base; AttributeError if it has none."""
        return self.base.alpha  # type: ignore[attr-defined]

    @property
    def at_level(self) -> Callable[[ArrayLike], RiskMeasure]:
        """The same measure at another level; AttributeError if the base has none."""
        at_level = self.base.at_level  # type: ignore[attr-defined]
        return lambda alpha: self._on(at_level(alpha))

    def _on(self, base: RiskMeasure) -> RiskMeasure:
        raise NotImplementedError

    def memory(self) -> dict[str, NDArray[Any]]:
        """What the base remembers from plan to plan, as named arrays."""
        base: Any = self.base
        return base.memory() if hasattr(base, "memory") else {}

    def restore(self, memory: dict[str, NDArray[Any]]) -> None:
        """Continue from a state that :meth:`memory` returned."""
        base: Any = self.base
        if hasattr(base, "restore"):
            base.restore(memory)

    def checkpoint(self) -> Callable[[], None] | None:
        """A function that resets the base to its current state; None if it has no memory."""
        base: Any = self.base
        return base.checkpoint() if hasattr(base, "checkpoint") else None


class Bonus(_OnBase):
    """A measure plus a bonus for pairs of which little is known.

    Parameters
    ----------
    rule : BonusRule
        The bonus of every pair, such as :class:`CountBonus`. Pairs with a single possible outcome
        get none: there is nothing to learn.
    base : Mean, Quantile, CVaR or PosteriorSample, optional
        The measure; by default the posterior mean.
    ceiling : float, optional
        No pair is worth more than this, such as r_max/(1 − γ).

    Examples
    --------
    >>> import brmdp
    >>> belief = brmdp.DirichletBelief.uniform(2, 1)
    >>> rewards = [[0.0], [1.0]]
    >>> risk = brmdp.risk.Bonus(brmdp.risk.CountBonus(0.3))  # 0.3/(1 + 2) = 0.1 for both
    >>> brmdp.plan(belief, rewards, 0.9, risk=risk).values.round(6)
    array([5.5, 6.5])
    >>> risk = brmdp.risk.Bonus(brmdp.risk.CountBonus(0.3), ceiling=6.0)
    >>> brmdp.plan(belief, rewards, 0.9, risk=risk).values.round(6)
    array([5.090909, 6.      ])
    """

    def __init__(
        self, rule: BonusRule, base: RiskMeasure | None = None, ceiling: float | None = None
    ) -> None:
        if isinstance(rule, type) or not callable(getattr(rule, "amounts", None)):
            raise InvalidInputError(
                "rule must be an object with a method amounts(belief), such as CountBonus(1.0); "
                f"got {rule!r}"
            )
        self.rule = rule
        self.base: RiskMeasure = Mean() if base is None else _as_base(base)
        self.ceiling = None if ceiling is None else _finite(ceiling, "ceiling")

    def _on(self, base: RiskMeasure) -> Bonus:
        return Bonus(self.rule, base, self.ceiling)

    def bind(self, belief: Belief) -> RiskOperator:
        """Apply the measure to a belief, with the bonuses of its present state."""
        require_belief(belief)
        amounts = self._amounts(belief)
        ceiling = math.inf if self.ceiling is None else self.ceiling
        return _Lifted(self.base.bind(belief), belief.pattern, amounts, ceiling)

    def _amounts(self, belief: Belief) -> FloatArray:
        pattern, name = belief.pattern, f"{type(self.rule).__name__}.amounts"
        found = np.asarray(self.rule.amounts(belief))
        if found.shape != (pattern.n_pairs,) or found.dtype.kind not in "iuf":
            raise InvalidInputError(
                f"{name} must return one number per pair, shape ({pattern.n_pairs},); got "
                f"{found.dtype} of shape {found.shape}"
            )
        amounts: FloatArray = np.where(pattern.widths == 1, 0.0, found).astype(np.float64)
        amounts[pattern.widths == 0] = 0.0
        good = np.abs(amounts) <= LARGEST
        if self.ceiling is not None:
            good |= amounts == np.inf
        if not good.all():
            s, a = divmod(int(np.argmin(good)), pattern.n_actions)
            raise InvalidInputError(
                f"{name} must return numbers within ±{LARGEST:g}"
                f"{'' if self.ceiling is None else ', or inf'}; "
                f"got {amounts[s * pattern.n_actions + a]} at (s={s}, a={a})"
                + ("; infinite ones need a ceiling" if self.ceiling is None else "")
            )
        return amounts

    def __repr__(self) -> str:
        return f"Bonus({self.rule!r}, {self.base!r}, ceiling={self.ceiling!r})"


class BernsteinBound:
    """Mean plus an empirical Bernstein bonus, which grows with the variance of the next value.

    q(w) = m·w + scale·max{√(2L Var_m(w)/n), 3L·span/n}, cut off at the ceiling, with m the
    posterior mean, n the observations of the pair (at least 1), N those of all pairs together, and
    L = ln(2SA(N + 1)/delta).

    Parameters
    ----------
    delta : float in (0, 1)
        Confidence parameter δ.
    span : float
        Range of the values, (r_max − r_min)/(1 − γ).
    ceiling : float
        Largest value, r_max/(1 − γ).
    scale : float in (0, 1]
        Multiplies the bonus; 1 is the bound itself.

    Notes
    -----
    A variance bonus alone is not monotone: raising the lowest target reduces the variance. The
    second term makes it so where targets differ by at most the span, since where the first term is
    larger, ∂q/∂w_i = m_i (1 + scale·√(2L)·(w_i − m·w)/√(n Var)) ≥ m_i (1 − 2·scale/3) > 0 (as in
    the monotonic value propagation of Zhang, Ji and Du 2021). So the solver's bounds hold.

    Examples
    --------
    >>> import brmdp
    >>> belief = brmdp.DirichletBelief.uniform(2, 1)
    >>> belief.observe([0] * 500 + [1] * 500, 0, [0, 1] * 500)
    >>> risk = brmdp.risk.BernsteinBound(0.1, span=10.0, ceiling=10.0)
    >>> brmdp.plan(belief, [[0.0], [1.0]], 0.9, risk=risk).values.round(2)
    array([ 9.34, 10.  ])
    """

    def __init__(self, delta: float, span: float, ceiling: float, scale: float = 1.0) -> None:
        self.delta = as_level(delta, "delta")
        self.span = as_positive_number(span, "span")
        self.ceiling = _finite(ceiling, "ceiling")
        self.scale = as_positive_number(scale, "scale")
        if self.scale > 1.0:
            raise InvalidInputError(f"scale must lie in (0, 1]; got {scale!r}")

    def bind(self, belief: Belief) -> RiskOperator:
        """Apply the bound to a belief."""
        require_belief(belief)
        _, observed = evidence_of(belief, belief.pattern.n_pairs, type(self).__name__)
        pattern, seen = belief.pattern, np.maximum(observed, 1.0)
        log = math.log(2.0 * pattern.pairs.size * (float(observed.sum()) + 1.0) / self.delta)
        learnt = pattern.widths > 1
        slopes = np.where(learnt, self.scale * np.sqrt(2.0 * log / seen), 0.0)
        least = np.where(learnt, self.scale * 3.0 * log * self.span / seen, 0.0)
        inner = _Envelope(
            pattern, mean_of(belief), bounds.bernstein_values, bounds.bernstein_rows, slopes, least
        )
        return _Lifted(inner, pattern, np.zeros(pattern.n_pairs), self.ceiling)

    def __repr__(self) -> str:
        return (
            f"BernsteinBound({self.delta!r}, span={self.span!r}, ceiling={self.ceiling!r}, "
            f"scale={self.scale!r})"
        )


class OptimisticBall:
    """The best kernel near the mean: the largest w·p over rows p within an L1 distance of it.

    The radius is scale·√(14 K ln(2A(N + 1)/delta)/max{n, 1}), with K the possible successors of
    the pair, n its observations and N those of all pairs: the confidence set of UCRL2 (Jaksch,
    Ortner and Auer 2010, equation 4), around the posterior mean. Planning with it is extended value
    iteration.

    Parameters
    ----------
    delta : float in (0, 1)
        Confidence parameter δ.
    scale : float
        Multiplies the radius; 1 is the confidence set itself.

    Examples
    --------
    Nothing is known, so the ball is the whole simplex:

    >>> import brmdp
    >>> belief = brmdp.DirichletBelief.uniform(2, 1)
    >>> brmdp.plan(belief, [[0.0], [1.0]], 0.9, risk=brmdp.risk.OptimisticBall(0.1)).values
    array([ 9., 10.])
    """

    def __init__(self, delta: float, scale: float = 1.0) -> None:
        self.delta = as_level(delta, "delta")
        self.scale = as_positive_number(scale, "scale")

    def bind(self, belief: Belief) -> RiskOperator:
        """Apply the measure to a belief."""
        require_belief(belief)
        _, observed = evidence_of(belief, belief.pattern.n_pairs, type(self).__name__)
        pattern = belief.pattern
        log = math.log(2.0 * pattern.n_actions * (float(observed.sum()) + 1.0) / self.delta)
        radii = self.scale * np.sqrt(14.0 * pattern.widths * log / np.maximum(observed, 1.0))
        return _Envelope(
            pattern, mean_of(belief), bounds.ball_values, bounds.ball_rows, np.minimum(radii, 2.0)
        )

    def __repr__(self) -> str:
        return f"OptimisticBall({self.delta!r}, scale={self.scale!r})"


class OptimisticPosterior(_OnBase):
    """A measure of a posterior that was made hopeful, and perhaps wider, beforehand.

    Every row gets one more successor, a fictitious state of fixed value, with concentration
    ``strength``; then all concentrations of the row are divided by ``inflation``. Rows with a
    single possible outcome stay as they are. With a :class:`brmdp.Quantile` this is the optimism of
    Bayes-UCBVI, with the largest of several draws that of OPSRL.

    Parameters
    ----------
    base : Mean, Quantile, CVaR or PosteriorSample
        The measure.
    value : float
        What the fictitious state is worth as a target r + γV, such as r_max/(1 − γ).
    strength : float
        Its pseudo-observations n₀ per row.
    inflation : float, at least 1
        κ; larger is wider.

    Notes
    -----
    The belief must be a :class:`brmdp.DirichletBelief`.

    Examples
    --------
    Two real successors and a fictitious one share a row equally; of its value 10, a third counts:

    >>> import brmdp
    >>> belief = brmdp.DirichletBelief.uniform(2, 1)
    >>> risk = brmdp.risk.OptimisticPosterior(brmdp.Mean(), 10.0)
    >>> brmdp.backup(belief, [[0.0], [0.0]], 0.9, [0.0, 0.0], risk=risk).q_values.ravel().round(6)
    array([3.333333, 3.333333])
    """

    def __init__(
        self, base: RiskMeasure, value: float, strength: float = 1.0, inflation: float = 1.0
    ) -> None:
        self.base = _as_base(base)
        self.value = _finite(value, "value")
        self.strength = as_positive_number(strength, "strength")
        self.inflation = as_positive_number(inflation, "inflation")
        if self.inflation < 1.0:
            raise InvalidInputError(f"inflation must be at least 1; got {inflation!r}")
        # the extended pattern of the last one; only a cache
        self._last: tuple[TransitionPattern, _Extended] | None = None

    def _on(self, base: RiskMeasure) -> OptimisticPosterior:
        twin = OptimisticPosterior(base, self.value, self.strength, self.inflation)
        twin._last = self._last
        return twin

    def bind(self, belief: Belief) -> RiskOperator:
        """Apply the measure to a belief."""
        require_belief(belief)
        if not isinstance(belief, DirichletBelief) or learns_rewards(belief):
            raise InvalidInputError(
                f"belief must be a DirichletBelief for an OptimisticPosterior; got a "
                f"{type(belief).__name__}"
            )
        pattern = belief.pattern
        if self._last is None or self._last[0] is not pattern:
            self._last = (pattern, _Extended(pattern))
        extended = self._last[1]
        phi = np.full(extended.pattern.n_transitions, self.strength / self.inflation)
        phi[extended.own] = np.where(
            (pattern.widths > 1)[pattern.pair_of_transition],
            belief.concentration_entries / self.inflation,
            belief.concentration_entries,
        )
        base: Any = self.base
        levels = getattr(base, "alpha", None)
        if levels is not None and np.ndim(levels):
            if np.shape(levels) != (pattern.n_states, pattern.n_actions):
                raise InvalidInputError(
                    f"alpha must be a number or have shape {pattern.admissible.shape}, one level "
                    f"per (s, a); got {np.shape(levels)}"
                )
            base = base.at_level(np.vstack([levels, np.full(pattern.n_actions, 0.5)]))
        inner = base.bind(DirichletBelief.from_entries(extended.pattern, phi))
        return _WithFictitiousState(inner, pattern, extended, self.value)

    def __repr__(self) -> str:
        return (
            f"OptimisticPosterior({self.base!r}, value={self.value!r}, "
            f"strength={self.strength!r}, inflation={self.inflation!r})"
        )


# --- bound measures -------------------------------------------------------------------------------


class _Lifted:
    """Another operator's values plus a constant per pair, at most ``ceiling``."""

    def __init__(
        self,
        inner: RiskOperator,
        pattern: TransitionPattern,
        amounts: FloatArray,
        ceiling: float = math.inf,
    ) -> None:
        self.basis = inner.basis
        self.pattern = pattern
        self._inner = inner
        self._amounts = amounts
        self._ceiling = ceiling

    def evaluate(self, targets: FloatArray, pairs: IntArray, out: FloatArray) -> float:
        """The raised values."""
        error = self._inner.evaluate(targets, pairs, out)
        values = np.minimum(out[pairs] + self._amounts[pairs], self._ceiling)
        out[pairs] = values
        return error + float(np.finfo(np.float64).eps) * float(np.abs(values).max())

    def rows(
        self, targets: FloatArray, values: FloatArray, pairs: IntArray, *, precise: bool = True
    ) -> FloatArray:
        """The inner rows; zero where the ceiling holds the value down."""
        free = pairs[values[pairs] < self._ceiling]
        own = values - self._amounts
        if free.size == pairs.size:
            return self._inner.rows(targets, own, pairs, precise=precise)
        widths = self.pattern.widths[pairs]
        out = np.zeros(int(widths.sum()))
        if free.size:
            kept = np.repeat(values[pairs] < self._ceiling, widths)
            out[kept] = self._inner.rows(targets, own, free, precise=precise)
        return out

    def fixed_entries(self) -> FloatArray | None:
        """None: the values are more than Σ p w."""
        return None

    def approximation(self) -> RiskOperator | None:
        """The raised approximation, unless that is linear and far from an optimistic plan."""
        cheaper = self._inner.approximation()
        if cheaper is None or cheaper.fixed_entries() is not None:
            return None
        return _Lifted(cheaper, self.pattern, self._amounts, self._ceiling)


class _Envelope:
    """Values and rows by a compiled loop around the mean row, with one or two numbers per pair."""

    basis = EXACT

    def __init__(
        self,
        pattern: TransitionPattern,
        centre: FloatArray,
        values: Callable[..., float],
        rows: Callable[..., None],
        *numbers: FloatArray,
    ) -> None:
        self.pattern = pattern
        self._centre = centre.copy()
        self._values = values
        self._rows = rows
        self._numbers = numbers

    def evaluate(self, targets: FloatArray, pairs: IntArray, out: FloatArray) -> float:
        """The values, and a bound on their rounding."""
        largest = self._values(
            pairs, self.pattern.indptr, self._centre, *self._numbers, targets, out
        )
        size = max(float(largest), float(np.abs(out[pairs]).max()))
        # a second sum of as many terms: that of the variance, or of what was moved
        return 2.0 * rounding(self.pattern, size)

    def rows(
        self, targets: FloatArray, values: FloatArray, pairs: IntArray, *, precise: bool = True
    ) -> FloatArray:
        """The rows."""
        out = np.empty(int(self.pattern.widths[pairs].sum()))
        self._rows(pairs, self.pattern.indptr, self._centre, *self._numbers, targets, out)
        return out

    def fixed_entries(self) -> FloatArray | None:
        """None: the rows depend on the targets."""
        return None

    def approximation(self) -> RiskOperator | None:
        """The mean itself."""
        return FixedKernel(self.pattern, self._centre)


class _Extended:
    """A pattern with a fictitious state S more, which follows every row with several outcomes.

    Attributes
    ----------
    pattern : TransitionPattern
        The larger pattern; pair s·A + a keeps its number, and state S stays where it is.
    own : (transitions,) integers
        Where the entries of the given pattern are in the larger one.
    """

    def __init__(self, pattern: TransitionPattern) -> None:
        n, actions = pattern.n_states, pattern.n_actions
        more = (pattern.widths > 1).astype(np.int64)
        widths = np.concatenate([pattern.widths + more, np.ones(actions, dtype=np.int64)])
        indptr = np.concatenate([[0], np.cumsum(widths)])
        shift = np.concatenate([[0], np.cumsum(more)[:-1]])
        self.own: IntArray = np.arange(pattern.n_transitions) + shift[pattern.pair_of_transition]
        next_states = np.full(int(indptr[-1]), n, dtype=np.int64)
        next_states[self.own] = pattern.next_states
        self.pattern = TransitionPattern(n + 1, actions, indptr, next_states)


class _WithFictitiousState:
    """An operator on the extended pattern, seen from the given one."""

    def __init__(
        self, inner: RiskOperator, pattern: TransitionPattern, extended: _Extended, value: float
    ) -> None:
        self.basis = inner.basis
        self.pattern = pattern
        self._inner = inner
        self._extended = extended
        self._value = value

    def evaluate(self, targets: FloatArray, pairs: IntArray, out: FloatArray) -> float:
        """The inner values."""
        more = np.full(self._extended.pattern.n_pairs, -np.inf)
        error = self._inner.evaluate(self._all(targets), pairs, more)
        out[pairs] = more[pairs]
        return error

    def rows(
        self, targets: FloatArray, values: FloatArray, pairs: IntArray, *, precise: bool = True
    ) -> FloatArray:
        """The inner rows without the fictitious state."""
        more = np.full(self._extended.pattern.n_pairs, -np.inf)
        more[: values.size] = values
        found = self._inner.rows(self._all(targets), more, pairs, precise=precise)
        wider = self._extended.pattern
        real = wider.take(wider.next_states, pairs) < self.pattern.n_states
        taken: FloatArray = found[real]
        return taken

    def fixed_entries(self) -> FloatArray | None:
        """None: the values are more than Σ p w."""
        return None

    def approximation(self) -> RiskOperator | None:
        """The inner approximation, seen in the same way."""
        cheaper = self._inner.approximation()
        return (
            None
            if cheaper is None or cheaper.fixed_entries() is not None
            else _WithFictitiousState(cheaper, self.pattern, self._extended, self._value)
        )

    def _all(self, targets: FloatArray) -> FloatArray:
        """Targets of the extended pattern."""
        out = np.full(self._extended.pattern.n_transitions, self._value)
        out[self._extended.own] = targets
        return out


def _as_base(base: Any) -> RiskMeasure:
    """A measure of the library's own that another one may be built on."""
    if type(base) not in BASES:
        names = ", ".join(kind.__name__ for kind in BASES)
        raise InvalidInputError(f"base must be one of {names}; got {base!r}")
    found: RiskMeasure = base
    return found


def _finite(value: Any, name: str) -> float:
    number = as_number(value, name, "a finite number")
    if not abs(number) <= LARGEST:
        raise InvalidInputError(f"{name} must lie within ±{LARGEST:g}; got {value!r}")
    return number
