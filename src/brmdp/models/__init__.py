"""From a log to a decision that can be defended: models, checks, decisions and their page."""

from brmdp.models.decision import Decision, decide
from brmdp.models.loading import load_model as read_model
from brmdp.models.model import Dynamics, Model
from brmdp.models.policies import read_policy
from brmdp.models.stock import Stock, StockModel

__all__ = [
    "Decision",
    "Dynamics",
    "Model",
    "Stock",
    "StockModel",
    "decide",
    "read_model",
    "read_policy",
]
