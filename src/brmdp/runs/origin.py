"""What made a run: digests of the world it took place in and of the code that carried it out.

Runs are compared and averaged only if both are equal. The digest of a world covers its tables, the
files of any parts of your own, and the numbers of a prior of your own; that of a computation covers
the file of its program. The digest of the code covers the source files that can change any run: the
engine and what runs consist of, not what stores, judges or draws them. Every edit of the code
counts, since nobody can tell in general which ones change a result; edits of comments, docstrings
and blank lines do not.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from scipy import sparse

from brmdp._validation import FloatArray
from brmdp.beliefs import DisturbanceRewards
from brmdp.envs import OutcomeLaw
from brmdp.errors import OtherOriginError
from brmdp.runs.references import bare_code, module_source, source_of
from brmdp.runs.spec import Case, Computation
from brmdp.simulation import World

__all__ = [
    "ANALYSIS",
    "BATCH",
    "CODE",
    "CONTINUOUS",
    "DECISIONS",
    "MODELS",
    "PARTS",
    "UNKNOWN",
    "Origin",
    "case_digest",
    "package_digests",
    "program_digest",
    "run_digest",
    "short",
    "world_digest",
]

UNKNOWN = ""
"""Stands for a digest that was not kept, or that does not exist."""

WITHOUT_INFLUENCE = frozenset(
    {
        *("report", "studies", "cli.py", "warm_up.py", "_files.py", "_version.py", "_renamed.py"),
        *("envs/rendering.py", "runs/__init__.py", "runs/cluster.py", "runs/former.py"),
        *("runs/origin.py", "runs/parquet.py", "runs/records.py", "runs/runner.py"),
        *("runs/store.py", "runs/sweep.py", "continuous", "decisions"),
        *("batch", "logs", "models"),
    }
)
"""Files and folders of the package that cannot change any run; new ones count until listed here.

The studies' programs, the continuous part, decisions, models of logs and batch methods count only
for the cases that use them (:func:`program_digest`, :data:`PARTS`).
"""

DRAWING = frozenset(
    {
        *("report/drawing.py", "report/layouts.py", "report/normal_plot.py"),
        *("report/panels.py", "report/style.py"),
    }
)
"""Files that only draw, so change no table or verdict; neither do the studies' figures."""

BITS = 40
"""How many of a number's 53 bits count; the last ones may differ from machine to machine."""


@dataclass(frozen=True)
class Origin:
    """The code and worlds that made, or will make, the runs of an experiment.

    Attributes
    ----------
    code : tuple of str
        Digests of the code; more than one only if runs of other code were accepted.
    worlds : mapping
        Digest of the world or program of each case, by name.
    """

    code: tuple[str, ...]
    worlds: Mapping[str, str]

    def require(self, what: str, case: str, code: str, world: str) -> None:
        """Refuse a run that was made by other code, or in another world or by another program.

        Raises
        ------
        OtherOriginError
            If a digest differs; the message gives both.
        """
        if code not in self.code:
            ours = ", ".join(map(short, self.code))
            raise OtherOriginError(
                f"{what} was made by other code: its digest is {short(code)}, here it is {ours}"
            )
        ours = self.worlds.get(case, UNKNOWN)
        if world != ours:
            raise OtherOriginError(
                f"{what} was made in another world or by another program: the digest is "
                f"{short(world)}, here it is {short(ours)}"
            )


def short(digest: str) -> str:
    """A digest, shortened for people to read."""
    return digest[:12] or "unknown"


# --- code -----------------------------------------------------------------------------------------


def _sources(folder: Traversable, below: str = "") -> Iterator[tuple[str, bytes]]:
    """The Python files in a folder with their paths in the package, sorted."""
    for entry in sorted(folder.iterdir(), key=lambda found: found.name):
        if entry.is_dir():
            yield from _sources(entry, f"{below}{entry.name}/")
        elif entry.name.endswith(".py"):
            yield f"{below}{entry.name}", entry.read_bytes()


def _can_change_a_run(place: str) -> bool:
    steps = itertools.accumulate(place.split("/"), "{}/{}".format)
    return WITHOUT_INFLUENCE.isdisjoint(steps)


def _code_digest(sources: Mapping[str, bytes]) -> str:
    result = hashlib.sha256()
    for place, text in sources.items():
        code = bare_code(text.decode()).encode()
        result.update(f"{place}|{len(code)}|".encode() + code)
    return result.hexdigest()


class Digests(NamedTuple):
    """Digests of parts of the package.

    Attributes
    ----------
    code : str
        What can change any run.
    analysis : str
        What turns runs into numbers and verdicts.
    continuous : str
        What the continuous lake depends on in addition.
    decisions : str
        What programs that learn priors, compare or certify depend on in addition.
    models : str
        What programs that decide from logs depend on in addition; pages change no number.
    batch : str
        What programs that compare batch methods depend on in addition.
    """

    code: str
    analysis: str
    continuous: str
    decisions: str
    models: str
    batch: str


def package_digests(folder: Traversable) -> Digests:
    """Digests of the package in a folder."""
    sources = dict(_sources(folder))

    def chosen(which: Callable[[str], bool]) -> str:
        return _code_digest({place: text for place, text in sources.items() if which(place)})

    def below(part: str) -> str:
        return chosen(lambda place: place.startswith(f"{part}/"))

    def from_a_log(place: str) -> bool:
        return place.startswith(("logs/", "models/")) and not place.startswith("models/page/")

    return Digests(
        chosen(_can_change_a_run),
        chosen(_judges),
        below("continuous"),
        below("decisions"),
        chosen(from_a_log),
        below("batch"),
    )


def _judges(place: str) -> bool:
    """Whether a file takes part in making tables and verdicts."""
    kept_out = ("experiment.py", "figures.py", "schematics.py")
    judging = place.startswith(("report/", "studies/")) and not place.endswith(kept_out)
    return judging and place not in DRAWING


# taken when the code is loaded, so that later edits do not change the name of what is running
CODE, ANALYSIS, CONTINUOUS, DECISIONS, MODELS, BATCH = package_digests(resources.files("brmdp"))

PARTS = {
    "continuous": CONTINUOUS,
    "decisions": DECISIONS,
    "models": MODELS,
    "batch": BATCH,
}
"""Digests of the parts that count only for the programs that name them."""


# --- cases ----------------------------------------------------------------------------------------


def program_digest(
    reference: str,
    replicate: Callable[..., Any],
    defaults: Mapping[str, Any],
    parts: Sequence[str] = (),
) -> str:
    """Digest of a program: its file, that of its function, and its defaults.

    Parameters
    ----------
    reference : str
        Where the program is, as ``module:attribute``.
    replicate : function
        The function that it calls.
    defaults : mapping
        Its parameters with their defaults.
    parts : sequence of str
        The :data:`PARTS` that it also depends on.
    """
    texts = [module_source(reference.partition(":")[0]), source_of(replicate)]
    texts.append(json.dumps(defaults, sort_keys=True, default=lambda _: "required"))
    texts += [PARTS[part] for part in parts]
    return hashlib.sha256("|".join(texts).encode()).hexdigest()


def run_digest(case: Case | Computation, code: str, own: str) -> str:
    """Digest of all code behind a run, for tables that say what made them.

    Parameters
    ----------
    case : Case or Computation
    code : str
        Digest of the code that made the run.
    own : str
        Digest of the run's world or program. It counts only where it is a digest of code: for a
        computation, and for the continuous lake.
    """
    if UNKNOWN in (code, own) or (isinstance(case, Case) and own != CONTINUOUS):
        return code
    return hashlib.sha256(f"{code}|{own}".encode()).hexdigest()


def case_digest(
    world: World, texts: Sequence[str], numbers: Mapping[str, Any] | None = None
) -> str:
    """Digest of a world, and of what is your own, if there is any.

    Parameters
    ----------
    world : World
    texts : sequence of str
        Texts of the files of parts of your own.
    numbers : mapping, optional
        The arrays of a prior of your own.
    """
    digest = world_digest(world)
    if not texts and not numbers:
        return digest
    result = hashlib.sha256("|".join([digest, *texts]).encode())
    for name, array in sorted((numbers or {}).items()):
        result.update(f"|{name}".encode())
        _add(result, array)
    return result.hexdigest()


def world_digest(world: World) -> str:
    """Digest of a world: its kernel, rewards, discount and start, and the file of its class.

    The file counts unless it is the library's, since an environment of your own may behave
    differently from its table. Numbers count to about twelve digits.
    """
    result = hashlib.sha256(f"{world.n_states}|{world.n_actions}|{world.discount!r}".encode())
    truth = world.truth
    if truth is not None:
        pattern = truth.pattern
        for array in (pattern.indptr, pattern.next_states, pattern.admissible, truth.probabilities):
            _add(result, array)
        _add(result, truth.transition_rewards)
        _add(result, truth.start)
    _add(result, world.rewards)
    law = getattr(world.env.unwrapped, "law", None)
    if isinstance(law, OutcomeLaw):
        for array in (law.indptr, law.next_states, law.rewards, law.probabilities):
            _add(result, array)
    result.update(repr(sorted(world.ends_by_observation.items())).encode())
    env = world.env
    while env is not None:
        for kind in type(env).__mro__:
            result.update(f"|{source_of(kind)}".encode())
        env = env.env if isinstance(env, gymnasium.Wrapper) else None
    return result.hexdigest()


def _add(result: Any, value: Any) -> None:
    """Add the values of a table to a digest."""
    if isinstance(value, DisturbanceRewards):
        value = value.rewards
    if sparse.issparse(value):
        matrix = sparse.csr_array(value)
        matrix.sum_duplicates()
        for array in (matrix.indptr, matrix.indices, matrix.data):
            _add(result, array)
        return
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        result.update(f"|{array.tolist()!r}".encode())
        return
    plain = _rounded(array.astype("<f8")) if array.dtype.kind == "f" else array.astype("<i8")
    result.update(
        f"|{plain.dtype.str}{plain.shape}|".encode() + np.ascontiguousarray(plain).tobytes()
    )


def _rounded(numbers: FloatArray) -> FloatArray:
    mantissa, exponent = np.frexp(numbers)
    rounded: FloatArray = (
        np.ldexp(np.round(np.ldexp(mantissa, BITS)), exponent - BITS) + 0.0
    )  # no negative zero
    return rounded
