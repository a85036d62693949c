"""What made a run: digests of the world it took place in and of the code that carried it out.

Runs are compared and averaged only if both are equal. The digest of a world is taken of its tables,
that of the code of the source files that can change a run: the engine and what runs consist of, not
what stores, judges or draws them. Comments count, too: nobody can tell in general which edit
changes a result.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import itertools
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from importlib.machinery import SourceFileLoader
from importlib.resources.abc import Traversable
from types import CodeType, FunctionType, ModuleType
from typing import Any

import gymnasium
import numpy as np
from scipy import sparse

from brmdp._validation import FloatArray
from brmdp.beliefs import DisturbanceRewards
from brmdp.errors import OtherOriginError
from brmdp.simulation import World

__all__ = ["ANALYSIS", "CODE", "UNKNOWN", "Origin", "package_digests", "short", "world_digest"]

UNKNOWN = ""
"""In place of a digest that was not kept, or that there is none of."""

WITHOUT_INFLUENCE = frozenset(
    {
        *(
            "analysis",
            "figures",
            "cli.py",
            "warm_up.py",
            "_files.py",
            "_version.py",
            "envs/rendering.py",
        ),
        *(
            f"experiments/{name}.py"
            for name in ("__init__", "cluster", "origin", "paper", "parquet", "records")
        ),
        *(f"experiments/{name}.py" for name in ("runner", "store", "sweep")),
    }
)
"""Files and folders of the package that cannot change a run.

A new one counts until it is named here.
"""

BITS = 40
"""Of the 53 of a number that count in a table: the last ones may differ from machine to machine."""


@dataclass(frozen=True)
class Origin:
    """What the runs of an experiment were, or are to be, made by.

    Attributes
    ----------
    code : tuple of str
        Digests of the code: one, unless somebody insisted on going on with another.
    worlds : mapping
        Digest of the world of each case, by name; :data:`UNKNOWN` for the continuous lake and for
        computations, which are made of nothing but the code.
    """

    code: tuple[str, ...]
    worlds: Mapping[str, str]

    def require(self, what: str, case: str, code: str, world: str) -> None:
        """Refuse a run of that case which was made by something else.

        Raises
        ------
        OtherOriginError
            Naming both.
        """
        if code not in self.code:
            ours = ", ".join(map(short, self.code))
            raise OtherOriginError(
                f"{what} was made by other code: its digest is {short(code)}, here it is {ours}"
            )
        ours = self.worlds.get(case, UNKNOWN)
        if world != ours:
            raise OtherOriginError(
                f"{what} was made in another world: the digest of its tables is {short(world)}, "
                f"here it is {short(ours)}"
            )


def short(digest: str) -> str:
    """A digest for people."""
    return digest[:12] or "unknown"


# --- code -----------------------------------------------------------------------------------------


def _sources(folder: Traversable, below: str = "") -> Iterator[tuple[str, bytes]]:
    """Python files by their place in the package, in order."""
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
        text = text.replace(b"\r\n", b"\n")  # as some checkouts have it
        result.update(f"{place}|{len(text)}|".encode() + text)
    return result.hexdigest()


def package_digests(folder: Traversable) -> tuple[str, str]:
    """Digests of the code that can change a run.

    And of that which turns runs into tables and verdicts.
    """
    sources = dict(_sources(folder))
    runs = {place: text for place, text in sources.items() if _can_change_a_run(place)}
    return _code_digest(runs), _code_digest(
        {p: text for p, text in sources.items() if p.startswith("analysis/")}
    )


# taken when the code is loaded, so that later edits do not change the name of what is running
CODE, ANALYSIS = package_digests(resources.files("brmdp"))


# --- worlds ---------------------------------------------------------------------------------------


def world_digest(world: World) -> str:
    """Digest of what a world is: its kernel, rewards, discount and start.

    And of its file, where that is not the library's.

    The file of the class counts, since an environment of your own may act otherwise than its table
    says. Numbers count to about twelve digits.
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
    env = world.env
    while env is not None:
        for kind in type(env).__mro__:
            result.update(f"|{_own_source(kind)}".encode())
        env = env.env if isinstance(env, gymnasium.Wrapper) else None
    return result.hexdigest()


def _add(result: Any, value: Any) -> None:
    """A table, by its values."""
    if isinstance(value, DisturbanceRewards):
        value = value.rewards
    if sparse.issparse(value):
        matrix = sparse.csr_array(value)
        matrix.sum_duplicates()
        for array in (matrix.indptr, matrix.indices, matrix.data):
            _add(result, array)
        return
    array = np.asarray(value)
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


@lru_cache(maxsize=256)
def _own_source(kind: type) -> str:
    """A class that belongs to neither the library, nor Gymnasium, nor Python, and its file.

    Empty as far as they cannot be had.

    The file, too: a class may use constants and functions beside it.

    Raises
    ------
    OtherOriginError
        If a method of the class is no longer what the file says; constants and functions beside it
        are not compared.
    """
    if kind.__module__.partition(".")[0] in ("brmdp", "gymnasium", "builtins", "abc", "typing"):
        return ""
    texts = []
    module = sys.modules.get(kind.__module__)
    for place in (kind, module):
        with contextlib.suppress(OSError, TypeError, SyntaxError):
            texts.append(inspect.getsource(place))  # type: ignore[arg-type]  # None is a TypeError
    if module is not None and _edited_since(module, kind):
        raise OtherOriginError(
            f"{module.__file__} was edited after it was loaded, so it does not say what "
            f"{kind.__name__} does: start Python anew"
        )
    return "|".join(texts)


def _edited_since(module: ModuleType, kind: type) -> bool:
    """Whether the module's file lacks code that the class runs.

    Only where Python's own loader compiled it.
    """
    if type(getattr(module, "__loader__", None)) is not SourceFileLoader:
        return False  # others may have changed what they loaded, as pytest does
    try:
        compiled = compile(
            inspect.getsource(module), str(module.__file__), "exec", dont_inherit=True
        )
    except (OSError, TypeError):
        return False
    except SyntaxError:
        return True
    written = set(_codes(compiled))
    members = (
        m.__func__ if isinstance(m, classmethod | staticmethod) else m for m in vars(kind).values()
    )
    functions = [inspect.unwrap(member) for member in members if isinstance(member, FunctionType)]
    running = {function.__code__ for function in functions if isinstance(function, FunctionType)}
    return any(code.co_filename == module.__file__ and code not in written for code in running)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
