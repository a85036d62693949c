"""Damaged and hostile files: a log whose account adds up, or an error of the library's own."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from brmdp.errors import InvalidInputError
from brmdp.logs import Bins, read_log

pytest.importorskip("pyarrow")

LOG = b"unit,month,miles,decision\n" + b"".join(
    b"%s,2019-%02d,%d,%s\n" % (unit, month, 700 * month, b"keep" if month % 5 else b'"re, new"')
    for unit in (b"a", b"b")
    for month in range(1, 13)
)
PIECES = (
    *(b'"', b'""', b"\n", b"\r", b"\r\n", b",", b";", b"\t", b"\0", b"\xff", b"\xef\xbb\xbf", b" "),
    *(b"1e999", b"NaN", b"inf", b"-", b"9" * 400, b"2019-99", b"\xe2\x80\xae", b"\x1b[2J", b"=1+1"),
    *(b"</script>", b"%s%n", b"x" * 300, b"2019-02-29", b"0x10", b"\xc3", b"'", b"\\"),
)
WAYS = (
    {"state": Bins("miles", (0, 3000, 9000)), "unit": "unit", "time": "month"},
    {"state": "miles", "unit": "unit"},
    {"state": "miles", "next_state": "month"},
    {"state": Bins("miles", (0, 3000, 9000), "clip"), "time": "miles", "amount": "miles"},
    {"state": ["unit", "decision"], "unit": "unit", "time": "month", "groups": "unit"},
)


def damaged(rng):
    content = bytearray(LOG)
    for _ in range(rng.integers(1, 6)):
        at = int(rng.integers(len(content) + 1))
        kind = rng.integers(4)
        if kind == 0:
            content[at : at + int(rng.integers(40))] = b""
        elif kind == 1:
            content[at:at] = rng.bytes(int(rng.integers(1, 9)))
        else:
            content[at:at] = PIECES[rng.integers(len(PIECES))]
    return bytes(content)


def survives(content, path, way):
    path.write_bytes(content)
    log = refused = None
    try:
        log = read_log(path, action="decision", **way)
    except InvalidInputError as error:
        refused = str(error)
    if log is None:
        assert refused.isprintable()
        assert len(refused) < 1000
        return False
    report = log.report
    assert str(report).replace("\n", "").isprintable()
    assert report.lines == report.kept_lines + sum(
        one.lines for one in report.dropped if not one.line_kept
    )
    assert report.kept_lines == report.transitions + sum(
        one.lines for one in report.dropped if one.line_kept
    )
    for codes, size in (
        (log.state, log.states.n_states),
        (log.next_state, log.states.n_states),
        (log.action, len(log.actions)),
        (log.unit, len(log.unit_names)),
    ):
        assert ((codes >= 0) & (codes < size)).all()
    for numbers in (log.time, log.amount):
        assert numbers is None or np.isfinite(numbers).all()
    return True


@pytest.mark.parametrize("way", WAYS)
def test_damaged_files(way, tmp_path):
    rng = np.random.default_rng(14)
    read = sum(survives(damaged(rng), tmp_path / "log.csv", way) for _ in range(40))
    assert read >= 8


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_many_damaged_files(way, tmp_path):
    rng = np.random.default_rng(15)
    for _ in range(800):
        survives(damaged(rng), tmp_path / "log.csv", way)
        survives(rng.bytes(int(rng.integers(1, 200))), tmp_path / "log.csv", way)
        packed = bytearray(gzip.compress(LOG))
        packed[rng.integers(len(packed))] ^= 1 << rng.integers(8)
        survives(bytes(packed), tmp_path / "log.csv.gz", way)
