"""Names of earlier versions: they work for one more version, with a warning."""

from __future__ import annotations

import importlib
import sys
import warnings
from typing import Any

__all__ = ["former_name"]

_NAMES: dict[str, dict[str, str]] = {
    "brmdp": {
        "DirichletPosterior": "brmdp:DirichletBelief",
        "DisturbancePosterior": "brmdp:DisturbanceBelief",
        "ScenarioPosterior": "brmdp:ScenarioBelief",
        "evaluate": "brmdp:evaluate_in_mdp",
        "evaluate_policies": "brmdp:evaluate_all_in_mdp",
        "evaluate_policy": "brmdp:evaluate_under_belief",
        "dirichlet_cdf": "brmdp.dirichlet:cdf",
        "dirichlet_cvar": "brmdp.dirichlet:cvar",
        "dirichlet_cvar_row": "brmdp.dirichlet:cvar_row",
        "dirichlet_quantile": "brmdp.dirichlet:quantile",
        "dirichlet_quantile_row": "brmdp.dirichlet:quantile_row",
    },
    "brmdp.posterior": {
        "DirichletPosterior": "brmdp:DirichletBelief",
        "DisturbancePosterior": "brmdp:DisturbanceBelief",
        "ScenarioPosterior": "brmdp:ScenarioBelief",
    },
    "brmdp.risk": {
        "dirichlet_cdf": "brmdp.dirichlet:cdf",
        "dirichlet_cvar": "brmdp.dirichlet:cvar",
        "dirichlet_cvar_row": "brmdp.dirichlet:cvar_row",
        "dirichlet_quantile": "brmdp.dirichlet:quantile",
        "dirichlet_quantile_row": "brmdp.dirichlet:quantile_row",
    },
    "brmdp.planning": {
        "evaluate": "brmdp:evaluate_in_mdp",
        "evaluate_policies": "brmdp:evaluate_all_in_mdp",
        "evaluate_policy": "brmdp:evaluate_under_belief",
        "certify": "brmdp.planning:certify_nested",
    },
    "brmdp.agents": {"brmdp": "brmdp.agents:fixed_quantile"},
    "brmdp.continuous": {
        "LakePosterior": "brmdp.continuous:LakeBelief",
        "brmdp": "brmdp.continuous:fixed_quantile",
    },
    "brmdp.theory": {"world_from_prior": "brmdp.theory:draw_mdp"},
}
"""Former names by module, and where each is now."""

_MODULES = {
    "brmdp.analysis": "brmdp.report",
    "brmdp.experiments": "brmdp.runs",
    "brmdp.posterior": "brmdp.beliefs",
}
"""Renamed modules; other names in them did not change."""


_GONE = {
    "brmdp.experiments": {
        "ALL": "those studies of brmdp.studies.all_studies() that are in_paper",
        "EXPERIMENTS": "brmdp.studies.all_studies(), and experiment of each study",
    },
    "brmdp.analysis": {
        "CLAIMS": (
            "claims of brmdp.studies.find_study(name).findings(records), or before they are judged "
            "brmdp.studies.paper.analysis.CLAIMS"
        ),
        "summarise": "summary of brmdp.studies.find_study(name).findings(records)",
    },
}
"""Former names by module that no single name replaces, and what to use instead."""


def former_name(module: str, name: str) -> Any:
    """The object that had this name in an earlier version; warns that it has a new name.

    Raises
    ------
    AttributeError
        If the module never had that name, or no single name replaces it; the message then says
        what to use instead.
    """
    place = _NAMES.get(module, {}).get(name)
    moved = _MODULES.get(module)
    if place is None and moved is not None and name in importlib.import_module(moved).__all__:
        place = f"{moved}:{name}"
    gone = _GONE.get(module, {}).get(name)
    if gone is not None:
        raise AttributeError(f"{module}.{name} no longer exists; use {gone}")
    if place is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    # `from package import name` asks twice: first, inside importlib, only whether the name exists
    asking = sys._getframe(2).f_globals.get("__name__")
    if asking != "importlib._bootstrap":
        shown = place.replace(":", ".")
        warnings.warn(
            f"{module}.{name} is now {shown}; the old name will be removed in the next version",
            FutureWarning,
            stacklevel=3,
        )
    owner, _, attribute = place.partition(":")
    return getattr(importlib.import_module(owner), attribute)
