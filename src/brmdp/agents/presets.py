"""The paper's methods and the risk-neutral one, each a choice of parts.

With the same ``rng``, a preset and an :class:`Agent` made of the same parts have the same luck:
ties and restarts come from the first two streams that ``rng`` spawns, and the draws of a measure
that draws from the third. Such a measure is the same part if it is given that one,
``numpy.random.default_rng(seed).spawn(3)[2]``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from brmdp._streams import independent_streams
from brmdp._validation import Seed, as_discount
from brmdp.agents.agent import Agent, Ties
from brmdp.agents.restarts import GeometricLength, RestartRule
from brmdp.agents.schedules import AdaptiveLevel, FixedLevel, Schedule
from brmdp.beliefs.base import Belief
from brmdp.risk import Mean, MonteCarlo, PosteriorSample, Quantile
from brmdp.risk.base import RiskMeasure
from brmdp.risk.measures import QuantileMethod

__all__ = ["aq_brmdp", "continuing_psrl", "fixed_quantile", "posterior_mean"]


def aq_brmdp(
    belief: Belief,
    rewards: Any,
    discount: float,
    *,
    delta: float,
    floor: float = 0.2,
    method: QuantileMethod = "exact",
    restart: RestartRule | None = None,
    tolerance: float | None = None,
    ties: Ties = "uniform",
    rng: Seed = None,
) -> Agent:
    """AQ-BRMDP: quantile planning with the adaptive schedule (the paper's Algorithm AQ-BRMDP).

    Parameters
    ----------
    belief, rewards, discount, tolerance, ties
        As in :class:`Agent`.
    delta : float
        Sensitivity δ > 0 of the schedule (the paper: 5 to 15).
    floor : float in (0, 1)
        Most cautious level α̲.
    method : {"exact", "saddlepoint"} or MonteCarlo
        As in :class:`brmdp.Quantile`. A MonteCarlo is rebuilt on one of the agent's streams.
    restart : RestartRule, optional
        By default geometric pseudo-episodes that go on with probability ``discount``.
    rng : numpy.random.Generator or seed

    Examples
    --------
    >>> import brmdp
    >>> mdp = brmdp.envs.riverswim(6)
    >>> belief = brmdp.DirichletBelief.uniform(6, 2)
    >>> agent = brmdp.agents.aq_brmdp(belief, mdp.rewards, discount=0.9, delta=5, rng=0)
    >>> agent.act(0) in (0, 1)
    True
    """
    schedule = AdaptiveLevel(delta, floor)
    risk = _quantile(floor, method)
    return _assembled(belief, rewards, discount, risk, schedule, restart, tolerance, ties, rng)


def fixed_quantile(
    belief: Belief,
    rewards: Any,
    discount: float,
    *,
    alpha: float,
    method: QuantileMethod = "exact",
    restart: RestartRule | None = None,
    tolerance: float | None = None,
    ties: Ties = "uniform",
    rng: Seed = None,
) -> Agent:
    """BRMDP-α: quantile planning at one fixed level; arguments as in :func:`aq_brmdp`."""
    schedule = FixedLevel(alpha)
    risk = _quantile(alpha, method)
    return _assembled(belief, rewards, discount, risk, schedule, restart, tolerance, ties, rng)


def continuing_psrl(
    belief: Belief,
    rewards: Any,
    discount: float,
    *,
    restart: RestartRule | None = None,
    tolerance: float | None = None,
    ties: Ties = "uniform",
    rng: Seed = None,
) -> Agent:
    """Continuing PSRL: act optimally for one posterior draw per pseudo-episode.

    Arguments as in :func:`aq_brmdp`.
    """

    def risk(draws: np.random.Generator) -> RiskMeasure:
        return PosteriorSample(rng=draws)

    return _assembled(belief, rewards, discount, risk, None, restart, tolerance, ties, rng)


def posterior_mean(
    belief: Belief,
    rewards: Any,
    discount: float,
    *,
    restart: RestartRule | None = None,
    tolerance: float | None = None,
    ties: Ties = "uniform",
    rng: Seed = None,
) -> Agent:
    """Act optimally for the posterior mean: no caution, no curiosity, a control for the others.

    Arguments as in :func:`aq_brmdp`.
    """
    return _assembled(
        belief, rewards, discount, lambda _: Mean(), None, restart, tolerance, ties, rng
    )


def _quantile(level: float, method: QuantileMethod) -> Callable[[np.random.Generator], RiskMeasure]:
    """The measure at ``level``, given a stream from which to draw if it does."""

    def risk(draws: np.random.Generator) -> RiskMeasure:
        chosen = method
        if isinstance(chosen, MonteCarlo):
            chosen = MonteCarlo(
                chosen.coefficient,
                cap=chosen.cap,
                samples=chosen.samples,
                reuse=chosen.reuse,
                rng=draws,
            )
        return Quantile(level, chosen)

    return risk


def _assembled(
    belief: Belief,
    rewards: Any,
    discount: float,
    risk: Callable[[np.random.Generator], RiskMeasure],
    schedule: Schedule | None,
    restart: RestartRule | None,
    tolerance: float | None,
    ties: Ties,
    rng: Seed,
) -> Agent:
    discount = as_discount(discount)
    *own, draws = independent_streams(rng, 3)
    return Agent(
        belief,
        rewards,
        discount,
        risk=risk(draws),
        schedule=schedule,
        restart=GeometricLength(discount) if restart is None else restart,
        tolerance=tolerance,
        ties=ties,
        rng=own,
    )
