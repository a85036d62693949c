"""The paper's methods and a risk-neutral one, each a choice of parts.

With the same ``rng``, a preset and an :class:`Agent` built from the same parts behave the same.
Ties and restarts use the first two streams that ``rng`` spawns, and a risk measure that draws uses
the third. To build the same measure yourself, pass it that stream:
``numpy.random.default_rng(seed).spawn(3)[2]``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from brmdp._streams import independent_streams
from brmdp._validation import Seed, as_discount
from brmdp.agents.agent import Agent, Ties
from brmdp.agents.restarts import GeometricLength, RestartRule
from brmdp.agents.schedules import AdaptiveLevel, FixedLevel, Schedule
from brmdp.beliefs.base import Belief
from brmdp.beliefs.disturbance import Rewards
from brmdp.errors import InvalidInputError
from brmdp.risk import Mean, MonteCarlo, PosteriorSample, Quantile
from brmdp.risk.base import RiskMeasure
from brmdp.risk.measures import QuantileMethod

__all__ = ["aq_brmdp", "assembled", "continuing_psrl", "fixed_quantile", "posterior_mean"]


def aq_brmdp(
    belief: Belief,
    rewards: Rewards,
    discount: float,
    *,
    delta: float,
    floor: float = 0.2,
    method: QuantileMethod = "exact",
    restart: RestartRule | None = None,
    tolerance: float | None = None,
    ties: Ties = "uniform",
    episode_length: int | None = None,
    rng: Seed = None,
) -> Agent:
    """AQ-BRMDP: quantile planning with the adaptive schedule (the paper's algorithm AQ-BRMDP).

    Parameters
    ----------
    belief, rewards, discount, tolerance, ties, episode_length
        As in :class:`Agent`.
    delta : float
        Sensitivity δ > 0 of the schedule (5 to 15 in the paper).
    floor : float in (0, 1)
        Most cautious level α̲.
    method : {"exact", "saddlepoint"} or MonteCarlo
        As in :class:`brmdp.Quantile`. A MonteCarlo is copied, and the copy draws from a stream that
        comes from ``rng``.
    restart : RestartRule, optional
        When to plan again. By default pseudo-episodes continue with probability ``discount`` after
        every step, or, with an ``episode_length``, last for one episode of the world.
    rng : numpy.random.Generator or seed, optional
        Source of the agent's streams.

    Returns
    -------
    Agent

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
    settings = (restart, tolerance, ties, episode_length)
    return assembled(belief, rewards, discount, risk, schedule, *settings, rng)


def fixed_quantile(
    belief: Belief,
    rewards: Rewards,
    discount: float,
    *,
    alpha: float,
    method: QuantileMethod = "exact",
    restart: RestartRule | None = None,
    tolerance: float | None = None,
    ties: Ties = "uniform",
    episode_length: int | None = None,
    rng: Seed = None,
) -> Agent:
    """BRMDP-α: quantile planning at one fixed level.

    Parameters
    ----------
    belief, rewards, discount, method, restart, tolerance, ties, episode_length, rng
        As in :func:`aq_brmdp`.
    alpha : float in (0, 1)
        Level. To have it chosen in worlds drawn from the belief, use :func:`brmdp.tune`.

    Returns
    -------
    Agent

    Examples
    --------
    >>> import brmdp
    >>> mdp = brmdp.envs.riverswim(6)
    >>> belief = brmdp.DirichletBelief.uniform(6, 2)
    >>> agent = brmdp.agents.fixed_quantile(belief, mdp.rewards, discount=0.9, alpha=0.2, rng=0)
    >>> agent.schedule
    FixedLevel(alpha=0.2)
    """
    if isinstance(alpha, str) and alpha == "tuned":  # type: ignore[unreachable]
        raise InvalidInputError(
            "alpha must be a number in (0, 1); got 'tuned'. A level is tuned for a number of "
            "steps, in worlds drawn from the belief: "
            "brmdp.tune(belief, rewards, discount, steps).agent() is the agent that did best there"
        )
    schedule = FixedLevel(alpha)
    risk = _quantile(alpha, method)
    settings = (restart, tolerance, ties, episode_length)
    return assembled(belief, rewards, discount, risk, schedule, *settings, rng)


def continuing_psrl(
    belief: Belief,
    rewards: Rewards,
    discount: float,
    *,
    restart: RestartRule | None = None,
    tolerance: float | None = None,
    ties: Ties = "uniform",
    episode_length: int | None = None,
    rng: Seed = None,
) -> Agent:
    """Continuing PSRL: act optimally for one posterior draw per pseudo-episode.

    Parameters
    ----------
    belief, rewards, discount, restart, tolerance, ties, episode_length, rng
        As in :func:`aq_brmdp`.

    Returns
    -------
    Agent

    Examples
    --------
    >>> import brmdp
    >>> mdp = brmdp.envs.riverswim(6)
    >>> belief = brmdp.DirichletBelief.uniform(6, 2)
    >>> agent = brmdp.agents.continuing_psrl(belief, mdp.rewards, discount=0.9, rng=0)
    >>> agent.act(0) in (0, 1)
    True
    """

    def risk(draws: np.random.Generator) -> RiskMeasure:
        return PosteriorSample(rng=draws)

    settings = (restart, tolerance, ties, episode_length)
    return assembled(belief, rewards, discount, risk, None, *settings, rng)


def posterior_mean(
    belief: Belief,
    rewards: Rewards,
    discount: float,
    *,
    restart: RestartRule | None = None,
    tolerance: float | None = None,
    ties: Ties = "uniform",
    episode_length: int | None = None,
    rng: Seed = None,
) -> Agent:
    """Act optimally for the posterior mean, as a risk-neutral control for the other methods.

    Parameters
    ----------
    belief, rewards, discount, restart, tolerance, ties, episode_length, rng
        As in :func:`aq_brmdp`.

    Returns
    -------
    Agent

    Examples
    --------
    >>> import brmdp
    >>> mdp = brmdp.envs.riverswim(6)
    >>> belief = brmdp.DirichletBelief.uniform(6, 2)
    >>> agent = brmdp.agents.posterior_mean(belief, mdp.rewards, discount=0.9, rng=0)
    >>> agent.risk
    Mean()
    """
    settings = (restart, tolerance, ties, episode_length)
    return assembled(belief, rewards, discount, lambda _: Mean(), None, *settings, rng)


def _quantile(level: float, method: QuantileMethod) -> Callable[[np.random.Generator], RiskMeasure]:
    """A function that builds the quantile at ``level``, given a stream for a MonteCarlo."""

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


def assembled(
    belief: Belief,
    rewards: Rewards,
    discount: float,
    risk: Callable[[np.random.Generator], RiskMeasure],
    schedule: Schedule | None,
    restart: RestartRule | None,
    tolerance: float | None,
    ties: Ties,
    episode_length: int | None,
    rng: Seed,
) -> Agent:
    """The agent of these parts; ``risk`` makes the measure, given a stream for its draws."""
    discount = as_discount(discount, one_allowed=episode_length is not None)
    if restart is None and episode_length is None:
        restart = GeometricLength(discount)
    *own, draws = independent_streams(rng, 3)
    return Agent(
        belief,
        rewards,
        discount,
        risk=risk(draws),
        schedule=schedule,
        restart=restart,
        tolerance=tolerance,
        ties=ties,
        episode_length=episode_length,
        rng=own,
    )
