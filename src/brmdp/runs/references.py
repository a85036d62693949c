"""Parts of your own, named as ``module:attribute`` in a sweep or a study.

Loading a part imports its module, so it is done only for what the user runs. A folder of results
also names parts, and may come from anybody: reading it imports nothing (:func:`loaded_already`).
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import re
import sys
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

_COMMENT_OR_STRING = re.compile(
    r"""
    (?P<comment> \# [^\n]* )
    | "{3} (?: [^"\\] | \\. | "(?!"") )* "{3}
    | '{3} (?: [^'\\] | \\. | '(?!'') )* '{3}
    | " (?: [^"\\\n] | \\. )* "
    | ' (?: [^'\\\n] | \\. )* '
    """,
    re.DOTALL | re.VERBOSE,
)
_STRING = "\0"
"""Stands for a string; no Python file contains this character."""

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
    return bare_code(text) if name.startswith("brmdp.") else text


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
            texts.append(bare_code(text) if ours else text)
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
    """Python code without comments, docstrings and blank lines.

    It is for the library's own files, whose digests are taken whenever it is loaded: a quick scan
    for strings, which does not know the nested quotes that Python 3.12 allows in f-strings.
    """
    text = text.replace("\r\n", "\n")
    strings: list[str] = []
    pieces, depth, end = [], 0, 0
    for found in _COMMENT_OR_STRING.finditer(text):
        between = text[end : found.start()]
        depth += sum(map(between.count, "([{")) - sum(map(between.count, ")]}"))
        pieces.append(between)
        end = found.end()
        if found["comment"] is None and (depth > 0 or not _alone(text, *found.span())):
            pieces.append(_STRING)
            strings.append(found[0])
    lines = "".join([*pieces, text[end:]]).split("\n")
    code = "\n".join(line.rstrip() for line in lines if line.strip())
    first, *rest = code.split(_STRING)
    return "".join([first, *(part for pair in zip(strings, rest, strict=True) for part in pair)])


def _alone(text: str, begin: int, end: int) -> bool:
    """Whether a string is a statement of its own, as a docstring is."""
    line = text.rfind("\n", 0, begin) + 1
    after = text[end : text.find("\n", end) % (len(text) + 1)].strip()
    continued = text.endswith("\\\n", 0, line)
    return not text[line:begin].strip() and not continued and (not after or after[0] == "#")
