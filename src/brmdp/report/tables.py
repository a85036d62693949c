"""Tables, as text for a terminal or as Markdown."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TERMINAL", "Table"]

TERMINAL = 100
"""Width of a terminal, in characters."""


@dataclass(frozen=True)
class Table:
    """Rows of text under a header.

    Attributes
    ----------
    header : tuple of str
    rows : tuple of tuples of str

    Examples
    --------
    >>> table = Table(("agent", "regret"), (("AQ-BRMDP", "39.4"), ("PSRL", "121.6")))
    >>> print(table.as_text())
    agent     regret
    AQ-BRMDP    39.4
    PSRL       121.6
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def as_text(self) -> str:
        """Aligned columns, the first flush left and the others flush right.

        If a row would not fit on a terminal, names go on lines of their own.
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
        """A Markdown table; with ``numbers``, all columns but the first are flush right."""
        alignment = (":--", *("--:" if numbers else ":--" for _ in self.header[1:]))
        lines = [[cell.replace("|", r"\|") for cell in line] for line in (self.header, *self.rows)]
        lines.insert(1, list(alignment))
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)
