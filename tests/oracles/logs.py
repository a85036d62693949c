"""Reading a log line by line, with the csv module, dictionaries and loops."""

from __future__ import annotations

import csv
import datetime
import io
import itertools
import math
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field

MISSING = {"", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null"}
SPACE = " \t\n\r\v\f\u00a0\ufeff"
DATE = re.compile(
    r"(\d{4})-(\d\d)(?:-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d))?(Z|[+-]\d\d:\d\d)?)?)?", re.ASCII
)


@dataclass
class Outcome:
    """What became of the lines; labels instead of numbers."""

    lines: int
    dropped: Counter = field(default_factory=Counter)
    kept: list = field(default_factory=list)
    transitions: list = field(default_factory=list)
    previous: list = field(default_factory=list)
    step: object = None


def number(text, decimal="."):
    """The finite number in a text, else None."""
    if decimal == ",":
        if "." in text:
            return None
        text = text.replace(",", ".")
    if not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text, re.ASCII):
        return None
    found = float(text)
    return found if math.isfinite(found) else None


def date(text):
    """Date and time on the wall and in universal time, else None."""
    found = DATE.fullmatch(text)
    if not found:
        return None
    year, month, day, hour, minute, second, zone = found.groups()
    try:
        wall = datetime.datetime(
            int(year), int(month), int(day or 1), int(hour or 0), int(minute or 0), int(second or 0)
        )
    except ValueError:
        return None
    offset = datetime.timedelta(0)
    if zone not in (None, "Z"):
        sign = -1 if zone[0] == "-" else 1
        offset = sign * datetime.timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6]))
    return wall, wall - offset


def calendar(moment, word):
    """Which second, hour, day, … it is."""
    wall, universal = moment
    days = wall.toordinal()
    seconds = (universal - datetime.datetime(1, 1, 1)) // datetime.timedelta(seconds=1)
    return {
        "second": seconds,
        "minute": seconds // 60,
        "hour": seconds // 3600,
        "day": days,
        "week": (days - 1) // 7,
        "month": wall.year * 12 + wall.month,
        "quarter": wall.year * 4 + (wall.month - 1) // 3,
        "year": wall.year,
    }[word]


def place(axis, text, decimal):
    """The label of a reading, or the reason why it has none."""
    kind, _, *rest = axis
    if kind == "categories":
        labels = rest[0]
        return (text, None) if labels is None or text in labels else (None, "unknown label")
    edges, outside = rest
    value = number(text, decimal)
    if value is None:
        return None, "not a number"
    if outside == "clip":
        value = min(max(value, edges[0]), edges[-1])
    for k, (low, high) in enumerate(itertools.pairwise(edges)):
        if low <= value < high or (k == len(edges) - 2 and value == high):
            return f"{low:.12g} to {high:.12g}", None
    return None, "outside the bins"


def read(
    text,
    *,
    state,
    action,
    actions=None,
    unit=(),
    time=None,
    step=None,
    next_state=(),
    amount=None,
    groups=(),
    delimiter=",",
    decimal=".",
):
    """Read a log.

    ``state`` is a list of ("bins", column, edges, outside) or ("categories", column, labels or
    None), ``step`` a number or (number, word).
    """
    rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row]
    header = [name.strip(SPACE) for name in rows[0]]
    outcome = Outcome(len(rows) - 1)
    dates = None
    if time is not None:
        column = header.index(time)
        cells = [row[column].strip(SPACE) for row in rows[1:] if len(row) == len(header)]
        cells = [cell for cell in cells if cell not in MISSING]
        n_dates = sum(date(cell) is not None for cell in cells)
        dates = n_dates > 0 and n_dates >= sum(number(cell, decimal) is not None for cell in cells)

    points = []  # (unit, moment, state or None, what the line says or None)
    strangers = []
    for at, row in enumerate(rows[1:]):
        if len(row) != len(header):
            outcome.dropped["wrong number of fields", ""] += 1
            strangers.append(at)
            continue
        cell = {name: value.strip(SPACE) for name, value in zip(header, row, strict=True)}
        faults = [("missing", name) for name in unit if cell[name] in MISSING]
        who = None if faults else tuple(cell[name] for name in unit)
        if who is None:
            strangers.append(at)
        faults += [("missing", name) for name in groups if cell[name] in MISSING]
        when = at
        if time is not None:
            when = date(cell[time]) if dates else number(cell[time], decimal)
            if cell[time] in MISSING:
                when = None
                faults.append(("missing", time))
            elif when is None:
                faults.append(("not a date" if dates else "not a number", time))
            elif not dates and re.fullmatch(r"[+-]?\d+", cell[time], re.ASCII):
                when = int(cell[time])
        located = who is not None and when is not None
        fine_so_far = not faults
        readings, followers = [], []
        for names, found in (([axis[1] for axis in state], readings), (next_state, followers)):
            for axis, name in zip(state, names, strict=False):
                if cell[name] in MISSING:
                    faults.append(("missing", name))
                    found.append(None)
                    continue
                label, reason = place(axis, cell[name], decimal)
                found.append(label)
                if reason:
                    faults.append((reason, name))
        known = fine_so_far and None not in readings
        if cell[action] in MISSING:
            faults.append(("missing", action))
        elif actions is not None and cell[action] not in actions:
            faults.append(("unknown label", action))
        paid = None
        if amount is not None:
            paid = number(cell[amount], decimal)
            if cell[amount] in MISSING:
                faults.append(("missing", amount))
            elif paid is None:
                faults.append(("not a number", amount))
        if faults:
            outcome.dropped[faults[0]] += 1
        if located:
            here = " | ".join(readings) if known else None
            after = " | ".join(followers) if next_state and not faults else None
            kind = " / ".join(cell[name] for name in groups)
            says = None if faults else (here, cell[action], after, paid, kind)
            points.append((" / ".join(who), when, at, here, says))

    def moment(when):
        return when[1] if dates else when

    nodes = defaultdict(list)  # by unit: (when, place, state or None, what it says or None)
    by_time = defaultdict(list)
    for who, when, at, here, says in points:
        by_time[who, moment(when) if time is not None else at].append((when, at, here, says))
    for (who, _), several in sorted(by_time.items(), key=lambda item: (item[0][0], item[0][1])):
        states = {here for _, _, here, _ in several if here is not None}
        said = [entry for entry in several if entry[3] is not None]
        contents = {entry[3][:4] for entry in said}
        if len(states) > 1 or len(contents) > 1:
            if said:
                outcome.dropped["contradictory duplicate", ""] += len(said)
            nodes[who].append((several[0][0], several[0][1], None, None))
            continue
        if len(said) > 1:
            outcome.dropped["duplicate", ""] += len(said) - 1
        chosen = said or [entry for entry in several if entry[2] is not None] or several
        nodes[who].append(chosen[0])

    step = found_step(nodes, dates) if time is not None and step is None else step
    outcome.step = step

    def one_step(first, second):
        if time is None:
            return not any(first[1] < at < second[1] for at in strangers)
        if step is None:
            return False
        if dates:
            count, word = step
            return calendar(second[0], word) - calendar(first[0], word) == count
        return math.isclose(second[0] - first[0], step, rel_tol=1e-9)

    for who, chain in nodes.items():
        last_row = None
        for k, node in enumerate(chain):
            row = None
            if node[3] is not None:
                here, chosen, after, paid, kind = node[3]
                outcome.kept.append((who, here, chosen, kind))
                follower = chain[k + 1] if k + 1 < len(chain) else None
                if next_state:
                    reason = None
                elif follower is None:
                    reason = "last line"
                elif not one_step(node, follower):
                    reason = "gap" if time is not None else "next state unknown"
                elif follower[2] is None:
                    reason = "next state unknown"
                else:
                    reason, after = None, follower[2]
                if reason is None:
                    row = len(outcome.transitions)
                    joined = (
                        k > 0
                        and last_row is not None
                        and one_step(chain[k - 1], node)
                        and outcome.transitions[last_row][3] == here
                    )
                    outcome.previous.append(last_row if joined else -1)
                    outcome.transitions.append((who, here, chosen, after, paid, kind))
                else:
                    outcome.dropped[reason, ""] += 1
            last_row = row
    return outcome


def found_step(nodes, dates):
    """The commonest difference of numbers; the smallest of several."""
    assert not dates, "the step must be given for dates"
    differences = Counter(
        second[0] - first[0]
        for chain in nodes.values()
        for first, second in itertools.pairwise(chain)
    )
    if not differences:
        return None
    most = max(differences.values())
    return min(difference for difference, count in differences.items() if count == most)
