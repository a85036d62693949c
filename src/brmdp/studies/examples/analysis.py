"""From the replications of ``examples`` to numbers and judged claims.

Propositions 2 and 3 are not statistical: each is looked at for every parameter set, and one
exception would contradict it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from brmdp._validation import FloatArray, IntArray
from brmdp.report.claims import JudgedClaim, JudgedComparison, Region
from brmdp.report.estimates import Estimate, estimate
from brmdp.report.replications import NO_EXCEPTION, certain, heading, pooled, proportion
from brmdp.report.summary import Table
from brmdp.runs import Experiment, Replications
from brmdp.runs.programs import parameters_of
from brmdp.theory.examples import SAFE, START

__all__ = [
    "agents_of",
    "escape_steps",
    "examples_claims",
    "examples_summary",
    "examples_table",
    "final_regret",
]

ROUNDING = 1e-9
"""Largest deviation from an exact statement, relative to the stated number."""

LOST = 4
"""The absorbing state b of the second example, worth nothing."""


def agents_of(records: Mapping[str, Replications]) -> dict[str, Replications]:
    """The cases in which an agent acts in the second example."""
    return {
        name: found for name, found in records.items() if found.case.program == "probing-example"
    }


def escape_steps(found: Replications) -> IntArray:
    """First step of each run at which the agent left the safe action.

    Or the number of steps if it never did.
    """
    left = (found.columns["state"] == START) & (found.columns["action"] != SAFE)
    ever = np.column_stack([left, np.ones(found.run.size, dtype=bool)])
    steps: IntArray = ever.argmax(axis=1)
    return steps


def final_regret(found: Replications) -> FloatArray:
    """R_T of each run."""
    regret: FloatArray = found.columns["regret"].sum(axis=1)
    return regret


def examples_summary(experiment: Experiment, records: Mapping[str, Replications]) -> dict[str, Any]:
    """What ``summary.json`` holds."""
    return {
        **heading(experiment, records),
        "propositions": {
            name: {"problems": int(problems), "exceptions": exceptions}
            for name, (problems, exceptions) in _propositions(records).items()
        },
        "agents": {name: _agent(found) for name, found in agents_of(records).items()},
    }


def _agent(found: Replications) -> dict[str, Any]:
    return {
        "runs": int(found.run.size),
        "steps": int(found.columns["state"].shape[1]),
        "true_regret": estimate(final_regret(found)).as_json(),
        "escaped": proportion(_escaped(found)).as_json(),
        "escape_step": estimate(escape_steps(found)).as_json(),
        "lost": proportion(_lost(found)).as_json(),
    }


def _escaped(found: Replications) -> Any:
    return escape_steps(found) < found.columns["state"].shape[1]


def _lost(found: Replications) -> Any:
    """Whether a run ended in b."""
    return found.columns["state"][:, -1] == LOST


def examples_table(records: Mapping[str, Replications]) -> Table:
    """What every agent did in the second example."""
    header = ("agent", "R_T", "left s₀ at step", "escaped", "ended in b")

    def row(name: str, found: Replications) -> tuple[str, ...]:
        escaped = _escaped(found)
        steps = str(estimate(escape_steps(found))) if escaped.all() else "–"
        return (
            name,
            str(estimate(final_regret(found))),
            steps,
            f"{escaped.mean():.2f}",
            f"{_lost(found).mean():.2f}",
        )

    return Table(header, tuple(row(name, found) for name, found in agents_of(records).items()))


def examples_claims(
    experiment: Experiment, records: Mapping[str, Replications]
) -> tuple[JudgedClaim, ...]:
    """Propositions 2 and 3 for random parameters, and what the adaptive schedule does."""
    found = _propositions(records)

    def judged(identifier: str, paper: str, test: str) -> list[JudgedClaim]:
        if identifier not in found:
            return []
        problems, exceptions = found[identifier]
        comparisons = tuple(
            JudgedComparison.of(
                experiment.name,
                f"exceptions: {what}",
                certain(count, problems),
                NO_EXCEPTION,
                note=f"in {problems} parameter sets",
            )
            for what, count in exceptions.items()
        )
        return [JudgedClaim(f"examples/{identifier}", paper, test, comparisons)]

    random = (
        "Parameters drawn at random from those that the proposition allows; half of the levels at "
        "α = 1 − μ itself."
    )
    return (
        *judged(
            "proposition-2",
            "The posterior-mean policy takes the risky action, the α-quantile policy the safe one; "
            "their posterior downside exposures are 1 − μ and 0 (Proposition 2).",
            random,
        ),
        *judged(
            "proposition-3",
            "Planning at a fixed level α ≤ 1 − μ, the agent never leaves s₀, learns nothing, and "
            "its regret is R_T = T(γ² − c)/(1 − γ) exactly (Proposition 3).",
            f"{random} Regret within 10⁻⁹ of the stated one, relatively.",
        ),
        *judged(
            "conditions",
            "Not in the paper: the condition α ≤ 1 − μ is sharp in both propositions.",
            "At α = 1 − μ + 10⁻⁶ the quantile policy is risky in the first example, and explores "
            "at once in the second.",
        ),
        *judged(
            "escape",
            "Not in the paper: with the adaptive schedule, planning after every step, the agent "
            "leaves the trap in a pseudo-episode that can be computed beforehand.",
            "δ = 5, α̲ = 0.2; the pseudo-episode in which it explores, against the computed one.",
        ),
        *_adaptive(experiment.name, records),
    )


def _propositions(records: Mapping[str, Replications]) -> dict[str, tuple[int, dict[str, int]]]:
    """How many problems were looked at, and how many exceptions to each statement there were."""
    found: dict[str, tuple[int, dict[str, int]]] = {}
    sharp: dict[str, int] = {}
    if "robustness" in records:
        first = records["robustness"]
        stated = 1.0 - pooled(first, "good_probability")
        found["proposition-2"] = (
            stated.size,
            {
                "posterior-mean policy is risky": _failures(pooled(first, "mean_risky")),
                "quantile policy is safe": _failures(pooled(first, "quantile_safe")),
                "exposure of the posterior-mean policy is 1 − μ": _failures(
                    np.abs(pooled(first, "mean_exposure") - stated) <= ROUNDING
                ),
                "exposure of the quantile policy is 0": _failures(
                    pooled(first, "quantile_exposure") == 0.0
                ),
            },
        )
        sharp["risky in the first example"] = _failures(pooled(first, "risky_above_the_atom"))
    if "trap" in records:
        second = records["trap"]
        stated = pooled(second, "stated_regret")
        found["proposition-3"] = (
            stated.size,
            {
                "agent stays at s₀": _failures(pooled(second, "left_start") == 0.0),
                "posterior unchanged": _failures(pooled(second, "learnt") == 0.0),
                "R_T as stated": _failures(
                    np.abs(pooled(second, "regret") - stated) <= ROUNDING * stated
                ),
            },
        )
        escape = {
            "pseudo-episode as computed": _failures(
                pooled(second, "escape") == pooled(second, "stated_escape")
            )
        }
        found["escape"] = (stated.size, escape)
        sharp["explores in the second example"] = _failures(
            pooled(second, "explores_above_the_atom")
        )
    if len(sharp) == 2:
        found["conditions"] = (min(found["proposition-2"][0], found["proposition-3"][0]), sharp)
    return found


def _failures(held: Any) -> int:
    """All but what certainly held."""
    return int(np.count_nonzero(np.asarray(held) != 1))


def _adaptive(experiment: str, records: Mapping[str, Replications]) -> list[JudgedClaim]:
    """Escapes with geometric pseudo-episodes.

    And their price where the bad kernel is the true one.
    """
    agents = agents_of(records)
    claims = []
    adaptive = {name: found for name, found in agents.items() if _random(found) and not _bad(found)}
    if adaptive:
        claims.append(
            JudgedClaim(
                "examples/adaptive",
                "Raising the level of rarely tried pairs as learning goes on ends the trap: the "
                "adaptive schedule explores.",
                "Share of runs that leave s₀ within the steps simulated; under the good kernel.",
                tuple(
                    JudgedComparison.of(
                        experiment, f"{name}: escaped", proportion(_escaped(found)), Region(low=0.9)
                    )
                    for name, found in adaptive.items()
                ),
            )
        )
    bad = {name: found for name, found in agents.items() if _bad(found)}
    if bad:
        claims.append(
            JudgedClaim(
                "examples/price",
                "Not in the paper: what exploring costs where the bad kernel is the true one.",
                "R_T, and the share of runs that end in b, where nothing is paid for ever: a plan "
                "kept for a whole pseudo-episode goes on to exploit before the agent has learnt "
                "from y_B.",
                tuple(
                    JudgedComparison.of(experiment, f"{name}: {what}", price, note=note)
                    for name, found in bad.items()
                    for what, price, note in _price(found)
                ),
            )
        )
    return claims


def _price(found: Replications) -> list[tuple[str, Estimate, str]]:
    if _random(found):
        return [
            ("R_T", estimate(final_regret(found)), ""),
            ("ended in b", proportion(_lost(found)), ""),
        ]
    alone = "the only possible course"
    return [
        ("R_T", certain(final_regret(found)[0], 1), alone),
        ("ended in b", certain(float(_lost(found)[0]), 1), alone),
    ]


def _random(found: Replications) -> bool:
    """Whether runs differ.

    Planning after every step leaves nothing to chance, and a fixed level never moves.
    """
    parameters = parameters_of(found.case)
    return parameters["restart"] == "geometric" and parameters["alpha"] is None


def _bad(found: Replications) -> bool:
    return bool(parameters_of(found.case)["truth"] == "bad")
