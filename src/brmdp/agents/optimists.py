"""Methods of the field that explore by optimism, each a choice of parts.

Their sources differ in setting: finite horizons, average rewards, rewards in [0, 1], empirical
frequencies. Here all of them plan with a discount, for the rewards that the belief is used with,
and around the posterior mean; a weak prior brings that close to the frequencies. Each plan is the
fixed point of its optimistic equation. What else was adapted is said with each method.

Keyword arguments ``restart``, ``tolerance``, ``ties``, ``episode_length`` and ``rng`` are those of
:class:`brmdp.Agent`, with the source's own restart rule by default. As in
:mod:`brmdp.agents.presets`, ties and restarts use the first two streams that ``rng`` spawns, and
draws the third.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypedDict, Unpack

import numpy as np

from brmdp._validation import (
    FloatArray,
    Seed,
    as_discount,
    as_level,
    as_positive_int,
    as_positive_number,
)
from brmdp.agents.agent import Agent, Ties
from brmdp.agents.presets import assembled
from brmdp.agents.restarts import EveryStep, GeometricLength, RestartRule, VisitDoubling
from brmdp.agents.schedules import FixedLevel, RisingLevel, Schedule
from brmdp.beliefs.base import Belief
from brmdp.beliefs.checked import learns_rewards, require_belief, rewards_of
from brmdp.beliefs.disturbance import Rewards
from brmdp.errors import InvalidInputError
from brmdp.risk import (
    BernsteinBound,
    Bonus,
    CountBonus,
    CVaR,
    GuidanceBonus,
    MonteCarlo,
    OptimisticBall,
    OptimisticPosterior,
    Quantile,
    RootBonus,
    UnknownBonus,
    VarianceBonus,
)
from brmdp.risk.base import RiskMeasure
from brmdp.risk.bonuses import deviation_of_rows

__all__ = [
    "bayes_ucbvi",
    "beb",
    "cvar_bonus",
    "eubrl",
    "opsrl",
    "r_max",
    "ucbvi_gamma",
    "ucrl2",
    "vbrb",
]


class Settings(TypedDict, total=False):
    """What all methods share; as in :class:`brmdp.Agent`."""

    restart: RestartRule | None
    tolerance: float | None
    ties: Ties
    episode_length: int | None
    rng: Seed


def beb(
    belief: Belief, rewards: Rewards, discount: float, *, beta: float, **settings: Unpack[Settings]
) -> Agent:
    """BEB, the Bayesian exploration bonus: posterior mean plus β/(1 + n₀ + n), at every step.

    Kolter and Ng, "Near-Bayesian exploration in polynomial time" (ICML 2009), section 4. Their
    theorem has β = 2H²; much smaller values do better.

    Parameters
    ----------
    belief, rewards, discount, **settings
        As in :class:`Agent`.
    beta : float
        β > 0, in units of the rewards.

    Returns
    -------
    Agent

    Examples
    --------
    >>> import brmdp
    >>> world, belief = brmdp.envs.riverswim(6), brmdp.DirichletBelief.uniform(6, 2)
    >>> agent = brmdp.agents.beb(belief, world.rewards, 0.9, beta=2.0, rng=0)
    >>> agent.act(0) in (0, 1)
    True
    """
    rule = CountBonus(as_positive_number(beta, "beta"))
    return _optimist(belief, rewards, discount, Bonus(rule), settings, EveryStep())


def vbrb(
    belief: Belief, rewards: Rewards, discount: float, *, beta: float, **settings: Unpack[Settings]
) -> Agent:
    """VBRB, variance-based rewards: posterior mean plus β·√Σ_s' Var P(s'|s,a), at every step.

    Sorg, Singh and Lewis, "Variance-based rewards for approximate Bayesian reinforcement learning"
    (UAI 2010), section 3. Their second term, for the variance of unknown rewards, is here part of
    the first, since a belief about rewards has a probability for every outcome (s', r).

    Parameters
    ----------
    belief, rewards, discount, **settings
        As in :class:`Agent`. The belief must have Dirichlet rows.
    beta : float
        β > 0, in units of the rewards.

    Returns
    -------
    Agent

    Examples
    --------
    >>> import brmdp
    >>> world, belief = brmdp.envs.riverswim(6), brmdp.DirichletBelief.uniform(6, 2)
    >>> agent = brmdp.agents.vbrb(belief, world.rewards, 0.9, beta=2.0, rng=0)
    >>> agent.act(0) in (0, 1)
    True
    """
    rule = VarianceBonus(as_positive_number(beta, "beta"))
    return _optimist(belief, rewards, discount, Bonus(rule), settings, EveryStep())


def eubrl(
    belief: Belief, rewards: Rewards, discount: float, *, eta: float, **settings: Unpack[Settings]
) -> Agent:
    """EUBRL: where little is known, curiosity takes the place of reward; at every step.

    Ma and Lee, "EUBRL: Epistemic uncertainty directed Bayesian reinforcement learning" (ICLR 2026):
    the reward is (1 − P_U)·r + P_U·η·E with E = √Σ_s' Var P(s'|s,a) and P_U = E/E_max. There E_max
    is the largest E seen so far; here it is the largest of the given belief.

    Parameters
    ----------
    belief, rewards, discount, **settings
        As in :class:`Agent`. The belief must have Dirichlet rows and known rewards.
    eta : float
        η > 0, in units of the rewards.

    Returns
    -------
    Agent

    Examples
    --------
    >>> import brmdp
    >>> world, belief = brmdp.envs.riverswim(6), brmdp.DirichletBelief.uniform(6, 2)
    >>> agent = brmdp.agents.eubrl(belief, world.rewards, 0.9, eta=1.0, rng=0)
    >>> agent.act(0) in (0, 1)
    True
    """
    require_belief(belief)
    if learns_rewards(belief):
        raise InvalidInputError(
            "belief must not learn rewards for eubrl, which weighs known ones against doubt; got a "
            f"{type(belief).__name__}"
        )
    largest = float(deviation_of_rows(belief).max())
    # without any doubt the share is zero, whatever it is divided by
    rule = GuidanceBonus(
        as_positive_number(eta, "eta"), largest or 1.0, rewards_of(belief, rewards)
    )
    return _optimist(belief, rewards, discount, Bonus(rule), settings, EveryStep())


def r_max(
    belief: Belief,
    rewards: Rewards,
    discount: float,
    *,
    visits: int,
    **settings: Unpack[Settings],
) -> Agent:
    """R-MAX: pairs with fewer than m visits are worth r_max/(1 − γ), the others their mean.

    Brafman and Tennenholtz, "R-MAX" (JMLR 2002), algorithm 1. There a known pair keeps the
    frequencies of its first m visits, and plans are made when a pair becomes known; here it goes on
    learning, and plans are made at every step.

    Parameters
    ----------
    belief, rewards, discount, **settings
        As in :class:`Agent`.
    visits : int
        m, the number of visits that make a pair known.

    Returns
    -------
    Agent

    Examples
    --------
    >>> import brmdp
    >>> world, belief = brmdp.envs.riverswim(6), brmdp.DirichletBelief.uniform(6, 2)
    >>> agent = brmdp.agents.r_max(belief, world.rewards, 0.9, visits=5, rng=0)
    >>> round(float(agent.explain(0)[0].value), 6)
    10.0
    """
    ceiling = _largest_value(belief, rewards, discount, settings)
    risk = Bonus(UnknownBonus(visits), ceiling=ceiling)
    return _optimist(belief, rewards, discount, risk, settings, EveryStep())


def ucrl2(
    belief: Belief,
    rewards: Rewards,
    discount: float,
    *,
    delta: float = 0.1,
    scale: float = 1.0,
    **settings: Unpack[Settings],
) -> Agent:
    """UCRL2, discounted: the best kernel within L1 balls; plans anew when visits have doubled.

    Jaksch, Ortner and Auer, "Near-optimal regret bounds for reinforcement learning" (JMLR 2010),
    figure 1 and equation 4. There rewards are averaged and unknown; here they are discounted and
    known, and K possible successors take the place of S states in the radius.

    Parameters
    ----------
    belief, rewards, discount, **settings
        As in :class:`Agent`.
    delta : float in (0, 1)
        Confidence parameter δ.
    scale : float
        Multiplies the radius; 1 is the source's.

    Returns
    -------
    Agent

    Examples
    --------
    >>> import brmdp
    >>> world, belief = brmdp.envs.riverswim(6), brmdp.DirichletBelief.uniform(6, 2)
    >>> agent = brmdp.agents.ucrl2(belief, world.rewards, 0.9, rng=0)
    >>> agent.restart
    VisitDoubling()
    """
    risk = OptimisticBall(delta, scale)
    return _optimist(belief, rewards, discount, risk, settings, VisitDoubling())


def ucbvi_gamma(
    belief: Belief,
    rewards: Rewards,
    discount: float,
    *,
    delta: float = 0.1,
    scale: float = 1.0,
    **settings: Unpack[Settings],
) -> Agent:
    """UCBVI-γ: mean plus an empirical Bernstein bonus, at most r_max/(1 − γ); at every step.

    He, Zhou and Gu, "Nearly minimax optimal reinforcement learning for discounted MDPs" (NeurIPS
    2021), algorithm 1. There the bonus is the sum of three terms with constants of the proof, and
    every step makes one backup, which may only lower Q. Here it is the larger of the first two
    terms, which makes the operator monotone (:class:`brmdp.risk.BernsteinBound`), and every plan is
    solved.

    Parameters
    ----------
    belief, rewards, discount, **settings
        As in :class:`Agent`.
    delta : float in (0, 1)
        Confidence parameter δ.
    scale : float in (0, 1]
        Multiplies the bonus.

    Returns
    -------
    Agent

    Examples
    --------
    >>> import brmdp
    >>> world, belief = brmdp.envs.riverswim(6), brmdp.DirichletBelief.uniform(6, 2)
    >>> agent = brmdp.agents.ucbvi_gamma(belief, world.rewards, 0.9, rng=0)
    >>> agent.act(0) in (0, 1)
    True
    """
    ceiling = _largest_value(belief, rewards, discount, settings)
    span = ceiling + _largest_value(belief, rewards, discount, settings, sign=-1.0)
    # without different rewards there is nothing to be curious about, and any span will do
    risk = BernsteinBound(delta, span or 1.0, ceiling, scale)
    return _optimist(belief, rewards, discount, risk, settings, EveryStep())


def bayes_ucbvi(
    belief: Belief,
    rewards: Rewards,
    discount: float,
    *,
    strength: float = 1.0,
    delta: float = 0.5,
    **settings: Unpack[Settings],
) -> Agent:
    """Bayes-UCBVI: a high posterior quantile of the value, with a hopeful prior.

    Tiapkin and others, "From Dirichlet to Rubin: Optimistic exploration in RL without bonuses"
    (ICML 2022), algorithm 1: n₀ pseudo-transitions of every pair lead to a fictitious state worth
    more than any other, and Q is the quantile of r + γ w·P. There the level depends on the visits
    through constants of the proof; here it is that of Bayes-UCB, 1 − δ/(t + 1)
    (:class:`RisingLevel`). The fictitious state is worth r_max/(1 − γ), and pseudo-episodes of
    geometric length take the place of episodes. The quantile is exact.

    Parameters
    ----------
    belief, rewards, discount, **settings
        As in :class:`Agent`. The belief must be a DirichletBelief.
    strength : float
        n₀ > 0.
    delta : float in (0, 1)
        How far the first level is below one.

    Returns
    -------
    Agent

    Examples
    --------
    >>> import brmdp
    >>> world, belief = brmdp.envs.riverswim(6), brmdp.DirichletBelief.uniform(6, 2)
    >>> agent = brmdp.agents.bayes_ucbvi(belief, world.rewards, 0.9, rng=0)
    >>> agent.schedule
    RisingLevel(delta=0.5)
    """
    value = _largest_value(belief, rewards, discount, settings)
    risk = OptimisticPosterior(Quantile(0.5), value, strength)
    restart = GeometricLength(_continuation(discount, settings))
    return _optimist(belief, rewards, discount, risk, settings, restart, RisingLevel(delta))


def opsrl(
    belief: Belief,
    rewards: Rewards,
    discount: float,
    *,
    samples: int = 8,
    strength: float = 1.0,
    inflation: float = 1.0,
    **settings: Unpack[Settings],
) -> Agent:
    """OPSRL, optimistic posterior sampling: for every pair the best of several draws of its row.

    Tiapkin and others, "Optimistic posterior sampling for reinforcement learning with few samples
    and tight guarantees" (NeurIPS 2022), algorithm 1: the concentrations are divided by κ, n₀
    pseudo-transitions lead to a fictitious state, here worth r_max/(1 − γ), and pseudo-episodes of
    geometric length take the place of episodes.

    Parameters
    ----------
    belief, rewards, discount, **settings
        As in :class:`Agent`. The belief must be a DirichletBelief.
    samples : int
        Number of draws.
    strength : float
        n₀ > 0.
    inflation : float, at least 1
        κ.

    Returns
    -------
    Agent

    Examples
    --------
    >>> import brmdp
    >>> world, belief = brmdp.envs.riverswim(6), brmdp.DirichletBelief.uniform(6, 2)
    >>> agent = brmdp.agents.opsrl(belief, world.rewards, 0.9, rng=0)
    >>> agent.act(0) in (0, 1), agent.report.status
    (True, 'sampled')
    """
    number = as_positive_int(samples, "samples")
    value = _largest_value(belief, rewards, discount, settings)

    def risk(draws: np.random.Generator) -> RiskMeasure:
        # the largest of n draws is their quantile at any level above 1 − 1/n
        best = Quantile(1.0 - 0.5 / number, MonteCarlo(samples=number, rng=draws))
        return OptimisticPosterior(best, value, strength, inflation)

    restart = GeometricLength(_continuation(discount, settings))
    return _optimist(belief, rewards, discount, risk, settings, restart)


def cvar_bonus(
    belief: Belief,
    rewards: Rewards,
    discount: float,
    *,
    alpha: float,
    beta: float,
    **settings: Unpack[Settings],
) -> Agent:
    """Lower-tail CVaR of the posterior plus a bonus β/√n, in pseudo-episodes of geometric length.

    After Wang and Zhou, "Online Bayesian risk-averse reinforcement learning" (2025): a risk-averse
    plan that explores by a bonus. There the bonus has constants of the proof and episodes are
    given; here β is free. CVaR is exact.

    Parameters
    ----------
    belief, rewards, discount, **settings
        As in :class:`Agent`.
    alpha : float in (0, 1)
        Level of CVaR.
    beta : float
        β > 0, in units of the rewards.

    Returns
    -------
    Agent

    Examples
    --------
    >>> import brmdp
    >>> world, belief = brmdp.envs.riverswim(6), brmdp.DirichletBelief.uniform(6, 2)
    >>> agent = brmdp.agents.cvar_bonus(belief, world.rewards, 0.9, alpha=0.2, beta=0.5, rng=0)
    >>> agent.act(0) in (0, 1)
    True
    """
    level = as_level(alpha)
    risk = Bonus(RootBonus(as_positive_number(beta, "beta")), CVaR(level))
    restart = GeometricLength(_continuation(discount, settings))
    return _optimist(belief, rewards, discount, risk, settings, restart, FixedLevel(level))


def _optimist(
    belief: Belief,
    rewards: Rewards,
    discount: float,
    risk: RiskMeasure | Callable[[np.random.Generator], RiskMeasure],
    settings: Settings,
    restart: RestartRule,
    schedule: Schedule | None = None,
) -> Agent:
    """The agent, with ``restart`` unless another rule or episodes of the world are asked for."""
    episode_length = settings.get("episode_length")
    asked = settings.get("restart")
    return assembled(
        belief,
        rewards,
        discount,
        risk if callable(risk) else lambda _: risk,
        schedule,
        restart if asked is None and episode_length is None else asked,
        settings.get("tolerance"),
        settings.get("ties", "uniform"),
        episode_length,
        settings.get("rng"),
    )


def _continuation(discount: float, settings: Settings) -> float:
    """The discount as a chance to go on; with episodes of the world it has no meaning."""
    return as_discount(discount) if settings.get("episode_length") is None else 0.0


def _largest_value(
    belief: Belief, rewards: Rewards, discount: float, settings: Settings, *, sign: float = 1.0
) -> float:
    """A bound on sign·V: with r the largest sign·reward, r/(1 − γ), or r(1 + γ + …) over a horizon.

    Over a horizon, a negative r counts once.
    """
    require_belief(belief)
    paid: FloatArray = sign * rewards_of(belief, rewards)
    largest = float(paid.max())
    horizon = settings.get("episode_length")
    gamma = as_discount(discount, one_allowed=horizon is not None)
    if horizon is None:
        return largest / (1.0 - gamma)
    steps = as_positive_int(horizon, "episode_length")
    total = float(steps) if gamma == 1.0 else (1.0 - gamma**steps) / (1.0 - gamma)
    return largest * (total if largest > 0.0 else 1.0)
