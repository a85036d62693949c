"""From a file or a data frame to transitions, with an account of what was dropped and why."""

from brmdp.logs.log import Dropped, Log, ReadingReport
from brmdp.logs.spaces import Axis, Bins, Categories, StateSpace

__all__ = ["Axis", "Bins", "Categories", "Dropped", "Log", "ReadingReport", "StateSpace"]
