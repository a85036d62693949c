"""Small charts as SVG, drawn for a page that is read on screens of any width and on paper.

Horizontal positions are percentages and vertical ones pixels, so that a chart fills its column
while its text keeps its size. Nothing depends on colour alone: series differ by marker and dash,
actions by pattern. There are no ``style`` attributes: the page's security policy would refuse them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import count, pairwise

from brmdp.models.page.numbers import number
from brmdp.models.page.text import clean, shorten
from brmdp.models.results import Curve, Picture

__all__ = ["Charts", "Drawing", "Frame", "join", "tag", "ticks"]

MOST_ROWS = 24
MOST_SERIES = 8
MOST_POINTS = 400
SPOKEN_POINTS = 12
ROW_LABEL = 46
LARGEST = 1e200


@dataclass(frozen=True)
class Drawing:
    """Markup that is safe to put on the page as it is."""

    text: str

    def __html__(self) -> str:
        return self.text


def tag(
    name: str,
    *content: Drawing | str,
    **attributes: str | float | None,
) -> Drawing:
    """An element with escaped text and attributes; ``class_`` and ``aria_label`` are renamed."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = "".join(
        part.text if isinstance(part, Drawing) else escape(clean(part), quote=False)
        for part in content
    )
    return Drawing(f"<{name}{written}>{inside}</{name}>")


def _value(value: str | float) -> str:
    if isinstance(value, str):
        return escape(clean(value))
    return f"{value:.2f}".rstrip("0").rstrip(".")


def join(parts: Iterable[Drawing]) -> Drawing:
    """Several drawings, one after another."""
    return Drawing("".join(part.text for part in parts))


def at(share: float) -> str:
    """A horizontal position as an attribute."""
    return f"{_value(share)}%"


@dataclass(frozen=True)
class Frame:
    """The area of a chart and its ranges; left and right in percent, the rest in pixels."""

    x_range: tuple[float, float]
    y_range: tuple[float, float]
    left: float = 0.0
    right: float = 100.0
    top: float = 8.0
    bottom: float = 168.0

    def share(self, x: float) -> float:
        """Horizontal position in percent."""
        low, high = self.x_range
        return self.left + (self.right - self.left) * (x - low) / (high - low)

    def x(self, x: float) -> str:
        """Horizontal position as an attribute."""
        return at(self.share(x))

    def y(self, y: float) -> float:
        """Vertical position in pixels."""
        low, high = self.y_range
        return self.bottom - (self.bottom - self.top) * (y - low) / (high - low)

    def stretched(self, *content: Drawing) -> Drawing:
        """Content whose x runs from 0 to 1000 over the width, and whose y are pixels."""
        height = self.bottom - self.top
        return tag(
            "svg",
            *content,
            x=at(self.left),
            y=self.top,
            width=at(self.right - self.left),
            height=height,
            viewBox=f"0 {_value(self.top)} 1000 {_value(height)}",
            preserveAspectRatio="none",
            class_="open",
        )

    def along(self, x: float) -> float:
        """Horizontal position within ``stretched``."""
        low, high = self.x_range
        return 1000 * (x - low) / (high - low)


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers within a range."""
    raw = (high - low) / max(most - 1, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [i * step for i in range(first, last + 1)]


def tick_text(value: float, step: float) -> str:
    """A tick's number with the decimals that its step needs."""
    if abs(value) >= 1e6:
        return number(value)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    if abs(step * 10**decimals - round(step * 10**decimals)) > 1e-6:
        decimals += 1
    return number(round(value, 12), min(decimals, 8))


def drawable(value: float) -> bool:
    """Whether a value has a place on a chart."""
    return abs(value) < LARGEST


def _span(values: Iterable[float], *, zero: bool) -> tuple[float, float]:
    finite = [float(value) for value in values if drawable(value)]
    if zero or not finite:
        finite.append(0.0)
    low, high = min(finite), max(finite)
    if high - low <= 1e-12 * max(abs(low), abs(high), 1e-300):
        room = abs(high) / 10 or 1.0
        return (low, high + room) if zero and low == 0 else (low - room, high + room)
    room = 0.06 * (high - low)
    return (low if zero and low == 0 else low - room), (high if zero and high == 0 else high + room)


def _ends(curve: Curve, i: int) -> tuple[float, float] | None:
    if i >= len(curve.low) or i >= len(curve.high):
        return None
    low, high = float(curve.low[i]), float(curve.high[i])
    return (low, high) if drawable(low) and drawable(high) else None


def _points(curves: Sequence[Curve]) -> Iterator[float]:
    for curve in curves:
        yield from map(float, curve.y)
        yield from map(float, curve.low)
        yield from map(float, curve.high)


def _label(value: float | str) -> str:
    return value if isinstance(value, str) else number(value)


class Charts:
    """Draws the pictures of one page; every element that can be referred to gets its own id."""

    def __init__(self) -> None:
        self._ids = count(1)

    def new_id(self, kind: str) -> str:
        """An id that the page has only once."""
        return f"{kind}-{next(self._ids)}"

    def chart(
        self, height: float, title: str, description: str, *content: Drawing, class_: str = "chart"
    ) -> Drawing:
        """An SVG element with its name and its description for those who do not see it."""
        name, described = self.new_id("t"), self.new_id("d")
        return tag(
            "svg",
            tag("title", title, id=name),
            tag("desc", description, id=described),
            *content,
            class_=class_,
            role="img",
            height=height,
            width="100%",
            aria_labelledby=f"{name} {described}",
        )

    def picture(self, picture: Picture) -> Drawing:
        """Draw the picture of a check.

        Bars and points stand in rows under their labels; where there are too many labels, or the
        picture shows lines, values are vertical.
        """
        curves = tuple(curve for curve in picture.curves if len(curve.y))[:MOST_SERIES]
        if not curves:
            return tag("p", "There is nothing to draw.", class_="quiet")
        labels = list(dict.fromkeys(x for curve in curves for x in curve.x))
        upright = picture.kind == "lines" or len(labels) > MOST_ROWS
        drawn = self._upright(picture, curves, labels) if upright else self._rows(picture, curves)
        caption = tag("figcaption", picture.title)
        return tag("figure", caption, _legend(curves), drawn)

    def _rows(self, picture: Picture, curves: tuple[Curve, ...]) -> Drawing:
        bars = picture.kind == "bars"
        labels = list(dict.fromkeys(x for curve in curves for x in curve.x))
        values = list(_points(curves))
        step, head = 15.0, 20.0
        height = head + step * len(curves) + 10
        above = 18.0
        bottom = above + height * len(labels)
        frame = Frame(_span(values, zero=bars), (0, 1), 1, 99, above, bottom)
        parts = [tag("text", shorten(picture.x, 60), x="0", y=11, class_="tick")]
        parts += self._upright_rules(frame, picture.y)
        for row, label in enumerate(labels):
            top = above + row * height
            found = [
                (k, curve, curve.x.index(label))
                for k, curve in enumerate(curves)
                if label in curve.x
            ]
            said = "; ".join(_said(curve, i) for _, curve, i in found[:1] if len(curves) == 1)
            room = max(ROW_LABEL - len(said), 12)
            parts.append(
                tag("text", shorten(_label(label), room), x="0", y=top + 14, class_="halo")
            )
            if said:
                parts.append(
                    tag("text", said, x="100%", y=top + 14, text_anchor="end", class_="halo figure")
                )
            for k, curve, i in found:
                middle = top + head + step * (k + 0.5)
                parts.append(_horizontal(frame, curve, i, k, middle, bars))
        return self.chart(
            bottom + 44, picture.title, _spoken(picture, curves), *parts, class_="chart rows"
        )

    def _upright_rules(self, frame: Frame, name: str) -> Iterator[Drawing]:
        """Vertical rules with numbers below, for values that run from left to right."""
        chosen = ticks(*frame.x_range, most=4)
        step = chosen[1] - chosen[0] if len(chosen) > 1 else frame.x_range[1] - frame.x_range[0]
        for value in chosen:
            share = frame.share(value)
            kind = "axis" if value == 0 else "rule"
            yield tag(
                "line", x1=at(share), x2=at(share), y1=frame.top, y2=frame.bottom, class_=kind
            )
            yield tag(
                "text",
                tick_text(value, step),
                x=at(share),
                y=frame.bottom + 16,
                text_anchor=_anchor(share),
                class_="tick",
            )
        yield tag("text", shorten(name, 60), x="100%", y=frame.bottom + 36, text_anchor="end")

    def _upright(
        self, picture: Picture, curves: tuple[Curve, ...], labels: list[float | str]
    ) -> Drawing:
        numeric = all(not isinstance(x, str) and drawable(x) for x in labels)
        place = {x: float(x) if numeric else float(i) for i, x in enumerate(labels)}
        y_range = _span(_points(curves), zero=picture.kind == "bars")
        chosen = ticks(*y_range)
        step = chosen[1] - chosen[0] if len(chosen) > 1 else y_range[1] - y_range[0]
        written = [tick_text(value, step) for value in chosen]
        left = min(max(2.1 * max(map(len, written), default=1) + 1.5, 6), 30)
        low, high = min(place.values()), max(place.values())
        if picture.kind != "lines" or low == high:
            gaps = sorted(place.values())
            room = min((b - a for a, b in pairwise(gaps)), default=1.0) / 2
            low, high = low - room, high + room
        frame = Frame((low, high), y_range, left, 99, 26, 196)
        parts = [tag("text", shorten(picture.y, 60), x="0", y=12)]
        for value, text in zip(chosen, written, strict=True):
            y = frame.y(value)
            kind = "axis" if value == 0 else "rule"
            parts.append(tag("line", x1=at(left), x2="99%", y1=y, y2=y, class_=kind))
            parts.append(
                tag("text", text, x=at(left - 1.2), y=y + 4, text_anchor="end", class_="tick")
            )
        parts += _below(frame, labels, place, numeric)
        parts.append(tag("text", shorten(picture.x, 60), x="99%", y=236, text_anchor="end"))
        for k, curve in enumerate(curves):
            shown = _thinned(curve)
            if picture.kind == "lines":
                parts.append(_line(frame, shown, k, place))
            else:
                share = (frame.right - frame.left) / max(len(labels), 1)
                parts.append(
                    _columns(frame, shown, k, place, share, len(curves), picture.kind == "bars")
                )
        return self.chart(244, picture.title, _spoken(picture, curves), *parts)


def _below(
    frame: Frame, labels: list[float | str], place: dict[float | str, float], numeric: bool
) -> Iterator[Drawing]:
    """Ticks under a chart: round numbers, or some of the labels."""
    if numeric and len(labels) > 1:
        chosen = ticks(*frame.x_range, most=5)
        step = chosen[1] - chosen[0] if len(chosen) > 1 else 1.0
        found = [(value, tick_text(value, step)) for value in chosen]
    else:
        every = max(1, math.ceil(len(labels) / 5))
        found = [(place[x], shorten(_label(x), 12)) for x in labels[::every]]
    for value, text in found:
        share = frame.share(value)
        yield tag(
            "text",
            text,
            x=at(share),
            y=frame.bottom + 18,
            text_anchor=_anchor(share),
            class_="tick",
        )


def _anchor(share: float) -> str:
    return "start" if share < 8 else "end" if share > 92 else "middle"


def _thinned(curve: Curve) -> Curve:
    every = math.ceil(len(curve.y) / MOST_POINTS)
    if every <= 1:
        return curve
    return Curve(
        curve.name,
        curve.x[::every],
        curve.y[::every],
        curve.low[::every],
        curve.high[::every],
    )


def _horizontal(
    frame: Frame, curve: Curve, i: int, series: int, middle: float, bars: bool
) -> Drawing:
    value, ends = float(curve.y[i]), _ends(curve, i)
    parts = []
    if not drawable(value):
        return tag("text", "unknown", x="2%", y=middle + 4, class_="tick")
    if bars:
        start, stop = sorted((frame.share(0.0), frame.share(value)))
        parts.append(
            tag(
                "rect",
                x=at(start),
                width=at(stop - start),
                y=middle - 5,
                height=10,
                class_=f"s{series} fill",
            )
        )
    if ends is not None:
        parts.append(
            tag(
                "line",
                x1=frame.x(ends[0]),
                x2=frame.x(ends[1]),
                y1=middle,
                y2=middle,
                class_="interval" if bars else f"s{series} stroke thick",
            )
        )
    if not bars:
        parts.append(marker(frame.x(value), middle, series))
    return join(parts)


def marker(x: str, y: float, series: int) -> Drawing:
    """A mark whose form says the series."""
    forms = (
        "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z",
        "M-4.5-4.5h9v9h-9z",
        "M0-6L6 0L0 6L-6 0z",
        "M0-6L6 5H-6z",
    )
    form = tag("path", d=forms[series % len(forms)], class_=f"s{series} mark")
    return tag("svg", form, x=x, y=y, width=1, height=1, class_="open")


def _line(frame: Frame, curve: Curve, series: int, place: dict[float | str, float]) -> Drawing:
    """A line with its band; gaps where values are missing."""
    spots = [
        (frame.along(place[x]), frame.y(float(y)), _ends(curve, i))
        for i, (x, y) in enumerate(zip(curve.x, curve.y, strict=False))
        if drawable(float(y))
    ]
    if not spots:
        return Drawing("")
    parts = []
    banded = [(x, frame.y(ends[0]), frame.y(ends[1])) for x, _, ends in spots if ends is not None]
    if len(banded) > 1:
        there = [f"{_value(x)} {_value(low)}" for x, low, _ in banded]
        back = [f"{_value(x)} {_value(high)}" for x, _, high in reversed(banded)]
        parts.append(tag("path", d="M" + "L".join(there + back) + "z", class_=f"s{series} band"))
    path = "M" + "L".join(f"{_value(x)} {_value(y)}" for x, y, _ in spots)
    parts.append(tag("path", d=path, class_=f"s{series} stroke"))
    drawn = [frame.stretched(*parts)]
    if len(spots) <= 30:
        scale = (frame.right - frame.left) / 1000
        drawn += [marker(at(frame.left + x * scale), y, series) for x, y, _ in spots]
    return join(drawn)


def _columns(
    frame: Frame,
    curve: Curve,
    series: int,
    place: dict[float | str, float],
    share: float,
    several: int,
    bars: bool,
) -> Drawing:
    width = 0.8 * share / several
    parts = []
    for i, (x, y) in enumerate(zip(curve.x, curve.y, strict=False)):
        if not drawable(float(y)):
            continue
        middle = frame.share(place[x]) + (series - (several - 1) / 2) * width
        ends = _ends(curve, i)
        if bars:
            top, bottom = sorted((frame.y(float(y)), frame.y(0.0)))
            parts.append(
                tag(
                    "rect",
                    x=at(middle - width / 2),
                    width=at(width),
                    y=top,
                    height=bottom - top,
                    class_=f"s{series} fill",
                )
            )
        if ends is not None:
            parts.append(
                tag(
                    "line",
                    x1=at(middle),
                    x2=at(middle),
                    y1=frame.y(ends[0]),
                    y2=frame.y(ends[1]),
                    class_="interval" if bars else f"s{series} stroke",
                )
            )
        if not bars:
            parts.append(marker(at(middle), frame.y(float(y)), series))
    return join(parts)


def _legend(curves: tuple[Curve, ...]) -> Drawing:
    if len(curves) == 1:
        return Drawing("")
    entries = []
    for k, curve in enumerate(curves):
        sample = tag(
            "svg",
            tag("line", x1=0, x2=28, y1=7, y2=7, class_=f"s{k} stroke"),
            marker("14", 7, k),
            class_="sample",
            width=28,
            height=14,
            aria_hidden="true",
        )
        entries.append(tag("li", sample, tag("bdi", curve.name)))
    return tag("ul", *entries, class_="legend")


def _said(curve: Curve, i: int) -> str:
    value, ends = float(curve.y[i]), _ends(curve, i)
    if ends is None:
        return number(value)
    decimals = _shared_decimals(ends[1] - ends[0], value)
    return (
        f"{number(value, decimals)} ({number(ends[0], decimals, 'down')} to "
        f"{number(ends[1], decimals, 'up')})"
    )


def _shared_decimals(width: float, value: float) -> int:
    size = width / 2 if width > 0 else abs(value) / 100
    return 0 if size <= 0 else min(max(1 - math.floor(math.log10(size)), 0), 8)


def _spoken(picture: Picture, curves: tuple[Curve, ...]) -> str:
    """The picture in words, for readers who hear the page."""
    sentences = [f"{picture.y} by {picture.x}."]
    for curve in curves:
        every = max(1, math.ceil(len(curve.y) / SPOKEN_POINTS))
        chosen = range(0, len(curve.y), every)
        values = "; ".join(
            f"{shorten(_label(curve.x[i]), 60)}: {_said(curve, i)}"
            for i in chosen
            if i < len(curve.x)
        )
        part = "" if every == 1 else f" (every {every}th of {len(curve.y)} values)"
        sentences.append(f"{curve.name}{part}: {values}.")
    return " ".join(sentences)
