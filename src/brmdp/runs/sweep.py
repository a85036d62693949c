"""Sweeps: environments × agents × parameters × runs, described in a TOML file.

::

    name = "caution"            # name of the folder with the results
    runs = 20
    steps = 2000
    seed = 1                    # this and the following keys are optional
    discount = 0.9
    # robust_level = 0.2        # diagnostics, if all agents have a belief and plan with it;
    # quantile_level = 0.1      # the last one below does not
    prior = { concentration = 0.5 }

    [[environment]]
    name = "riverswim"          # or frozenlake, inventory, bandit, bernoulli-riverswim, prior
                                # (drawn anew in every run), the id of a Gymnasium environment, or
                                # module:attribute
    n = [6, 10]                 # a list stands for each of its entries in turn

    [[environment]]
    name = "FrozenLake-v1"
    is_slippery = true
    discount = 0.95             # replaces the common discount
    prior = { known_successors = true }

    [[agent]]
    name = "aq-brmdp"           # or fixed-quantile, continuing-psrl, posterior-mean
    delta = [5, 10]
    method = "saddlepoint"

    [[agent]]
    name = "agent"              # built from four parts, each by name or as module:attribute
    label = "CVaR"              # its name in figures and tables; what varies is appended
    risk = { name = "cvar", alpha = 0.2 }
    restart = { name = "my_parts:Weekly", days = 7 }

    [[agent]]
    name = "my_agents:QLearning"
    rate = 0.1

Every agent is run in every environment: (2 + 1) × (2 + 1 + 1) cases of 20 runs. Cases are named by
the parameters in which they differ: ``riverswim-n6/aq-brmdp-delta5``. To pass a list as a value
(such as inventory's ``demand``), write a list of lists.

Agents also take ``restart``, ``ties`` and ``tolerance``, the error bound of their plans, which by
default follows the scale of the problem. ``prior`` may be given for an agent, for an environment
and at the top of the file; the more specific one takes precedence, in this order.
:mod:`brmdp.runs.catalogue` describes how parts of your own are made. In the environment
``continuous-frozenlake``, the agents of the same names have other parameters (``learning_rate``,
``epsilon`` …).
"""

from __future__ import annotations

import hashlib
import itertools
import math
import os
import tomllib
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from brmdp.errors import BrmdpError, InvalidInputError
from brmdp.runs.catalogue import agents_of, environment_parameters_of
from brmdp.runs.execution import validate
from brmdp.runs.former import FORMER_AGENTS
from brmdp.runs.program import REQUIRED
from brmdp.runs.references import is_reference
from brmdp.runs.spec import MAX_CASES, Case, Experiment, require_known, value_key

__all__ = ["load_sweep"]

DEFAULTS: dict[str, Any] = {
    "name": REQUIRED,
    "title": None,
    "runs": REQUIRED,
    "steps": REQUIRED,
    "seed": 2026,
    "discount": 0.9,
    "robust_level": None,
    "quantile_level": None,
    "prior": {},
    "environment": REQUIRED,
    "agent": REQUIRED,
}

COMMON = ("prior", "label")
"""Keys that every environment and every agent may have."""

LARGEST = 2**20
"""Largest size of a file, in bytes."""

MAX_BITS = 1024
"""Longest integer, in bits.

Python limits only decimal literals; a longer hexadecimal literal would fail later, when printed.
"""

LONGEST_WORD = 60
"""Longest text of a value in the name of a case, in characters."""

Entry = tuple[str, dict[str, Any]]
"""A name and its parameters."""


def load_sweep(path: str | os.PathLike[str]) -> Experiment:
    """The experiment that a TOML file describes, in the format of :mod:`brmdp.runs.sweep`.

    Raises
    ------
    InvalidInputError
        If the file cannot be read, is not TOML (the message gives line and column), or describes
        something impossible (the message names the key).

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from brmdp.runs import load_sweep
    >>> text = '''
    ... name = "caution"
    ... runs = 20
    ... steps = 2000
    ... [[environment]]
    ... name = "riverswim"
    ... n = [6, 10]
    ... [[agent]]
    ... name = "aq-brmdp"
    ... delta = 5
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "caution.toml")
    ...     _ = file.write_text(text)
    ...     experiment = load_sweep(file)
    >>> [case.name for case in experiment.cases]
    ['riverswim-n6/aq-brmdp', 'riverswim-n10/aq-brmdp']
    """
    try:
        with Path(path).open("rb") as stream:
            content = stream.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise InvalidInputError(f"it must have at most {LARGEST:,} bytes")
        described = tomllib.loads(content.decode("utf-8-sig"))
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{path} is not text in UTF-8: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise InvalidInputError(f"{path} is not valid TOML: {error}") from error
    except RecursionError:
        raise InvalidInputError(f"{path} is nested too deeply") from None
    except ValueError as error:  # such as a number of very many digits
        raise InvalidInputError(f"{path} cannot be read: {error}") from error
    try:
        _require_short_integers(described)
        experiment = _experiment(described)
    except RecursionError:
        raise InvalidInputError(f"{path} is nested too deeply") from None
    except BrmdpError as error:
        raise InvalidInputError(f"{path}: {error}") from error
    used = {table["name"] for table in described["agent"]}
    for name in FORMER_AGENTS:
        if name in used:
            warnings.warn(
                f"{path}: the agent {name!r} is now called {FORMER_AGENTS[name]!r}; the old name "
                "will be removed",
                FutureWarning,
                stacklevel=2,
            )
    return experiment


def _require_short_integers(value: Any) -> None:
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise InvalidInputError(
            f"integers must have at most {MAX_BITS:,} bits; got one of {value.bit_length():,}"
        )
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            _require_short_integers(item)


def _experiment(content: dict[str, Any]) -> Experiment:
    for key in content:
        require_known(key, DEFAULTS, "key")
    settings = {**DEFAULTS, **content}
    missing = [key for key, value in settings.items() if value is REQUIRED]
    if missing:
        raise InvalidInputError(f"these keys are missing: {', '.join(missing)}")
    environments = _expanded(settings["environment"], "environment", _environment_keys)
    cases = []
    places = zip(_names(environments), _labels(environments), environments, strict=True)
    for place, place_label, (environment, given) in places:
        known = agents_of(environment)
        agents = _expanded(settings["agent"], "agent", partial(_agent_keys, known, environment))
        _require_few(len(environments) * len(agents), "environments × agents")
        parameters = dict(given)
        discount = parameters.pop("discount", settings["discount"])
        where = parameters.pop("prior", None)
        parameters.pop("label", None)
        methods = zip(_names(agents), _labels(agents), agents, strict=True)
        for method, method_label, (agent, given_to_agent) in methods:
            chosen = dict(given_to_agent)
            who = chosen.pop("prior", None)
            chosen.pop("label", None)
            # all written out, so that a store does not depend on present defaults
            defaults = {
                key: value
                for key, value in known.get(agent, {}).items()
                if value is not REQUIRED and value is not None
            }
            parts = [place_label or place] if len(environments) > 1 else []
            case = Case(
                name=f"{place}/{method}" if len(environments) > 1 else method,
                environment=environment,
                environment_parameters=parameters,
                agent=agent,
                agent_parameters=defaults | chosen,
                discount=discount,
                steps=settings["steps"],
                robust_level=settings["robust_level"],
                quantile_level=settings["quantile_level"],
                prior=_merged(settings["prior"], where, who),
                label="/".join([*parts, method_label or method])
                if method_label or place_label
                else "",
            )
            validate(case)
            cases.append(case)
    name = settings["name"]
    title = str(name) if settings["title"] in (None, "") else settings["title"]
    return Experiment(name, title, tuple(cases), settings["runs"], settings["seed"])


def _labels(entries: list[Entry]) -> list[str]:
    """Labels of the entries, empty if none is given.

    If several entries have the same label, what varies between them is appended.
    """
    sharing: dict[str, list[Entry]] = {}
    for entry in entries:
        label = entry[1].get("label", "")
        if not isinstance(label, str):
            raise InvalidInputError(f"label must be printable text; got {label!r}")
        sharing.setdefault(label, []).append(entry)
    kinds = {label: {name for name, _ in shared} for label, shared in sharing.items()}
    keys = {label: _varying([table for _, table in shared]) for label, shared in sharing.items()}
    labels = []
    for full_name, (_, parameters) in zip(_names(entries), entries, strict=True):
        label = parameters.get("label", "")
        words = _words(parameters, keys[label]) if len(kinds[label]) == 1 else [full_name]
        labels.append(f"{label} ({', '.join(words)})" if label and words else label)
    return labels


def _merged(*priors: Any) -> dict[str, Any]:
    """The merged priors; later ones take precedence, and one with a name replaces the others."""
    merged: dict[str, Any] = {}
    for prior in priors:
        if isinstance(prior, str):
            prior = {"name": prior}
        if prior is not None and not isinstance(prior, dict):
            raise InvalidInputError(f"prior must be a table or module:attribute; got {prior!r}")
        if prior:
            merged = dict(prior) if "name" in prior or "name" in merged else {**merged, **prior}
    return merged


def _expanded(tables: Any, kind: str, keys: Callable[[str], Iterable[str] | None]) -> list[Entry]:
    """One entry for every combination of the lists in each table, without duplicates.

    ``keys`` returns the parameters that a name may have, or None if they are not known.
    """
    if (
        not isinstance(tables, list)
        or not tables
        or not all(isinstance(table, dict) for table in tables)
    ):
        raise InvalidInputError(f"{kind} must be one or more tables [[{kind}]]; got {tables!r}")
    entries: dict[Hashable, Entry] = {}
    for table in tables:
        if not isinstance(table.get("name"), str):
            raise InvalidInputError(f"each [[{kind}]] needs a name, as text; got {table!r}")
        name = table["name"]
        if kind == "agent":
            name = FORMER_AGENTS.get(name, name)
        allowed = keys(name)
        if allowed is not None:
            for key in table:
                require_known(key, ("name", *allowed, *COMMON), f"key of the {kind} {name}")
        for parameters in _combinations(table, f"[[{kind}]] {name}"):
            entries.setdefault(value_key((name, parameters)), (name, parameters))
    return list(entries.values())


def _environment_keys(name: str) -> Iterable[str] | None:
    parameters = environment_parameters_of(name)
    return None if parameters is None else ("discount", *parameters)


def _agent_keys(
    known: Mapping[str, Iterable[str]], environment: str, name: str
) -> Iterable[str] | None:
    if is_reference(name):
        return None
    require_known(name, known, f"agent of {environment}")
    return known[name]


def _combinations(table: dict[str, Any], where: str) -> Iterator[dict[str, Any]]:
    parameters = {
        key: value if isinstance(value, list) else [value]
        for key, value in table.items()
        if key != "name"
    }
    for key, choices in parameters.items():
        if not choices:
            raise InvalidInputError(f"{key} of {where} must not be an empty list")
    _require_few(math.prod(map(len, parameters.values())), f"combinations in {where}")
    for values in itertools.product(*parameters.values()):
        yield dict(zip(parameters, values, strict=True))


def _names(entries: list[Entry]) -> list[str]:
    """Names of the entries, with the parameters in which entries of the same kind differ."""
    short = {name: name.rpartition(":")[2] if is_reference(name) else name for name, _ in entries}
    if len(set(short.values())) < len(short):
        short = {name: name for name, _ in entries}
    varying = {name: _varying([other for kind, other in entries if kind == name]) for name in short}
    return [
        "-".join([short[name], *_words(parameters, varying[name])]) for name, parameters in entries
    ]


def _varying(tables: list[dict[str, Any]]) -> set[str]:
    """The parameters in which some of the tables differ, beside the label."""
    keys = {key for table in tables for key in table} - {"label"}
    return {key for key in keys if len({value_key(table.get(key)) for table in tables}) > 1}


def _words(parameters: dict[str, Any], keys: set[str]) -> list[str]:
    return [f"{key}{_word(value)}" for key, value in parameters.items() if key in keys]


def _require_few(number: int, what: str) -> None:
    if number > MAX_CASES:
        raise InvalidInputError(f"{what} must be at most {MAX_CASES:,}; got {number:,}")


def _word(value: Any) -> str:
    """A value as part of the name of a case; long ones are cut and get a digest."""
    word = str(value)
    if isinstance(value, dict):
        given = {**value}
        name = str(given.pop("name", "")).rpartition(":")[2]
        parts = [name] if name else []
        word = "-".join([*parts, *(f"{key}{_word(one)}" for key, one in given.items())])
    elif isinstance(value, float) and float(format(value, "g")) == value:
        word = format(value, "g")  # 10 instead of 10.0
    return (
        word
        if len(word) <= LONGEST_WORD
        else f"{word[:30]}~{hashlib.sha256(word.encode()).hexdigest()[:8]}"
    )
