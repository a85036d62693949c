"""The paper's three methods, each a choice of parts.

With the same ``rng``, a preset and an :class:`Agent` made of the same parts have the same luck:
ties and restarts come from the first two streams that ``rng`` spawns, and the draws of a measure
that draws from the third. Such a measure is the same part if it is given that one,
``numpy.random.default_rng(seed).spawn(3)[2]``.
"""

from __future__ import annotations

from typing import Any

from brmdp._streams import independent_streams
from brmdp._validation import as_discount
from brmdp.agents.agent import Agent
from brmdp.agents.restarts import GeometricLength, RestartRule
from brmdp.agents.schedules import AdaptiveLevel, FixedLevel, Schedule
from brmdp.risk import MonteCarlo, PosteriorSample, Quantile

# not brmdp: brought in by an asterisk, it would take the place of the library
__all__ = ["aq_brmdp", "continuing_psrl"]


def aq_brmdp(
    belief: Any,
    rewards: Any,
    discount: float,
    *,
    delta: float,
    floor: float = 0.2,
    method: Any = "exact",
    restart: RestartRule | None = None,
    tolerance: float | None = None,
    ties: str = "uniform",
    rng: Any = None,
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
        As in :class:`brmdp.Quantile`. A MonteCarlo is rebuilt on a stream of the agent's.
    restart : RestartRule, optional
        By default geometric pseudo-episodes that go on with probability ``discount``.
    rng : numpy.random.Generator or seed
    """
    return _quantile_agent(
        belief,
        rewards,
        discount,
        AdaptiveLevel(delta, floor),
        floor,
        method,
        restart,
        tolerance,
        ties,
        rng,
    )


def brmdp(
    belief: Any,
    rewards: Any,
    discount: float,
    *,
    alpha: float,
    method: Any = "exact",
    restart: RestartRule | None = None,
    tolerance: float | None = None,
    ties: str = "uniform",
    rng: Any = None,
) -> Agent:
    """BRMDP-α: quantile planning at one fixed level; arguments as in :func:`aq_brmdp`."""
    return _quantile_agent(
        belief, rewards, discount, FixedLevel(alpha), alpha, method, restart, tolerance, ties, rng
    )


def continuing_psrl(
    belief: Any,
    rewards: Any,
    discount: float,
    *,
    restart: RestartRule | None = None,
    tolerance: float | None = None,
    ties: str = "uniform",
    rng: Any = None,
) -> Agent:
    """Continuing PSRL: act optimally for one posterior draw per pseudo-episode.

    Arguments as in :func:`aq_brmdp`.
    """
    discount = as_discount(discount)
    *own, draws = independent_streams(rng, 3)
    return Agent(
        belief,
        rewards,
        discount,
        risk=PosteriorSample(rng=draws),
        restart=GeometricLength(discount) if restart is None else restart,
        tolerance=tolerance,
        ties=ties,
        rng=own,
    )


def _quantile_agent(
    belief: Any,
    rewards: Any,
    discount: float,
    schedule: Schedule,
    level: float,
    method: Any,
    restart: RestartRule | None,
    tolerance: float | None,
    ties: str,
    rng: Any,
) -> Agent:
    discount = as_discount(discount)
    *own, draws = independent_streams(rng, 3)
    if isinstance(method, MonteCarlo):
        method = MonteCarlo(
            method.coefficient,
            cap=method.cap,
            samples=method.samples,
            reuse=method.reuse,
            rng=draws,
        )
    return Agent(
        belief,
        rewards,
        discount,
        risk=Quantile(level, method),
        schedule=schedule,
        restart=GeometricLength(discount) if restart is None else restart,
        tolerance=tolerance,
        ties=ties,
        rng=own,
    )
