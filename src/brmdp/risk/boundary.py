"""Checks of custom risk measures.

Compiled loops read the rows of a measure unchecked, and every error bound rests on two properties
of its values: monotonicity and q(w + c) = q(w) + c. The library's measures have them by
construction. Any other measure is wrapped in :class:`CheckedRisk`, which checks every array it
returns and, before a plan is certified, checks the rows of all pairs and both properties at the
plan's own targets.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from brmdp._validation import FloatArray, IntArray, first_bad
from brmdp.beliefs.base import Belief
from brmdp.errors import InvalidInputError, RiskMeasureError
from brmdp.pattern import TransitionPattern
from brmdp.risk.base import APPROXIMATE, BASES, RiskMeasure, RiskOperator

__all__ = ["ROW_TOLERANCE", "CheckedRisk", "bind_risk", "require_risk"]

ROW_TOLERANCE = 1e-6
"""How negative the rows of a custom measure may be, and how far their sums may be from one.

They only steer the solver, whose error bound rests on the values. Rows that also serve as values
(``fixed_entries``) must be accurate to 1e-8.
"""

PROBE_TOLERANCE = 1e-9
"""Slack allowed when both properties are probed, relative to max|w|, besides reported errors."""

_METHODS = ("evaluate", "rows", "fixed_entries", "approximation")
_MAX_DEPTH = 8
_FEW = 16
"""Up to this many successors are probed one by one.

A measure that is linear in the targets then cannot pass with a negative weight.
"""


def require_risk(risk: Any) -> None:
    """Raise an error unless this is a risk measure."""
    if isinstance(risk, type) or not hasattr(risk, "bind"):
        raise InvalidInputError(
            "risk must be brmdp.Quantile(…), CVaR(…), Mean(), PosteriorSample(…) or another object "
            f"with a method bind; got {risk!r}"
        )


def bind_risk(risk: RiskMeasure, belief: Belief) -> RiskOperator:
    """Apply a risk measure to a belief.

    The result is checked from then on unless it, the measure and the measure's method are all of
    the library's own classes; subclasses defined elsewhere are not.
    """
    require_risk(risk)
    bound = risk.bind(belief)
    method = getattr(risk, "method", "")
    for part in (risk, bound) if isinstance(method, str) else (risk, method, bound):
        kind = type(part)
        if not kind.__module__.startswith("brmdp."):
            return CheckedRisk(bound, belief.pattern, kind.__name__)
    return bound


class CheckedRisk:
    """A bound custom measure whose every returned array is checked.

    Parameters
    ----------
    inner : RiskOperator
        Result of the measure's ``bind``.
    pattern : TransitionPattern
        Possible transitions of the belief.
    name : str
        Name of the measure in error messages.
    depth : int
        Number of ``approximation()`` calls that led here.
    """

    def __init__(self, inner: Any, pattern: TransitionPattern, name: str, depth: int = 0) -> None:
        missing = [
            f"{method}()" for method in _METHODS if not callable(getattr(inner, method, None))
        ]
        missing += [] if hasattr(inner, "basis") else ["basis"]
        if missing or isinstance(inner, type):
            raise RiskMeasureError(
                f"{name}.bind must return an object with evaluate(), rows(), fixed_entries(), "
                f"approximation() and basis (brmdp.risk.RiskOperator); the {type(inner).__name__} "
                f"lacks {', '.join(missing)}"
            )
        if not isinstance(inner.basis, str) or inner.basis not in BASES:
            raise RiskMeasureError(f"basis of {name} must be one of {BASES}; got {inner.basis!r}")
        own = getattr(inner, "pattern", pattern)
        if isinstance(own, TransitionPattern) and not own.same_as(pattern):
            raise RiskMeasureError(
                f"{name}.bind must return a measure on the transitions of the belief; the one "
                "returned has different transitions"
            )
        if depth > _MAX_DEPTH:
            raise RiskMeasureError(
                f"approximation() of {name} must return None in the end; it did not in {depth} "
                "steps"
            )
        self.basis: str = inner.basis
        self._inner: RiskOperator = inner
        self._pattern = pattern
        self._name = name
        self._depth = depth

    def evaluate(self, targets: FloatArray, pairs: IntArray, out: FloatArray) -> float:
        """The measure's values, finite and for ``pairs`` only, and a bound on their error."""
        # copies, so the measure cannot change the solver's arrays
        own = np.full(out.size, np.nan)
        error = self._inner.evaluate(targets.copy(), pairs.copy(), own)
        values = own[pairs]
        if not np.isfinite(values).all():
            bad = int(pairs[np.argmax(~np.isfinite(values))])
            raise RiskMeasureError(
                f"{self._name}.evaluate must write a finite value for every requested pair; "
                f"got {own[bad]} at {self._where(bad)}"
            )
        own[pairs] = np.nan
        if not np.isnan(own).all():
            bad = int(np.argmax(~np.isnan(own)))
            raise RiskMeasureError(
                f"{self._name}.evaluate must write only the requested pairs; it wrote "
                f"{self._where(bad)}"
            )
        if isinstance(error, bool) or not isinstance(error, int | float | np.integer | np.floating):
            raise RiskMeasureError(
                f"{self._name}.evaluate must return its error bound, a number; got {error!r}"
            )
        if not 0.0 <= float(error) < math.inf:
            raise RiskMeasureError(
                f"{self._name}.evaluate must return a finite, non-negative error bound; got "
                f"{float(error)!r}"
            )
        out[pairs] = values
        return float(error)

    def rows(
        self, targets: FloatArray, values: FloatArray, pairs: IntArray, *, precise: bool = True
    ) -> FloatArray:
        """The measure's rows: finite and of the right length.

        Unless the measure is approximate, they must be probability vectors.
        """
        found = self._inner.rows(targets.copy(), values.copy(), pairs.copy(), precise=precise)
        return self._checked_rows(found, pairs, "rows", ROW_TOLERANCE)

    def fixed_entries(self) -> FloatArray | None:
        """The measure's fixed rows, if it has any; they must be probability vectors."""
        found = self._inner.fixed_entries()
        return (
            None
            if found is None
            else self._checked_rows(found, self._pattern.pairs, "fixed_entries", 1e-8)
        )

    def approximation(self) -> RiskOperator | None:
        """The measure's own approximation, checked as well."""
        found = self._inner.approximation()
        return (
            None
            if found is None
            else CheckedRisk(found, self._pattern, self._name, self._depth + 1)
        )

    def require_contraction(self, targets: FloatArray) -> None:
        """Test at ``targets`` the assumptions behind the error bound; raise an error if one fails.

        The rows of all pairs must be probability vectors. Raising all targets by a constant must
        raise all values by it. Raising some targets by a constant must not lower any value, nor
        raise it by more than the constant. The targets raised are the lowest of every pair, the
        highest, and each successor in turn (with more than 16 successors: halves of them, chosen to
        separate any two); each is raised by a thousandth of the range of all targets, and by the
        whole range. A measure that passes may still break the assumptions elsewhere. One that fails
        is not a contraction, and its plan has no error bound.
        """
        if self.basis == APPROXIMATE:
            return
        pattern = self._pattern
        pairs = pattern.pairs
        spread = float(targets.max() - targets.min()) or 1.0
        begins, widths = pattern.indptr[pairs], pattern.row_widths
        here, error = self._values(targets)
        self.rows(targets, here, pairs)
        everywhere = np.ones(targets.size, dtype=bool)
        position = np.arange(targets.size) - np.repeat(begins, widths)
        some = [
            targets == np.repeat(np.minimum.reduceat(targets, begins), widths),
            targets == np.repeat(np.maximum.reduceat(targets, begins), widths),
        ]
        if pattern.widest <= _FEW:
            some += [position == successor for successor in range(pattern.widest)]
        else:
            bits = range((pattern.widest - 1).bit_length())
            some += [(position >> bit & 1) == side for bit in bits for side in (0, 1)]
        for raised, step in (
            (everywhere, spread),
            *((half, size * spread) for half in some for size in (1e-3, 1.0)),
        ):
            changed = targets + step * raised
            there, more = self._values(changed)
            allowed = error + more + PROBE_TOLERANCE * float(np.abs(changed).max())
            change = there[pairs] - here[pairs]
            least = step if raised is everywhere else 0.0
            wrong = (change < least - allowed) | (change > step + allowed)
            if wrong.any():
                k = int(np.argmax(wrong))
                what = (
                    f"by {step:.3g} when all targets do"
                    if least
                    else f"by 0 to {step:.3g} when some targets grow by that"
                )
                raise RiskMeasureError(
                    f"the values of {self._name} must grow {what}, or no error bound holds; "
                    f"got a change of {change[k]:.6g} at {self._where(int(pairs[k]))}"
                )

    def _values(self, targets: FloatArray) -> tuple[FloatArray, float]:
        out = np.full(self._pattern.n_pairs, -np.inf)
        return out, self.evaluate(targets, self._pattern.pairs, out)

    def _checked_rows(self, found: Any, pairs: IntArray, name: str, tolerance: float) -> FloatArray:
        widths = self._pattern.widths[pairs]
        source = f"{self._name}.{name}"
        if not isinstance(found, np.ndarray) or found.dtype.kind not in "biuf":
            raise RiskMeasureError(
                f"{source} must be an array of real numbers; got {type(found).__name__}"
            )
        if found.shape != (int(widths.sum()),):
            raise RiskMeasureError(
                f"{source} must hold one number per possible transition of the requested pairs, "
                f"({int(widths.sum())},); got shape {found.shape}"
            )
        rows = np.ascontiguousarray(found, dtype=np.float64)
        if not np.isfinite(rows).all():
            raise RiskMeasureError(f"{source} must be finite; got {rows[~np.isfinite(rows)][0]}")
        if self.basis == APPROXIMATE and name == "rows":
            return rows
        sums = np.add.reduceat(rows, np.concatenate(([0], np.cumsum(widths)[:-1])))
        for bad, value, what in (
            (rows < -tolerance, rows, "must not be negative"),
            (np.abs(sums - 1.0) > tolerance, sums, "must sum to one in every row"),
        ):
            if bad.any():
                k = first_bad(bad)[0]
                row = (
                    k if value is sums else int(np.searchsorted(np.cumsum(widths), k, side="right"))
                )
                raise RiskMeasureError(
                    f"{source} {what}; got {value[k]:.6g} at {self._where(int(pairs[row]))}"
                )
        return rows

    def _where(self, pair: int) -> str:
        s, a = divmod(pair, self._pattern.n_actions)
        return f"(s={s}, a={a})"
