"""Parts of your own, named as ``module:attribute`` in a sweep or a study.

Loading a part imports its module, so it is done only for what the user runs. A folder of results
also names parts, and may come from anybody: reading it imports nothing (:func:`loaded_already`).
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import inspect
import itertools
import os
import re
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
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

_BESIDE: dict[str, tuple[ModuleType, dict[str, ModuleType]]] = {}
"""Modules as they were first loaded here, with those beside them that they used then, by path."""

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

PLAIN = ("gymnasium", "builtins", "abc", "functools", "typing")
"""Packages whose code is identified by their version."""

INSTALLED = ("site-packages", "dist-packages")
"""Folders of packages that others wrote."""

STANDARD = Path(os.__file__).absolute().parent
"""Folder of Python's own modules."""


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
    origin = sys.modules.get(module)
    if isinstance(origin, ModuleType):
        _remember(origin)
        _beside(origin)
    return found


def _remember(module: ModuleType) -> None:
    """Keep the text of a module's file, if it is seen for the first time."""
    name = module.__name__
    with contextlib.suppress(OSError, TypeError):
        if name not in _LOADED or _LOADED[name][0] is not module:
            _LOADED[name] = (module, inspect.getsource(module))


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
    """The code of a module's file and of those beside it that it uses.

    Raises
    ------
    OtherOriginError
        If the file cannot be read, or one of them has changed since it was loaded: runs of two
        versions could not be told apart.
    """
    module = sys.modules.get(name)
    try:
        text = inspect.getsource(module)  # type: ignore[arg-type]  # None is a TypeError
    except (OSError, TypeError):
        raise OtherOriginError(
            f"the source of the module {name} cannot be read, so runs made with it could not be "
            "told from those of another version; put its parts into a file"
        ) from None
    assert isinstance(module, ModuleType)
    _require_unedited(module, text)
    return "|".join([bare_code(text) if _is_ours(name) else text, *_texts_beside(module)])


def _require_unedited(module: ModuleType, text: str) -> None:
    loaded = _LOADED.get(module.__name__)
    if loaded is not None and loaded[0] is module and loaded[1] != text:
        raise OtherOriginError(
            f"the file of the module {module.__name__} was edited after it was loaded: restart "
            "Python"
        )


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == "brmdp"


def source_of(part: Any) -> str:
    """The code of a part and of its file, as far as they can be read.

    A part is a class, a function, or an object that can be called. The file counts as a whole: a
    part may use other constants and functions in it. So do the files beside it that it uses. Parts
    of the engine, of Gymnasium and of Python are left out: their digests and versions are known.

    Raises
    ------
    OtherOriginError
        If the part no longer matches its file; other constants and functions in it are not
        compared.
    """
    return "|".join(text for one in _definitions(part) if (text := _source_of(one)))


def _definitions(part: Any) -> list[type | FunctionType]:
    """The classes and functions that a part is made of, whatever wraps or binds them."""
    found: dict[type | FunctionType, None] = {}
    waiting, seen = [part], set()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, partial):
            bound = (*one.args, *one.keywords.values())
            code = (partial, MethodType, FunctionType, type)
            waiting += [one.func, *(value for value in bound if isinstance(value, code))]
        elif isinstance(one, MethodType):
            waiting += [one.__func__, one.__self__]
        else:
            known = isinstance(one, type | FunctionType)
            found |= dict.fromkeys([one] if known else type(one).__mro__)
            wrapped = inspect.getattr_static(one, "__wrapped__", None)
            waiting += [wrapped] if callable(wrapped) else []
    return list(found)


def _source_of(part: type | FunctionType) -> str:
    package = str(part.__module__)
    ours = _is_ours(package)
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
            f"{part.__name__} does: restart Python"
        )
    return "|".join([*texts, *(_texts_beside(module) if isinstance(module, ModuleType) else [])])


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


# --- what a part uses -----------------------------------------------------------------------------


def _texts_beside(module: ModuleType) -> list[str]:
    """The files beside a module that it uses, each with its path.

    Raises
    ------
    OtherOriginError
        If one of them was edited after it was loaded.
    """
    texts = []
    for place, other in _beside(module).items():
        text = _text(other)
        _require_unedited(other, text)
        texts.append(f"{place}|{text}")
    return texts


def _beside(module: ModuleType) -> dict[str, ModuleType]:
    """The modules in a module's folder, or below it, that it uses, by path and sorted.

    They are looked for once, before anything runs: later, a run may have loaded others.
    """
    known = _BESIDE.get(module.__name__)
    if known is None or known[0] is not module:
        known = _BESIDE[module.__name__] = (module, dict(sorted(_found_beside(module).items())))
        for other in known[1].values():
            _remember(other)
    return known[1]


def _found_beside(module: ModuleType) -> dict[str, ModuleType]:
    file = getattr(module, "__file__", None)
    if file is None or _is_ours(module.__name__):
        return {}
    folder = Path(file).absolute().parent
    found: dict[str, ModuleType] = {}
    waiting, seen = [module], {id(module)}
    while waiting:
        for other in _used_by(waiting.pop()):
            if id(other) not in seen:
                seen.add(id(other))
                place = _place(other, folder)
                if place is not None:
                    found.setdefault(place, other)
                    waiting.append(other)
    found.pop(Path(file).name, None)  # under another name
    return found


def _place(module: ModuleType, folder: Path) -> str | None:
    """The path of a module's file in a folder; None if it is elsewhere, or somebody else's."""
    file = Path(str(getattr(module, "__file__", None))).absolute()
    if (
        file.suffix != ".py"
        or not file.is_relative_to(folder)
        or (file.is_relative_to(STANDARD) and not folder.is_relative_to(STANDARD))
        or {folder.name, *file.relative_to(folder).parts} & {*INSTALLED}
        or _is_ours(module.__name__)
        or module.__name__ == "__main__"  # not the same in every process
    ):
        return None
    return file.relative_to(folder).as_posix()


def _used_by(module: ModuleType) -> Iterator[ModuleType]:
    """Modules that are among a module's globals or define functions and classes among them.

    A package has its submodules as attributes, whoever imported them. Those count only if the
    module itself imports them, so that it does not matter what else a process has loaded.
    """
    names = set(_imported_by(module))
    for name, value in list(vars(module).items()):
        if isinstance(value, ModuleType) and value.__name__ != f"{module.__name__}.{name}":
            yield value
        elif isinstance(value, type | FunctionType):
            names.add(str(value.__module__))
    loaded = (sys.modules.get(name) for name in sorted(names))
    yield from (other for other in loaded if isinstance(other, ModuleType))


def _imported_by(module: ModuleType) -> Iterator[str]:
    """Names of modules in the import statements that a module carried out when it was loaded."""
    with contextlib.suppress(SyntaxError, ValueError, ImportError):
        for node in _outside_functions(ast.parse(_text(module))):
            base = ""
            if isinstance(node, ast.ImportFrom):
                base = "." * node.level + (node.module or "")
                base = importlib.util.resolve_name(base, module.__package__ or "")
            for one in node.names:
                bound = one.asname or (one.name if base else one.name.partition(".")[0])
                if bound in vars(module) or bound == "*":
                    path = f"{base}.{one.name}" if base else one.name
                    yield from itertools.accumulate(path.split("."), "{}.{}".format)


def _outside_functions(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _outside_functions(child)


def _text(module: ModuleType) -> str:
    """The text of a module's file; empty if there is none."""
    with contextlib.suppress(OSError, TypeError):
        return inspect.getsource(module)
    return ""


# --- code without comments ------------------------------------------------------------------------


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
