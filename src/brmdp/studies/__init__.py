"""Studies: the paper's experiments, and experiments that test its theory.

Each folder holds one study or a few related ones: what is run, how it is judged and how it is
drawn. A study is loaded only when it is needed.
"""

from __future__ import annotations

import importlib
import json
from functools import lru_cache

from brmdp.errors import InvalidInputError
from brmdp.runs import Case, Computation, Experiment
from brmdp.runs.references import is_reference, load
from brmdp.runs.spec import require_known
from brmdp.studies.study import Study

__all__ = ["FOLDERS", "Study", "all_studies", "find_study", "study_of"]

FOLDERS = (
    "paper",
    "coverage",
    "examples",
    "normality",
    "optimism",
    "lemmas",
    "bayesian_regret",
    "continuous_lake",
    "certificates",
    "unknown_rewards",
    "from_logs",
    "exploration",
    "bbrl",
    "batch",
)
"""Folders that hold studies; to add one, create a folder and name it here."""


@lru_cache(maxsize=1)
def all_studies() -> dict[str, Study]:
    """Every study of the library, by name."""
    modules = (importlib.import_module(f"{__name__}.{folder}") for folder in FOLDERS)
    return {study.name: study for module in modules for study in module.STUDIES}


def find_study(name: str) -> Study:
    """The study of that name; name a study of your own as ``module:attribute``.

    Raises
    ------
    InvalidInputError
        If there is no such study.

    Examples
    --------
    >>> from brmdp.studies import find_study
    >>> find_study("riverswim-6").experiment.runs
    100
    """
    if is_reference(name):
        found = load(name, "study")
        if not isinstance(found, Study):
            raise InvalidInputError(f"{name!r} must be a Study; got {type(found).__name__}")
        if found.name in all_studies():
            raise InvalidInputError(
                f"{name!r} must not have the name of a study of the library; got {found.name!r}"
            )
        return found
    studies = all_studies()
    require_known(name, [*studies, "or module:attribute"], "study")
    return studies[name]


def study_of(experiment: Experiment) -> Study:
    """The study to which an experiment read from a folder belongs, with that experiment.

    An experiment that is not the library's is treated as a comparison of agents without claims.

    Examples
    --------
    >>> from brmdp.studies import find_study, study_of
    >>> study_of(find_study("riverswim-6").experiment).in_paper
    True
    """
    known = all_studies().get(experiment.name)
    if known is not None:
        cases = {case.name: _kind(case) for case in known.experiment.cases}
        if all(cases.get(case.name) == _kind(case) for case in experiment.cases):
            return known.of(experiment)
    return Study(experiment)


def _kind(case: Case | Computation) -> object:
    """The description of a case, without what :meth:`Experiment.adjusted` may change."""
    free = ("steps", "reported_steps", "max_runs", "label")
    described = {key: value for key, value in case.describe().items() if key not in free}
    for key in ("parameters", "agent_parameters"):
        if key in described:
            given = described[key].items()
            described[key] = {name: one for name, one in given if name not in ("steps", "method")}
    return json.dumps(described, sort_keys=True)
