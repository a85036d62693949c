"""The paper's theorems, propositions, lemmas and examples as computations."""

from typing import Any

from brmdp.theory.chains import visit_frequencies
from brmdp.theory.concentration import (
    DeviationBounds,
    dirichlet_tail_bound,
    quantile_deviation_bounds,
)
from brmdp.theory.coverage import CoverageReport, replicate_coverage
from brmdp.theory.decomposition import (
    ValueDecomposition,
    count_episodes,
    expected_episodes,
    robust_value_decomposition,
    sample_decomposition,
    value_decomposition,
)
from brmdp.theory.examples import (
    Example,
    ExampleRun,
    RobustnessCheck,
    TrapCheck,
    adaptive_escape_episode,
    check_robustness,
    check_trap,
    follow_example,
    probing_example,
    robustness_example,
)
from brmdp.theory.exposure import Exposure, downside_exposure
from brmdp.theory.normality import (
    ErgodicProblem,
    NormalFit,
    NormalityLimit,
    asymptotic_normality,
    normal_fit,
    one_step_adjustment,
    random_ergodic_mdp,
    replicate_normality,
)
from brmdp.theory.optimism import (
    OptimismMeter,
    OptimismReport,
    check_optimism,
    first_informative_episode,
    optimism_probability,
    replicate_optimism,
)
from brmdp.theory.regret_bounds import (
    RegretBound,
    balanced_delta,
    first_informative_horizon,
    regret_bound,
    robust_regret_bound,
)
from brmdp.theory.sample_size import (
    CautionCost,
    SampleSizePlan,
    caution_cost,
    exact_caution_cost,
    observations_needed,
)
from brmdp.theory.worlds import draw_mdp

__all__ = [
    "CautionCost",
    "CoverageReport",
    "DeviationBounds",
    "ErgodicProblem",
    "Example",
    "ExampleRun",
    "Exposure",
    "NormalFit",
    "NormalityLimit",
    "OptimismMeter",
    "OptimismReport",
    "RegretBound",
    "RobustnessCheck",
    "SampleSizePlan",
    "TrapCheck",
    "ValueDecomposition",
    "adaptive_escape_episode",
    "asymptotic_normality",
    "balanced_delta",
    "caution_cost",
    "check_optimism",
    "check_robustness",
    "check_trap",
    "count_episodes",
    "dirichlet_tail_bound",
    "downside_exposure",
    "draw_mdp",
    "exact_caution_cost",
    "expected_episodes",
    "first_informative_episode",
    "first_informative_horizon",
    "follow_example",
    "normal_fit",
    "observations_needed",
    "one_step_adjustment",
    "optimism_probability",
    "probing_example",
    "quantile_deviation_bounds",
    "random_ergodic_mdp",
    "regret_bound",
    "replicate_coverage",
    "replicate_normality",
    "replicate_optimism",
    "robust_regret_bound",
    "robust_value_decomposition",
    "robustness_example",
    "sample_decomposition",
    "value_decomposition",
    "visit_frequencies",
]


def __getattr__(name: str) -> Any:
    from brmdp._renamed import former_name

    return former_name(__name__, name)
