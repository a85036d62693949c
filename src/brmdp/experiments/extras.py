"""Packages that only experiments need."""

from __future__ import annotations

import importlib
from typing import Any

from brmdp.errors import ExperimentError

__all__ = ["optional"]


def optional(module: str, extra: str = "experiments") -> Any:
    """Import a module of one of the package's extras, or say how to get it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ExperimentError(f"{error.name} is missing; install it with: pip install 'brmdp[{extra}]'") from None
