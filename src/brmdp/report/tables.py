"""Tables as text for a terminal and as Markdown."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TERMINAL", "Table"]

TERMINAL = 100
"""Columns of a terminal."""


@dataclass(frozen=True)
class Table:
    """Rows of text under a header.

    Attributes
    ----------
    header : tuple of str
    rows : tuple of tuples of str
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def as_text(self) -> str:
        """Aligned columns: the first to the left, the others to the right.

        Long names on lines of their own.
        """
        lines = [self.header, *self.rows]
        widths = [max(len(line[column]) for line in lines) for column in range(len(self.header))]
        if sum(widths) + 2 * (len(widths) - 1) > TERMINAL:
            lines = [
                part
                for name, *cells in lines
                for part in ((name, *("" for _ in cells)), ("", *cells))
            ]
            widths[0] = 0
        aligned = []
        for line in lines:
            cells = [
                line[0].ljust(widths[0]),
                *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True)),
            ]
            aligned.append("  ".join(cells).rstrip())
        return "\n".join(aligned)

    def as_markdown(self, *, numbers: bool = True) -> str:
        """A Markdown table; columns of ``numbers`` stand to the right, but for the first."""
        alignment = (":--", *("--:" if numbers else ":--" for _ in self.header[1:]))
        return "\n".join(
            "| " + " | ".join(line) + " |" for line in (self.header, alignment, *self.rows)
        )
