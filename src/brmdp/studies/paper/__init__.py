"""The paper's finite-state experiments: RiverSwim, the risky FrozenLake, sensitivity to δ."""

from brmdp.studies.paper.analysis import analyse
from brmdp.studies.paper.experiment import EXPERIMENTS
from brmdp.studies.study import Study

STUDIES = tuple(
    Study(
        experiment,
        analyse,
        "brmdp.studies.paper.figures:draw",
        in_paper=experiment.name != "quantile-methods",
    )
    for experiment in EXPERIMENTS
)
