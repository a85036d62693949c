"""Optional packages, which ``pip install`` brings in as extras."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from brmdp.errors import MissingExtraError

__all__ = ["EXTRAS", "optional", "require_extra"]

EXTRAS = {"continuous": ("jax", "optax"), "icu": ("icu_sepsis",)}
"""Packages of each extra that other processes import later, to be checked before work begins."""


def optional(module: str, extra: str = "experiments") -> Any:
    """Import a module from one of the extras, or raise an error that says how to install it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise _missing(str(error.name), extra) from None


def require_extra(extra: str) -> None:
    """Raise an error if a package of an extra is missing, without importing any."""
    for package in EXTRAS[extra]:
        if importlib.util.find_spec(package) is None:
            raise _missing(package, extra)


def _missing(package: str, extra: str) -> MissingExtraError:
    return MissingExtraError(
        f"{package} is missing; install it with: pip install 'brmdp[{extra}]'", package
    )
