"""CPU time of a process that imports brmdp and plans once, before and after kernels are kept."""

from __future__ import annotations

import compileall
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import brmdp
from benchmarks.timing import print_table, verdict

TARGETS = {"nothing kept": 20.0, "all kept": 1.5}
IMPORT = "import brmdp"
PLAN = """
import numpy as np
import brmdp

belief = brmdp.DirichletBelief.uniform(16, 4)
rewards = np.random.default_rng(0).random((16, 4))
brmdp.plan(belief, rewards, 0.9, risk=brmdp.Quantile(0.1))
"""


def run(quick: bool) -> dict:
    """User and system seconds of fresh processes, medians over a few."""
    first, later = (1, 3) if quick else (3, 9)
    measured: dict[str, list[float]] = {"nothing kept": [], "all kept": [], "import alone": []}
    for _ in range(first):
        with tempfile.TemporaryDirectory() as folder:
            environment = _installed(Path(folder))
            measured["nothing kept"].append(_cpu_seconds(PLAN, environment))
            for _ in range(-(-later // first)):
                measured["all kept"].append(_cpu_seconds(PLAN, environment))
                measured["import alone"].append(_cpu_seconds(IMPORT, environment))
    report, rows = {}, []
    for name, seconds in measured.items():
        median, target = statistics.median(seconds), TARGETS.get(name)
        report[name] = {"cpu_seconds": seconds, "median": median, "target": target}
        rows.append(
            (
                name,
                f"{median:.2f} ({min(seconds):.2f} to {max(seconds):.2f})",
                verdict(median, at_most=target),
            )
        )
    print_table(
        "CPU seconds of a process that imports brmdp and plans once",
        ("compiled kernels", "seconds (range)", "target"),
        rows,
    )
    return report


def _installed(folder: Path) -> dict[str, str]:
    """A copy of the package with byte code, as after an installation, but without kernels."""
    shutil.copytree(
        Path(brmdp.__file__).parent,
        folder / "source" / "brmdp",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    compileall.compile_dir(folder / "source", quiet=1)
    kept = folder / "kept"
    kept.mkdir()
    return os.environ | {
        "PYTHONPATH": str(folder / "source"),
        "PYTHONWARNINGS": "ignore",
        "NUMBA_CACHE_DIR": str(kept),
        "XDG_CACHE_HOME": str(kept),
        "TMPDIR": str(kept),
    }


def _cpu_seconds(code: str, environment: dict[str, str]) -> float:
    before = os.times()
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    after = os.times()
    return (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
