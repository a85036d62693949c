"""Experiments as data: cases (an agent in an environment), each run many times from common seeds."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from brmdp._validation import as_discount, as_level, as_positive_int
from brmdp.errors import InvalidInputError

__all__ = ["METHODS", "Case", "Experiment", "require_known"]

METHODS = ("exact", "saddlepoint", "monte-carlo", "monte-carlo-reused")
"""Ways to take the quantile; the sampled ones with the paper's budgets, drawn afresh for every plan or kept."""


def require_known(name: Any, valid: Iterable[str], what: str, others: Iterable[str] = ()) -> None:
    """Refuse a name that is not among the valid ones, with these and the nearest; ``others`` are too many to list."""
    names, unlisted = list(valid), list(others)
    if name in names or name in unlisted:
        return
    every = names + unlisted
    nearest = difflib.get_close_matches(str(name), every, n=1) or [other for other in every if str(name) in other]
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ";"
    raise InvalidInputError(f"unknown {what} {name!r}{hint} valid: {', '.join(names) or 'none'}")


@dataclass(frozen=True)
class Case:
    """One agent in one environment: a curve of a figure.

    Attributes
    ----------
    name : str
        Unique in the experiment, such as "aq-brmdp", "continuing-psrl" or "brmdp-0.1".
    environment : str
        "riverswim", "frozenlake", "inventory", or the id of a Gymnasium environment.
    environment_parameters : mapping
        Passed to it, such as n or shortcut_risk.
    agent : str
        "aq-brmdp", "brmdp" or "continuing-psrl".
    agent_parameters : mapping
        delta, floor, alpha; method (one of :data:`METHODS`) and coefficient; restart.
    discount : float
    steps : int
        T.
    shown_steps : int
        How many of them the figures show; by default all.
    robust_level, quantile_level : float or None
        Diagnostics, see :class:`brmdp.Diagnostics`.
    """

    name: str
    environment: str
    agent: str
    discount: float
    steps: int
    environment_parameters: Mapping[str, Any] = field(default_factory=dict)
    agent_parameters: Mapping[str, Any] = field(default_factory=dict)
    shown_steps: int = 0
    robust_level: float | None = None
    quantile_level: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or not self.name.isprintable():
            raise InvalidInputError(f"name of a case must be printable text; got {self.name!r}")
        object.__setattr__(self, "discount", as_discount(self.discount))
        object.__setattr__(self, "steps", as_positive_int(self.steps, "steps"))
        object.__setattr__(self, "shown_steps", self.shown_steps or self.steps)
        for level in ("robust_level", "quantile_level"):
            if getattr(self, level) is not None:
                object.__setattr__(self, level, as_level(getattr(self, level), level))
        for name in ("environment_parameters", "agent_parameters"):
            for key, value in dict(getattr(self, name)).items():
                try:
                    json.dumps({key: value}, allow_nan=False)
                except (TypeError, ValueError):
                    raise InvalidInputError(
                        f"{key} must be a finite number, text, or a list of these; got {value!r}"
                    ) from None

    def describe(self) -> dict[str, Any]:
        """Everything as plain data, for files."""
        parameters = {
            "environment_parameters": dict(self.environment_parameters),
            "agent_parameters": dict(self.agent_parameters),
        }
        return {**vars(self), **parameters}


@dataclass(frozen=True)
class Experiment:
    """Cases compared on common seeds.

    Attributes
    ----------
    name : str
        Also of its folder.
    title : str
    cases : tuple of Case
    runs : int
        Independent runs of each case; run i of all cases shares its seeds.
    seed : int
        Of everything random.
    """

    name: str
    title: str
    cases: tuple[Case, ...]
    runs: int = 100
    seed: int = 2026

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not re.fullmatch(r"\w[\w.+ -]*", self.name):
            raise InvalidInputError(
                f"name of an experiment must be letters, digits, '_', '-', '+', '.' or spaces, and not begin with a sign; "
                f"got {self.name!r}"
            )
        object.__setattr__(self, "runs", as_positive_int(self.runs, "runs"))
        if not isinstance(self.seed, int) or isinstance(self.seed, bool) or self.seed < 0:
            raise InvalidInputError(f"seed must be an integer, not negative; got {self.seed!r}")
        names = [case.name for case in self.cases]
        if not names or len(set(names)) < len(names):
            raise InvalidInputError(f"cases must be one or more, with different names; got {names}")

    def case(self, name: str) -> Case:
        """The case of that name."""
        require_known(name, (case.name for case in self.cases), "case")
        return next(case for case in self.cases if case.name == name)

    def adjusted(self, *, runs: int | None = None, steps: int | None = None, method: str | None = None) -> Self:
        """The same with another number of runs or steps, or another way to take the quantile, in all cases.

        Raises
        ------
        InvalidInputError
            If a value is not allowed, or ``method`` is given for an experiment that compares methods.
        """
        cases = self.cases
        if method is not None:
            require_known(method, METHODS, "method")
            if len({case.agent_parameters["method"] for case in cases if "method" in case.agent_parameters}) > 1:
                raise InvalidInputError(f"method cannot be chosen for {self.name}, which compares methods")
            cases = tuple(
                replace(case, agent_parameters={**case.agent_parameters, "method": method})
                if "method" in case.agent_parameters
                else case
                for case in cases
            )
        if steps is not None:
            steps = as_positive_int(steps, "steps")
            cases = tuple(replace(case, steps=steps, shown_steps=min(case.shown_steps, steps)) for case in cases)
        return replace(self, cases=cases, runs=self.runs if runs is None else runs)

    def describe(self) -> dict[str, Any]:
        """Everything as plain data, for files."""
        return {**vars(self), "cases": [case.describe() for case in self.cases]}

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> Self:
        """What :meth:`describe` described."""
        return cls(**{**description, "cases": tuple(Case(**case) for case in description["cases"])})
