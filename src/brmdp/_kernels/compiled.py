"""Compilation of kernels, with a cache that works wherever one is possible.

A compiled kernel is read from the first of these folders that has it, and written to the first that
is writable:

1. ``NUMBA_CACHE_DIR``, if set;
2. ``__pycache__`` next to the sources, which may be read-only;
3. ``brmdp`` in the user's cache: ``$XDG_CACHE_HOME``, ``%LOCALAPPDATA%`` or ``~/.cache``;
4. a private folder for temporary files.

If none is writable, every process compiles the kernels again. numba's own cache will not do: the
import fails if no folder is writable, planning fails if the disk is full, read-only folders are not
read, and a kernel is not recompiled when another file's kernel that it calls has changed. Each of
our entries carries a digest of all kernel sources, of everything else that the machine code depends
on, and of itself; an entry that does not match is compiled again.

Entries are pickles, as numba's are. So folders 3 and 4, whose paths others can guess, are used only
if they belong to the user and nobody else can write to them.
"""

from __future__ import annotations

import hashlib
import importlib
import logging
import os
import pickle
import stat
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numba
from numba.core import event
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps
from numba.core.types import unliteral

__all__ = ["apart", "kept", "kernel"]

CONFIG: Any = numba.config
LOG = logging.getLogger("brmdp")
SOURCES = Path(__file__).parent
DIGEST = hashlib.sha256().digest_size
# Compilations shorter than this, in seconds, are not logged.
NOTABLE = 1.0


def kernel(function: Callable[..., Any], *, apart: bool = False, inner: bool = False) -> Any:
    """Compile a function on its first call, for the types of that call.

    A constant counts as any other number of its type: numba would compile a kernel again for every
    constant that another kernel passes to it.

    Numba compiles a kernel into each kernel that calls it, and that one with all it contains into
    its own callers. A kernel that is compiled ``apart`` is called instead. That suits kernels that
    take a microsecond and are worth a second of the compiler's time.

    An ``inner`` kernel is called by kernels alone. That saves the code that takes arguments from
    Python, which for tuples of arrays is longer than many a kernel.
    """
    options: dict[str, Any] = {
        "nogil": True,
        "error_model": "numpy",
        "no_cfunc_wrapper": True,
        "no_cpython_wrapper": inner,
    }
    compiled: Any = numba.njit(**options)(function)
    if CONFIG.DISABLE_JIT:
        return compiled
    if inner:
        # without that code, a call would end the process
        dispatcher: Any = type(compiled)
        compiled.__class__ = _inner(dispatcher)
    compiled._cache = KernelCache(function, apart=apart)
    template = compiled.get_call_template

    def template_for_any_constant(arguments: Any, keywords: Any) -> Any:
        return template(
            tuple(map(unliteral, arguments)),
            {name: unliteral(kind) for name, kind in keywords.items()},
        )

    compiled.get_call_template = template_for_any_constant
    return compiled


def apart(function: Callable[..., Any]) -> Any:
    """An inner kernel that is compiled apart."""
    return kernel(function, apart=True, inner=True)


@cache
def _inner(dispatcher: type) -> type:
    """The dispatcher of a kernel that Python cannot call."""

    def refuse(self: Any, *_: Any, **__: Any) -> None:
        raise TypeError(f"{self.__name__} is called by other kernels, not from Python")

    return type(dispatcher.__name__, (dispatcher,), {"__call__": refuse})


class Need(NamedTuple):
    """A kernel compiled apart that another one calls."""

    module: str
    name: str
    arguments: tuple[Any, ...]
    symbol: str
    """Its name in machine code, which differs from one compilation to the next."""

    def load(self) -> bool:
        """Whether that very compilation is present, if need be after reading it."""
        dispatcher = getattr(importlib.import_module(self.module), self.name)
        dispatcher.compile(self.arguments)
        result = dispatcher.overloads[self.arguments]
        return bool(result.fndesc.mangled_name == self.symbol)


# The kernels compiled apart that are present in this process, by their names in machine code.
_APART: dict[str, Need] = {}


def _needs(library: Any) -> tuple[Need, ...]:
    """The kernels compiled apart that machine code calls: those it declares but does not hold."""
    if not _APART:
        return ()
    functions = library._final_module.functions
    declared = [function.name for function in functions if function.is_declaration]
    return tuple(_APART[name] for name in declared if name in _APART)


class KernelCache(NullCache):
    """Cache of one kernel's compiled versions; numba asks it before compiling and saves to it."""

    def __init__(self, function: Callable[..., Any], *, apart: bool = False) -> None:
        self._module, self._function = function.__module__, function.__qualname__
        self._name = f"{self._module.rpartition('.')[2]}.{self._function}"
        self._apart = apart

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """The compiled kernel, or None if there is none that can be used."""
        if source_digest() is None:
            return None
        target_context.refresh()
        arguments = _arguments(signature)
        name, key = self._entry(arguments, target_context.codegen())
        for place in _places():
            try:
                content = (place.trusted() / name).read_bytes()
                payload = content[2 * DIGEST :]
                if content[: 2 * DIGEST] != key + hashlib.sha256(payload).digest():
                    continue
                needs, reduced = pickle.loads(payload)
                # machine code that calls what is not there would end the process
                if not all(need.load() for need in needs):
                    continue
                result = CompileResult._rebuild(target_context, *pickle.loads(reduced))
            except FileNotFoundError:
                continue
            except Exception as error:  # whatever is wrong with the entry, compiling repairs it
                LOG.debug("compiled kernel %s in %s cannot be used: %r", name, place.folder, error)
                continue
            if tuple(result.signature.args) == arguments:
                self._stand_apart(result)
                return result
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Save a compiled kernel, if any folder is writable."""
        if source_digest() is not None and not result.library.has_dynamic_globals:
            name, key = self._entry(_arguments(signature), result.codegen)
            payload = pickle.dumps((_needs(result.library), dumps(result._reduce())))
            _WRITER.write(name, key + hashlib.sha256(payload).digest() + payload)
        self._stand_apart(result)

    def _stand_apart(self, result: Any) -> None:
        """Have a kernel called that is to be compiled apart, if numba is as we know it.

        Otherwise it is compiled into its callers, as any other.
        """
        library = result.library
        held = getattr(library, "_final_module", None)
        if not (
            self._apart and isinstance(held, llvm.ModuleRef) and hasattr(library, "_shared_module")
        ):
            return
        # what numba links into callers; they find the code itself among what is loaded
        nothing = llvm.parse_assembly("")
        nothing.triple, nothing.data_layout = held.triple, held.data_layout
        library._shared_module = nothing
        symbol = result.fndesc.mangled_name
        arguments = tuple(result.signature.args)
        _APART[symbol] = Need(self._module, self._function, arguments, symbol)

    def _entry(self, arguments: tuple[Any, ...], codegen: Any) -> tuple[str, bytes]:
        """File name and key of an entry.

        Versions that may be in use side by side get their own files; others replace each other.
        """
        machine = (str(arguments), codegen.magic_tuple(), CONFIG.OPT, CONFIG.BOUNDSCHECK)
        version = (self._name, sys.version, numba.__version__, source_digest())
        short = hashlib.sha256(repr(machine).encode()).hexdigest()[:16]
        key = hashlib.sha256(repr((machine, version)).encode()).digest()
        return f"{self._name}-{short}.{sys.implementation.cache_tag}.kernel", key


@dataclass(frozen=True)
class _Place:
    """A folder for entries.

    Attributes
    ----------
    folder : Path
    private : bool
        Whether it must belong to the user.
    lasting : bool
        Whether it is permanent; False for temporary files.
    """

    folder: Path
    private: bool = False
    lasting: bool = True

    def trusted(self) -> Path:
        """The folder; raises an OSError if it is missing or cannot be trusted."""
        if self.private and hasattr(os, "getuid"):
            found = self.folder.lstat()
            if (
                not stat.S_ISDIR(found.st_mode)
                or found.st_uid != os.getuid()
                or found.st_mode & 0o022
            ):
                raise PermissionError(
                    f"{self.folder} is not a folder that only this user can write to"
                )
        return self.folder

    def write(self, name: str, content: bytes) -> None:
        self.folder.mkdir(mode=0o700 if self.private else 0o777, parents=True, exist_ok=True)
        _write(self.trusted() / name, content)


def _places() -> Iterator[_Place]:
    """Folders where entries may be, best first."""
    digest = source_digest()
    assert digest is not None
    short = digest[:16]
    if CONFIG.CACHE_DIR:
        yield _Place(Path(CONFIG.CACHE_DIR) / f"brmdp-{short}")
    yield _Place(SOURCES / "__pycache__")
    homes = (
        os.environ.get("XDG_CACHE_HOME"),
        os.environ.get("LOCALAPPDATA"),
        os.path.expanduser("~/.cache"),
    )
    home = next((home for home in homes if home and os.path.isabs(home)), None)
    if home is not None:
        yield _Place(Path(home, "brmdp", short), private=True)
    user = os.getuid() if hasattr(os, "getuid") else "user"
    temporary = os.environ.get("TMPDIR") or (
        "/tmp" if os.name == "posix" else tempfile.gettempdir()
    )
    yield _Place(Path(temporary) / f"brmdp-{user}-{short}", private=True, lasting=False)


def kept() -> dict[Path, int]:
    """Folders with compiled kernels, and the number of entries (of any version) in each."""
    found = (
        {place.folder: len(list(place.folder.glob("*.kernel"))) for place in _places()}
        if source_digest()
        else {}
    )
    return {folder: entries for folder, entries in found.items() if entries}


class _Writer:
    """Writes to the first folder that has not failed, and logs it if that is not the first."""

    def __init__(self) -> None:
        self._failed: set[Path] = set()

    def write(self, name: str, content: bytes) -> None:
        reason: OSError | None = None
        for place in _places():
            if place.folder in self._failed:
                continue
            try:
                place.write(name, content)
            except OSError as error:
                self._failed.add(place.folder)
                reason = reason or error
                continue
            if reason is not None:
                level = logging.INFO if place.lasting else logging.WARNING
                LOG.log(
                    level,
                    "compiled kernels are kept in %s, because of an earlier failure: %s",
                    place.folder,
                    reason,
                )
            return
        if reason is not None:
            LOG.warning(
                "compiled kernels cannot be kept (%s): every process spends up to a minute "
                "compiling them; set NUMBA_CACHE_DIR to a writable folder",
                reason,
            )


_WRITER = _Writer()


def _write(path: Path, content: bytes) -> None:
    """Write a file completely or not at all; several processes may do so at once."""
    unfinished = path.with_name(f"{path.name}.{uuid.uuid4().hex[:16]}")
    try:
        unfinished.write_bytes(content)
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


@cache
def source_digest() -> str | None:
    """Digest of all kernel sources, since kernels are compiled into one another.

    None if they cannot be read.
    """
    digest = hashlib.sha256()
    try:
        files = sorted(SOURCES.glob("*.py"))
        for file in files:
            content = file.read_bytes()
            digest.update(f"{file.name} {len(content)} ".encode() + content)
    except OSError:
        return None
    return digest.hexdigest() if files else None


def _arguments(signature: Any) -> tuple[Any, ...]:
    return tuple(getattr(signature, "args", signature))


class _Reporter(event.Listener):
    """Logs that kernels are being compiled, which takes a while but happens only once."""

    def __init__(self) -> None:
        self._announced = False
        self._depth = 0
        self._began = 0.0

    def on_start(self, event: Any) -> None:
        if not _ours(event):
            return
        if not self._announced:
            self._announced = True
            LOG.info(
                "compiling numerical kernels for this machine: the first plans take up to a minute "
                "longer"
            )
        if self._depth == 0:
            self._began = time.monotonic()
        self._depth += 1

    def on_end(self, event: Any) -> None:
        if not _ours(event):
            return
        self._depth -= 1
        seconds = time.monotonic() - self._began
        if self._depth == 0 and seconds >= NOTABLE:
            LOG.info("compiled %s in %.0f s", event.data["dispatcher"].__name__, seconds)


def _ours(event: Any) -> bool:
    return isinstance(event.data["dispatcher"]._cache, KernelCache)


event.register("numba:compile", _Reporter())
