"""How well a certificate holds, and what it gives away (Proposition 1).

A level ℓ certifies joint confidence (1 − ℓ)^S for a policy in S states with independent rows.
Confidence 1 − α thus needs ℓ = ᾱ = 1 − (1 − α)^{1/S}. Union bounds ask for more: α/S, if one adds
up the failures of the S events, and α/(SA), if one adds up those of all pairs. Three questions, for
one random world and the posterior after random data:

- does the bound hold with posterior probability 1 − α or more (it must, by the proposition);
- how far is it below the posterior α-quantile of the same policy's value, which no bound at that
  confidence can exceed;
- how much lower are the bounds that the union levels give.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from brmdp._streams import independent_streams
from brmdp._validation import FloatArray, as_level, as_positive_int
from brmdp.beliefs import DirichletBelief
from brmdp.mdp import TabularMDP
from brmdp.planning import (
    Certificate,
    PosteriorQuantileValue,
    evaluate_in_mdp,
    posterior_quantile_value,
)
from brmdp.planning.guarantees import certificate_of
from brmdp.theory.worlds import draw_mdp

__all__ = ["CoverageReport", "replicate_coverage"]


@dataclass(frozen=True, eq=False)
class CoverageReport:
    """Certificates for one posterior.

    Each with the share of posterior draws in which all its bounds held.

    Attributes
    ----------
    world : TabularMDP
        The world that produced the data.
    posterior : DirichletBelief
        After them.
    confidence : float
        1 − α.
    certified : Certificate
        At the level ᾱ of Proposition 1.
    union_of_states, union_of_pairs : Certificate
        At the levels α/S and α/(SA), by the same planner; their ``confidence`` (1 − ℓ)^S exceeds 1
        − α.
    quantile : PosteriorQuantileValue
        Posterior α-quantile of the value of the policy of ``certified``, sampled, with its
        interval.
    true_values : (S,) array
        True value of that policy.
    """

    world: TabularMDP
    posterior: DirichletBelief
    confidence: float
    certified: Certificate
    union_of_states: Certificate
    union_of_pairs: Certificate
    quantile: PosteriorQuantileValue
    true_values: FloatArray

    @property
    def held_in_truth(self) -> bool:
        """Whether all bounds of ``certified`` held in ``world``."""
        return bool((self.true_values >= self.certified.values).all())

    @property
    def gap_to_quantile(self) -> FloatArray:
        """(S,) how far the certified bounds are below the posterior α-quantile value."""
        return self.quantile.values - self.certified.values

    @property
    def loss_of_union_of_states(self) -> FloatArray:
        """(S,) how much lower the bounds at level α/S are."""
        return self.certified.values - self.union_of_states.values

    @property
    def loss_of_union_of_pairs(self) -> FloatArray:
        """(S,) how much lower the bounds at level α/(SA) are."""
        return self.certified.values - self.union_of_pairs.values


def replicate_coverage(
    rng: Any,
    n_states: int,
    n_actions: int,
    confidence: float = 0.9,
    *,
    observations: int = 200,
    discount: float = 0.9,
    concentration: float = 1.0,
    rewards: Any = None,
    samples: int = 1000,
    tolerance: float | None = None,
) -> CoverageReport:
    """One random world and posterior, and how its certificates hold.

    Parameters
    ----------
    rng : numpy.random.Generator or seed
    n_states, n_actions, discount, concentration, rewards
        As in :func:`draw_mdp`; the prior is the posterior's too, so the truth is a
        posterior draw.
    confidence : float in (0, 1)
        1 − α.
    observations : int
        Transitions observed, of pairs chosen at random.
    samples : int
        Posterior draws, for the coverage of each certificate and for the quantile.
    tolerance : float, optional
        As in :func:`brmdp.certify`.
    """
    sure = as_level(confidence, "confidence")
    draws = as_positive_int(samples, "samples")
    data, *streams = independent_streams(rng, 5)
    world = draw_mdp(
        data, n_states, n_actions, discount, concentration=concentration, rewards=rewards
    )
    posterior = _after_random_data(
        world.kernel(), concentration, as_positive_int(observations, "observations"), data
    )
    problem = (posterior, world.rewards, world.discount)
    alpha = 1.0 - sure

    def certificate(reached: float, stream: np.random.Generator) -> Certificate:
        return certificate_of(
            *problem, reached, tolerance=tolerance, coverage_samples=draws, rng=stream
        )

    certified = certificate(sure, streams[0])
    return CoverageReport(
        world=world,
        posterior=posterior,
        confidence=sure,
        certified=certified,
        union_of_states=certificate((1.0 - alpha / n_states) ** n_states, streams[1]),
        union_of_pairs=certificate((1.0 - alpha / (n_states * n_actions)) ** n_states, streams[2]),
        quantile=posterior_quantile_value(
            *problem, certified.policy, alpha, samples=draws, rng=streams[3]
        ),
        true_values=evaluate_in_mdp(world, certified.policy),
    )


def _after_random_data(
    kernel: FloatArray, concentration: float, observations: int, rng: np.random.Generator
) -> DirichletBelief:
    """The prior, updated by transitions of uniformly chosen pairs."""
    pairs = kernel.shape[:2]
    visits = rng.multinomial(
        observations, np.full(kernel[..., 0].size, 1.0 / kernel[..., 0].size)
    ).reshape(pairs)
    return DirichletBelief(concentration + rng.multinomial(visits, kernel))
