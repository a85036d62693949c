"""Agents that learn rewards: a bandit, and RiverSwim with random rewards.

Both worlds pay 0 or 1, and the agents know no more than that. They begin with the uniform prior
Dir(1, …, 1) over the outcomes (s', r) of every pair. On the bandit γ = 0 and every step has a plan
of its own: Continuing PSRL is then Thompson sampling, and true regret is the usual one, the mean of
the best arm minus that of the arm pulled. In RiverSwim any state may follow any other, as in the
paper.

The sensitivity δ of AQ-BRMDP is not tuned to these worlds: 1/√(SA) on the bandit, which balances
the terms of the paper's regret bound, and 5 in RiverSwim, as in the paper.
"""

from __future__ import annotations

from typing import Any

from brmdp.envs.random_rewards import ARMS
from brmdp.runs import Case, Experiment
from brmdp.theory import balanced_delta

__all__ = ["ADAPTIVE", "BANDIT", "EXPERIMENT", "HIGH", "LOW", "MEAN", "RIVER", "SAMPLING"]

BANDIT, RIVER = "bandit", "riverswim"
ADAPTIVE, SAMPLING, HIGH, LOW, MEAN = (
    "aq-brmdp",
    "continuing-psrl",
    "brmdp-0.9",
    "brmdp-0.2",
    "posterior-mean",
)
FLOOR = 0.2

LABELS = {
    ADAPTIVE: "AQ-BRMDP",
    SAMPLING: "Posterior sampling",
    HIGH: "BRMDP-0.9",
    LOW: "BRMDP-0.2",
    MEAN: "Posterior mean",
}


def _cases(
    world: str,
    environment: str,
    parameters: dict[str, Any],
    discount: float,
    steps: int,
    delta: float,
) -> tuple[Case, ...]:
    """Every agent in one world."""
    agents: dict[str, tuple[str, dict[str, Any]]] = {
        ADAPTIVE: ("aq-brmdp", {"delta": delta, "floor": FLOOR, "method": "exact"}),
        SAMPLING: ("continuing-psrl", {}),
        HIGH: ("fixed-quantile", {"alpha": 0.9, "method": "exact"}),
        LOW: ("fixed-quantile", {"alpha": 0.2, "method": "exact"}),
        MEAN: ("posterior-mean", {}),
    }
    return tuple(
        Case(
            name=f"{world}/{name}",
            environment=environment,
            environment_parameters=parameters,
            agent=agent,
            agent_parameters=settings,
            discount=discount,
            steps=steps,
            label=LABELS[name],
        )
        for name, (agent, settings) in agents.items()
    )


EXPERIMENT = Experiment(
    "unknown-rewards",
    "Unknown rewards",
    (
        *_cases(BANDIT, "bandit", {"arms": list(ARMS)}, 0.0, 2000, balanced_delta(1, len(ARMS))),
        *_cases(RIVER, "bernoulli-riverswim", {"n": 6}, 0.9, 3000, 5.0),
    ),
    runs=200,
)
