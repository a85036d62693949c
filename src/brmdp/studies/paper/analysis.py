"""All claims of the paper about its finite-state results, as data.

The paper uses words where a test needs numbers. Each claim's ``test`` says how its words are read,
and every number is defined in one place here:

- *near an end* of RiverSwim: in the third of the states at that end (two of 6 states, three of 10);
- a reward that *rises earlier*: fewer steps until the moving average first reaches half of what
  always swimming right earns in the long run; if it never does, all reported steps count;
- *concentrated*: at least :data:`CONCENTRATED` of the steps;
- *approximately linear*: a share of :data:`LINEAR` of the regret falls in the second half of the
  steps. For regret that grows as T^p this share is 1 − 2^(−p), so p lies between 0.86 and 1.15; for
  √T the share would be 0.29;
- *not materially*, *largely overlap*, or equal to a number in a table: within :data:`MARGIN` per
  cent.

All differences are taken run by run on common seeds. "Quantile methods" is not in the paper: it is
measured, not judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from brmdp.report.claims import ABOVE_ZERO, BELOW_ZERO, Claim, Comparison, Region
from brmdp.report.findings import Findings
from brmdp.report.statistics import (
    AVERAGE_REWARD,
    LAST_REWARD,
    QUANTILE_VALUE,
    ROBUST_REGRET,
    SECOND_HALF_SHARE,
    SECONDS,
    TRUE_REGRET,
    Statistic,
)
from brmdp.report.summary import compare_agents
from brmdp.runs import Experiment
from brmdp.studies.paper.statistics import (
    HOLE_SHARE,
    LEFT_SHARE,
    RIGHT_SHARE,
    RISE_TIME,
    SHORTCUT_USES,
)
from brmdp.studies.study import Records

__all__ = ["CLAIMS", "DELTA_TABLE", "analyse"]

ADAPTIVE, SAMPLING = "aq-brmdp", "continuing-psrl"
FIXED = ("brmdp-0.1", "brmdp-0.3", "brmdp-0.5")

CONCENTRATED = Region(low=0.8)
LINEAR = Region(0.45, 0.55)
LOCAL_REWARD = Region.around(0.005, 0.005)
"""Rewards close to the 0.005 that RiverSwim pays at the left end.

Always swimming right earns 0.257 per step in the long run.
"""
SAME_REWARD = Region.around(0.0, 0.005)
MARGIN = 5.0
"""Margin of closeness, in per cent."""

DELTA_TABLE = {5: 297.2396, 10: 291.4018, 15: 287.7603}
"""Final cumulative true regret in the paper, by δ."""


def _differences(
    statistic: Statistic, cases: Sequence[str], baselines: Sequence[str], claimed: Region
) -> list[Comparison]:
    return [
        Comparison(statistic, case, baseline, claimed=claimed)
        for case in cases
        for baseline in baselines
    ]


def _values(statistic: Statistic, cases: Sequence[str], claimed: Region) -> list[Comparison]:
    return [Comparison(statistic, case, operation="value", claimed=claimed) for case in cases]


def _riverswim(name: str) -> list[Claim]:
    """Claims that the paper makes about both rivers."""
    versus = ([ADAPTIVE], [SAMPLING])
    return [
        Claim(
            f"{name}/regret",
            "AQ-BRMDP achieves lower cumulative regret than Continuing PSRL.",
            "Cumulative true regret over the steps shown in the figure.",
            (*_differences(TRUE_REGRET, *versus, BELOW_ZERO),),
        ),
        Claim(
            f"{name}/reward-rises-earlier",
            "AQ-BRMDP's moving-average reward increases more quickly early in learning than "
            "Continuing PSRL's.",
            "Steps until the moving-average reward first reaches half of what always swimming "
            "right earns in the long run.",
            (*_differences(RISE_TIME, *versus, BELOW_ZERO),),
        ),
        Claim(
            f"{name}/right-end",
            "AQ-BRMDP spends more time in states near the right end of the chain than Continuing "
            "PSRL.",
            "Share of the shown steps in the rightmost third of the states.",
            (*_differences(RIGHT_SHARE, *versus, ABOVE_ZERO),),
        ),
    ]


_RIVERSWIM_6 = [
    *_riverswim("riverswim-6"),
    Claim(
        "riverswim-6/brmdp-0.1-stays-left",
        "BRMDP-0.1 remains concentrated near state 1 (our state 0).",
        "At least 0.8 of the shown steps in the leftmost third of the states.",
        (*_values(LEFT_SHARE, [FIXED[0]], CONCENTRATED),),
    ),
    Claim(
        "riverswim-6/brmdp-0.1-local-reward",
        "BRMDP-0.1's moving-average reward stays close to the local reward 0.005.",
        "Within 0.005 of it, both over all shown steps and in their last 100.",
        (
            *_values(AVERAGE_REWARD, [FIXED[0]], LOCAL_REWARD),
            *_values(LAST_REWARD, [FIXED[0]], LOCAL_REWARD),
        ),
    ),
    Claim(
        "riverswim-6/brmdp-0.1-largest-regret",
        "BRMDP-0.1's cumulative regret is the largest among the fixed levels.",
        "Its cumulative true regret over the shown steps exceeds that of each other level.",
        (*_differences(TRUE_REGRET, FIXED[:1], FIXED[1:], ABOVE_ZERO),),
    ),
    Claim(
        "riverswim-6/brmdp-0.5-most-rightward",
        "BRMDP-0.5 reaches states near the right end more often than the lower fixed levels.",
        "Share of the shown steps in the rightmost third of the states.",
        (*_differences(RIGHT_SHARE, FIXED[2:], FIXED[:2], ABOVE_ZERO),),
    ),
    Claim(
        "riverswim-6/brmdp-0.5-higher-reward",
        "BRMDP-0.5 attains higher moving-average rewards than the lower fixed levels.",
        "Average reward over the shown steps.",
        (*_differences(AVERAGE_REWARD, FIXED[2:], FIXED[:2], ABOVE_ZERO),),
    ),
]

_RIVERSWIM_10 = [
    *_riverswim("riverswim-10"),
    Claim(
        "riverswim-10/fixed-levels-stay-left",
        "All three fixed levels remain concentrated near the initial state.",
        "At least 0.8 of the shown steps in the leftmost third of the states.",
        (*_values(LEFT_SHARE, FIXED, CONCENTRATED),),
    ),
    Claim(
        "riverswim-10/fixed-levels-linear-regret",
        "The cumulative regret of all three fixed levels grows approximately linearly.",
        "Between 0.45 and 0.55 of the regret falls in the second half of the shown steps: growth "
        "as T^p with p from 0.86 to 1.15.",
        (*_values(SECOND_HALF_SHARE, FIXED, LINEAR),),
    ),
    Claim(
        "riverswim-10/fixed-levels-alike",
        "The fixed levels behave similarly; their regret and reward curves largely overlap.",
        "For each pair: cumulative true regret within 5 %, average reward within 0.005.",
        tuple(
            comparison
            for first, second in combinations(FIXED, 2)
            for comparison in (
                Comparison(TRUE_REGRET, second, first, "reduction", Region.around(0.0, MARGIN)),
                Comparison(AVERAGE_REWARD, second, first, claimed=SAME_REWARD),
            )
        ),
    ),
]


def _frozenlake(name: str) -> list[Claim]:
    """Claims that the paper makes about the risky FrozenLake, for one value of θ."""
    return [
        Claim(
            f"{name}/adaptive-regrets",
            "AQ-BRMDP achieves lower regret than Continuing PSRL under both criteria.",
            "Cumulative true and robust regret at the end.",
            (
                *_differences(TRUE_REGRET, [ADAPTIVE], [SAMPLING], BELOW_ZERO),
                *_differences(ROBUST_REGRET, [ADAPTIVE], [SAMPLING], BELOW_ZERO),
            ),
        ),
        Claim(
            f"{name}/fixed-levels-regret",
            "The BRMDP-α baselines accumulate lower true regret than Continuing PSRL.",
            "Cumulative true regret at the end, for each level.",
            (*_differences(TRUE_REGRET, FIXED, [SAMPLING], BELOW_ZERO),),
        ),
        Claim(
            f"{name}/avoid-the-shortcut",
            "BRMDP-based policies tend to avoid the risky branch.",
            "Number of uses of the shortcut, compared with Continuing PSRL.",
            (*_differences(SHORTCUT_USES, [ADAPTIVE, *FIXED], [SAMPLING], BELOW_ZERO),),
        ),
        Claim(
            f"{name}/avoid-holes",
            "The BRMDP-α baselines tend to avoid sticky holes.",
            "Share of the steps spent in holes, compared with Continuing PSRL.",
            (*_differences(HOLE_SHARE, FIXED, [SAMPLING], BELOW_ZERO),),
        ),
        Claim(
            f"{name}/0.3-below-0.5",
            "BRMDP-0.3 generally yields lower regret than BRMDP-0.5.",
            "Cumulative true regret at the end.",
            (*_differences(TRUE_REGRET, ["brmdp-0.3"], ["brmdp-0.5"], BELOW_ZERO),),
        ),
        Claim(
            "frozenlake/0.1-not-always-below-0.3",
            "BRMDP-0.1 can have higher regret than BRMDP-0.3: regret is not monotone in the level.",
            "Cumulative true regret at the end is higher for at least one of the two values of θ.",
            (*_differences(TRUE_REGRET, ["brmdp-0.1"], ["brmdp-0.3"], ABOVE_ZERO),),
            somewhere_in=("frozenlake-0.7", "frozenlake-0.9"),
        ),
        Claim(
            f"{name}/quantile-value",
            "AQ-BRMDP generally attains the largest posterior 0.1-quantile value.",
            "Averaged over the diagnostic times, compared with each other agent.",
            (*_differences(QUANTILE_VALUE, [ADAPTIVE], [SAMPLING, *FIXED], ABOVE_ZERO),),
        ),
    ]


def _delta_case(delta: int) -> str:
    return f"aq-brmdp-delta-{delta}"


def _reduction(delta: int, claimed: Region, paper: float | None = None) -> Comparison:
    return Comparison(TRUE_REGRET, _delta_case(delta), _delta_case(5), "reduction", claimed, paper)


_PAPER_REDUCTIONS = {
    delta: 100.0 * (1.0 - DELTA_TABLE[delta] / DELTA_TABLE[5]) for delta in (10, 15)
}

_SENSITIVITY = [
    Claim(
        "delta-sensitivity/insensitive",
        "AQ-BRMDP is not materially sensitive to δ over the range tested.",
        "Final cumulative true regret within 5 % of that at δ = 5.",
        (*(_reduction(delta, Region.around(0.0, MARGIN)) for delta in (10, 15)),),
    ),
    Claim(
        "delta-sensitivity/table",
        "Final cumulative true regret is 297.24, 291.40 and 287.76 for δ = 5, 10 and 15: "
        "reductions of 1.96 % and 3.19 %.",
        "Regrets within 5 % of the paper's, reductions within 5 percentage points; the paper gives "
        "no intervals.",
        (
            *(
                Comparison(
                    TRUE_REGRET,
                    _delta_case(delta),
                    "",
                    "value",
                    Region.around(regret, MARGIN / 100 * regret),
                    regret,
                )
                for delta, regret in DELTA_TABLE.items()
            ),
            *(
                _reduction(delta, Region.around(reduction, MARGIN), round(reduction, 2))
                for delta, reduction in _PAPER_REDUCTIONS.items()
            ),
        ),
    ),
]


def _methods() -> list[Claim]:
    """What each quantile method costs compared with the exact one; nothing is claimed."""
    costs = {
        "monte-carlo": "sampling noise (fresh posterior draws)",
        "monte-carlo-reused": "reuse of posterior draws",
        "saddlepoint": "approximation (saddlepoint)",
    }
    return [
        Claim(
            f"quantile-methods/{world}/{method}",
            f"Not in the paper: the cost of {cost} in {world}.",
            "Cumulative true regret over the shown steps, compared with exact quantiles on common "
            "seeds, and time per run.",
            (
                Comparison(TRUE_REGRET, f"{world}/{method}", f"{world}/exact"),
                Comparison(SECONDS, f"{world}/{method}", f"{world}/exact", "ratio"),
            ),
        )
        for world in ("riverswim-6", "frozenlake-0.7")
        for method, cost in costs.items()
    ]


CLAIMS: dict[str, tuple[Claim, ...]] = {
    "riverswim-6": tuple(_RIVERSWIM_6),
    "riverswim-10": tuple(_RIVERSWIM_10),
    "frozenlake-0.7": tuple(_frozenlake("frozenlake-0.7")),
    "frozenlake-0.9": tuple(_frozenlake("frozenlake-0.9")),
    "delta-sensitivity": tuple(_SENSITIVITY),
    "quantile-methods": tuple(_methods()),
}
"""Claims by the experiment in which they are tested."""


def analyse(experiment: Experiment, records: Records) -> Findings:
    """Compare the agents and judge the paper's claims about them."""
    return compare_agents(experiment, records, CLAIMS[experiment.name])
