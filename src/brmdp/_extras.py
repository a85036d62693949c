"""Packages that only parts of the library need: the extras of ``pip install``."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from brmdp.errors import MissingExtraError

__all__ = ["EXTRAS", "optional", "require_extra"]

EXTRAS = {"continuous": ("jax", "optax")}
"""Packages to look for before work begins that will import them elsewhere, by extra."""


def optional(module: str, extra: str = "experiments") -> Any:
    """Import a module of one of the package's extras, or say how to get it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise _missing(str(error.name), extra) from None


def require_extra(extra: str) -> None:
    """Say how to get the packages of an extra if one is missing; imports none."""
    for package in EXTRAS[extra]:
        if importlib.util.find_spec(package) is None:
            raise _missing(package, extra)


def _missing(package: str, extra: str) -> MissingExtraError:
    return MissingExtraError(
        f"{package} is missing; install it with: pip install 'brmdp[{extra}]'", package
    )
