"""Random logs with the dirt that logs have."""

from __future__ import annotations

import csv
import io

import numpy as np

STATES = ("good", "worn", "broken", "good", "worn")
DIRTY_CELLS = ("", "NA", " ", "NaN", "null", "inf", "-inf", "1e400", "abc", "1,5", "12 000", "0x10")
LABELS = ("Worn", "wоrn", "<script>alert(1)</script>", "=1+1", "a,b", 'say "no"', "two\nlines", "é")


def random_log(seed):
    """Text of a log, and how to read it, for ``read_log`` and for the oracle alike."""
    rng = np.random.default_rng(seed)
    pick = rng.integers
    n_units, length = int(pick(1, 6)), int(pick(1, 9))
    dates = rng.random() < 0.4
    word = ("month", "day", "hour", "week", "quarter", "year")[pick(6)]
    dirt = (0.0, 0.03, 0.15)[pick(3)]
    lines = []
    for unit in range(n_units):
        start = int(pick(-5, 1000))
        for k in range(length if rng.random() < 0.8 else 1):
            if rng.random() < dirt:
                continue  # a gap
            lines.append(
                [
                    f"bus {unit}" if pick(2) else f" bus {unit} ",
                    "ab"[unit % 2],
                    _date(start + k, word, rng) if dates else _number(start + 2 * k, rng),
                    repr(round(float(rng.gamma(2.0, 5.0)), 2)),
                    STATES[pick(5)],
                    STATES[pick(5)],
                    repr(round(float(rng.gamma(2.0, 5.0)), 2)),
                    ("keep", "replace")[int(rng.random() < 0.2)],
                    repr(round(float(rng.normal()), 3)),
                ]
            )
    if not lines:
        when = "2019-01" if dates else "1"
        lines.append(["bus 0", "a", when, "3", "good", "worn", "2", "keep", "1"])
    for line in [list(line) for line in lines]:
        if rng.random() < dirt:
            lines.append(line)  # a duplicate
        if rng.random() < dirt:
            other = list(line)
            other[pick(3, 9)] = ("7.25", "worn")[pick(2)]
            lines.append(other)  # perhaps a contradiction
    for line in lines:
        for column in range(len(line)):
            if column != 1 and rng.random() < dirt / 3:
                line[column] = (DIRTY_CELLS + LABELS)[pick(len(DIRTY_CELLS) + len(LABELS))]
    if rng.random() < 0.5:
        rng.shuffle(lines)
    ragged = list(lines)
    for k, line in enumerate(lines):
        if rng.random() < dirt / 4:
            ragged[k] = line[: pick(1, 9)] if pick(2) else [*line, "more"]
    header = ["unit", "model", "when", "wear", "look", "next look", "next wear", "do", "paid"]
    delimiter = (",", ";", "\t")[pick(3)]
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator=("\n", "\r\n")[pick(2)])
    writer.writerow(header)
    for line in ragged:
        writer.writerow(line)
        if rng.random() < dirt / 4:
            text.write("\n")
    content = ("\ufeff" if pick(4) == 0 else "") + text.getvalue()
    return content, _way(rng, dates, word, delimiter)


def _way(rng, dates, word, delimiter):
    """How to read it: keywords that both readers share, and those of the states."""
    labels = (None, ("good", "worn", "broken"))[rng.integers(2)]
    edges, outside = (0.0, 5.0, 7.25, 20.0), ("drop", "clip")[rng.integers(2)]
    look, wear = ("categories", "look", labels), ("bins", "wear", edges, outside)
    state = ([look], [wear], [look, wear])[rng.integers(3)]
    way = {"state": state, "action": "do", "delimiter": delimiter}
    if rng.random() < 0.8:
        way["unit"] = ["unit"] if rng.integers(2) else ["model", "unit"]
    if rng.random() < 0.8:
        way["time"] = "when"
        if dates:
            way["step"] = (1, word)
        elif rng.integers(2):
            way["step"] = 2
    if rng.random() < 0.3:
        way["next_state"] = [f"next {axis[1]}" for axis in state]
    if rng.random() < 0.3:
        way["amount"] = "paid"
    if rng.random() < 0.3:
        way["actions"] = ("keep", "replace")
    if way.get("unit") == ["model", "unit"] and rng.integers(2):
        way["groups"] = ["model"]
    return way


def _number(value, rng):
    return (str(value), f" {value}", f"{value}.0", f"+{value}")[rng.integers(4)].replace("+-", "-")


def _date(k, word, rng):
    """The k-th day, month, … after 2018, written in one of several ways."""
    k = abs(k)
    if word in ("month", "quarter", "year"):
        months = k * {"month": 1, "quarter": 3, "year": 12}[word]
        month = np.datetime64("2018-01", "M") + months
        if rng.integers(2):
            return str(month)
        last = (month + 1).astype("datetime64[D]") - 1
        return str(last if rng.integers(2) else month.astype("datetime64[D]"))
    hours = k * {"hour": 1, "day": 24, "week": 168}[word]
    moment = np.datetime64("2018-12-30T05", "h") + hours
    if word == "hour":
        return str(moment.astype("datetime64[m]")).replace("T", "T "[rng.integers(2)])
    return str(moment.astype("datetime64[D]"))
