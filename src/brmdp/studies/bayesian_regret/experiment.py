"""Bayesian regret: agents in worlds drawn from their own prior.

BR(T) is the expectation of Σ_t V*(s_t) − V^{π_k}(s_t) over the prior, the trajectory and the
pseudo-episodes; BR-R(T) is that of Σ_t V*_{φ_k,α̲}(s_t) − V^{π_k}_{φ_k,α̲}(s_t). Each run draws a
world and yields one sample of both curves, for all T at once.

T lies above both horizons of the paper's theorem: S²A = 50, from which its orders hold, and
SA·max{S, (1 − γ)⁻²} = 1000, from which √T dominates them.
"""

from __future__ import annotations

from typing import Any

from brmdp.runs import Case, Experiment
from brmdp.theory import balanced_delta

__all__ = ["EXPERIMENT"]

STATES, ACTIONS = 5, 2
DISCOUNT = 0.9
STEPS = 4500
FLOOR = 0.2
"""α̲ of the schedule, and the level of the robust benchmark."""


def _case(name: str, agent: str, **agent_parameters: Any) -> Case:
    return Case(
        name=name,
        environment="prior",
        environment_parameters={"n_states": STATES, "n_actions": ACTIONS, "concentration": 1.0},
        agent=agent,
        agent_parameters=agent_parameters,
        discount=DISCOUNT,
        steps=STEPS,
        robust_level=FLOOR,
    )


EXPERIMENT = Experiment(
    "bayesian-regret",
    "Bayesian regret, worlds drawn from the prior",
    (
        _case(
            "aq-brmdp-balanced",
            "aq-brmdp",
            delta=balanced_delta(STATES, ACTIONS),
            floor=FLOOR,
            method="exact",
        ),
        _case("aq-brmdp-delta-5", "aq-brmdp", delta=5.0, floor=FLOOR, method="exact"),
        _case("continuing-psrl", "continuing-psrl"),
        _case("brmdp-0.2", "fixed-quantile", alpha=FLOOR, method="exact"),
        _case("brmdp-0.5", "fixed-quantile", alpha=0.5, method="exact"),
    ),
    runs=200,
)
