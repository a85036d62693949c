"""Experiments as data: cases, each run many times from common seeds.

A case is an agent in an environment, or a computation.
"""

from __future__ import annotations

import difflib
import json
import re
import reprlib
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self
from urllib.parse import quote

from brmdp._validation import as_discount, as_level, as_positive_int
from brmdp.errors import InvalidInputError

__all__ = [
    "METHODS",
    "Case",
    "Computation",
    "Experiment",
    "file_name",
    "require_known",
    "value_key",
]

LONGEST_NAME = 200
"""The most bytes that a name may take in a file name, which has room for 255."""

MAX_RUNS, MAX_STEPS, MAX_CASES, MAX_TOGETHER = 100_000, 10_000_000, 2_000, 1_000_000
"""Limits on runs per case, steps per run, cases, and runs in all; more can only be a slip."""

METHODS = ("exact", "saddlepoint", "monte-carlo", "monte-carlo-reused")
"""Ways to take the quantile; the sampled ones draw afresh for every plan, or reuse their draws."""


def file_name(name: str) -> str:
    """A name as part of a file name; different names stay different."""
    quoted = quote(name, safe="+=,@ ")
    return f"%2E{quoted[1:]}" if quoted.startswith(".") else quoted  # a leading dot hides a file


def require_known(name: Any, valid: Iterable[str], what: str, others: Iterable[str] = ()) -> None:
    """Refuse an unknown name, and say which are valid and which is nearest.

    ``others`` are valid, too, but too many to list.
    """
    names, unlisted = list(valid), list(others)
    if name in names or name in unlisted:
        return
    every = names + unlisted
    nearest = difflib.get_close_matches(str(name), every, n=1) or [
        other for other in every if str(name) in other
    ]
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ";"
    raise InvalidInputError(f"unknown {what} {name!r}{hint} valid: {', '.join(names) or 'none'}")


def value_key(value: Any) -> Hashable:
    """A key that equal values of parameters share: 5 and 5.0 are equal, 1 and True are not."""
    if isinstance(value, Mapping):
        return frozenset((key, value_key(one)) for key, one in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(value_key, value))
    return (isinstance(value, bool), value)


_MAPPINGS = ("environment_parameters", "agent_parameters", "prior")


@dataclass(frozen=True)
class Case:
    """One agent in one environment: a curve in a figure.

    Attributes
    ----------
    name : str
        Unique in the experiment, such as "aq-brmdp", "continuing-psrl" or "brmdp-0.1".
    environment : str
        One of :data:`brmdp.runs.catalogue.ENVIRONMENTS`, the id of a Gymnasium environment, or one
        of your own as ``module:attribute``.
    environment_parameters : mapping
        Passed to the environment, such as n or shortcut_risk.
    agent : str
        One of :data:`brmdp.runs.catalogue.AGENTS`, or one of your own as ``module:attribute``. The
        continuous lake has agents of its own, :data:`brmdp.runs.lake.AGENTS`.
    agent_parameters : mapping
        Passed to the agent, such as delta, floor, alpha, method (one of :data:`METHODS`) or
        restart.
    prior : mapping
        What the agent believes at first: ``concentration`` and ``known_successors`` as in
        :meth:`brmdp.World.prior`, or the ``name`` of a function of your own with its parameters.
    discount : float
    steps : int
        Length T of a run.
    reported_steps : int
        How many of these steps figures and claims use, at most ``steps``; by default all.
    robust_level, quantile_level : float or None
        Diagnostics, see :class:`brmdp.Diagnostics`.
    max_runs : int
        An upper limit on the runs of this case; 0 for as many as the experiment has.
    label : str
        What figures and tables call it; by default its name. It must differ from the labels and
        names of other cases in the same environment.

    Examples
    --------
    >>> from brmdp.runs import Case
    >>> case = Case(
    ...     "brmdp-0.1", "riverswim", "fixed-quantile", 0.9, 1000, {"n": 6}, {"alpha": 0.1}
    ... )
    >>> case.name, case.steps
    ('brmdp-0.1', 1000)
    """

    name: str
    environment: str
    agent: str
    discount: float
    steps: int
    environment_parameters: Mapping[str, Any] = field(default_factory=dict)
    agent_parameters: Mapping[str, Any] = field(default_factory=dict)
    reported_steps: int = 0
    robust_level: float | None = None
    quantile_level: float | None = None
    max_runs: int = 0
    prior: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""

    def __post_init__(self) -> None:
        _require_name(self.name)
        if not isinstance(self.label, str) or (self.label and not self.label.isprintable()):
            raise InvalidInputError(f"label must be printable text; got {self.label!r}")
        if self.label.startswith("_"):  # matplotlib leaves such labels out of legends
            raise InvalidInputError(f"label must not begin with '_'; got {self.label!r}")
        object.__setattr__(self, "discount", as_discount(self.discount))
        for what in ("environment", "agent"):
            _require_text(getattr(self, what), what)
        object.__setattr__(self, "steps", _at_most(self.steps, MAX_STEPS, "steps"))
        object.__setattr__(
            self,
            "reported_steps",
            _at_most(self.reported_steps or self.steps, self.steps, "reported_steps"),
        )
        _require_most_runs(self.max_runs)
        for level in ("robust_level", "quantile_level"):
            if getattr(self, level) is not None:
                object.__setattr__(self, level, as_level(getattr(self, level), level))
        for name in _MAPPINGS:
            _require_plain(getattr(self, name), name)

    def describe(self) -> dict[str, Any]:
        """Everything as plain data, for files."""
        return {**vars(self), **{name: dict(getattr(self, name)) for name in _MAPPINGS}}

    def environment_key(self) -> Hashable:
        """A key that all cases in the same environment share."""
        return value_key((self.environment, self.environment_parameters, self.discount))


@dataclass(frozen=True)
class Computation:
    """A case that is not an interaction: each run is a replication of a program.

    Attributes
    ----------
    name : str
        Unique in the experiment.
    program : str
        Where the :class:`brmdp.runs.Program` is, as ``module:attribute``.
    parameters : mapping
        Passed to the program.
    max_runs : int
        An upper limit on the runs of this case; 0 for as many as the experiment has.

    Examples
    --------
    >>> from brmdp.runs import Computation, execute
    >>> case = Computation(
    ...     "episodes",
    ...     "brmdp.studies.lemmas.experiment:EPISODE_COUNT",
    ...     {"steps": 100, "discount": 0.9, "repetitions": 5},
    ... )
    >>> execute(case, seed=1, run=0).columns.episodes.size
    5
    """

    name: str
    program: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    max_runs: int = 0

    def __post_init__(self) -> None:
        _require_name(self.name)
        _require_text(self.program, "program")
        _require_most_runs(self.max_runs)
        _require_plain(self.parameters, "parameters")

    def describe(self) -> dict[str, Any]:
        """Everything as plain data, for files."""
        return {**vars(self), "parameters": dict(self.parameters)}


def _shortened(case: Case | Computation, steps: int) -> Case | Computation:
    if isinstance(case, Case):
        return replace(case, steps=steps, reported_steps=min(case.reported_steps, steps))
    return (
        replace(case, parameters={**case.parameters, "steps": steps})
        if "steps" in case.parameters
        else case
    )


def _require_name(name: Any) -> None:
    if not isinstance(name, str) or not name or not name.isprintable():
        raise InvalidInputError(f"name of a case must be printable text; got {name!r}")
    _require_short(name, "a case")


def _require_short(name: str, owner: str) -> None:
    try:
        size = len(file_name(name))
    except UnicodeEncodeError:
        raise InvalidInputError(f"name of {owner} must be printable text; got {name!r}") from None
    if size > LONGEST_NAME:
        raise InvalidInputError(
            f"name of {owner} must take at most {LONGEST_NAME} bytes in the name of a file; got "
            f"{size} from {name[:40]!r}…"
        )


def _require_text(value: Any, what: str) -> None:
    if not isinstance(value, str) or not value:
        raise InvalidInputError(f"{what} must be text; got {value!r}")


def _require_most_runs(value: Any) -> None:
    if value != 0 or isinstance(value, bool):
        as_positive_int(value, "max_runs")


def _at_most(value: Any, most: int, name: str) -> int:
    number = as_positive_int(value, name)
    if number > most:
        raise InvalidInputError(f"{name} must be at most {most:,}; got {number:,}")
    return number


def _require_plain(parameters: Mapping[str, Any], name: str) -> None:
    """Refuse what a file could not hold."""
    if not isinstance(parameters, Mapping):
        raise InvalidInputError(f"{name} must map names to values; got {parameters!r:.60}")
    for key, value in dict(parameters).items():
        try:
            json.dumps({key: value}, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            shown = reprlib.repr(value)
            raise InvalidInputError(
                f"{key} must be a finite number, text, or a list of these; got {shown}"
            ) from None


def _require_different_labels(cases: Iterable[Case | Computation]) -> None:
    """Refuse a label that another case in the same environment has as its label or name."""
    owners: dict[Hashable, str] = {}
    for case in cases:
        if isinstance(case, Case):
            environment = case.environment_key()
            for word in {case.name, case.label} - {""}:
                other = owners.setdefault((environment, word), case.name)
                if other != case.name:
                    raise InvalidInputError(
                        "labels of cases in the same environment must differ from each other and "
                        f"from the names of other cases; got {word!r} for {other!r} and "
                        f"{case.name!r}"
                    )


@dataclass(frozen=True)
class Experiment:
    """Cases compared on common seeds.

    Attributes
    ----------
    name : str
        Also the name of its folder.
    title : str
    cases : tuple of Case or Computation
    runs : int
        Independent runs of each case, unless its ``max_runs`` says fewer. Run i of every case
        starts from the same seeds.
    seed : int
        The seed from which all random numbers derive.

    Examples
    --------
    >>> from brmdp.runs import Case, Experiment
    >>> cases = [
    ...     Case(f"delta-{d}", "riverswim", "aq-brmdp", 0.9, 1000, {"n": 6}, {"delta": d})
    ...     for d in (5, 10)
    ... ]
    >>> experiment = Experiment("caution", "More or less caution", tuple(cases), runs=20)
    >>> [case.name for case in experiment.cases]
    ['delta-5', 'delta-10']
    """

    name: str
    title: str
    cases: tuple[Case | Computation, ...]
    runs: int = 100
    seed: int = 2026

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not re.fullmatch(r"\w[\w.+ -]*", self.name):
            raise InvalidInputError(
                "name of an experiment must consist of letters, digits, '_', '-', '+', '.' or "
                f"spaces, and begin with a letter, a digit or '_'; got {self.name!r}"
            )
        _require_short(self.name, "an experiment")
        if not isinstance(self.title, str):
            raise InvalidInputError(f"title must be text; got {self.title!r}")
        if not self.title.isprintable():
            raise InvalidInputError(f"title must have no control characters; got {self.title!r}")
        object.__setattr__(self, "runs", _at_most(self.runs, MAX_RUNS, "runs"))
        if not isinstance(self.seed, int) or isinstance(self.seed, bool) or self.seed < 0:
            raise InvalidInputError(f"seed must be a non-negative integer; got {self.seed!r}")
        names = [case.name for case in self.cases]
        if not names or len(set(names)) < len(names):
            raise InvalidInputError(
                "there must be at least one case, and names must differ; got cases "
                f"{reprlib.repr(names)}"
            )
        if len(names) > MAX_CASES:
            raise InvalidInputError(
                f"there must be at most {MAX_CASES:,} cases; got {len(names):,}"
            )
        _require_different_labels(self.cases)
        together = sum(map(self.runs_of, self.cases))
        if together > MAX_TOGETHER:
            raise InvalidInputError(
                f"the total number of runs must be at most {MAX_TOGETHER:,}; got {together:,}"
            )

    def runs_of(self, case: Case | Computation) -> int:
        """How many runs of a case are wanted."""
        return min(self.runs, case.max_runs or self.runs)

    def case(self, name: str) -> Case | Computation:
        """The case of that name."""
        require_known(name, (case.name for case in self.cases), "case")
        return next(case for case in self.cases if case.name == name)

    def adjusted(
        self, *, runs: int | None = None, steps: int | None = None, method: str | None = None
    ) -> Self:
        """The same experiment with other runs or steps, or another way to take the quantile.

        The change applies to all cases, and to computations that take ``steps``.

        Raises
        ------
        InvalidInputError
            If a value is not allowed, or ``method`` is given for an experiment that compares
            methods.
        """
        cases = self.cases
        if method is not None:
            require_known(method, METHODS, "method")
            methods = {
                case.agent_parameters.get("method", "") for case in cases if isinstance(case, Case)
            } - {""}
            if len(methods) != 1:
                reason = (
                    "which compares methods" if methods else "in which no agent takes a quantile"
                )
                raise InvalidInputError(f"method cannot be chosen for {self.name}, {reason}")
            cases = tuple(
                replace(case, agent_parameters={**case.agent_parameters, "method": method})
                if isinstance(case, Case) and "method" in case.agent_parameters
                else case
                for case in cases
            )
        if steps is not None:
            steps = as_positive_int(steps, "steps")
            if not any(isinstance(case, Case) for case in cases):
                raise InvalidInputError(f"steps cannot be chosen for {self.name}, which has none")
            cases = tuple(_shortened(case, steps) for case in cases)
        return replace(self, cases=cases, runs=self.runs if runs is None else runs)

    def describe(self) -> dict[str, Any]:
        """Everything as plain data, for files."""
        return {**vars(self), "cases": [case.describe() for case in self.cases]}

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> Self:
        """The experiment that :meth:`describe` described."""
        cases = tuple(
            Computation(**case) if "program" in case else Case(**case)
            for case in description["cases"]
        )
        return cls(**{**description, "cases": cases})
