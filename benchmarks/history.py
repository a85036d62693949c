"""The history of the ratios: kept in docs/explain/speed.json, shown on docs/explain/speed.md.

``python -m benchmarks --record`` adds a run; ``python -m benchmarks.history`` makes the page and
its figure anew from what is kept. The page is written by hand except for the blocks between
``<!-- speed: NAME -->`` and ``<!-- end -->``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from brmdp._files import write_bytes
from brmdp.report.style import new_figure, picture, styled
from brmdp.runs.origin import CODE, short

DOCS = Path(__file__).parents[1] / "docs"
RECORDS = DOCS / "explain" / "speed.json"
PAGE = DOCS / "explain" / "speed.md"
FIGURE = DOCS / "figures" / "speed.png"
BLOCK = re.compile(r"(<!-- speed: (?P<name>\w+) -->\n)(?P<content>.*?)(<!-- end -->)", re.DOTALL)
LAKE = "risky FrozenLake"
BESIDE: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "fontsize": 7}
SIZES = ("states", "actions", "successors", "levels", "draws", "threads")


class Shown(NamedTuple):
    """A ratio of the history: its words, where it is in a report, and what was wanted."""

    words: str
    path: tuple[str, ...]
    wanted: str = ""


SHOWN = {
    "exact": Shown(
        "exact plan, cold: times faster than the paper's planner in NumPy",
        ("baseline", LAKE, "exact, cold", "times_faster_than_paper"),
    ),
    "saddlepoint": Shown(
        "saddlepoint plan, cold: times faster than the paper's planner",
        ("baseline", LAKE, "saddlepoint, cold", "times_faster_than_paper"),
    ),
    "run": Shown(
        "a run of AQ-BRMDP, exact: times faster than in NumPy",
        ("online", "runs", "AQ-BRMDP, exact", "times_faster"),
    ),
    "quantecon": Shown(
        "exact plan, cold: in policy iterations of QuantEcon",
        ("risk-neutral", LAKE, "brmdp exact quantile, cold", "times_as_long_as_quantecon"),
    ),
    "solve": Shown(
        "`brmdp.solve`: in policy iterations of QuantEcon",
        ("risk-neutral", LAKE, "brmdp.solve", "times_as_long_as_quantecon"),
        "at most 1",
    ),
    "mdpsolver": Shown(
        "mdpsolver, from zero: in policy iterations of QuantEcon",
        (
            "risk-neutral",
            LAKE,
            "mdpsolver, modified policy iteration from zero",
            "times_as_long_as_quantecon",
        ),
    ),
    "levels": Shown(
        "`plan_many`, 40 levels, one thread: in plans",
        ("many", LAKE, "40 levels, one thread", "plans"),
        "at most 8",
    ),
    "threads": Shown(
        "`plan_many`, 40 levels, all threads: in plans",
        ("many", LAKE, "most_threads", "plans"),
        "at most 8",
    ),
    "draws": Shown(
        "a policy in 10,000 draws: times faster than a loop in NumPy",
        ("decisions", "16 states", "one action per state", "times_faster_than_loop"),
    ),
    "fraction": Shown(
        "fractional concentrations: in plans with integer ones",
        ("costs", "fractional_as_long_as_integer"),
        "at most 1.7",
    ),
}
"""Every ratio of the page."""


def record(report: dict[str, Any]) -> None:
    """Add the ratios of a report to the history, and make the page anew."""
    machine = report["machine"]
    row = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "version": report["versions"]["brmdp"],
        "code": short(CODE),
        "machine": f"{machine['system']} {machine['processor']}, {machine['cores']} processors",
        "load": machine["load_before"],
        "quick": report["quick"],
        "ratios": {key: found for key, one in SHOWN.items() if (found := _found(report, one.path))},
        "costs": {
            name: costs
            for name, costs in report["sections"].get("costs", {}).items()
            if name in SIZES
        },
    }
    write_bytes(RECORDS, (json.dumps([*recorded(), row], indent=1) + "\n").encode())
    make()


def recorded() -> list[dict[str, Any]]:
    """The recorded runs, oldest first."""
    return json.loads(RECORDS.read_text()) if RECORDS.exists() else []


def _found(report: dict[str, Any], path: tuple[str, ...]) -> list[float] | None:
    """Median, lowest and highest of a ratio; None if it was not measured."""
    here: Any = report["sections"]
    for key in path:
        if not isinstance(here, dict) or key not in here:
            return None
        here = here[key]
    if isinstance(here, dict):
        return [float(f"{here[name]:.4g}") for name in ("median", "lowest", "highest")]
    return [float(f"{here:.4g}")] * 3


def make() -> None:
    """Fill the blocks of the page and draw its figure."""
    runs = recorded()
    PAGE.write_text(filled(PAGE.read_text(), runs))
    write_bytes(FIGURE, picture(drawn(runs), "png"))


def filled(text: str, runs: list[dict[str, Any]]) -> str:
    """The text of the page with its tables."""
    tables: dict[str, Callable[[list[dict[str, Any]]], str]] = {
        "ratios": _ratios,
        "costs": _costs,
        "runs": _runs,
    }
    return BLOCK.sub(lambda block: f"{block[1]}\n{tables[block['name']](runs)}\n\n{block[4]}", text)


def _table(*rows: list[str]) -> str:
    head, *others = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([head, f"|{' :-- |' * len(rows[0])}", *others])


def _ratios(runs: list[dict[str, Any]]) -> str:
    """One line per ratio: the latest, with its range, and the first."""
    rows = [["ratio", "latest", "range over rounds", "first recorded", "wanted"]]
    for key, one in SHOWN.items():
        found = [run["ratios"][key] for run in runs if key in run["ratios"]]
        if not found:
            continue
        middle, low, high = found[-1]
        span = f"{low:.3g} to {high:.3g}" if low < high else ""
        rows.append([one.words, f"{middle:.3g}", span, f"{found[0][0]:.3g}", one.wanted])
    return _table(*rows)


def _costs(runs: list[dict[str, Any]]) -> str:
    """How the latest costs grow."""
    costs = _latest_costs(runs)
    rows = [["with", "milliseconds", "grows with the power"]]
    for name, times in costs.items():
        shown = ", ".join(f"{int(size):,}: {1e3 * time:.3g}" for size, time in times.items())
        rows.append([name, shown, "" if len(times) < 2 else f"{_power(times):.2f}"])
    return _table(*rows)


def _runs(runs: list[dict[str, Any]]) -> str:
    rows = [["date", "version", "code", "machine", "load before", "ratios"]]
    for run in reversed(runs):
        load = "unknown" if run["load"] is None else f"{run['load']:.1f}"
        measured = f"{len(run['ratios'])}{', quick' if run['quick'] else ''}"
        rows.append([run["date"], run["version"], run["code"], run["machine"], load, measured])
    return _table(*rows)


def _latest_costs(runs: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    return next((run["costs"] for run in reversed(runs) if run["costs"]), {})


def _power(times: dict[str, float]) -> float:
    """Slope from the smallest to the largest size, both in logarithms."""
    sizes = [float(size) for size in times]
    seconds = list(times.values())
    return float(np.log(seconds[-1] / seconds[0]) / np.log(sizes[-1] / sizes[0]))


def drawn(runs: list[dict[str, Any]]) -> Figure:
    """Ratios by recorded run, relative to the first, and costs by size."""
    with styled():
        figure = new_figure(8.4, 3.2)
        left, right = figure.subplots(1, 2)
        for number, key in enumerate(SHOWN):
            found = [
                (k, run["ratios"][key][0]) for k, run in enumerate(runs) if key in run["ratios"]
            ]
            if found:
                places, ratios = zip(*found, strict=True)
                left.plot(
                    places,
                    np.array(ratios) / ratios[0],
                    marker="osv^DxP*<>"[number],
                    label=key,
                )
        left.set_xticks(range(len(runs)), [run["date"][2:] for run in runs], rotation=30)
        left.set(yscale="log", ylabel="ratio, first recorded = 1", title="History")
        left.legend(**BESIDE)
        grown = {name: times for name, times in _latest_costs(runs).items() if len(times) > 1}
        for name, times in grown.items():
            sizes = [float(size) for size in times]
            right.plot(sizes, [1e3 * time for time in times.values()], marker="o", label=name)
        right.set(xscale="log", yscale="log", xlabel="number of …", ylabel="ms", title="Growth")
        if grown:
            right.legend(**BESIDE)
        for axis in (left.yaxis, right.xaxis, right.yaxis):
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter(NullFormatter())
    return figure


if __name__ == "__main__":
    make()
