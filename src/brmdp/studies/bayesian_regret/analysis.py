"""Bayesian regret: how large it is, how fast it grows, and what the theorem's bound says of it.

The growth exponent of a regret is the slope of its mean, on logarithmic axes, over the last tenfold
of the steps:

    p = ln(BR(T)/BR(T/10)) / ln 10.

Its interval is that of the delta method: the per-run numbers p + (x_i(T)/BR(T) −
x_i(T/10)/BR(T/10)) / ln 10, where x_i is the regret of run i, have mean p and, to first order, the
standard error of p, with the correlation of the two horizons in it.

The bound is a sum of terms that grow as √T times logarithms and of others that hold logarithms
alone. What the logarithms add to ½ over the same steps is read off the bound itself: the exponent
of its √T terms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from brmdp._validation import FloatArray
from brmdp.errors import InvalidInputError
from brmdp.report.claims import Claim, Comparison, Region
from brmdp.report.curves import (
    Curve,
    cumulative_robust_regret,
    cumulative_true_regret,
    reported_steps,
)
from brmdp.report.estimates import Estimate, estimate
from brmdp.report.statistics import ROBUST_REGRET, TRUE_REGRET, Statistic
from brmdp.report.summary import Table, summarise
from brmdp.runs import Case, CaseRecords, Experiment
from brmdp.theory import RegretBound, first_informative_horizon, regret_bound, robust_regret_bound

__all__ = [
    "BOUNDED",
    "CURVES",
    "NAMES",
    "bound_growth",
    "bound_of",
    "claims_of",
    "growth",
    "informative_from",
    "regret_summary",
    "regret_table",
]

NAMES = {"true": "BR", "robust": "BR-R"}
"""The paper's names of the two regrets, by the benchmark against which they are taken."""

CURVES = {"true": cumulative_true_regret, "robust": cumulative_robust_regret}

BALANCED, SENSITIVE, SAMPLING = "aq-brmdp-balanced", "aq-brmdp-delta-5", "continuing-psrl"
FIXED = ("brmdp-0.2", "brmdp-0.5")

BOUNDED = (BALANCED, SENSITIVE)
"""The cases of which the theorem speaks."""

SOLVED = 1e-6
"""Regret per step that is the solver's tolerance.

An agent that plans for the benchmark itself has no more.
"""

LOGARITHMIC = ("doubled counts", "concentration failures", "long episodes")
"""Terms of the bound without √T."""


# --- growth ---------------------------------------------------------------------------------------


def growth(records: CaseRecords, benchmark: str) -> Estimate | None:
    """The growth exponent of a regret between T/10 and T.

    None if it was not recorded, NaN if there is none to grow.
    """
    samples = GROWTH[benchmark].samples(records)
    return None if samples is None else estimate(samples)


def _window(steps: int) -> tuple[int, int]:
    """T/10, at least one step, and T."""
    return max(1, steps // 10), steps


def _growth_samples(curve: Curve | None, steps: int) -> FloatArray | None:
    """Per-run numbers whose mean is the growth exponent."""
    if curve is None:
        return None
    first, last = _window(steps)
    early, late = curve.after(first), curve.after(last)
    mean_early, mean_late = float(early.mean()), float(late.mean())
    if first == last or mean_early <= SOLVED * first or mean_late <= SOLVED * last:
        return np.full(late.shape, np.nan)
    samples: FloatArray = math.log(mean_late / mean_early) + late / mean_late - early / mean_early
    return samples / math.log(last / first)


GROWTH = {
    "true": Statistic(
        "growth exponent of BR over the last tenfold of {steps} steps",
        lambda r, n: _growth_samples(cumulative_true_regret(r), n),
    ),
    "robust": Statistic(
        "growth exponent of BR-R over the last tenfold of {steps} steps",
        lambda r, n: _growth_samples(cumulative_robust_regret(r), n),
    ),
}


# --- the bound ------------------------------------------------------------------------------------


def bound_of(case: Case, benchmark: str, steps: int) -> RegretBound:
    """The theorem's bound for a case of AQ-BRMDP over ``steps`` steps."""
    function = regret_bound if benchmark == "true" else robust_regret_bound
    return function(steps=steps, **_setting(case))


def informative_from(case: Case, benchmark: str) -> int | None:
    """The first T at which the bound is below T/(1 − γ), which no regret exceeds."""
    return first_informative_horizon(**_setting(case), benchmark=benchmark)


def bound_growth(case: Case, benchmark: str) -> float:
    """Exponent of the bound's √T terms between T/10 and T; NaN for a single step."""
    first, last = _window(case.reported_steps)

    def size(steps: int) -> float:
        terms = bound_of(case, benchmark, steps).terms
        return math.fsum(term for name, term in terms.items() if name not in LOGARITHMIC)

    return math.log(size(last) / size(first)) / math.log(last / first) if first < last else math.nan


def _setting(case: Case) -> dict[str, Any]:
    world, schedule = case.environment_parameters, case.agent_parameters
    return {
        "n_states": world["n_states"],
        "n_actions": world["n_actions"],
        "discount": case.discount,
        "delta": schedule["delta"],
        "floor": schedule["floor"],
    }


def _bounded_case(experiment: Experiment, name: str) -> Case:
    case = experiment.case(name)
    if not isinstance(case, Case):
        raise InvalidInputError(f"{name} of {experiment.name} must be an agent in an environment")
    return case


# --- claims ---------------------------------------------------------------------------------------


def claims_of(experiment: Experiment) -> tuple[Claim, ...]:
    """What the paper says of Bayesian regret.

    And comparisons of which it says nothing, to be measured.
    """
    return (
        Claim(
            "bayesian-regret/sublinear",
            "The Bayesian regret of AQ-BRMDP is sublinear, against the true and against the robust "
            "optimum.",
            "Slope of log BR and log BR-R against log T between T/10 and T: below 1.",
            tuple(
                Comparison(GROWTH[benchmark], name, "", "value", Region(high=1.0))
                for benchmark in NAMES
                for name in BOUNDED
            ),
        ),
        Claim(
            "bayesian-regret/square-root",
            "The Bayesian regret of AQ-BRMDP is of order √T up to logarithms, against both "
            "benchmarks.",
            "The same slopes: below that of the √T terms of the bound over the same steps, ½ and "
            "what their logarithms add. A steeper slope would mean that regret far below the bound "
            "is still catching up at these T; it could not refute the theorem.",
            tuple(
                Comparison(
                    GROWTH[benchmark],
                    name,
                    "",
                    "value",
                    Region(high=round(bound_growth(_bounded_case(experiment, name), benchmark), 3)),
                )
                for benchmark in NAMES
                for name in BOUNDED
            ),
        ),
        _below_the_bound(experiment),
        Claim(
            "bayesian-regret/against-sampling",
            "With δ = 1/√(SA), AQ-BRMDP has the regret rate of posterior sampling; the paper does "
            "not say which of them has less Bayesian regret.",
            "Regrets after T steps and growth exponents, on common worlds and seeds; only "
            "measured.",
            tuple(
                Comparison(measure, name, SAMPLING)
                for name in BOUNDED
                for measure in (TRUE_REGRET, ROBUST_REGRET, GROWTH["true"], GROWTH["robust"])
            ),
        ),
        Claim(
            "bayesian-regret/against-fixed-levels",
            "A fixed lower level can be trapped, with linear regret; the paper does not say how "
            "often in worlds from the prior.",
            "Growth exponents of the fixed levels, and the regret of AQ-BRMDP against theirs; only "
            "measured.",
            (
                *(Comparison(GROWTH["true"], name, "", "value") for name in FIXED),
                *(Comparison(TRUE_REGRET, name, fixed) for name in BOUNDED for fixed in FIXED),
            ),
        ),
    )


def _below_the_bound(experiment: Experiment) -> Claim:
    """Judged where the bound says something, and only measured where it is the trivial one.

    Which nothing exceeds.
    """
    comparisons, first = [], []
    for benchmark, regret in NAMES.items():
        for name in BOUNDED:
            case = _bounded_case(experiment, name)
            informative = bound_of(case, benchmark, case.reported_steps).informative
            comparisons.append(
                Comparison(
                    _SHARE[benchmark], name, "", "value", Region(high=1.0) if informative else None
                )
            )
            horizon = informative_from(case, benchmark)
            first.append(
                f"{regret} of {name} " + ("never" if horizon is None else f"T = {horizon:.2g}")
            )
    return Claim(
        "bayesian-regret/below-the-bound",
        "The Bayesian regret of AQ-BRMDP is below the theorem's bound.",
        "Regret after T steps divided by the bound, cut at T/(1 − γ), which nothing exceeds: "
        "judged where the bound is below that, only measured otherwise. It first is at: "
        f"{', '.join(first)}.",
        tuple(comparisons),
    )


def _share_of_bound(records: CaseRecords, benchmark: str, steps: int) -> FloatArray | None:
    curve = CURVES[benchmark](records)
    return (
        None
        if curve is None
        else curve.after(steps) / bound_of(records.case, benchmark, steps).value
    )


_SHARE = {
    "true": Statistic(
        "BR after {steps} steps / its bound", lambda r, n: _share_of_bound(r, "true", n)
    ),
    "robust": Statistic(
        "BR-R after {steps} steps / its bound", lambda r, n: _share_of_bound(r, "robust", n)
    ),
}


# --- summary --------------------------------------------------------------------------------------


def regret_summary(experiment: Experiment, records: Mapping[str, CaseRecords]) -> dict[str, Any]:
    """What ``summary.json`` holds.

    That of every comparison of agents, growth exponents, and the bound term by term.
    """
    return {
        **summarise(experiment, records),
        "growth": {
            name: {b: _as_json(growth(found, b)) for b in NAMES} for name, found in records.items()
        },
        "bounds": {
            name: {
                benchmark: _bound_as_json(_bounded_case(experiment, name), benchmark)
                for benchmark in NAMES
            }
            for name in BOUNDED
        },
    }


def _as_json(found: Estimate | None) -> dict[str, Any] | None:
    return None if found is None else found.as_json()


def _bound_as_json(case: Case, benchmark: str) -> dict[str, Any]:
    bound = bound_of(case, benchmark, case.reported_steps)
    exponent = bound_growth(case, benchmark)
    return {
        "steps": bound.steps,
        "terms": dict(bound.terms),
        "total": bound.total,
        "trivial": bound.trivial,
        "informative": bound.informative,
        "first_informative_horizon": informative_from(case, benchmark),
        "growth_of_root_terms": None if math.isnan(exponent) else exponent,
        "order_horizon": bound.order_horizon,
        "dominant_horizon": bound.dominant_horizon,
    }


def regret_table(records: Mapping[str, CaseRecords]) -> Table:
    """Regrets after the shown steps and their growth exponents, with 95 % intervals.

    One row per agent; and time.
    """
    shown = {reported_steps(found) for found in records.values()}
    after = f"({shown.pop()})" if len(shown) == 1 else ""
    rows = []
    for name, found in records.items():
        cells = []
        for benchmark, curve_of in CURVES.items():
            curve, exponent = curve_of(found), growth(found, benchmark)
            cells.append(
                "–" if curve is None else str(estimate(curve.after(reported_steps(found))))
            )
            cells.append(
                "–" if exponent is None or np.isnan(exponent.mean) else _two_decimals(exponent)
            )
        rows.append((name, *cells, f"{found.seconds.mean():.2f}"))
    header = (
        "agent",
        *(cell for name in NAMES.values() for cell in (f"{name}{after}", "growth")),
        "s/run",
    )
    return Table(header, tuple(rows))


def _two_decimals(found: Estimate) -> str:
    ends = "" if np.isnan(found.low) else f" [{float(found.low):.2f}, {float(found.high):.2f}]"
    return f"{float(found.mean):.2f}{ends}"
