"""The paper's finite-state experiments, as data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brmdp.runs.spec import Case, Experiment

__all__ = ["EXPERIMENTS"]

STEPS = 4500
FLOOR = 0.2
ROBUST_LEVEL = 0.2
QUANTILE_LEVEL = 0.1
FIXED_LEVELS = (0.1, 0.3, 0.5)


def _compared(
    environment: str,
    parameters: Mapping[str, Any],
    discount: float,
    delta: float,
    coefficient: float,
    reported_steps: int,
) -> tuple[Case, ...]:
    """AQ-BRMDP, Continuing PSRL and the fixed levels in one environment."""

    def case(name: str, agent: str, **agent_parameters: Any) -> Case:
        return Case(
            name=name,
            environment=environment,
            environment_parameters=parameters,
            agent=agent,
            agent_parameters=agent_parameters,
            discount=discount,
            steps=STEPS,
            reported_steps=reported_steps,
            robust_level=ROBUST_LEVEL,
            quantile_level=QUANTILE_LEVEL,
        )

    return (
        case(
            "aq-brmdp",
            "aq-brmdp",
            delta=delta,
            floor=FLOOR,
            method="exact",
            coefficient=coefficient,
        ),
        case("continuing-psrl", "continuing-psrl"),
        *(
            case(
                f"brmdp-{alpha}",
                "fixed-quantile",
                alpha=alpha,
                method="exact",
                coefficient=coefficient,
            )
            for alpha in FIXED_LEVELS
        ),
    )


def _sensitivity() -> tuple[Case, ...]:
    """AQ-BRMDP with three values of δ on FrozenLake without the risky branch."""
    return tuple(
        Case(
            name=f"aq-brmdp-delta-{delta}",
            environment="frozenlake",
            agent="aq-brmdp",
            agent_parameters={
                "delta": float(delta),
                "floor": FLOOR,
                "method": "exact",
                "coefficient": 250.0,
            },
            discount=0.8,
            steps=STEPS,
            reported_steps=STEPS,
            robust_level=ROBUST_LEVEL,
            quantile_level=QUANTILE_LEVEL,
        )
        for delta in (5, 10, 15)
    )


def _methods() -> tuple[Case, ...]:
    """AQ-BRMDP with every quantile method."""
    worlds: tuple[tuple[str, str, dict[str, Any], float, float, float, int], ...] = (
        ("riverswim-6", "riverswim", {"n": 6}, 0.9, 5.0, 150.0, 2000),
        ("frozenlake-0.7", "frozenlake", {"shortcut_risk": 0.7}, 0.8, 10.0, 250.0, STEPS),
    )
    return tuple(
        Case(
            name=f"{label}/{method}",
            environment=environment,
            environment_parameters=parameters,
            agent="aq-brmdp",
            agent_parameters={
                "delta": delta,
                "floor": FLOOR,
                "method": method,
                "coefficient": coefficient,
            },
            discount=discount,
            steps=STEPS,
            reported_steps=reported_steps,
        )
        for label, environment, parameters, discount, delta, coefficient, reported_steps in worlds
        for method in ("exact", "saddlepoint", "monte-carlo", "monte-carlo-reused")
    )


EXPERIMENTS = (
    Experiment(
        "riverswim-6", "RiverSwim-6", _compared("riverswim", {"n": 6}, 0.9, 5.0, 150.0, 2000)
    ),
    Experiment(
        "riverswim-10", "RiverSwim-10", _compared("riverswim", {"n": 10}, 0.9, 10.0, 200.0, 4000)
    ),
    Experiment(
        "frozenlake-0.7",
        "Risky FrozenLake, θ = 0.7",
        _compared("frozenlake", {"shortcut_risk": 0.7}, 0.8, 10.0, 250.0, STEPS),
    ),
    Experiment(
        "frozenlake-0.9",
        "Risky FrozenLake, θ = 0.9",
        _compared("frozenlake", {"shortcut_risk": 0.9}, 0.8, 10.0, 250.0, STEPS),
    ),
    Experiment(
        "delta-sensitivity", "Sensitivity to δ, FrozenLake without the risky branch", _sensitivity()
    ),
    Experiment("quantile-methods", "Ways to compute the quantile", _methods()),
)
