"""TOML files whose errors name file, line and key.

The standard library parses the text; it does not say on which line a key stands. A small scanner
walks over text that is already known to be TOML and notes the line of every key.
"""

from __future__ import annotations

import contextlib
import difflib
import math
import os
import re
import tomllib
from bisect import bisect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from brmdp.errors import InvalidInputError
from brmdp.logs.spaces import shown as shown_value

__all__ = [
    "KeyPath",
    "Table",
    "as_finite",
    "listed",
    "parse_toml",
    "read_text",
    "shown",
    "toml_key",
    "toml_text",
]

LARGEST = 2**20
"""Largest size of a file, in bytes."""

LONGEST_SHOWN = 60
"""Most characters of a value in a message."""

LONGEST_TEXT = 1000
"""Most characters of a text in a file."""

LONGEST_SEARCHED = 500
"""Most lines of a file in which the line of an open quote or bracket is searched."""

KeyPath: TypeAlias = tuple[str | int, ...]
"""Keys from the top of the file to a value; a number counts the entries of an array."""


def shown(value: Any) -> str:
    """A value of a TOML file on one line, shortened; control characters are escaped."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return f"[{_shortened(', '.join(map(shown, value[:10])))}]" if value else "an empty list"
    # dates and times print as TOML writes them
    return shown_value(value) if isinstance(value, int | float | str) else str(value)


def listed(words: Iterable[Any], most: int = 8) -> str:
    """The first few of the words, and how many more there are."""
    every = list(words)
    text = ", ".join(shown(word) for word in every[:most])
    return f"{text} and {len(every) - most:,} more" if len(every) > most else text


def toml_key(key: str) -> str:
    """A key as TOML writes it: bare if possible, else in quotes; always on one line."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else toml_text(key)


def toml_text(text: str) -> str:
    """Text as TOML writes it, in quotes and on one line; what is not printable is escaped."""
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code < 2**16 else f"\\U{code:08x}"


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"


@dataclass(frozen=True, eq=False)
class Table:
    """A table of a TOML file, which knows where it stands.

    Attributes
    ----------
    file : str
        Name of the file, for messages.
    values : dict
    lines : mapping of key path to line
    path : tuple of keys
        Where in the file the table is.
    heading, prefix : str
        The same for messages: ``[state] bins.`` is the heading ``[state]`` and the prefix
        ``bins.``.
    """

    file: str
    values: dict[str, Any]
    lines: Mapping[KeyPath, int]
    path: KeyPath = ()
    heading: str = ""
    prefix: str = ""

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def named(self, key: str = "") -> str:
        """Where a key (or the table itself) is: file, line, heading and key."""
        line = self.lines.get((*self.path, key) if key else self.path)
        if line is None and key:  # a missing key: where its table begins
            line = self.lines.get(self.path)
        place = f"{self.file}, line {line}:" if line else f"{self.file}:"
        name = f"{self.prefix}{toml_key(key)}" if key else self.prefix.rstrip(".")
        return " ".join(part for part in (place, self.heading, _shortened(name)) if part)

    def error(self, key: str, message: str) -> InvalidInputError:
        """An error about a key; the message goes on after its name."""
        return InvalidInputError(f"{self.named(key)} {message}")

    def wrong(self, key: str, allowed: str) -> InvalidInputError:
        """An error about the value of a key."""
        return self.error(key, f"must be {allowed}; got {shown(self.values[key])}")

    def given(self, key: str, allowed: str) -> Any:
        """The value of a key that must be there."""
        if key not in self.values:
            raise self.error(key, f"is missing; it must be {allowed}")
        return self.values[key]

    def require_known(self, known: Iterable[str], elsewhere: Mapping[str, str]) -> None:
        """Refuse unknown keys, and name the nearest known one.

        Parameters
        ----------
        known : iterable of str
        elsewhere : mapping of str to str
            Keys known in other places of the file, and where that is.
        """
        names = list(known)
        for key in self.values:
            if key in names:
                continue
            nearest = difflib.get_close_matches(key, names, n=1)
            if nearest:
                hint = f"; did you mean {nearest[0]!r}?"
            elif key in elsewhere:
                hint = f"; it belongs {elsewhere[key]}."
            else:
                hint = "."
            raise self.error(key, f"is unknown{hint} Known here: {', '.join(names)}")

    def text(self, key: str, allowed: str = "text") -> str:
        """Text that is not empty."""
        return self._text(key, self.given(key, allowed), allowed)

    def _text(self, key: str, value: Any, allowed: str) -> str:
        if not isinstance(value, str):
            raise self.wrong(key, f"{allowed}, in quotes")
        if len(value) > LONGEST_TEXT:
            raise self.error(
                key, f"must have at most {LONGEST_TEXT:,} characters; got {len(value):,}"
            )
        if not value.strip():
            raise self.wrong(key, f"{allowed}, not empty")
        return value

    def texts(self, key: str, allowed: str) -> tuple[str, ...]:
        """One text, or a list of different ones."""
        value = self.given(key, allowed)
        items = value if isinstance(value, list) else [value]
        if not items:
            raise self.wrong(key, allowed)
        found = tuple(self._text(key, item, allowed) for item in items)
        if len(set(found)) < len(found):
            twice = next(item for k, item in enumerate(found) if item in found[:k])
            raise self.error(key, f"must not have an entry twice; got {shown(twice)} twice")
        return found

    def choice(self, key: str, options: Iterable[str]) -> str:
        """One of several words."""
        words = list(options)
        allowed = " or ".join(f'"{word}"' for word in words)
        value = self.given(key, allowed)
        if not (isinstance(value, str) and value in words):
            raise self.wrong(key, allowed)
        return value

    def number(self, key: str, *, above: float = -math.inf, below: float = math.inf) -> float:
        """A finite number strictly between two others."""
        allowed = _between(above, below)
        value = self.given(key, allowed)
        number = as_finite(value)
        if number is None or not above < number < below:
            raise self.wrong(key, allowed)
        return number

    def integer(self, key: str, least: int, most: int) -> int:
        """A whole number between two others, both included."""
        allowed = f"a whole number from {least:,} to {most:,}"
        value = self.given(key, allowed)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.wrong(key, allowed)
        return value

    def section(self, key: str, needed: str = "a table") -> Table:
        """A table with a heading of its own, such as ``[log]`` or ``[cost.keep]``."""
        below = f"{self.heading.strip('[]')}." if self.heading else ""
        heading = f"[{below}{_shortened(toml_key(key))}]"
        if key not in self.values:
            where = self.named()
            raise InvalidInputError(f"{where} {heading} is missing; it must be {needed}")
        return self._inner(key, heading, "", needed)

    def table(self, key: str, needed: str = "a table") -> Table:
        """A table inside this one, such as ``bins`` of ``[state]``."""
        return self._inner(key, self.heading, f"{self.prefix}{toml_key(key)}.", needed)

    def tables(self, key: str, needed: str) -> tuple[Table, ...]:
        """A section, or the sections of an array of tables, such as ``[[state]]``."""
        if not isinstance(self.values.get(key), list):
            return (self.section(key, needed),)
        entries = self.values[key]
        if not entries or not all(isinstance(entry, dict) for entry in entries):
            raise self.wrong(key, f"{needed}, or one or more [[{key}]]")
        return tuple(
            Table(self.file, entry, self.lines, (*self.path, key, k), f"[[{key}]] {k + 1}:")
            for k, entry in enumerate(entries)
        )

    def _inner(self, key: str, heading: str, prefix: str, needed: str) -> Table:
        values = self.values[key]
        if not isinstance(values, dict):
            raise self.wrong(key, needed)
        return Table(self.file, values, self.lines, (*self.path, key), heading, prefix)


def as_finite(value: Any) -> float | None:
    """A finite number as a float; None for anything else, such as ``true``, ``nan`` or text."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    number = float(value)  # integers have at most 64 bits here
    return number if math.isfinite(number) else None


def _between(above: float, below: float) -> str:
    if math.isfinite(above) and math.isfinite(below):
        return f"a number strictly between {above:g} and {below:g}"
    return f"a finite number above {above:g}" if math.isfinite(above) else "a finite number"


def read_text(path: str | os.PathLike[str]) -> bytes:
    """The content of a file that is regular and not larger than a model file can be."""
    try:
        source = Path(path)
    except TypeError:
        raise InvalidInputError(f"path must be the name of a file; got {shown(path)}") from None
    try:
        if source.exists() and not source.is_file():
            raise InvalidInputError(f"{source} is not a file")
        with source.open("rb") as stream:
            content = stream.read(LARGEST + 1)
    except OSError as error:
        raise InvalidInputError(f"{shown(str(path))} cannot be read: {error.strerror}") from None
    except ValueError as error:  # such as a null character in the name
        raise InvalidInputError(f"{shown(str(path))} cannot be read: {error}") from None
    if len(content) > LARGEST:
        raise InvalidInputError(f"{source} must have at most {LARGEST:,} bytes")
    return content


def parse_toml(content: bytes, name: str) -> Table:
    """The top table of a TOML file.

    Parameters
    ----------
    content : bytes
    name : str
        Name of the file, for messages.

    Raises
    ------
    InvalidInputError
        If the content is not text in UTF-8 or not TOML, with the line.
    """
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidInputError(f"{name}, line {line}: this is not text in UTF-8") from None
    try:
        values = tomllib.loads(text)
        lines = _Scanner(text).lines
        _require_short_integers(Table(name, values, lines), values)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInputError(_syntax_error(str(error), text, name)) from None
    except RecursionError:
        raise InvalidInputError(f"{name} is nested too deeply") from None
    except InvalidInputError:
        raise
    except ValueError as error:  # such as a number of very many digits
        raise InvalidInputError(f"{name} cannot be read: {_shortened(str(error))}") from None
    return Table(name, values, lines)


def _syntax_error(message: str, text: str, name: str) -> str:
    place = re.search(r" \(at (line (\d+), column \d+|end of document)\)$", message)
    line = int(place[2]) if place and place[2] else _unfinished_line(text)
    if place is None or line is None:
        return f"{name} is not valid TOML: {message}"
    written = shown(text.split("\n")[line - 1].strip())
    return f"{name}, line {line}: not valid TOML: {message[: place.start()]}, in {written}"


def _unfinished_line(text: str) -> int | None:
    """The line after the longest beginning that is TOML, such as one with an open quote."""
    lines = text.split("\n")
    if len(lines) > LONGEST_SEARCHED:
        return None
    for length in range(len(lines) - 1, 0, -1):
        with contextlib.suppress(tomllib.TOMLDecodeError):
            tomllib.loads("\n".join(lines[:length]))
            return length + 1
    return 1


def _require_short_integers(top: Table, value: Any, path: KeyPath = ()) -> None:
    """Refuse integers of more than 64 bits, which TOML does not promise to keep."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        line = top.lines.get(path)
        raise InvalidInputError(
            f"{top.file}, line {line}: {'.'.join(map(str, path))} must have at most 64 bits; "
            f"got {value.bit_length():,}"
        )
    if isinstance(value, dict):
        for key, item in value.items():
            _require_short_integers(top, item, (*path, key))
    if isinstance(value, list):
        for k, item in enumerate(value):
            _require_short_integers(top, item, (*path, k))


_KEY = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'|[A-Za-z0-9_-]+')
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"""(?:"{0,2})|\'\'\'.*?\'\'\'(?:\'{0,2})|"(?:[^"\\]|\\.)*"|\'[^\']*\'', re.S
)
_SCALAR = re.compile(r"[^,\]}#\n]*")
_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")


class _Scanner:
    """Finds the line of every key of a text that is known to be TOML."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._breaks = [place.start() for place in re.finditer("\n", text)]
        self._last: dict[KeyPath, int] = {}  # of arrays of tables
        self.lines: dict[KeyPath, int] = {}
        here: KeyPath = ()
        while self._next():
            if self._next() == "[":
                here = self._header()
            else:
                self._pair(here)

    def _next(self) -> str:
        """The next character that is neither space nor comment; nothing at the end."""
        self._skip(_SPACE)
        return self._text[self._at : self._at + 1]

    def _skip(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        assert found is not None  # the text is TOML
        self._at = found.end()
        return found[0]

    def _took(self, character: str) -> bool:
        taken = self._next() == character
        self._at += taken
        return taken

    def _note(self, path: KeyPath) -> None:
        self.lines.setdefault(path, bisect(self._breaks, self._at) + 1)

    def _keys(self) -> list[str]:
        keys = []
        while True:
            self._next()
            word = self._skip(_KEY)
            quoted = word[0] in "\"'"
            keys.append(next(iter(tomllib.loads(f"{word}=0"))) if quoted else word)
            if not self._took("."):
                return keys

    def _header(self) -> KeyPath:
        self._took("[")
        is_array = self._took("[")
        keys = self._keys()
        path: KeyPath = ()
        for k, key in enumerate(keys):
            path = (*path, key)
            self._note(path)
            if is_array and k == len(keys) - 1:
                self._last[path] = self._last.get(path, -1) + 1
            if path in self._last:
                path = (*path, self._last[path])
                self._note(path)
        self._took("]")
        self._took("]")
        return path

    def _pair(self, path: KeyPath) -> None:
        for key in self._keys():
            path = (*path, key)
            self._note(path)
        self._took("=")
        self._value(path)

    def _value(self, path: KeyPath) -> None:
        first = self._next()
        self._note(path)
        if self._took("{"):
            while not self._took("}"):
                self._pair(path)
                self._took(",")
        elif self._took("["):
            entry = 0
            while not self._took("]"):
                self._value((*path, entry))
                self._took(",")
                entry += 1
        else:
            self._skip(_STRING if first in "\"'" else _SCALAR)
