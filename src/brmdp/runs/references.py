"""Parts of your own, named as ``module:attribute`` in a sweep or a study.

Loading a part imports its module, so it is done only for what the user runs. A folder of results
also names parts, and may come from anybody: reading it imports nothing (:func:`loaded_already`).
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import sys
import textwrap
import tokenize
from collections.abc import Iterable, Iterator
from importlib.machinery import SourceFileLoader
from types import CodeType, FunctionType, ModuleType
from typing import Any

from brmdp.errors import InvalidInputError, OtherOriginError

__all__ = [
    "bare_code",
    "is_reference",
    "load",
    "loaded_already",
    "module_source",
    "require_loadable",
    "source_of",
]

_LOADED: dict[str, tuple[ModuleType, str]] = {}
"""Modules as they were first loaded here, with the text of their files then."""

_LAYOUT = frozenset({"COMMENT", "NL", "INDENT", "DEDENT", "ENDMARKER"})
"""Python tokens that change no result; each statement keeps its own indentation."""

PLAIN = ("gymnasium", "builtins", "abc", "typing")
"""Packages whose code is identified by their version."""


def is_reference(name: Any) -> bool:
    """Whether a name is of the form ``module:attribute``."""
    if not isinstance(name, str):
        return False
    module, colon, attribute = name.partition(":")
    parts = (*module.split("."), *attribute.split("."))
    return bool(colon) and all(part.isidentifier() for part in parts)


def load(reference: str, what: str) -> Any:
    """The object that ``module:attribute`` names.

    Raises
    ------
    InvalidInputError
        If the module cannot be imported or lacks the attribute; the message says which.
    """
    if not is_reference(reference):
        raise InvalidInputError(f"{what} must be written as module:attribute; got {reference!r}")
    module, _, attribute = reference.partition(":")
    try:
        found: Any = importlib.import_module(module)
    except (Exception, SystemExit) as error:  # a module of somebody else may raise anything
        raise InvalidInputError(
            f"{what} {reference!r} cannot be loaded: importing {module} failed: "
            f"{type(error).__name__}: {error}"
        ) from error
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise InvalidInputError(
                f"{what} {reference!r} cannot be loaded: {module} has no attribute {attribute!r}"
            )
        found = getattr(found, name)
    origin = sys.modules[module]
    with contextlib.suppress(OSError, TypeError):
        if module not in _LOADED or _LOADED[module][0] is not origin:
            _LOADED[module] = (origin, inspect.getsource(origin))
    return found


def loaded_already(reference: str) -> Any:
    """The object of a reference, if its module is the library's or already imported; else None."""
    if not is_reference(reference):
        return None
    module, _, attribute = reference.partition(":")
    if module.partition(".")[0] == "brmdp":
        try:
            return load(reference, "part")
        except InvalidInputError:
            return None
    found: Any = sys.modules.get(module)
    for name in attribute.split("."):
        found = getattr(found, name, None)
    return found


def require_loadable(references: Iterable[str]) -> None:
    """Load all parts, as a worker does before it is given runs.

    Raises
    ------
    InvalidInputError
        If a part cannot be loaded; the message names the first.
    """
    for reference in references:
        load(reference, "part")


# --- where a part comes from ----------------------------------------------------------------------


def module_source(name: str) -> str:
    """The code of a module's file, which must not have changed since the module was loaded.

    Raises
    ------
    OtherOriginError
        If the file cannot be read or has changed: runs of two versions could not be told apart.
    """
    module = sys.modules.get(name)
    try:
        text = inspect.getsource(module)  # type: ignore[arg-type]  # None is a TypeError
    except (OSError, TypeError):
        raise OtherOriginError(
            f"the source of the module {name} cannot be read, so runs made with it could not be "
            "told from those of another version; put its parts into a file"
        ) from None
    loaded = _LOADED.get(name)
    if loaded is not None and loaded[0] is module and loaded[1] != text:
        raise OtherOriginError(
            f"the file of the module {name} was edited after it was loaded: start Python anew"
        )
    return bare_code(text)


def source_of(part: Any) -> str:
    """The code of a class or function and of its file, as far as they can be read.

    The file counts as a whole: a part may use other constants and functions in it. Parts of the
    engine, of Gymnasium and of Python are left out: their digests and versions are known.

    Raises
    ------
    OtherOriginError
        If the part no longer matches its file; other constants and functions in it are not
        compared.
    """
    if not isinstance(part, type | FunctionType):
        part = type(part)
    package = part.__module__
    ours = package == "brmdp" or package.startswith("brmdp.")
    if (ours and not package.startswith("brmdp.studies.")) or package.partition(".")[0] in PLAIN:
        return ""
    texts = []
    module = sys.modules.get(package)
    for place in (part, module):
        with contextlib.suppress(OSError, TypeError, SyntaxError):
            text = inspect.getsource(place)  # type: ignore[arg-type]  # None is a TypeError
            texts.append(bare_code(text))
    if module is not None and _edited_since(module, part):
        raise OtherOriginError(
            f"{module.__file__} was edited after it was loaded, so it does not say what "
            f"{part.__name__} does: start Python anew"
        )
    return "|".join(texts)


def _edited_since(module: ModuleType, part: type | FunctionType) -> bool:
    """Whether the module's file lacks code that the part runs.

    This is checked only for modules that Python's own loader compiled.
    """
    if type(getattr(module, "__loader__", None)) is not SourceFileLoader:
        return False  # other loaders may change what they load, as pytest does
    try:
        compiled = compile(
            inspect.getsource(module), str(module.__file__), "exec", dont_inherit=True
        )
    except (OSError, TypeError):
        return False
    except SyntaxError:
        return True
    written = set(_codes(compiled))
    own = vars(part).values() if isinstance(part, type) else (part,)
    members = (m.__func__ if isinstance(m, classmethod | staticmethod) else m for m in own)
    functions = [inspect.unwrap(member) for member in members if isinstance(member, FunctionType)]
    running = {function.__code__ for function in functions if isinstance(function, FunctionType)}
    return any(code.co_filename == module.__file__ and code not in written for code in running)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def bare_code(text: str) -> str:
    """Python code without comments, docstrings and layout; other text as it is.

    An edit of these changes no result, so runs made before and after it belong together.
    """
    text = text.replace("\r\n", "\n")
    if text[:1].isspace():
        text = textwrap.dedent(text)
    try:
        return "\n".join(_statements(text))
    except (SyntaxError, tokenize.TokenError):
        return text


def _statements(text: str) -> Iterator[str]:
    """Statements as they are written, apart from comments and line breaks inside them."""
    lines = text.split("\n")
    written, end = "", (0, 0)
    kinds: set[str] = set()
    for kind, start, stop in _spans(text):
        if kind == "NEWLINE":
            if kinds != {"STRING"}:  # a docstring, also that of a constant
                yield written
            written, kinds = "", set()
        elif kind not in _LAYOUT:
            row, column = start
            same_row = not written or end[0] == row
            written += lines[row - 1][end[1] if written else 0 : column] if same_row else "\n"
            written += _cut(lines, start, stop)
            kinds.add(kind)
            end = stop


def _spans(text: str) -> Iterator[tuple[str, tuple[int, int], tuple[int, int]]]:
    """Kind and place of each token; an f-string is one token, whichever Python reads it."""
    begun = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        kind = tokenize.tok_name[token.type]
        start = token.start
        if kind.endswith("STRING_START"):
            begun.append(start)
        elif kind.endswith("STRING_END"):
            kind, start = "FORMATTED", begun.pop()
        if not begun:
            yield kind, start, token.end


def _cut(lines: list[str], start: tuple[int, int], stop: tuple[int, int]) -> str:
    rows = lines[start[0] - 1 : stop[0]]
    rows[-1] = rows[-1][: stop[1]]
    rows[0] = rows[0][start[1] :]
    return "\n".join(rows)
