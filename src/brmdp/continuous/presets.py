"""The paper's two continuous-state methods and two controls, each a choice of parts.

With the same ``rng``, a preset and a :class:`ContinuousAgent` built from the same parts behave the
same. The agent uses the first four streams that ``rng`` spawns, and a risk measure with a stream of
its own uses the fifth. To build the same measure yourself, pass it that stream:
``numpy.random.default_rng(seed).spawn(5)[4]``.
"""

from __future__ import annotations

import numpy as np

from brmdp._streams import independent_streams
from brmdp._validation import Seed, as_discount
from brmdp.agents import GeometricLength, RestartRule
from brmdp.continuous.agent import ContinuousAgent
from brmdp.continuous.model import ParametricBelief, ParametricModel
from brmdp.continuous.schedule import UncertaintyLevel
from brmdp.continuous.settings import FittedQ
from brmdp.risk import Mean, MonteCarlo, PosteriorSample, Quantile

__all__ = ["aq_brmdp", "continuing_psrl", "fixed_quantile", "posterior_mean"]


def aq_brmdp(
    belief: ParametricBelief,
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
    rng: Seed = None,
) -> ContinuousAgent:
    """AQ-BRMDP: quantile targets with the adaptive schedule.

    Parameters
    ----------
    belief, model, discount, fitting
        As in :class:`ContinuousAgent`.
    delta, floor, ceiling, epsilon
        As in :class:`UncertaintyLevel`.
    coefficient : float
        c of the budget rule, which determines how many of the shared draws a pair uses.
    restart : RestartRule, optional
        When to plan again. By default pseudo-episodes continue with probability ``discount`` after
        every step.
    rng : numpy.random.Generator or seed, optional
        Source of the agent's streams.

    Returns
    -------
    ContinuousAgent

    Examples
    --------
    >>> from brmdp import continuous
    >>> belief, model = continuous.LakeBelief(), continuous.LakeModel()
    >>> agent = continuous.aq_brmdp(belief, model, 0.9, rng=1)
    >>> agent.schedule
    UncertaintyLevel(delta=10.0, floor=0.2, ceiling=0.95, epsilon=0.01)
    """
    schedule = UncertaintyLevel(delta, floor, ceiling, epsilon)
    return _quantile_agent(
        belief, model, discount, schedule.floor, schedule, coefficient, fitting, restart, rng
    )


def fixed_quantile(
    belief: ParametricBelief,
    model: ParametricModel,
    discount: float,
    *,
    alpha: float,
    coefficient: float = 250.0,
    fitting: FittedQ | None = None,
    restart: RestartRule | None = None,
    rng: Seed = None,
) -> ContinuousAgent:
    """BRMDP-α: quantile targets at one fixed level.

    Parameters
    ----------
    belief, model, discount, coefficient, fitting, restart, rng
        As in :func:`aq_brmdp`.
    alpha : float in (0, 1)
        Level.

    Returns
    -------
    ContinuousAgent

    Examples
    --------
    >>> from brmdp import continuous
    >>> belief, model = continuous.LakeBelief(), continuous.LakeModel()
    >>> agent = continuous.fixed_quantile(belief, model, 0.9, alpha=0.2, rng=1)
    >>> float(agent.risk.alpha)
    0.2
    """
    return _quantile_agent(belief, model, discount, alpha, None, coefficient, fitting, restart, rng)


def continuing_psrl(
    belief: ParametricBelief,
    model: ParametricModel,
    discount: float,
    *,
    fitting: FittedQ | None = None,
    restart: RestartRule | None = None,
    rng: Seed = None,
) -> ContinuousAgent:
    """Continuing PSRL: targets under one posterior draw per pseudo-episode.

    Parameters
    ----------
    belief, model, discount, fitting, restart, rng
        As in :func:`aq_brmdp`.

    Returns
    -------
    ContinuousAgent

    Examples
    --------
    >>> from brmdp import continuous
    >>> belief, model = continuous.LakeBelief(), continuous.LakeModel()
    >>> agent = continuous.continuing_psrl(belief, model, 0.9, rng=1)
    >>> type(agent.risk).__name__, agent.episode
    ('PosteriorSample', 0)
    """
    *own, draws = independent_streams(rng, 5)
    return _agent(belief, model, discount, PosteriorSample(rng=draws), None, fitting, restart, own)


def posterior_mean(
    belief: ParametricBelief,
    model: ParametricModel,
    discount: float,
    *,
    fitting: FittedQ | None = None,
    restart: RestartRule | None = None,
    rng: Seed = None,
) -> ContinuousAgent:
    """A risk-neutral control: targets are posterior means, estimated from the shared draws.

    Parameters
    ----------
    belief, model, discount, fitting, restart, rng
        As in :func:`aq_brmdp`.

    Returns
    -------
    ContinuousAgent

    Examples
    --------
    >>> from brmdp import continuous
    >>> belief, model = continuous.LakeBelief(), continuous.LakeModel()
    >>> agent = continuous.posterior_mean(belief, model, 0.9, rng=1)
    >>> agent.risk
    Mean()
    """
    return _agent(belief, model, discount, Mean(), None, fitting, restart, rng)


def _quantile_agent(
    belief: ParametricBelief,
    model: ParametricModel,
    discount: float,
    level: float,
    schedule: UncertaintyLevel | None,
    coefficient: float,
    fitting: FittedQ | None,
    restart: RestartRule | None,
    rng: Seed,
) -> ContinuousAgent:
    *own, draws = independent_streams(rng, 5)
    fitting = FittedQ() if fitting is None else fitting
    risk = Quantile(level, MonteCarlo(coefficient, cap=fitting.draws, rng=draws))
    return _agent(belief, model, discount, risk, schedule, fitting, restart, own)


def _agent(
    belief: ParametricBelief,
    model: ParametricModel,
    discount: float,
    risk: Quantile | Mean | PosteriorSample,
    schedule: UncertaintyLevel | None,
    fitting: FittedQ | None,
    restart: RestartRule | None,
    rng: Seed | list[np.random.Generator],
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
