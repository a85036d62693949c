"""From a belief to a decision: values in posterior draws, comparisons and certificates."""

from brmdp.decisions.certificate import (
    SampledCertificate,
    candidate_policies,
    certify_sampled,
    draws_needed,
    order_statistic,
)
from brmdp.decisions.comparison import (
    Comparison,
    Difference,
    Estimate,
    InformationValue,
    UnitLog,
    UnitResampling,
    compare,
    value_of_information,
)
from brmdp.decisions.draws import Sampler, ValueDraws, values_in_draws
from brmdp.decisions.policies import RandomPolicy
from brmdp.decisions.practice import Practice, practice

__all__ = [
    "Comparison",
    "Difference",
    "Estimate",
    "InformationValue",
    "Practice",
    "RandomPolicy",
    "SampledCertificate",
    "Sampler",
    "UnitLog",
    "UnitResampling",
    "ValueDraws",
    "candidate_policies",
    "certify_sampled",
    "compare",
    "draws_needed",
    "order_statistic",
    "practice",
    "value_of_information",
    "values_in_draws",
]
