"""From a log to a decision that can be defended: models, checks, decisions and their page."""

from brmdp.models.decision import Decision, decide
from brmdp.models.model import Dynamics, Model

__all__ = ["Decision", "Dynamics", "Model", "decide"]
