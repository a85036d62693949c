"""Make the log of 2,000 patients with sepsis, treated as clinicians treat them.

The patients are simulated: conditions, treatments and outcomes follow the tables of the package
``icu-sepsis`` (Choudhary, Gupta and Thomas, "ICU-Sepsis: A Benchmark MDP Built from Real Medical
Data", 2024), which were estimated from hospital records. ``pip install 'brmdp[icu]'`` brings it in.

A condition is one of 713 clusters of patients, named by the mean SOFA score in it (higher is worse)
and its number. A treatment is a dose of fluids and a dose of vasopressors ("vaso"), each from 0 to
4. Every patient is admitted, and either dies, or survives and is discharged; that is what pays.

Run ``python examples/icu/make_log.py`` to write ``log.csv`` again.
"""

from __future__ import annotations

import csv
from importlib import util
from pathlib import Path

import numpy as np

import brmdp

PATIENTS = 2_000
DEAD, SURVIVED, END = 713, 714, 715
"""The states of the benchmark that are not conditions of a patient."""


def conditions() -> list[str]:
    """A label for every state of the benchmark."""
    spec = util.find_spec("icu_sepsis")
    assert spec is not None
    assert spec.origin is not None
    with np.load(Path(spec.origin).parent / "envs" / "assets" / "dynamics.npz") as tables:
        scores = tables["sofa_scores"]
    labels = [f"SOFA {score:.1f} ({s})" for s, score in enumerate(scores)]
    labels[DEAD], labels[SURVIVED], labels[END] = "died", "survived", "home"
    return labels


def stay(
    start: np.ndarray, clinicians: np.ndarray, kernel: np.ndarray, rng: np.random.Generator
) -> list[tuple[int, int]]:
    """Condition and treatment of one patient, step by step; −1 at the end."""
    state, steps = int(rng.choice(start.size, p=start)), []
    while state < DEAD:
        chances = clinicians[state]
        action = int(rng.choice(chances.size, p=chances / chances.sum()))
        steps.append((state, action))
        state = int(rng.choice(start.size, p=kernel[state, action]))
    steps.append((state, -1))
    return steps


def main() -> None:
    """Write the log beside this file."""
    hospital = brmdp.envs.icu_sepsis()
    start, kernel = np.asarray(hospital.mdp.start), hospital.mdp.kernel()
    labels = conditions()
    rng = np.random.default_rng(2026)
    with open(Path(__file__).with_name("log.csv"), "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["patient", "step", "condition", "treatment"])
        for patient in range(1, PATIENTS + 1):
            lines = [("arrived", "admit")]
            for state, action in stay(start, hospital.clinicians, kernel, rng):
                done = "none" if action < 0 else f"fluids {action // 5} vaso {action % 5}"
                lines.append((labels[state], done if state != SURVIVED else "discharge"))
            if lines[-1][1] == "discharge":
                lines.append((labels[END], "none"))
            writer.writerows((patient, step, *line) for step, line in enumerate(lines))


if __name__ == "__main__":
    main()
