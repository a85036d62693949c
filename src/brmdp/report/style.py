"""The common style of all figures: colours, lines, type sizes and file formats.

The colours are those of Okabe and Ito, which colour-blind readers can tell apart; line styles and
markers carry the same information in grey. Equal data give equal files.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Literal

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

__all__ = ["COLUMN", "CurveStyle", "new_figure", "picture", "styled", "styles_of"]

COLUMN = 5.2
"""Width of a text column in inches."""

STYLE: dict[Any, Any] = {
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9.0,
    "legend.fontsize": 8.5,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.handlelength": 3.4,
    "pdf.fonttype": 42,
    "text.parse_math": False,  # names of cases are plain text, whatever they contain
    "savefig.dpi": 200,
}

BLACK, ORANGE, SKY, GREEN, BLUE, VERMILION, PURPLE = (
    "#000000",
    "#E69F00",
    "#56B4E9",
    "#009E73",
    "#0072B2",
    "#D55E00",
    "#CC79A7",
)


@dataclass(frozen=True)
class CurveStyle:
    """How a case is drawn.

    Attributes
    ----------
    label : str
    colour : str
    line : str or (offset, pattern)
        Line style, as matplotlib takes it.
    marker : str
        Drawn at a few points along the line, for readers without colour.
    width : float
        Width of the line in points.
    """

    label: str
    colour: str
    line: str | tuple[float, tuple[float, ...]]
    marker: str
    width: float = 1.4


_DASHED = (0, (5, 2))
_DOTTED = (0, (1, 1.4))
_DASH_DOT = (0, (6, 1.5, 1, 1.5))
_LONG = (0, (10, 2.5))

STYLES = {
    "aq-brmdp": CurveStyle("AQ-BRMDP", BLUE, "-", "o", 2.0),
    "continuing-psrl": CurveStyle("Continuing PSRL", VERMILION, _DASHED, "s"),
    "brmdp-0.1": CurveStyle("BRMDP-0.1", BLACK, _DOTTED, "v", 1.7),
    "brmdp-0.2": CurveStyle("BRMDP-0.2", BLACK, _DOTTED, "v", 1.7),
    "brmdp-0.3": CurveStyle("BRMDP-0.3", ORANGE, _DASH_DOT, "D"),
    "brmdp-0.5": CurveStyle("BRMDP-0.5", GREEN, _LONG, "^"),
    "brmdp-0.9": CurveStyle("BRMDP-0.9", GREEN, _LONG, "^"),
    "posterior-mean": CurveStyle("Posterior mean", PURPLE, _DASH_DOT, "D"),
    "aq-brmdp-delta-5": CurveStyle("δ = 5", SKY, _DASHED, "s"),
    "aq-brmdp-delta-10": CurveStyle("δ = 10", BLUE, "-", "o", 2.0),
    "aq-brmdp-delta-15": CurveStyle("δ = 15", BLACK, _DASH_DOT, "D"),
    "exact": CurveStyle("exact", BLUE, "-", "o", 2.0),
    "saddlepoint": CurveStyle("saddlepoint", BLACK, _DOTTED, "v", 1.7),
    "monte-carlo": CurveStyle("Monte Carlo, fresh draws", VERMILION, _DASHED, "s"),
    "monte-carlo-reused": CurveStyle("Monte Carlo, reused draws", PURPLE, _DASH_DOT, "D"),
}
"""Styles of cases that look the same in all figures, by the last part of the case name."""

_SPARE_COLOURS = (PURPLE, SKY, GREEN, ORANGE, BLACK, VERMILION, BLUE)
_SPARE_LINES = ((_DASHED, "s"), (_DOTTED, "v"), (_DASH_DOT, "D"), ("-", "o"))
# seven colours and four lines: neighbours differ in both, and no pair repeats within 28 styles
_SPARE = [(_SPARE_COLOURS[number % 7], *_SPARE_LINES[number % 4]) for number in range(28)]


def styles_of(
    names: Iterable[str], labels: Mapping[str, str] | None = None
) -> dict[str, CurveStyle]:
    """A style for every case name: its fixed style if it has one, otherwise the next spare one.

    ``labels`` gives labels for the legend, by case name; cases may be left out. Cases whose labels
    would be equal are called by their names.
    """
    styles: dict[str, CurveStyle] = {}
    spare = 0
    for name in names:
        known = STYLES.get(name.rsplit("/", 1)[-1])
        if known is None:
            known = CurveStyle(name, *_SPARE[spare % len(_SPARE)])
            spare += 1
        label = (labels or {}).get(name)
        styles[name] = replace(known, label=label) if label else known
    times = Counter(style.label for style in styles.values())
    for name, style in styles.items():
        label = name if times[style.label] > 1 else style.label
        # matplotlib leaves labels that begin with "_" out of legends
        styles[name] = replace(style, label=f" {label}" if label.startswith("_") else label)
    return styles


def styled() -> AbstractContextManager[None]:
    """A context in which matplotlib uses the common style."""
    return matplotlib.rc_context(STYLE)


def new_figure(width: float, height: float) -> Figure:
    """A new figure, made without pyplot; sizes are in inches."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def picture(figure: Figure, kind: Literal["png", "pdf"]) -> bytes:
    """The content of a "png" or "pdf" file of the figure.

    It contains neither dates nor versions, so equal data give equal bytes.
    """
    buffer = io.BytesIO()
    with styled():
        if kind == "pdf":
            figure.savefig(
                buffer,
                format=kind,
                metadata={"CreationDate": None, "Creator": None, "Producer": None},
            )
        else:
            figure.savefig(buffer, format=kind, metadata={"Software": None})
            buffer = _with_palette(buffer)
    return buffer.getvalue()


def _with_palette(png: io.BytesIO) -> io.BytesIO:
    """The same picture reduced to 256 colours, a third of the size."""
    smaller = io.BytesIO()
    with Image.open(png) as image:
        image.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(
            smaller, "png", optimize=True
        )
    return smaller
