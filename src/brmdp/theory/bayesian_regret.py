"""Bayesian regret: what learning costs in a world drawn from the prior.

BR(T) is the expectation, over the prior, the trajectory and the pseudo-episodes, of Σ_t V*(s_t) − V^{π_k}(s_t); BR-R(T) that of
Σ_t V*_{φ_k,α̲}(s_t) − V^{π_k}_{φ_k,α̲}(s_t). One replication gives one draw of both curves; their means over replications are the
two regrets, for T up to the horizon at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from brmdp._streams import independent_streams
from brmdp._validation import FloatArray, as_level
from brmdp.agents import Agent
from brmdp.envs import TabularEnv
from brmdp.errors import InvalidInputError
from brmdp.posterior import DirichletPosterior
from brmdp.simulation import Diagnostics, World, simulate
from brmdp.theory.worlds import world_from_prior

__all__ = ["RegretCurves", "replicate_bayesian_regret"]


@dataclass(frozen=True, eq=False)
class RegretCurves:
    """Cumulative regrets of one run; entry T − 1 belongs to the horizon T.

    Attributes
    ----------
    true, robust : (T,) arrays
        Against V*, and against V*_{φ_k,α̲}.
    episodes : int
        Pseudo-episodes begun.
    """

    true: FloatArray
    robust: FloatArray
    episodes: int


def replicate_bayesian_regret(
    rng: Any,
    make_agent: Callable[..., Agent],
    n_states: int,
    n_actions: int,
    steps: int,
    *,
    floor: float = 0.2,
    discount: float = 0.9,
    concentration: float = 1.0,
    rewards: Any = None,
) -> RegretCurves:
    """One run of an agent in a world drawn from its prior.

    Parameters
    ----------
    rng : numpy.random.Generator or seed
        With the same seed, different agents meet the same world and the same luck.
    make_agent : function
        Called as ``make_agent(belief, rewards, discount, rng=…)``: a preset with its parameters, such as
        ``functools.partial(brmdp.agents.aq_brmdp, delta=1.0)``, ``partial(brmdp.agents.brmdp, alpha=0.2)`` or
        ``brmdp.agents.continuing_psrl``.
    n_states, n_actions, discount, concentration, rewards
        As in :func:`world_from_prior`.
    steps : int
        T.
    floor : float in (0, 1)
        α̲ of the robust benchmark.
    """
    if not callable(make_agent):
        raise InvalidInputError(f"make_agent must be a function that makes an agent; got {make_agent!r}")
    level = as_level(floor, "floor")
    world_stream, environment, agent_stream = independent_streams(rng, 3)
    truth = world_from_prior(world_stream, n_states, n_actions, discount, concentration=concentration, rewards=rewards)
    belief = DirichletPosterior.uniform(n_states, n_actions, concentration)
    history = simulate(
        make_agent(belief, truth.rewards, truth.discount, rng=agent_stream),
        World(TabularEnv(truth), truth.discount),
        steps,
        seed=int(environment.integers(2**63)),
        diagnostics=Diagnostics(robust_level=level),
    )
    assert history.true_regret is not None
    assert history.robust_regret is not None
    return RegretCurves(
        np.cumsum(history.true_regret), np.cumsum(history.robust_regret), episodes=int(history.episode[-1])
    )
