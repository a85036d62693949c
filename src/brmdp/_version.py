"""The version of the package, from its installation."""

from __future__ import annotations

from importlib import metadata

__all__ = ["installed_version"]


def installed_version() -> str:
    """The version of brmdp; "unknown" if its sources are on the path but not installed."""
    try:
        return metadata.version("brmdp")
    except metadata.PackageNotFoundError:
        return "unknown"
