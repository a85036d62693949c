"""Text from outside (labels, names, sentences), made safe to show."""

from __future__ import annotations

import re

__all__ = ["clean", "shorten"]

_UNSHOWABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)
"""Control characters, halves of characters, and marks that turn the direction of what follows."""

_PERCENT = re.compile(r"(?<=\d) %")


def clean(text: str) -> str:
    """The text with a visible sign in place of characters that cannot or must not be shown.

    A percent sign stays on the line of its number.
    """
    return _PERCENT.sub("\u00a0%", _UNSHOWABLE.sub("\ufffd", text))


def shorten(text: str, longest: int) -> str:
    """The text, or its beginning with an ellipsis."""
    text = clean(" ".join(text.split()))
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"
