"""From decisions and checks of simulated logs to numbers and judged claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from brmdp._validation import FloatArray
from brmdp.report.claims import ABOVE_ZERO, JudgedClaim, JudgedComparison, Region
from brmdp.report.estimates import Estimate, estimate, proportion
from brmdp.report.findings import Findings
from brmdp.report.summary import heading
from brmdp.report.tables import Table
from brmdp.runs import Experiment, Replications
from brmdp.studies.from_logs.experiment import CONFIDENCE, AlarmColumns, LogColumns

__all__ = ["Alarms", "Promises", "analyse_alarms", "analyse_promises", "gain"]

Promises: TypeAlias = Replications[LogColumns]
Alarms: TypeAlias = Replications[AlarmColumns]

FALSE_ALARMS = 0.05
"""Largest share of right models that may be stopped."""


def gain(found: Promises) -> FloatArray:
    """True gain of the recommendation over practice, log by log; positive is better."""
    columns = found.pooled
    difference: FloatArray = columns.true_value - columns.practice_value
    return difference if found.case.parameters["kind"] == "clinic" else -difference


def _share(found: Promises | Alarms, name: str) -> Estimate:
    return proportion(np.asarray(getattr(found.pooled, name)) > 0)


# --- promises -------------------------------------------------------------------------------------


def analyse_promises(experiment: Experiment, records: Mapping[str, Promises]) -> Findings:
    """How often promises hold, and what following the recommendation is worth."""
    cases = {name: _promise(found) for name, found in records.items()}
    content = {**heading(experiment, records), "cases": cases}
    return Findings(content, _table_of_promises(records), _claims(experiment.name, records))


def _promise(found: Promises) -> dict[str, Any]:
    columns = found.pooled
    return {
        "logs": int(columns.held.size),
        "held": _share(found, "held").as_json(),
        "better": _share(found, "better").as_json(),
        "gain_within": _share(found, "gain_within").as_json(),
        "true_value": estimate(columns.true_value).as_json(),
        "practice_value": estimate(columns.practice_value).as_json(),
        "optimum": estimate(columns.optimum).as_json(),
        "stopped": _share(found, "stops").as_json(),
        "stopped_by": dict(_names(columns.stopped_by)),
        "seconds": estimate(columns.seconds).as_json(),
    }


def _names(texts: Any) -> Counter[str]:
    return Counter(name for text in texts for name in str(text).split(", ") if name)


def _table_of_promises(records: Mapping[str, Promises]) -> Table:
    """Shares of logs: certificate held, better than practice, true gain in its interval; means."""
    header = (
        "case",
        "logs",
        "held",
        "better",
        "gain in",
        "bound",
        "true value",
        "practice",
        "optimum",
        "stopped",
        "s/log",
    )

    def row(name: str, found: Promises) -> tuple[str, ...]:
        columns = found.pooled
        means = (columns.bound, columns.true_value, columns.practice_value, columns.optimum)
        return (
            name,
            str(columns.held.size),
            f"{columns.held.mean():.2f}",
            f"{columns.better.mean():.2f}",
            f"{columns.gain_within.mean():.2f}",
            *(f"{mean.mean():.4g}" for mean in means),
            f"{(columns.stops > 0).mean():.2f}",
            f"{columns.seconds.mean():.2g}",
        )

    return Table(header, tuple(row(name, found) for name, found in records.items()))


def _claims(name: str, records: Mapping[str, Promises]) -> tuple[JudgedClaim, ...]:
    drawn, fixed = (
        {case: one for case, one in records.items() if one.case.parameters["truth"] == truth}
        for truth in ("drawn", "fixed")
    )
    everything = [*drawn.values()]
    judged = []
    if everything:
        together = proportion(np.concatenate([one.pooled.held for one in everything]))
        judged.append(
            JudgedClaim(
                f"{name}/kept",
                "Where the truth is drawn from the prior that the model states, the certificate "
                "holds with probability at least 0.9.",
                "Share of logs after which the bound holds in truth, all kinds together.",
                (JudgedComparison.of(name, "all drawn", together, Region(low=CONFIDENCE)),),
            )
        )
    judged += [
        JudgedClaim(
            f"{name}/better",
            "Following the recommendation pays: its true value is above that of practice.",
            "True gain, averaged over logs.",
            tuple(
                JudgedComparison.of(name, case, estimate(gain(found)), ABOVE_ZERO)
                for case, found in records.items()
            ),
        ),
        JudgedClaim(
            f"{name}/right-models",
            "Models that are right are rarely stopped: in at most 5 % of logs.",
            "Share of logs with a check that says stop, all kinds together.",
            (
                JudgedComparison.of(
                    name,
                    "all",
                    proportion(np.concatenate([one.pooled.stops for one in records.values()]) > 0),
                    Region(high=FALSE_ALARMS),
                ),
            ),
        ),
    ]
    if fixed:
        judged.append(
            JudgedClaim(
                f"{name}/fixed",
                "Where the truth is not drawn from the prior, nothing is promised: how often the "
                "certificate held there.",
                "Share of logs after which the bound holds in truth.",
                tuple(
                    JudgedComparison.of(name, case, _share(found, "held"))
                    for case, found in fixed.items()
                ),
            )
        )
    return tuple(judged)


# --- alarms ---------------------------------------------------------------------------------------


def analyse_alarms(experiment: Experiment, records: Mapping[str, Alarms]) -> Findings:
    """How often the checks stop right models, and wrong ones."""
    cases = {
        name: {
            "logs": int(found.pooled.stops.size),
            "stopped": _share(found, "stops").as_json(),
            "named": _share(found, "named").as_json(),
            "noticed": _share(found, "noticed").as_json(),
            "stopped_by": dict(_names(found.pooled.stopped_by)),
            "seconds": estimate(found.pooled.seconds).as_json(),
        }
        for name, found in records.items()
    }
    content = {**heading(experiment, records), "cases": cases}
    return Findings(content, _table_of_alarms(records), _claims_of_alarms(experiment.name, records))


def _table_of_alarms(records: Mapping[str, Alarms]) -> Table:
    header = ("case", "logs", "stopped", "by the right check", "noticed by it", "stopped by", "s")

    def row(name: str, found: Alarms) -> tuple[str, ...]:
        columns = found.pooled
        wrong = found.case.parameters["defect"] != "none"
        by = ", ".join(f"{one} {times}" for one, times in _names(columns.stopped_by).most_common())
        return (
            name,
            str(columns.stops.size),
            f"{(columns.stops > 0).mean():.2f}",
            f"{columns.named.mean():.2f}" if wrong else "",
            f"{columns.noticed.mean():.2f}" if wrong else "",
            by,
            f"{columns.seconds.mean():.2g}",
        )

    return Table(header, tuple(row(name, found) for name, found in records.items()))


def _claims_of_alarms(name: str, records: Mapping[str, Alarms]) -> tuple[JudgedClaim, ...]:
    right = [one for one in records.values() if one.case.parameters["defect"] == "none"]
    wrong = {case: one for case, one in records.items() if one.case.parameters["defect"] != "none"}
    judged = []
    if right:
        stops = np.concatenate([one.pooled.stops for one in right]) > 0
        judged.append(
            JudgedClaim(
                f"{name}/false",
                "Models that are right are stopped in at most 5 % of logs.",
                "Share of logs with a check that says stop.",
                (JudgedComparison.of(name, "none", proportion(stops), Region(high=FALSE_ALARMS)),),
            )
        )
    if wrong:
        judged.append(
            JudgedClaim(
                f"{name}/found",
                "How often the check for a defect says stop, by the size of the log; nothing is "
                "claimed.",
                "Share of logs.",
                tuple(
                    JudgedComparison.of(name, case, _share(found, "named"))
                    for case, found in wrong.items()
                ),
            )
        )
    return tuple(judged)
