"""The paper's two continuous-state methods and two controls, each a choice of parts.

With the same ``rng``, a preset and a :class:`ContinuousAgent` made of the same parts have the same
luck: the agent's streams are the first four that ``rng`` spawns, and a measure with a stream of its
own draws from the fifth. Such a measure is the same part if it is given that one,
``numpy.random.default_rng(seed).spawn(5)[4]``.
"""

from __future__ import annotations

from typing import Any

from brmdp._streams import independent_streams
from brmdp._validation import as_discount
from brmdp.agents import GeometricLength, RestartRule
from brmdp.continuous.agent import ContinuousAgent
from brmdp.continuous.model import ParametricModel
from brmdp.continuous.schedule import UncertaintyLevel
from brmdp.continuous.settings import FittedQ
from brmdp.risk import Mean, MonteCarlo, PosteriorSample, Quantile

__all__ = ["aq_brmdp", "continuing_psrl", "fixed_quantile", "posterior_mean"]


def aq_brmdp(
    belief: Any,
    model: ParametricModel,
    discount: float,
    *,
    delta: float = 10.0,
    floor: float = UncertaintyLevel.floor,
    ceiling: float = UncertaintyLevel.ceiling,
    epsilon: float = UncertaintyLevel.epsilon,
    coefficient: float = 250.0,
    fitting: FittedQ | None = None,
    restart: RestartRule | None = None,
    rng: Any = None,
) -> ContinuousAgent:
    """AQ-BRMDP: quantile targets with the adaptive schedule.

    Parameters
    ----------
    belief, model, discount, fitting
        As in :class:`ContinuousAgent`.
    delta, floor, ceiling, epsilon
        As in :class:`UncertaintyLevel`.
    coefficient : float
        c of the budget rule, which says how many of the shared draws a pair uses.
    restart : RestartRule, optional
        By default geometric pseudo-episodes that go on with probability ``discount``.
    rng : numpy.random.Generator or seed
    """
    schedule = UncertaintyLevel(delta, floor, ceiling, epsilon)
    return _quantile_agent(
        belief, model, discount, schedule.floor, schedule, coefficient, fitting, restart, rng
    )


def fixed_quantile(
    belief: Any,
    model: ParametricModel,
    discount: float,
    *,
    alpha: float,
    coefficient: float = 250.0,
    fitting: FittedQ | None = None,
    restart: RestartRule | None = None,
    rng: Any = None,
) -> ContinuousAgent:
    """BRMDP-α: quantile targets at one fixed level; arguments as in :func:`aq_brmdp`."""
    return _quantile_agent(belief, model, discount, alpha, None, coefficient, fitting, restart, rng)


def continuing_psrl(
    belief: Any,
    model: ParametricModel,
    discount: float,
    *,
    fitting: FittedQ | None = None,
    restart: RestartRule | None = None,
    rng: Any = None,
) -> ContinuousAgent:
    """Continuing PSRL: targets under one posterior draw per pseudo-episode.

    Arguments as in :func:`aq_brmdp`.
    """
    *own, draws = independent_streams(rng, 5)
    return _agent(belief, model, discount, PosteriorSample(rng=draws), None, fitting, restart, own)


def posterior_mean(
    belief: Any,
    model: ParametricModel,
    discount: float,
    *,
    fitting: FittedQ | None = None,
    restart: RestartRule | None = None,
    rng: Any = None,
) -> ContinuousAgent:
    """Posterior mean of the targets, over the shared draws; arguments as in :func:`aq_brmdp`."""
    return _agent(belief, model, discount, Mean(), None, fitting, restart, rng)


def _quantile_agent(
    belief: Any,
    model: ParametricModel,
    discount: float,
    level: float,
    schedule: UncertaintyLevel | None,
    coefficient: float,
    fitting: FittedQ | None,
    restart: RestartRule | None,
    rng: Any,
) -> ContinuousAgent:
    *own, draws = independent_streams(rng, 5)
    fitting = FittedQ() if fitting is None else fitting
    risk = Quantile(level, MonteCarlo(coefficient, cap=fitting.draws, rng=draws))
    return _agent(belief, model, discount, risk, schedule, fitting, restart, own)


def _agent(
    belief: Any,
    model: ParametricModel,
    discount: float,
    risk: Any,
    schedule: UncertaintyLevel | None,
    fitting: FittedQ | None,
    restart: RestartRule | None,
    rng: Any,
) -> ContinuousAgent:
    discount = as_discount(discount)
    restart = GeometricLength(discount) if restart is None else restart
    return ContinuousAgent(
        belief,
        model,
        discount,
        risk=risk,
        restart=restart,
        schedule=schedule,
        fitting=fitting,
        rng=rng,
    )
