"""From the runs of ``bayesian-regret`` to growth exponents, bounds and judged claims.

The growth exponent of a regret is the slope of its mean, on logarithmic axes, between T/10 and T:

    p = ln(BR(T)/BR(T/10)) / ln 10.

Its interval comes from the delta method. Let x_i be the regret of run i. The per-run numbers
p + (x_i(T)/BR(T) − x_i(T/10)/BR(T/10)) / ln 10 have mean p and, to first order, the standard error
of p; they take into account that both horizons belong to the same runs.

The bound is a sum of terms that grow as √T times logarithms and of others that contain only
logarithms. What the logarithms add to ½ over the same steps is read off the bound itself: it is the
exponent of its √T terms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from brmdp._validation import FloatArray
from brmdp.errors import InvalidInputError
from brmdp.report.claims import Claim, Comparison, JudgedClaim, Region, judge
from brmdp.report.curves import (
    Curve,
    cumulative_robust_regret,
    cumulative_true_regret,
    reported_steps,
)
from brmdp.report.estimates import Estimate, estimate
from brmdp.report.findings import Findings
from brmdp.report.statistics import ROBUST_REGRET, TRUE_REGRET, Statistic
from brmdp.report.summary import agents_summary
from brmdp.report.tables import Table
from brmdp.runs import Case, CaseRecords, Experiment
from brmdp.theory import RegretBound, first_informative_horizon, regret_bound, robust_regret_bound

__all__ = [
    "BOUNDED",
    "CURVES",
    "NAMES",
    "SOLVED",
    "Benchmark",
    "analyse",
    "bound_growth",
    "bound_of",
    "growth",
    "informative_from",
]

Benchmark: TypeAlias = Literal["true", "robust"]
"""The optimum against which a regret is taken."""

NAMES: dict[Benchmark, str] = {"true": "BR", "robust": "BR-R"}
"""The paper's names of the two regrets."""

CURVES: dict[Benchmark, Callable[[CaseRecords], Curve | None]] = {
    "true": cumulative_true_regret,
    "robust": cumulative_robust_regret,
}

BALANCED, SENSITIVE, SAMPLING = "aq-brmdp-balanced", "aq-brmdp-delta-5", "continuing-psrl"
FIXED = ("brmdp-0.2", "brmdp-0.5")

BOUNDED = (BALANCED, SENSITIVE)
"""The cases to which the theorem applies."""

SOLVED = 1e-6
"""Regret per step that is within the solver's tolerance, so that it counts as none.

An agent that plans for the benchmark itself has no more.
"""

LOGARITHMIC = ("doubled counts", "concentration failures", "long episodes")
"""Terms of the bound without √T."""


def analyse(experiment: Experiment, records: Mapping[str, CaseRecords]) -> Findings:
    """Both regrets, their growth, and what the paper says about them."""
    return Findings(summary(experiment, records), table(records), claims(experiment, records))


# --- growth ---------------------------------------------------------------------------------------


def growth(records: CaseRecords, benchmark: Benchmark) -> Estimate | None:
    """The growth exponent of a regret between T/10 and T.

    It is None if the regret was not recorded, and NaN if there is no regret that could grow.
    """
    samples = GROWTH[benchmark].samples(records)
    return None if samples is None else estimate(samples)


def _window(steps: int) -> tuple[int, int]:
    """T/10, but at least one step, and T."""
    return max(1, steps // 10), steps


def _growth_samples(benchmark: Benchmark, records: CaseRecords, steps: int) -> FloatArray | None:
    """Per-run numbers whose mean is the growth exponent."""
    curve = CURVES[benchmark](records)
    if curve is None:
        return None
    first, last = _window(steps)
    early, late = curve.after(first), curve.after(last)
    mean_early, mean_late = float(early.mean()), float(late.mean())
    if first == last or mean_early <= SOLVED * first or mean_late <= SOLVED * last:
        return np.full(late.shape, np.nan)
    samples: FloatArray = math.log(mean_late / mean_early) + late / mean_late - early / mean_early
    return samples / math.log(last / first)


GROWTH: dict[Benchmark, Statistic] = {
    benchmark: Statistic(
        f"growth exponent of {name} between T/10 and T = {{steps}}",
        partial(_growth_samples, benchmark),
    )
    for benchmark, name in NAMES.items()
}


# --- the bound ------------------------------------------------------------------------------------


def bound_of(case: Case, benchmark: Benchmark, steps: int) -> RegretBound:
    """The theorem's bound for a case of AQ-BRMDP over ``steps`` steps."""
    function = regret_bound if benchmark == "true" else robust_regret_bound
    return function(steps=steps, **_setting(case))


def informative_from(case: Case, benchmark: Benchmark) -> int | None:
    """The first T at which the bound is below T/(1 − γ), which no regret exceeds."""
    return first_informative_horizon(**_setting(case), benchmark=benchmark)


def bound_growth(case: Case, benchmark: Benchmark) -> float:
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
        raise InvalidInputError(
            f"{name} of {experiment.name} must be an agent in an environment; got a computation"
        )
    return case


# --- claims ---------------------------------------------------------------------------------------


def claims(experiment: Experiment, records: Mapping[str, CaseRecords]) -> tuple[JudgedClaim, ...]:
    """What the paper says about Bayesian regret, judged; other comparisons, measured."""
    stated = (
        Claim(
            "bayesian-regret/sublinear",
            "The Bayesian regret of AQ-BRMDP is sublinear, against both the true and the robust "
            "optimum.",
            "The slopes of log BR and log BR-R against log T between T/10 and T are below 1.",
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
            "The same slopes are below that of the bound's √T terms over the same steps: ½ plus "
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
            "not say which of them has the smaller Bayesian regret.",
            "Regrets after T steps and growth exponents, in the same worlds with the same seeds; "
            "measured only.",
            tuple(
                Comparison(statistic, name, SAMPLING)
                for name in BOUNDED
                for statistic in (TRUE_REGRET, ROBUST_REGRET, GROWTH["true"], GROWTH["robust"])
            ),
        ),
        Claim(
            "bayesian-regret/against-fixed-levels",
            "An agent with a fixed low level can be trapped, with linear regret; the paper does "
            "not say how often that happens in worlds drawn from the prior.",
            "Growth exponents of the fixed levels, and the regret of AQ-BRMDP minus theirs; "
            "measured only.",
            (
                *(Comparison(GROWTH["true"], name, "", "value") for name in FIXED),
                *(Comparison(TRUE_REGRET, name, fixed) for name in BOUNDED for fixed in FIXED),
            ),
        ),
    )
    return judge(stated, experiment.name, records)


def _below_the_bound(experiment: Experiment) -> Claim:
    """Judged where the bound is below T/(1 − γ), which no regret exceeds; otherwise measured."""
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
            when = "at no T up to 10³⁰" if horizon is None else f"from about T = {horizon:.2g}"
            first.append(f"{when} ({regret}, {name})")
    return Claim(
        "bayesian-regret/below-the-bound",
        "The Bayesian regret of AQ-BRMDP is below the theorem's bound.",
        "Regret after T steps, divided by the smaller of the bound and T/(1 − γ), which no regret "
        "exceeds. It is judged where the bound is the smaller of the two, and only measured "
        f"otherwise. The bound is the smaller {', '.join(first)}.",
        tuple(comparisons),
    )


def _share_of_bound(benchmark: Benchmark, records: CaseRecords, steps: int) -> FloatArray | None:
    curve = CURVES[benchmark](records)
    if curve is None:
        return None
    share: FloatArray = curve.after(steps) / bound_of(records.case, benchmark, steps).value
    return share


_SHARE: dict[Benchmark, Statistic] = {
    benchmark: Statistic(
        f"{name} after {{steps}} steps, divided by its bound", partial(_share_of_bound, benchmark)
    )
    for benchmark, name in NAMES.items()
}


# --- summary --------------------------------------------------------------------------------------


def summary(experiment: Experiment, records: Mapping[str, CaseRecords]) -> dict[str, Any]:
    """The content of ``summary.json``: agents, growth exponents, and the bound term by term."""
    return {
        **agents_summary(experiment, records),
        "growth": {
            name: {benchmark: _as_json(growth(found, benchmark)) for benchmark in NAMES}
            for name, found in records.items()
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


def _bound_as_json(case: Case, benchmark: Benchmark) -> dict[str, Any]:
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


def table(records: Mapping[str, CaseRecords]) -> Table:
    """Regrets and growth exponents with 95 % intervals, and time per run; one row per agent."""
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
