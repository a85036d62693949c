"""From a log to a decision: learned priors, values in draws, comparisons, certificates."""

from brmdp.decisions.certificate import (
    SampledCertificate,
    candidate_policies,
    certify,
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
from brmdp.decisions.exit_times import ExitMoments, exit_moments
from brmdp.decisions.gibbs import Mixing
from brmdp.decisions.held_out import Candidate, Evidence
from brmdp.decisions.hierarchical import HierarchicalBelief
from brmdp.decisions.learned_prior import LearnedPrior, Strength, learn_prior
from brmdp.decisions.policies import RandomPolicy
from brmdp.decisions.practice import Practice, practice
from brmdp.decisions.transitions import Transitions
from brmdp.decisions.uncertain_rewards import UncertainRewards

__all__ = [
    "Candidate",
    "Comparison",
    "Difference",
    "Estimate",
    "Evidence",
    "ExitMoments",
    "HierarchicalBelief",
    "InformationValue",
    "LearnedPrior",
    "Mixing",
    "Practice",
    "RandomPolicy",
    "SampledCertificate",
    "Sampler",
    "Strength",
    "Transitions",
    "UncertainRewards",
    "UnitLog",
    "UnitResampling",
    "ValueDraws",
    "candidate_policies",
    "certify",
    "compare",
    "draws_needed",
    "exit_moments",
    "learn_prior",
    "order_statistic",
    "practice",
    "value_of_information",
    "values_in_draws",
]
