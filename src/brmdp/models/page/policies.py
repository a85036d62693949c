"""Policies as pictures: which action where, and how that moves along the dial.

States fill the *cells* of a layout. One ordered column is a strip; two columns are a grid with one
row per label of the first; other states are tiles with names while they are few, and a grid that is
read like text otherwise. Where there are more states than cells, a cell shows the action that most
of its states have. The page's script moves the same cells, from the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

import numpy as np

from brmdp._validation import FloatArray, IntArray
from brmdp.logs import StateSpace
from brmdp.models.page.numbers import number
from brmdp.models.page.svg import Charts, Drawing, at, join, tag
from brmdp.models.page.text import shorten

__all__ = ["LOOKS", "Layout", "PolicyPictures", "lay_out", "look", "runs"]

LOOKS = 40
"""Number of looks of actions: eight colours times five patterns, each pair once."""

COLOURS, PATTERNS = 8, 5
MOST_TILES = 30
MOST_ROWS = 60
GRID_COLUMNS = 48
STRIP_TOP, STRIP_HEIGHT = 22.0, 34.0
CHARACTER = 1.8
"""Width of a character in percent of the narrowest page."""

SHORTEST_LABEL = 5
MAP_HEIGHT = 150.0
MOST_RECTANGLES = 1500
MOST_BARS = 120


def look(action: int) -> str:
    """The fill of an action, as an attribute."""
    return f"url(#a{action % LOOKS})"


def runs(values: Sequence[int] | IntArray) -> Iterator[tuple[int, int, int]]:
    """Stretches of equal values as (first, one past the last, value)."""
    array = np.asarray(values)
    if not array.size:
        return
    edges = [0, *(np.flatnonzero(np.diff(array)) + 1).tolist(), array.size]
    for first, last in pairwise(edges):
        yield first, last, int(array[first])


@dataclass(frozen=True)
class Layout:
    """Where the cells of a policy stand.

    Attributes
    ----------
    kind : "strip", "tiles" or "grid"
    cells, columns, rows : int
    merged : int
        Number of states in a cell.
    left : float
        Where the cells begin, in percent of the width.
    top, height : float
        Where they begin, and the height of a row, in pixels.
    order : (S,) integers
        The states in the order in which they are shown: by their numbers where all have one.
    """

    kind: Literal["strip", "tiles", "grid"]
    cells: int
    columns: int
    rows: int
    merged: int
    left: float
    top: float
    height: float
    order: IntArray = field(compare=False, repr=False)

    def fill(self, actions: IntArray) -> IntArray:
        """The action of every cell."""
        actions = np.asarray(actions, dtype=np.int64)[self.order]
        if self.merged == 1:
            return actions
        chunks = [actions[i : i + self.merged] for i in range(0, actions.size, self.merged)]
        return np.array([np.bincount(chunk).argmax() for chunk in chunks], dtype=np.int64)

    def encode(self, actions: IntArray) -> str:
        """The cells as stretches: "36x0 54x1" is 36 times action 0, then 54 times action 1."""
        parts = []
        for first, last, action in runs(self.fill(actions)):
            parts.append(f"{last - first}x{action}" if last - first > 1 else f"{action}")
        return " ".join(parts)


def lay_out(states: StateSpace, most_cells: int) -> Layout:
    """The layout that suits the state space."""
    n = states.n_states
    order = np.arange(n)
    if states.ordered and states.numbers is not None:
        order = np.argsort(states.numbers, kind="stable")
    merged = math.ceil(n / most_cells)
    cells = math.ceil(n / merged)
    if states.ordered:
        return Layout("strip", cells, cells, 1, merged, 0.0, STRIP_TOP, STRIP_HEIGHT, order)
    sizes = states.shape
    if len(sizes) == 2 and merged == 1 and max(sizes) <= MOST_ROWS:
        height = min(max(360 / sizes[0], 12.0), 26.0)
        return Layout("grid", n, sizes[1], sizes[0], 1, 26.0, 36.0, height, order)
    if n <= MOST_TILES:
        return Layout("tiles", n, 1, n, 1, 0.0, 0.0, 0.0, order)
    columns = min(cells, GRID_COLUMNS)
    rows = math.ceil(cells / columns)
    height = min(max(260 / rows, 5.0), 18.0)
    return Layout("grid", cells, columns, rows, merged, 0.0, 4.0, height, order)


class PolicyPictures:
    """Draws policies of one state space."""

    def __init__(
        self, charts: Charts, states: StateSpace, actions: tuple[str, ...], layout: Layout
    ) -> None:
        self.charts, self.states, self.actions, self.layout = charts, states, actions, layout

    @property
    def caption(self) -> str:
        """What is where, in a sentence."""
        columns = [shorten(axis.column, 60) for axis in self.states.axes]
        layout = self.layout
        if layout.kind == "strip":
            text = f"All {self.states.n_states:,} states of {columns[0]}, from low to high."
        elif layout.kind == "tiles":
            text = "Every state with its action."
        elif layout.left:
            text = f"Rows: {columns[0]}. Columns: {columns[1]}."
        else:
            text = f"All {self.states.n_states:,} states in the order of their labels, row by row."
        if layout.merged > 1:
            text += (
                f" Every cell stands for {layout.merged} states and shows the action that most of "
                "them have."
            )
        return text

    def boundary(self, cell: int) -> str:
        """What stands where a cell of the strip begins."""
        first = int(self.layout.order[cell * self.layout.merged])
        numbers = self.states.numbers
        if numbers is not None and math.isfinite(float(numbers[first])):
            return number(float(numbers[first]))
        return shorten(self.states.labels[first], 12)

    def range(self, first: int, last: int) -> str:
        """The states from place ``first`` to just before place ``last``, in words."""
        labels, edges = self.states.labels, self.states.edges
        start, end = int(self.layout.order[first]), int(self.layout.order[last - 1])
        if start == end:
            return labels[start]
        if edges is not None:
            return f"{number(edges[start])} to {number(edges[end + 1])}"
        return f"{labels[start]} … {labels[end]}"

    @property
    def end(self) -> str:
        """What stands where the strip ends; nothing if the last state has no upper limit."""
        edges = self.states.edges
        return "" if edges is None else number(edges[-1])

    @property
    def boundaries(self) -> tuple[str, ...]:
        """What stands where each cell of a strip begins; nothing for other layouts."""
        if self.layout.kind != "strip":
            return ()
        return tuple(self.boundary(cell) for cell in range(self.layout.cells))

    def patterns(self) -> Drawing:
        """The looks of the actions, to be put on the page once."""
        marks = (
            "",
            "M-2 2L2-2M0 8L8 0M6 10L10 6",
            "M1 1h2v2h-2zM5 5h2v2h-2z",
            "M0 2H8M0 6H8",
            "M2 0V8M6 0V8M0 4H8",
        )
        made = []
        for i in range(min(len(self.actions), LOOKS)):
            content = [tag("rect", width=8, height=8, class_=f"c{i % COLOURS}")]
            if marks[i % PATTERNS]:
                kind = "dots" if i % PATTERNS == 2 else "lines"
                content.append(tag("path", d=marks[i % PATTERNS], class_=f"{kind} k{i % COLOURS}"))
            made.append(
                tag(
                    "pattern",
                    *content,
                    id=f"a{i}",
                    width=8,
                    height=8,
                    patternUnits="userSpaceOnUse",
                )
            )
        return tag("svg", tag("defs", *made), width=0, height=0, class_="defs", aria_hidden="true")

    def swatch(self, action: int) -> Drawing:
        """A sample of an action's look."""
        return tag(
            "svg",
            tag("rect", width="100%", height="100%", fill=look(action)),
            class_="swatch",
            width=16,
            height=16,
            aria_hidden="true",
        )

    def picture(self, actions: IntArray, title: str, words: str) -> Drawing:
        """A policy; ``title`` names it and ``words`` say it."""
        cells = self.layout.fill(actions)
        if self.layout.kind == "tiles":
            return self._tiles(cells)
        layout = self.layout
        content = [tag("g", *self._cells(cells), class_="cells")]
        height = layout.top + layout.rows * layout.height + 4
        if layout.kind == "strip":
            content.append(tag("g", *self._labels(cells), class_="labels"))
            height += 18
        elif layout.left:
            content.extend(self._names())
        return self.charts.chart(height, title, words, *content, class_=f"policy {layout.kind}")

    def thin(self, actions: IntArray, title: str, words: str) -> Drawing:
        """A strip without labels, to be compared with others above and below it."""
        cells = self.layout.fill(actions)
        wide = 100 / max(self.layout.cells, 1)
        content = [
            tag(
                "rect",
                x=at(first * wide),
                width=at((last - first) * wide),
                y=0,
                height=22,
                fill=look(action),
            )
            for first, last, action in runs(cells)
        ]
        return self.charts.chart(22, title, words, *content, class_="policy thin")

    def _cells(self, cells: IntArray) -> Iterator[Drawing]:
        layout = self.layout
        wide = (100 - layout.left) / layout.columns
        for row in range(layout.rows):
            part = cells[row * layout.columns : (row + 1) * layout.columns]
            for first, last, action in runs(part):
                yield tag(
                    "rect",
                    x=at(layout.left + first * wide),
                    width=at((last - first) * wide),
                    y=layout.top + row * layout.height,
                    height=layout.height - (1 if layout.rows > 1 else 0),
                    fill=look(action),
                )

    def _labels(self, cells: IntArray) -> Iterator[Drawing]:
        """Names of actions above the strip, and where they begin below it."""
        layout = self.layout
        wide, below = 100 / layout.cells, layout.top + layout.height + 16
        written = -100.0
        for first, last, action in runs(cells):
            start, width = first * wide, (last - first) * wide
            room = int(width / CHARACTER) - 1
            if room >= min(len(self.actions[action]), SHORTEST_LABEL):
                yield tag("text", shorten(self.actions[action], room), x=at(start), y=14)
            text = self.boundary(first)
            size = len(text) * CHARACTER
            anchor = "start" if start < size / 2 else "end" if start > 100 - size / 2 else "middle"
            left = start - {"start": 0.0, "middle": size / 2, "end": size}[anchor]
            if left >= written:
                yield tag(
                    "text",
                    text,
                    x=at(start),
                    y=below,
                    text_anchor=anchor,
                    class_="tick",
                )
                written = left + size + CHARACTER
        if self.end and written <= 100 - len(self.end) * CHARACTER:
            yield tag("text", self.end, x="100%", y=below, text_anchor="end", class_="tick")

    def _names(self) -> Iterator[Drawing]:
        """Labels of the rows and columns of a grid over two columns of the log."""
        layout = self.layout
        rows, columns = (axis.labels or () for axis in self.states.axes)
        wide = (100 - layout.left) / layout.columns
        for i, label in enumerate(rows):
            y = layout.top + (i + 0.5) * layout.height + 4
            yield tag("text", shorten(label, 13), x="0", y=y, class_="tick")
        every = max(1, math.ceil(8 * CHARACTER / wide))
        for j in range(0, len(columns), every):
            middle = layout.left + (j + 0.5) * wide
            anchor = "end" if middle > 94 else "middle"
            text = shorten(columns[j], max(4, int(every * wide / CHARACTER)))
            yield tag("text", text, x=at(middle), y=26, text_anchor=anchor, class_="tick")

    def _tiles(self, cells: IntArray) -> Drawing:
        entries = [
            tag(
                "li",
                tag("bdi", shorten(self.states.labels[i], 80), class_="state"),
                tag(
                    "span",
                    self.swatch(int(action)),
                    tag("bdi", shorten(self.actions[action], 80)),
                    class_="action",
                ),
            )
            for i, action in enumerate(cells)
        ]
        return tag("ul", *entries, class_="policy tiles")

    def lane(self, values: FloatArray, title: str, words: str) -> Drawing:
        """Bars under a strip, one per state or per some states."""
        values = np.asarray(values, dtype=float)[self.layout.order]
        share = math.ceil(len(values) / MOST_BARS)
        sums = np.add.reduceat(values, np.arange(0, len(values), share))
        most, wide = float(sums.max(initial=0.0)) or 1.0, 100 / (len(values) / share)
        content = [
            tag(
                "rect",
                x=at(i * wide + wide * 0.06),
                width=at(min(wide * 0.88, 100 - i * wide)),
                y=44 - 44 * value / most,
                height=max(44 * value / most, 0.75),
                class_="bar",
            )
            for i, value in enumerate(sums)
            if value > 0
        ]
        floor = tag("line", x1=0, x2="100%", y1=44.5, y2=44.5, class_="rule")
        return self.charts.chart(46, title, words, *content, floor, class_="lane")

    def along(self, stops: Sequence[IntArray], title: str, words: str) -> Drawing | None:
        """The policies of all stops side by side: states upwards, stops from left to right.

        None if the states have no order, or if the picture would be confetti.
        """
        if self.layout.kind != "strip" or len(stops) < 2:
            return None
        n = self.states.n_states
        share = math.ceil(n / MOST_BARS)
        columns = [np.asarray(stop)[self.layout.order][::share] for stop in stops]
        rows = len(columns[0])
        wide, tall = 100 / (len(stops) - 1), MAP_HEIGHT / rows
        made: list[Drawing] = []
        first = 0
        while first < len(columns):
            last = first + 1
            while last < len(columns) and np.array_equal(columns[last], columns[first]):
                last += 1
            left, right = max((first - 0.5) * wide, 0.0), min((last - 0.5) * wide, 100.0)
            for low, high, action in runs(columns[first]):
                made.append(
                    tag(
                        "rect",
                        x=at(left),
                        width=at(right - left),
                        y=MAP_HEIGHT - high * tall,
                        height=(high - low) * tall,
                        fill=look(action),
                    )
                )
            if len(made) > MOST_RECTANGLES:
                return None
            first = last
        cursor = tag(
            "line", x1="0", x2="0", y1=0, y2=MAP_HEIGHT, class_="cursor", visibility="hidden"
        )
        scale = (
            tag("text", self.boundary(0), x="4", y=MAP_HEIGHT - 6, class_="tick halo"),
            tag("text", self.end or self._label(n - 1), x="4", y=16, class_="tick halo"),
        )
        return self.charts.chart(
            MAP_HEIGHT, title, words, join(made), *scale, cursor, class_="policy along"
        )

    def _label(self, place: int) -> str:
        return shorten(self.states.labels[int(self.layout.order[place])], 12)
