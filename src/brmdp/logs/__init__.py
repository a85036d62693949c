"""From a file or a data frame to transitions, with an account of what was dropped and why."""

from brmdp.logs.log import Dropped, Log, ReadingReport
from brmdp.logs.reading import MISSING, read_log
from brmdp.logs.spaces import Axis, Bins, Categories, StateSpace

__all__ = [
    "MISSING",
    "Axis",
    "Bins",
    "Categories",
    "Dropped",
    "Log",
    "ReadingReport",
    "StateSpace",
    "read_log",
]
