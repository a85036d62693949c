"""Batch methods: a log and a posterior in, a policy and (where there is one) a bound out.

Every method takes a :class:`Batch` and returns a :class:`BatchPlan`, which says what its bound
promises and what it assumes. Sets of kernels are risk measures like any other
(:class:`brmdp.risk.WorstCase`), so all methods plan with the one solver.
"""

from brmdp.batch.baseline import soft_spibb, spibb
from brmdp.batch.credible import credible_sets
from brmdp.batch.frequentist import hoeffding_sets
from brmdp.batch.plan import BASELINE, FREQUENTIST, NOTHING, POSTERIOR, BatchPlan
from brmdp.batch.problem import Batch
from brmdp.batch.quantiles import mean, nested_quantile, sampled_certificate, value_at_risk
from brmdp.batch.sensible import rsvf
from brmdp.batch.soft_robust import soft_robust

__all__ = [
    "BASELINE",
    "FREQUENTIST",
    "NOTHING",
    "POSTERIOR",
    "Batch",
    "BatchPlan",
    "credible_sets",
    "hoeffding_sets",
    "mean",
    "nested_quantile",
    "rsvf",
    "sampled_certificate",
    "soft_robust",
    "soft_spibb",
    "spibb",
    "value_at_risk",
]
