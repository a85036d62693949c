"""From the replications of ``examples`` to numbers and judged claims.

Propositions 2 and 3 are not statistical: each is checked for every parameter set, and a single
exception would contradict it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from brmdp._validation import BoolArray, FloatArray, IntArray
from brmdp.report.claims import NO_EXCEPTION, JudgedClaim, JudgedComparison, Region
from brmdp.report.estimates import Estimate, estimate, exact_number, proportion
from brmdp.report.findings import Findings
from brmdp.report.summary import heading
from brmdp.report.tables import Table
from brmdp.runs import Experiment, Replications
from brmdp.runs.program import parameters_of
from brmdp.studies.examples.experiment import ProbingColumns, RobustnessColumns, TrapColumns
from brmdp.theory.examples import SAFE, START

__all__ = ["Probing", "agents_of", "analyse", "escape_steps"]

Probing: TypeAlias = Replications[ProbingColumns]

ROUNDING = 1e-9
"""Largest deviation from an exact statement, relative to the stated number."""

LOST = 4
"""The absorbing state b of the second example, worth nothing."""


def agents_of(records: Mapping[str, Replications[Any]]) -> dict[str, Probing]:
    """The cases in which an agent acts in the second example."""
    return {
        name: found for name, found in records.items() if isinstance(found.columns, ProbingColumns)
    }


def escape_steps(found: Probing) -> IntArray:
    """First step of each run at which the agent explored, or the number of steps if it never did.

    Exploring means leaving the safe action at s₀.
    """
    left = (found.columns.state == START) & (found.columns.action != SAFE)
    ever = np.column_stack([left, np.ones(found.run.size, dtype=bool)])
    steps: IntArray = ever.argmax(axis=1)
    return steps


def analyse(experiment: Experiment, records: Mapping[str, Replications[Any]]) -> Findings:
    """Exceptions to Propositions 2 and 3, and the regrets of agents in the trap."""
    return Findings(summary(experiment, records), table(records), claims(experiment.name, records))


# --- summary --------------------------------------------------------------------------------------


def summary(experiment: Experiment, records: Mapping[str, Replications[Any]]) -> dict[str, Any]:
    """The content of ``summary.json``."""
    return {
        **heading(experiment, records),
        "propositions": {
            name: {"problems": int(problems), "exceptions": exceptions}
            for name, (problems, exceptions) in _propositions(records).items()
        },
        "agents": {name: _agent(found) for name, found in agents_of(records).items()},
    }


def _agent(found: Probing) -> dict[str, Any]:
    return {
        "runs": int(found.run.size),
        "steps": int(found.columns.state.shape[1]),
        "true_regret": estimate(_final_regret(found)).as_json(),
        "escaped": proportion(_escaped(found)).as_json(),
        "escape_step": estimate(escape_steps(found)).as_json(),
        "lost": proportion(_lost(found)).as_json(),
    }


def _final_regret(found: Probing) -> FloatArray:
    """R_T of each run."""
    regret: FloatArray = found.columns.regret.sum(axis=1)
    return regret


def _escaped(found: Probing) -> BoolArray:
    """Whether the agent ever explored, for each run."""
    escaped: BoolArray = escape_steps(found) < found.columns.state.shape[1]
    return escaped


def _lost(found: Probing) -> BoolArray:
    """Whether each run ended in b."""
    lost: BoolArray = found.columns.state[:, -1] == LOST
    return lost


def table(records: Mapping[str, Replications[Any]]) -> Table:
    """What every agent did in the second example."""
    header = ("agent", "regret R_T", "left s₀ at step", "share that left", "share ending in b")

    def row(name: str, found: Probing) -> tuple[str, ...]:
        escaped = _escaped(found)
        steps = str(estimate(escape_steps(found))) if escaped.all() else "–"
        return (
            name,
            str(estimate(_final_regret(found))),
            steps,
            f"{escaped.mean():.2f}",
            f"{_lost(found).mean():.2f}",
        )

    return Table(header, tuple(row(name, found) for name, found in agents_of(records).items()))


# --- claims ---------------------------------------------------------------------------------------


def claims(name: str, records: Mapping[str, Replications[Any]]) -> tuple[JudgedClaim, ...]:
    """Propositions 2 and 3 for random parameters, and what the adaptive schedule does."""
    found = _propositions(records)

    def judged(identifier: str, paper: str, test: str) -> list[JudgedClaim]:
        if identifier not in found:
            return []
        problems, exceptions = found[identifier]
        comparisons = tuple(
            JudgedComparison.of(
                name,
                f"exceptions to “{statement}”",
                exact_number(count, problems),
                NO_EXCEPTION,
                note=f"in {problems} parameter sets",
            )
            for statement, count in exceptions.items()
        )
        return [JudgedClaim(f"examples/{identifier}", paper, test, comparisons)]

    random = (
        "Parameters are drawn at random within the conditions of the proposition; half of the "
        "levels equal 1 − μ."
    )
    return (
        *judged(
            "proposition-2",
            "The posterior-mean policy takes the risky action and the α-quantile policy the safe "
            "one; their posterior downside exposures are 1 − μ and 0 (Proposition 2).",
            random,
        ),
        *judged(
            "proposition-3",
            "An agent that plans at a fixed level α ≤ 1 − μ never leaves s₀ and learns nothing; "
            "its regret is exactly R_T = T(γ² − c)/(1 − γ) (Proposition 3).",
            f"{random} The regret must agree with the stated one to a relative error of 10⁻⁹.",
        ),
        *judged(
            "conditions",
            "Not in the paper: the condition α ≤ 1 − μ is sharp in both propositions.",
            "At α = 1 − μ + 10⁻⁶ the quantile policy must take the risky action in the first "
            "example and explore at once in the second.",
        ),
        *judged(
            "escape",
            "Not in the paper: an agent with the adaptive schedule that plans after every step "
            "leaves the trap in a pseudo-episode that can be computed beforehand.",
            "With δ = 5 and α̲ = 0.2, the pseudo-episode in which it explores must be the computed "
            "one.",
        ),
        *_adaptive(name, records),
    )


def _propositions(
    records: Mapping[str, Replications[Any]],
) -> dict[str, tuple[int, dict[str, int]]]:
    """How many problems were checked, and how many exceptions to each statement there were."""
    found: dict[str, tuple[int, dict[str, int]]] = {}
    sharp: dict[str, int] = {}
    if "robustness" in records:
        first: RobustnessColumns = records["robustness"].pooled
        stated = 1.0 - first.good_probability
        found["proposition-2"] = (
            stated.size,
            {
                "posterior-mean policy is risky": _failures(first.mean_risky),
                "quantile policy is safe": _failures(first.quantile_safe),
                "exposure of the posterior-mean policy is 1 − μ": _failures(
                    np.abs(first.mean_exposure - stated) <= ROUNDING
                ),
                "exposure of the quantile policy is 0": _failures(first.quantile_exposure == 0.0),
            },
        )
        sharp["risky in the first example"] = _failures(first.risky_above_the_atom)
    if "trap" in records:
        second: TrapColumns = records["trap"].pooled
        stated = second.stated_regret
        found["proposition-3"] = (
            stated.size,
            {
                "agent stays at s₀": _failures(second.left_start == 0),
                "belief unchanged": _failures(second.learnt == 0),
                "R_T as stated": _failures(np.abs(second.regret - stated) <= ROUNDING * stated),
            },
        )
        found["escape"] = (
            stated.size,
            {"pseudo-episode as computed": _failures(second.escape == second.stated_escape)},
        )
        sharp["explores in the second example"] = _failures(second.explores_above_the_atom)
    if len(sharp) == 2:
        found["conditions"] = (min(found["proposition-2"][0], found["proposition-3"][0]), sharp)
    return found


def _failures(held: ArrayLike) -> int:
    """How many entries are not certainly true; NaN counts as a failure."""
    return int(np.count_nonzero(np.asarray(held) != 1))


def _adaptive(name: str, records: Mapping[str, Replications[Any]]) -> list[JudgedClaim]:
    """Escapes with geometric pseudo-episodes, and their price if the bad kernel is the true one."""
    agents = agents_of(records)
    judged = []
    adaptive = {case: found for case, found in agents.items() if _random(found) and not _bad(found)}
    if adaptive:
        judged.append(
            JudgedClaim(
                "examples/adaptive",
                "Raising the level of rarely tried pairs over time frees the agent from the trap: "
                "with the adaptive schedule it explores.",
                "Share of runs that leave s₀ within the simulated steps if the good kernel is the "
                "true one.",
                tuple(
                    JudgedComparison.of(
                        name, f"{case}: left s₀", proportion(_escaped(found)), Region(low=0.9)
                    )
                    for case, found in adaptive.items()
                ),
            )
        )
    bad = {case: found for case, found in agents.items() if _bad(found)}
    if bad:
        judged.append(
            JudgedClaim(
                "examples/price",
                "Not in the paper: what exploring costs if the bad kernel is the true one.",
                "R_T, and the share of runs that end in b, where nothing more is paid. An agent "
                "that keeps its plan for a whole pseudo-episode goes on to exploit before it has "
                "learnt anything from reaching y_B.",
                tuple(
                    JudgedComparison.of(name, f"{case}: {what}", price, note=note)
                    for case, found in bad.items()
                    for what, price, note in _price(found)
                ),
            )
        )
    return judged


def _price(found: Probing) -> list[tuple[str, Estimate, str]]:
    if _random(found):
        return [
            ("R_T", estimate(_final_regret(found)), ""),
            ("ended in b", proportion(_lost(found)), ""),
        ]
    note = "nothing is random: all runs are equal"
    return [
        ("R_T", exact_number(_final_regret(found)[0], 1), note),
        ("ended in b", exact_number(float(_lost(found)[0]), 1), note),
    ]


def _random(found: Probing) -> bool:
    """Whether runs differ.

    They do not if the agent plans after every step, or at a fixed level, where it never moves.
    """
    parameters = parameters_of(found.case)
    return parameters["restart"] == "geometric" and parameters["alpha"] is None


def _bad(found: Probing) -> bool:
    """Whether the bad kernel is the true one."""
    return bool(parameters_of(found.case)["truth"] == "bad")
