"""The page on speed shows what was recorded, and a recorded run keeps what was measured."""

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = "<!-- speed: {} -->\nold\n<!-- end -->\n"


@pytest.fixture
def history():
    """The program benchmarks/history.py."""
    place = ROOT / "benchmarks" / "history.py"
    spec = importlib.util.spec_from_file_location("speed_history", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def elsewhere(history, tmp_path, monkeypatch):
    """The same, with files of its own."""
    for name, file in (("RECORDS", "speed.json"), ("PAGE", "speed.md"), ("FIGURE", "speed.png")):
        monkeypatch.setattr(history, name, tmp_path / file)
    history.PAGE.write_text("".join(PAGE.format(name) for name in ("ratios", "costs", "runs")))
    return history


def report(middle, load=0.0, **sections):
    ratio = {"median": middle, "lowest": middle / 2, "highest": 2 * middle}
    measured = {"many": {"risky FrozenLake": {"40 levels, one thread": {"plans": ratio}}}}
    return {
        "machine": {"system": "Linux", "processor": "x", "cores": 2, "load_before": load},
        "versions": {"brmdp": "1.2"},
        "quick": False,
        "sections": measured | sections,
    }


def test_the_page_shows_what_was_recorded(history):
    assert history.recorded()
    text = history.PAGE.read_text()
    assert history.filled(text, history.recorded()) == text
    assert history.FIGURE.exists()
    for run in history.recorded():
        assert set(run["ratios"]) <= set(history.SHOWN)
        for middle, low, high in run["ratios"].values():
            assert low <= middle <= high


def test_a_recorded_run_keeps_what_was_measured(elsewhere):
    elsewhere.record(report(12.0))
    costs = {"states": {"16": 0.001, "64": 0.016}, "fractional_as_long_as_integer": 1.5}
    elsewhere.record(report(6.0, load=3.25, costs=costs))
    first, second = json.loads(elsewhere.RECORDS.read_text())
    assert first["ratios"] == {"levels": [12.0, 6.0, 24.0]}
    assert first["costs"] == {}
    assert second["ratios"] == {"levels": [6.0, 3.0, 12.0], "fraction": [1.5, 1.5, 1.5]}
    assert second["costs"] == {"states": costs["states"]}
    text = elsewhere.PAGE.read_text()
    assert "| `plan_many`, 40 levels, one thread: in plans | 6 | 3 to 12 | 12 | at most 8 |" in text
    # four times the states, sixteen times the time
    assert "| states | 16: 1, 64: 16 | 2.00 |" in text
    assert "| 3.2 | 2 |" in text
    assert "old" not in text
    assert elsewhere.FIGURE.read_bytes()[:4] == b"\x89PNG"
