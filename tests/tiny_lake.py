"""The experiment ``continuous`` with networks that are fitted almost instantly.

Processes started by tests import it, too.
"""

from dataclasses import replace

from brmdp.runs import Case, Experiment
from brmdp.studies.continuous_lake.experiment import EXPERIMENT

FITTING = {
    "hidden": [8],
    "states": 16,
    "iterations": 2,
    "gradient_steps": 2,
    "first_rounds": 2,
    "draws": 48,
}
COMPUTED = {
    "portrait": {"early": 10, "points": 3},
    "epsilon": {"episodes": [1, 3], "choices": [0.001, 0.01, 0.1]},
}


def tiny_lake(runs=2, steps=30, names=None):
    """All cases, or those named, in small."""
    chosen = [case for case in EXPERIMENT.cases if names is None or case.name in names]
    return Experiment(
        "continuous", "A tiny lake", tuple(_tiny(case, steps) for case in chosen), runs, seed=5
    )


def _tiny(case, steps):
    if isinstance(case, Case):
        return replace(
            case,
            steps=steps,
            reported_steps=steps,
            agent_parameters={**case.agent_parameters, **FITTING},
        )
    agent = {**case.parameters["agent_parameters"], **FITTING}
    return replace(
        case,
        parameters={
            **case.parameters,
            "agent_parameters": agent,
            "steps": steps,
            **COMPUTED[case.name],
        },
    )
