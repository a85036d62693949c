"""The online methods in DeepSea, RiverSwim and three classical worlds of growing difficulty.

All agents know the rewards and begin with the same prior: any state may follow any other, and each
row has the weight of one observation, Dir(1/S, …, 1/S). With Dir(1, …, 1) a row of DeepSea would
begin with dozens of imagined observations. γ = 0.95 throughout.

Every method has one setting for all worlds, in units of the largest reward where it is an amount.
The settings were chosen beforehand among a few, by the mean logarithm of regret on small worlds
that are not part of the study: RiverSwim-4, DeepSea-5 with another mapping of actions, a Garnet of
eight states, and a chain of four; 5 runs of 1500 steps. UCRL2 and UCBVI-γ have their bounds
multiplied by a small number; with the constants of their proofs they would explore to the end of
every run. AQ-BRMDP has the paper's δ = 5, and visit levels their default.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from brmdp.runs import Case, Experiment

__all__ = [
    "ADAPTIVE",
    "AGENTS",
    "EXPERIMENT",
    "FAMILIES",
    "LEARNING",
    "MEAN",
    "OPTIMISTS",
    "SAMPLING",
    "VISITS",
    "WORLDS",
]

DISCOUNT = 0.95


class World(NamedTuple):
    """An environment, its number of states and its largest reward, and how long agents act."""

    environment: str
    parameters: dict[str, Any]
    states: int
    largest: float
    steps: int


WORLDS: dict[str, World] = {
    **{f"deep-sea-{n}": World("deep-sea", {"n": n}, n * n, 1.0, 300 * n) for n in (4, 6, 8)},
    **{f"riverswim-{n}": World("riverswim", {"n": n}, n, 1.0, 3000) for n in (6, 10, 15)},
    "chain": World("chain", {}, 5, 10.0, 1500),
    "double-loop": World("double-loop", {}, 9, 2.0, 1500),
    "six-arms": World("six-arms", {}, 7, 6000.0, 3000),
}

FAMILIES: dict[str, tuple[str, ...]] = {
    "deep-sea": ("deep-sea-4", "deep-sea-6", "deep-sea-8"),
    "riverswim": ("riverswim-6", "riverswim-10", "riverswim-15"),
    "classics": ("chain", "double-loop", "six-arms"),
}
"""The worlds that share a figure."""

ADAPTIVE, VISITS, SAMPLING, MEAN, LEARNING = (
    "aq-brmdp",
    "visit-level",
    "continuing-psrl",
    "posterior-mean",
    "q-learning",
)
OPTIMISTS = (
    "beb",
    "vbrb",
    "eubrl",
    "r-max",
    "ucrl2",
    "ucbvi-gamma",
    "bayes-ucbvi",
    "opsrl",
    "cvar-bonus",
)


def _agents(largest: float) -> dict[str, tuple[str, str, dict[str, Any]]]:
    """By name: label, agent and parameters, in a world with that largest reward."""
    return {
        ADAPTIVE: ("AQ-BRMDP", "aq-brmdp", {"delta": 5.0, "floor": 0.2, "method": "exact"}),
        VISITS: (
            "Visit levels",
            "agent",
            {
                "risk": {"name": "quantile", "alpha": 0.5},
                "schedule": {"name": "visit-level", "scale": 0.5},
                "restart": 10,
            },
        ),
        "brmdp-0.9": ("BRMDP-0.9", "fixed-quantile", {"alpha": 0.9, "method": "exact"}),
        SAMPLING: ("Continuing PSRL", "continuing-psrl", {}),
        MEAN: ("Posterior mean", "posterior-mean", {"restart": "every-step"}),
        "beb": ("BEB", "beb", {"beta": 0.5 * largest}),
        "vbrb": ("VBRB", "vbrb", {"beta": 0.5 * largest}),
        "eubrl": ("EUBRL", "eubrl", {"eta": 2.0 * largest}),
        "r-max": ("R-MAX", "r-max", {"visits": 3}),
        "ucrl2": ("UCRL2", "ucrl2", {"scale": 0.01}),
        "ucbvi-gamma": ("UCBVI-γ", "ucbvi-gamma", {"scale": 0.001}),
        "bayes-ucbvi": ("Bayes-UCBVI", "bayes-ucbvi", {"strength": 0.01, "delta": 0.9}),
        "opsrl": ("OPSRL", "opsrl", {"samples": 2, "strength": 0.01}),
        "cvar-bonus": ("CVaR + bonus", "cvar-bonus", {"alpha": 0.2, "beta": 0.5 * largest}),
        LEARNING: ("Q-learning", "q-learning", {}),
    }


AGENTS = tuple(_agents(1.0))
"""Names of the agents, in every world."""


def _cases(name: str, world: World) -> tuple[Case, ...]:
    """Every agent in one world."""
    return tuple(
        Case(
            name=f"{name}/{agent}",
            environment=world.environment,
            environment_parameters=world.parameters,
            agent=made,
            agent_parameters=parameters,
            prior={"concentration": 1.0 / world.states, "known_successors": False},
            discount=DISCOUNT,
            steps=world.steps,
            label=label,
        )
        for agent, (label, made, parameters) in _agents(world.largest).items()
    )


EXPERIMENT = Experiment(
    "exploration",
    "Exploration",
    tuple(case for name, world in WORLDS.items() for case in _cases(name, world)),
    runs=100,
)
