"""From a log to a decision: priors that are learned from it."""

from brmdp.decisions.gibbs import Mixing
from brmdp.decisions.held_out import Candidate, Comparison
from brmdp.decisions.hierarchical import HierarchicalBelief
from brmdp.decisions.learned_prior import LearnedPrior, Strength, learn_prior
from brmdp.decisions.transitions import Transitions

__all__ = [
    "Candidate",
    "Comparison",
    "HierarchicalBelief",
    "LearnedPrior",
    "Mixing",
    "Strength",
    "Transitions",
    "learn_prior",
]
