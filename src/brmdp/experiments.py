"""The former name of :mod:`brmdp.runs`; the experiments themselves are in :mod:`brmdp.studies`."""

from typing import Any

from brmdp._renamed import former_name


def __getattr__(name: str) -> Any:
    return former_name(__name__, name)
