"""Compile the numerical kernels now, for example while building a container image.

Run ``python -m brmdp.warm_up``. The compiled kernels are stored as described in
:mod:`brmdp._kernels.compiled`, and later processes load them from there.
"""

from __future__ import annotations

import logging
import sys
import warnings

import numpy as np

import brmdp
from brmdp._kernels.compiled import kept
from brmdp.planning.bellman import DENSE_STATES
from brmdp.risk.base import RiskMeasure

__all__ = ["main", "warm_up"]


def warm_up() -> None:
    """Plan small problems of every kind, which compiles everything that plans and agents need."""
    rng = np.random.default_rng(0)
    world = brmdp.envs.riverswim(4)
    large = brmdp.envs.riverswim(DENSE_STATES + 1)
    rewards = world.rewards
    optimal = brmdp.solve(world).policy
    brmdp.evaluate_in_mdp(world, optimal)
    brmdp.evaluate_in_mdp(world, np.full(rewards.shape[:2], 0.5))
    brmdp.evaluate_in_mdp(large, brmdp.solve(large).policy)

    belief = brmdp.DirichletBelief.uniform(4, 2)
    measures: list[RiskMeasure] = [
        brmdp.Mean(),
        brmdp.PosteriorSample(rng=rng),
        brmdp.Quantile(0.1),
        brmdp.Quantile(0.1, method="saddlepoint"),
        brmdp.Quantile(0.1, method=brmdp.MonteCarlo(samples=20, rng=rng)),
        brmdp.CVaR(0.1),
        brmdp.risk.OptimisticBall(0.1),
        brmdp.risk.BernsteinBound(0.1, span=10.0, ceiling=10.0),
    ]
    scenarios = brmdp.ScenarioBelief(belief.sample(3, rng=rng), np.full(3, 1.0 / 3.0))
    shared = brmdp.DisturbanceBelief.from_function(
        lambda state, action, shock: (state + action + shock) % 4, 4, 2, 3
    )
    for risk in measures:
        before = brmdp.plan(belief, rewards, world.discount, risk=risk)
        before.kernel()
        brmdp.plan(belief, rewards, world.discount, risk=risk, initial=before.values)
        brmdp.evaluate_under_belief(belief, rewards, world.discount, optimal, risk=risk)
    for other in (scenarios, shared):
        for risk in (brmdp.Mean(), brmdp.Quantile(0.1), brmdp.CVaR(0.1)):
            brmdp.plan(other, rewards, world.discount, risk=risk)
    for method in ("sampled", "nested"):
        brmdp.certify(belief, rewards, world.discount, method=method)

    for quantile in (
        brmdp.dirichlet.quantile,
        brmdp.dirichlet.quantile_row,
        brmdp.dirichlet.cvar,
        brmdp.dirichlet.cvar_row,
    ):
        quantile(np.ones(3), np.arange(3.0), 0.1)
    brmdp.dirichlet.cdf(np.ones(3), np.arange(3.0), 1.0)

    agent = brmdp.agents.aq_brmdp(belief, rewards, world.discount, delta=0.1, rng=rng)
    agent.act(0)
    brmdp.agents.BAMCP(belief, rewards, world.discount, simulations=10, rng=rng).act(0)


def main() -> int:
    """Compile the kernels, print where they are stored, and return the exit code."""
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s", stream=sys.stderr)
    logging.getLogger("numba").setLevel(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the problems here are artificial
        warm_up()
    found = kept()
    for folder, entries in found.items():
        print(f"{entries} compiled kernels in {folder}")
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
