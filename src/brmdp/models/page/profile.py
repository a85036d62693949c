"""The dial's chart: mean and guaranteed value at every stop, right above the slider."""

from __future__ import annotations

import math
from collections.abc import Sequence

from brmdp.models.page.numbers import exact_percent, level, number
from brmdp.models.page.sentences import Language
from brmdp.models.page.svg import (
    Charts,
    Drawing,
    Frame,
    at,
    join,
    marker,
    tag,
    tick_text,
    ticks,
)
from brmdp.models.results import GroupDecision

__all__ = ["profile", "stop_ticks"]

TOP, BOTTOM = 22.0, 172.0


def profile(
    charts: Charts, language: Language, group: GroupDecision, best: Sequence[int]
) -> Drawing:
    """Draw the values along the dial; stop i stands at i/(stops − 1) of the width."""
    series = (
        (f"expected {language.word}", [group.policies[s.policy].mean.mean for s in group.dial]),
        (
            f"estimated guarantee ({exact_percent(group.guarantee.confidence)})",
            [group.policies[s.policy].guaranteed for s in group.dial],
        ),
    )
    last = len(group.dial) - 1
    finite = [value for _, values in series for value in values if math.isfinite(value)] or [0.0]
    low, high = min(finite), max(finite)
    room = 0.12 * (high - low) or abs(high) / 10 or 1.0
    frame = Frame((0, last), (low - room, high + room), 0, 100, TOP, BOTTOM)
    parts = []
    if best:
        parts.append(_band(frame, best, last))
    chosen = ticks(*frame.y_range, most=4)
    step = chosen[1] - chosen[0] if len(chosen) > 1 else high - low + 2 * room
    for value in chosen:
        y = frame.y(value)
        parts.append(tag("line", x1="0", x2="100%", y1=y, y2=y, class_="rule"))
        parts.append(tag("text", tick_text(value, step), x="0", y=y - 4, class_="tick halo"))
    for k, (_, values) in enumerate(series):
        parts.append(_line(frame, values, k))
    parts.append(
        tag(
            "line",
            x1="0",
            x2="0",
            y1=TOP - 6,
            y2=BOTTOM,
            class_="cursor",
            visibility="hidden",
        )
    )
    names = " and ".join(name for name, _ in series)
    return join(
        (
            _legend([name for name, _ in series]),
            charts.chart(
                BOTTOM + 2,
                f"Discounted {language.word} along the dial",
                f"{names} at every stop, from cautious to curious. "
                + _ends(language, group, series),
                *parts,
                class_="chart profile",
            ),
        )
    )


def _band(frame: Frame, best: Sequence[int], last: int) -> Drawing:
    """The stops at which the recommended policy is planned."""
    left = max(frame.share(best[0] - 0.5), 0.0)
    right = min(frame.share(best[-1] + 0.5), 100.0)
    parts = []
    first = previous = best[0]
    for stop in (*best[1:], None):
        if stop is not None and stop == previous + 1:
            previous = stop
            continue
        start, end = max(frame.share(first - 0.5), 0.0), min(frame.share(previous + 0.5), 100.0)
        parts.append(
            tag(
                "rect",
                x=at(start),
                width=at(end - start),
                y=TOP - 6,
                height=BOTTOM - TOP + 6,
                class_="best",
            )
        )
        if stop is not None:
            first = previous = stop
    middle = (left + right) / 2
    anchor = "start" if middle < 15 else "end" if middle > 85 else "middle"
    x = left if anchor == "start" else right if anchor == "end" else middle
    parts.append(tag("text", "recommended", x=at(x), y=11, text_anchor=anchor, class_="best-label"))
    return join(parts)


def _line(frame: Frame, values: Sequence[float], series: int) -> Drawing:
    spots = [(i, frame.y(v)) for i, v in enumerate(values) if math.isfinite(v)]
    if not spots:
        return Drawing("")
    path = "M" + "L".join(f"{frame.along(i):.1f} {y:.1f}" for i, y in spots)
    line = frame.stretched(tag("path", d=path, class_=f"s{series} stroke"))
    return join([line, *(marker(frame.x(i), y, series) for i, y in spots)])


def _legend(names: Sequence[str]) -> Drawing:
    entries = []
    for k, name in enumerate(names):
        sample = tag(
            "svg",
            tag("line", x1=0, x2=28, y1=7, y2=7, class_=f"s{k} stroke"),
            marker("14", 7, k),
            class_="sample",
            width=28,
            height=14,
            aria_hidden="true",
        )
        entries.append(tag("li", sample, name))
    return tag("ul", *entries, class_="legend")


def _ends(
    language: Language, group: GroupDecision, series: Sequence[tuple[str, Sequence[float]]]
) -> str:
    places = language.value_decimals(group)
    return " ".join(
        f"At level {level(group.dial[i].level)}: "
        + ", ".join(f"{name} {number(values[i], places)}" for name, values in series)
        + "."
        for i in (0, len(group.dial) // 2, len(group.dial) - 1)
    )


def stop_ticks(stops: int, best: Sequence[int]) -> Drawing:
    """A scale for the slider; stops of the recommended policy have longer ticks."""
    made = [
        tag(
            "line",
            x1=at(100 * i / (stops - 1)),
            x2=at(100 * i / (stops - 1)),
            y1=0,
            y2=10 if i in best else 5,
            class_="stop best" if i in best else "stop",
        )
        for i in range(stops)
    ]
    return tag("svg", *made, class_="ticks", height=11, width="100%", aria_hidden="true")
