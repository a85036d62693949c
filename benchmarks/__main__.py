"""Run the benchmarks: ``python -m benchmarks [--quick] [--record] [section ...]``.

The results are written to results/bench.json. With ``--record``, their ratios are also added to
docs/explain/speed.json, and the page docs/explain/speed.md and its figure are made anew.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import warnings
from importlib.metadata import version
from pathlib import Path

import brmdp
from benchmarks import (
    baseline,
    decisions,
    first_use,
    following,
    fractions,
    growth,
    history,
    many,
    micro,
    online,
    risk_neutral,
    shapes,
)


def _continuous(quick: bool) -> dict:
    """Run the section on the lake, imported here so that the others run without JAX."""
    from benchmarks import continuous

    return continuous.run(quick)


SECTIONS = {
    "baseline": baseline.run,
    "risk-neutral": risk_neutral.run,
    "dense": growth.run_dense,
    "sparse": growth.run_sparse,
    "chains": growth.run_chains,
    "micro": micro.run,
    "shapes": shapes.run,
    "fractions": fractions.run,
    "first-use": first_use.run,
    "online": online.run,
    "following": following.run,
    "many": many.run,
    "decisions": decisions.run,
    "costs": growth.run_costs,
    "continuous": _continuous,
}
RESULTS = Path("results") / "bench.json"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "sections", nargs="*", metavar="section", help=f"any of {', '.join(SECTIONS)}; default all"
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds and smaller problems")
    parser.add_argument(
        "--record", action="store_true", help="add the ratios to the history in docs/"
    )
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", brmdp.PriorWarning)  # beliefs here are made to be planned
    if unknown := set(arguments.sections) - set(SECTIONS):
        parser.error(
            f"unknown section {', '.join(sorted(unknown))}; choose from {', '.join(SECTIONS)}"
        )

    report = {
        "machine": {
            "system": platform.system(),
            "processor": platform.machine(),
            "cores": os.cpu_count(),
            "load_before": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        },
        "versions": {"python": platform.python_version()}
        | {
            name: version(name)
            for name in ("brmdp", "numpy", "scipy", "numba", "quantecon", "jax", "optax")
        },
        "quick": arguments.quick,
        "sections": {},
    }
    for name in arguments.sections or SECTIONS:
        report["sections"][name] = SECTIONS[name](arguments.quick)
        _write(report)
    print(f"\nwritten to {RESULTS}")
    if arguments.record:
        history.record(report)
        print(f"recorded in {history.RECORDS}")


def _write(report: dict) -> None:
    """Replace the file in one move after every section, so that a stopped run keeps its results."""
    RESULTS.parent.mkdir(exist_ok=True)
    partial = RESULTS.with_name(f".{RESULTS.name}")
    partial.write_text(json.dumps(report, indent=2) + "\n")
    os.replace(partial, RESULTS)


if __name__ == "__main__":
    main()
