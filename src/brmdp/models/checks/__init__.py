"""Checks of a model against its log: by held-out prediction, and by consequence.

Every check has a verdict (see :mod:`brmdp.models.checks.verdicts`), the figure behind it, what it
means for the decision, and what to do about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from brmdp._validation import IntArray
from brmdp.models.checks.actions import check_actions
from brmdp.models.checks.bench import Bench
from brmdp.models.checks.coverage import check_coverage
from brmdp.models.checks.drift import check_drift
from brmdp.models.checks.groups import check_groups
from brmdp.models.checks.memory import check_memory
from brmdp.models.checks.prediction import check_prediction
from brmdp.models.checks.prior import check_prior
from brmdp.models.checks.reading import check_reading
from brmdp.models.checks.stock import check_stock
from brmdp.models.checks.units import check_units
from brmdp.models.results import Check
from brmdp.models.stock import StockModel

if TYPE_CHECKING:
    from brmdp.models.model import Model

__all__ = ["check_model"]

# the check of the prior comes before those that need a shape of the rows
CHECKS = (
    check_reading,
    check_coverage,
    check_prior,
    check_groups,
    check_units,
    check_drift,
    check_memory,
    check_actions,
    check_prediction,
)


def check_model(
    model: Model, policies: Mapping[str | None, IntArray] | None = None
) -> tuple[Check, ...]:
    """Check a model against its log.

    Parameters
    ----------
    model : Model
    policies : mapping from group to (S,) actions, optional
        The policies that are judged, such as those recommended; without groups, that of None. By
        default, the best ones at the mean of the belief.

    Returns
    -------
    tuple of Check
        "log", "coverage", "prior", "groups", "units", "drift", "memory", "actions" and
        "prediction", as far as the log allows them: without groups there is nothing to say about
        groups. For a stock, see :func:`brmdp.models.checks.stock.check_stock`.
    """
    if isinstance(model, StockModel):
        return check_stock(model, policies)
    bench = Bench(model, policies)
    return tuple(found for check in CHECKS if (found := check(bench)) is not None)
