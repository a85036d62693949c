"""Descriptions written by earlier versions, translated into present terms.

Stored files have one of these formats:

1. without digests of the world and of the code;
2. with digests; programs have short names;
3. with the next state and the disturbance of every step; programs are references; digests of
   texts include their lengths.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = [
    "FORMAT",
    "FORMATS",
    "FORMER_AGENTS",
    "WITHOUT_DIGESTS",
    "WITH_LENGTHS_OF_TEXTS",
    "in_words",
    "upgraded",
]

FORMAT = 3
"""Format in which files are written; to be raised when the same description gives other content."""

WITHOUT_DIGESTS = 1
"""Format of files that do not say what made them; they are read, but nothing is added to them."""

WITH_LENGTHS_OF_TEXTS = 3
"""First format whose digests tell the texts "a|b", "c" from "a", "b|c"."""

FORMATS = (WITHOUT_DIGESTS, 2, FORMAT)

FORMER_AGENTS = {"brmdp": "fixed-quantile"}
"""Names of agents in earlier versions, which still work, and their present ones."""

_KEYS = {"shown_steps": "reported_steps", "most_runs": "max_runs"}
_STUDIES = {
    "coverage": ("coverage", "COVERAGE"),
    "normality": ("normality", "NORMALITY"),
    "sample-size": ("normality", "SAMPLE_SIZE"),
    "optimism": ("optimism", "OPTIMISM"),
    "quantile-deviation": ("lemmas", "DEVIATION"),
    "value-decomposition": ("lemmas", "DECOMPOSITION"),
    "episode-count": ("lemmas", "EPISODE_COUNT"),
    "robustness-example": ("examples", "ROBUSTNESS"),
    "trap-example": ("examples", "TRAP"),
    "exposure-example": ("examples", "EXPOSURE"),
    "probing-example": ("examples", "PROBING"),
    "continuous-portrait": ("continuous_lake", "PORTRAIT"),
    "continuous-epsilon": ("continuous_lake", "EPSILON"),
}


def upgraded(case: Mapping[str, Any], format_: int) -> dict[str, Any]:
    """The description of a case in a file of an earlier format, as it would be written now."""
    if format_ >= FORMAT:
        return dict(case)
    described = {_KEYS.get(key, key): value for key, value in case.items()}
    if described.get("program") in _STUDIES:
        folder, attribute = _STUDIES[described["program"]]
        described["program"] = f"brmdp.studies.{folder}.experiment:{attribute}"
    if "agent" in described:
        described["agent"] = FORMER_AGENTS.get(described["agent"], described["agent"])
        described.setdefault("prior", {})
    return described


def in_words() -> str:
    """The formats that can be read, in words."""
    *others, last = map(str, FORMATS)
    return f"{', '.join(others)} and {last}"
