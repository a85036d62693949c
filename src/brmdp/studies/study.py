"""A study: an experiment, the analysis of its runs, and its figures.

A study has a folder of its own::

    experiment.py   what is run, as data, with the programs of its computations, if any
    analysis.py     turns records into numbers, a table and judged claims; draws nothing
    figures.py      draws the figures; the only file that may load matplotlib
    __init__.py     defines STUDIES, the studies in this folder

Workers load a folder without its figures. Claims are judged without matplotlib.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from brmdp._extras import optional
from brmdp.errors import InvalidInputError
from brmdp.report.findings import Findings
from brmdp.report.summary import compare_agents
from brmdp.runs import CaseRecords, Experiment, Replications
from brmdp.runs.origin import ANALYSIS
from brmdp.runs.references import is_reference, load, source_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from brmdp.report.writing import Report

__all__ = ["Records", "Study"]

Records: TypeAlias = Mapping[str, Any]
"""Records by case name: CaseRecords of agents, Replications of computations."""


@dataclass(frozen=True)
class Study:
    """An experiment, the analysis of its runs, and its figures.

    Attributes
    ----------
    experiment : Experiment
    analyse : function of (experiment, records)
        Returns the :class:`brmdp.report.Findings`. By default agents are compared by their regrets.
    figures : str
        The function that draws, as ``module:attribute``. It takes the experiment and the records,
        and returns figures by file name. It is loaded only when something is drawn.
    in_paper : bool
        Whether ``brmdp reproduce all`` includes the study.

    Examples
    --------
    >>> from brmdp.runs import Case, Experiment
    >>> from brmdp.studies import Study
    >>> case = Case("mean", "riverswim", "posterior-mean", 0.9, 200, {"n": 6})
    >>> Study(Experiment("try", "A try", (case,), runs=2)).name
    'try'
    """

    experiment: Experiment
    analyse: Callable[[Experiment, Records], Findings] = compare_agents
    figures: str = "brmdp.report.layouts:draw_agents"
    in_paper: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.experiment, Experiment):
            raise InvalidInputError(
                f"experiment must be an Experiment; got {type(self.experiment).__name__}"
            )
        if not callable(self.analyse):
            raise InvalidInputError(f"analyse must be a function; got {self.analyse!r}")
        if not is_reference(self.figures):
            raise InvalidInputError(
                f"figures must be written as module:attribute; got {self.figures!r}"
            )

    @property
    def name(self) -> str:
        """Name of the experiment."""
        return self.experiment.name

    def adjusted(
        self, *, runs: int | None = None, steps: int | None = None, method: str | None = None
    ) -> Self:
        """The study with its experiment adjusted; see :meth:`brmdp.runs.Experiment.adjusted`."""
        return self.of(self.experiment.adjusted(runs=runs, steps=steps, method=method))

    def of(self, experiment: Experiment) -> Self:
        """The study with another experiment, such as one that was read from a folder."""
        return replace(self, experiment=experiment)

    def findings(self, records: Records) -> Findings:
        """The numbers and verdicts that follow from the runs.

        Parameters
        ----------
        records : mapping
            Records by case name. Cases may be missing, and may have different numbers of runs:
            paired comparisons use the runs that both cases have.

        Raises
        ------
        InvalidInputError
            If there are no runs.
        """
        return self.analyse(self.experiment, self._present(records))

    def draw(self, records: Records) -> Mapping[str, Figure]:
        """The figures, by file name without extension."""
        drawn: Mapping[str, Figure] = load(self.figures, "figures")(
            self.experiment, self._present(records)
        )
        return drawn

    def report(self, records: Records, directory: str | os.PathLike[str]) -> Report:
        """Write numbers, claims and figures into a folder; see :mod:`brmdp.report.writing`."""
        present = self._present(records)
        writing = optional("brmdp.report.writing")
        written: Report = writing.write_report(
            self.experiment,
            present,
            self.findings(present),
            self.draw(present),
            directory,
            analysis=self.analysis_digest(),
        )
        return written

    def analysis_digest(self) -> str:
        """Digest of the code behind :meth:`findings`: the library's, and the study's own files."""
        own = source_of(self.analyse)
        if not own or str(getattr(self.analyse, "__module__", "")).startswith("brmdp."):
            return ANALYSIS
        return hashlib.sha256(f"{ANALYSIS}|{own}".encode()).hexdigest()

    def _present(self, records: Records) -> dict[str, CaseRecords | Replications[Any]]:
        """The records of cases that have runs, in the order of the experiment."""
        names = [case.name for case in self.experiment.cases]
        present = {
            name: records[name] for name in names if name in records and records[name].run.size
        }
        if not present:
            raise InvalidInputError(
                f"records must hold at least one run of a case of {self.name}; got none"
            )
        return present
