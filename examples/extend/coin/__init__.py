"""Your own study, complete: how often an interval for the bias of a coin covers it.

Run it with ``cd examples/extend && brmdp reproduce coin:STUDY --runs 20``.
"""

from brmdp.studies import Study
from coin.analysis import analyse
from coin.experiment import EXPERIMENT

STUDY = Study(EXPERIMENT, analyse, "coin.figures:draw")
