"""The version of the package, from its installation."""

from __future__ import annotations

from importlib import metadata

__all__ = ["installed_version"]


def installed_version() -> str:
    """Of brmdp; "unknown" for sources on the path that nobody has installed."""
    try:
        return metadata.version("brmdp")
    except metadata.PackageNotFoundError:
        return "unknown"
