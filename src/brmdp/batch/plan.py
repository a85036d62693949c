"""The result of a batch method."""

from __future__ import annotations

from dataclasses import dataclass

from brmdp._validation import FloatArray, PolicyArray
from brmdp.decisions.certificate import prior_words
from brmdp.planning.prior import PriorReliance
from brmdp.planning.text import at_least, call_like, wrapped

__all__ = ["BASELINE", "FREQUENTIST", "NOTHING", "POSTERIOR", "BatchPlan"]

POSTERIOR, FREQUENTIST, BASELINE, NOTHING = "posterior", "frequentist", "baseline", "nothing"
"""What a result promises.

"posterior": the bound holds with posterior probability ``confidence``, given this log.
"frequentist": for any fixed kernel, the bound holds after a share ``confidence`` of all logs.
"baseline": for any fixed kernel, after such a share of logs, the policy's value at the start is at
least that of the baseline less ``margin``. "nothing": there is no promise.
"""


@dataclass(frozen=True, eq=False, repr=False)
class BatchPlan:
    """A policy found from a log, and what is promised of its true value.

    Attributes
    ----------
    method : str
        Name of the method.
    policy : (S,) integers or (S, A) probabilities
        What to do.
    bound : float or None
        A lower bound on the true value from the start of the batch, if there is one.
    bounds : (S,) array or None
        Lower bounds that hold in all states at once, if the method has them.
    margin : float or None
        How far the policy may lie below the baseline at most.
    promise : str
        "posterior", "frequentist", "baseline" or "nothing"; see :data:`brmdp.batch.NOTHING`.
    confidence : float or None
        With which probability the promise is kept.
    assumes : str
        What the promise rests on, or why there is none.
    seconds : float
        Processor time.
    prior : PriorReliance or None
        How far the policy rests on the prior; None for methods without one, and for beliefs that do
        not separate prior and data.

    Examples
    --------
    >>> import brmdp
    >>> from brmdp import batch
    >>> belief = brmdp.DirichletBelief.uniform(2, 1)
    >>> belief.observe([0] * 100 + [1] * 100, 0, [0] * 90 + [1] * 10 + [0] * 20 + [1] * 80)
    >>> print(batch.value_at_risk(batch.Batch(belief, [[1.0], [0.0]], 0.5, start=0)))
    value-at-risk, α/S: with posterior probability at least 0.9, the true value from the start is at
    least 1.751.
    It assumes that the belief is right.
    """

    method: str
    policy: PolicyArray
    bound: float | None
    bounds: FloatArray | None
    promise: str
    confidence: float | None
    assumes: str
    seconds: float
    margin: float | None = None
    prior: PriorReliance | None = None

    def __str__(self) -> str:
        return "\n".join(map(wrapped, self._sentences()))

    def _sentences(self) -> list[str]:
        resting = prior_words(self.prior, "The result")
        if self.promise == NOTHING or self.confidence is None:
            return [f"{self.method}: a policy without a bound.", self.assumes, *resting]
        sure = {
            POSTERIOR: f"with posterior probability at least {self.confidence:.10g}",
            FREQUENTIST: f"after a share of at least {self.confidence:.10g} of all logs",
            BASELINE: f"after a share of at least {self.confidence:.10g} of all logs",
        }[self.promise]
        if self.bound is None:
            what = (
                f"the true value from the start is at most {self.margin:.4g} below the baseline's"
            )
        else:
            what = f"the true value from the start is at least {at_least(self.bound)}"
        return [f"{self.method}: {sure}, {what}.", self.assumes, *resting]

    def __repr__(self) -> str:
        parts = [repr(self.method), f"promise={self.promise!r}"]
        if self.bound is not None:
            parts.append(f"bound={self.bound:.4g}")
        if self.margin is not None:
            parts.append(f"margin={self.margin:.4g}")
        if self.confidence is not None:
            parts.append(f"confidence={self.confidence:.10g}")
        if self.prior is not None and self.prior.outweighs:
            parts.append("rests on the prior")
        return call_like("BatchPlan", parts)
