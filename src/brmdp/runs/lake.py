"""The continuous lake as an environment of experiments: its agents by name, and running one.

Names and parameters are checked without JAX, which is loaded when an agent is made: the process
that hands out runs to others checks them all and does not need JAX.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from brmdp import continuous
from brmdp._validation import as_level
from brmdp.continuous.schedule import UncertaintyLevel
from brmdp.continuous.settings import FittedQ
from brmdp.errors import InvalidInputError
from brmdp.risk import MonteCarlo
from brmdp.runs.program import REQUIRED, with_defaults
from brmdp.runs.spec import Case, require_known

if TYPE_CHECKING:
    from brmdp.continuous import ContinuousAgent, LakeHistory

__all__ = ["AGENTS", "EXTRA", "FITTING", "LAKE", "check_lake", "lake_agent", "run_lake"]

LAKE = "continuous-frozenlake"
"""The name of the environment."""

EXTRA = "continuous"
"""What must be installed to run it."""

FITTING: dict[str, Any] = asdict(FittedQ())
"""The default settings for fitting networks."""

_LEVELS = {field.name: field.default for field in fields(UncertaintyLevel) if field.name != "delta"}
_BUDGET = {"coefficient": 250.0}

AGENTS: dict[str, Mapping[str, Any]] = {
    "aq-brmdp": {"delta": REQUIRED, **_LEVELS, **_BUDGET, **FITTING},
    "fixed-quantile": {"alpha": REQUIRED, **_BUDGET, **FITTING},
    "continuing-psrl": FITTING,
    "posterior-mean": FITTING,
}
"""Parameters with their defaults, by agent; each agent is a preset of :mod:`brmdp.continuous`."""


def check_lake(case: Case) -> None:
    """Refuse names and values that are not allowed.

    Raises
    ------
    InvalidInputError
        If one is not allowed; the message says what is.
    """
    own, fitting = _parameters(case)
    if "delta" in own:
        UncertaintyLevel(own["delta"], **{name: own[name] for name in _LEVELS})
    if "alpha" in own:
        as_level(own["alpha"])
    if "coefficient" in own:
        MonteCarlo(own["coefficient"], cap=fitting.draws)


def lake_agent(case: Case, rng: Any) -> ContinuousAgent:
    """The agent of a case, with the paper's prior.

    Parameters
    ----------
    case : Case
    rng : numpy.random.Generator or seed
    """
    own, fitting = _parameters(case)
    preset = getattr(continuous, case.agent.replace("-", "_"))
    agent: ContinuousAgent = preset(
        continuous.LakeBelief(),
        continuous.LakeModel(),
        case.discount,
        **own,
        fitting=fitting,
        rng=rng,
    )
    return agent


def run_lake(case: Case, environment: int, rng: Any) -> LakeHistory:
    """One run of the case's agent in the lake; ``environment`` is the seed of the lake."""
    return continuous.simulate_lake(lake_agent(case, rng), case.steps, seed=environment)


def _parameters(case: Case) -> tuple[dict[str, Any], FittedQ]:
    """The parameters of the preset, and the settings of the fit."""
    for key in case.environment_parameters:
        require_known(key, (), f"parameter of {LAKE}")
    if case.prior:
        raise InvalidInputError(f"prior cannot be chosen in {LAKE}; got {dict(case.prior)}")
    for name in ("robust_level", "quantile_level"):
        if getattr(case, name) is not None:
            raise InvalidInputError(
                f"{name} must be None in {LAKE}, where it is not measured; got "
                f"{getattr(case, name)}"
            )
    require_known(case.agent, AGENTS, "agent")
    own = with_defaults(case.agent_parameters, AGENTS[case.agent], case.agent)
    return own, FittedQ(**{name: own.pop(name) for name in FITTING})
