"""How reliably a certificate holds, and how much it gives away (Proposition 1).

A level ℓ certifies joint confidence (1 − ℓ)^S for a policy in S states with independent rows.
Confidence 1 − α thus needs ℓ = ᾱ = 1 − (1 − α)^{1/S}. Union bounds ask for a smaller level: α/S if
one adds up the failures of the S events, α/(SA) if one adds up those of all pairs. For one random
world and the belief after random data, there are three questions:

- Does the bound hold with posterior probability 1 − α or more? By the proposition, it must.
- How far below the posterior α-quantile of the same policy's value is it? No bound at that
  confidence can exceed that quantile.
- How much lower are the bounds that the union levels give?
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from brmdp._streams import independent_streams
from brmdp._validation import FloatArray, Seed, as_level, as_positive_int
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
    """Certificates for one belief, each with the share of posterior draws in which it held.

    A certificate holds in a draw if all its bounds do.

    Attributes
    ----------
    world : TabularMDP
        The world that produced the data.
    belief : DirichletBelief
        The belief after the data.
    confidence : float
        1 − α.
    certified : Certificate
        The certificate at the level ᾱ of Proposition 1.
    union_of_states, union_of_pairs : Certificate
        The certificates that the same planner gives at the levels α/S and α/(SA). Their
        ``confidence`` (1 − level)^S exceeds 1 − α.
    quantile : PosteriorQuantileValue
        Posterior α-quantile of the value of the policy of ``certified``, sampled, with its
        interval.
    true_values : (S,) array
        True value of that policy.

    Examples
    --------
    >>> from brmdp.theory import replicate_coverage
    >>> report = replicate_coverage(2, 2, samples=100, rng=1)
    >>> report.held_in_truth
    True
    >>> bool((report.loss_of_union_of_pairs >= report.loss_of_union_of_states).all())
    True
    """

    world: TabularMDP
    belief: DirichletBelief
    confidence: float
    certified: Certificate
    union_of_states: Certificate
    union_of_pairs: Certificate
    quantile: PosteriorQuantileValue
    true_values: FloatArray

    @property
    def held_in_truth(self) -> bool:
        """Whether all bounds of ``certified`` hold in ``world``."""
        return bool((self.true_values >= self.certified.values).all())

    @property
    def gap_to_quantile(self) -> FloatArray:
        """(S,) distance from the certified bounds up to the posterior α-quantile value."""
        return self.quantile.values - self.certified.values

    @property
    def loss_of_union_of_states(self) -> FloatArray:
        """(S,) amount by which the bounds at level α/S are lower."""
        return self.certified.values - self.union_of_states.values

    @property
    def loss_of_union_of_pairs(self) -> FloatArray:
        """(S,) amount by which the bounds at level α/(SA) are lower."""
        return self.certified.values - self.union_of_pairs.values


def replicate_coverage(
    n_states: int,
    n_actions: int,
    confidence: float = 0.9,
    *,
    observations: int = 200,
    discount: float = 0.9,
    concentration: float = 1.0,
    rewards: ArrayLike | None = None,
    samples: int = 1000,
    tolerance: float | None = None,
    rng: Seed = None,
) -> CoverageReport:
    """Draw a world and data, and check how reliably certificates for the belief hold.

    Parameters
    ----------
    n_states, n_actions, discount, concentration, rewards
        As in :func:`draw_mdp`. The belief starts from the prior that the world was drawn from, so
        the true kernel is distributed like a posterior draw.
    confidence : float in (0, 1)
        1 − α.
    observations : int
        Number of observed transitions; their pairs are chosen uniformly at random.
    samples : int
        Number of posterior draws, for the coverage of each certificate and for the quantile.
    tolerance : float, optional
        As in :func:`brmdp.certify`.
    rng : numpy.random.Generator or seed, optional
        Source of the world, the data and the posterior draws.

    Returns
    -------
    CoverageReport

    Examples
    --------
    >>> from brmdp.theory import replicate_coverage
    >>> report = replicate_coverage(2, 2, 0.8, samples=100, rng=1)
    >>> report.certified.coverage >= 0.8
    True
    """
    sure = as_level(confidence, "confidence")
    draws = as_positive_int(samples, "samples")
    data, *streams = independent_streams(rng, 5)
    world = draw_mdp(
        n_states, n_actions, discount, concentration=concentration, rewards=rewards, rng=data
    )
    belief = _after_random_data(
        world.kernel(), concentration, as_positive_int(observations, "observations"), data
    )
    problem = (belief, world.rewards, world.discount)
    alpha = 1.0 - sure

    def certificate(reached: float, stream: np.random.Generator) -> Certificate:
        return certificate_of(
            *problem, reached, tolerance=tolerance, coverage_samples=draws, rng=stream
        )

    certified = certificate(sure, streams[0])
    return CoverageReport(
        world=world,
        belief=belief,
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
    """The prior, updated by transitions from uniformly chosen pairs."""
    pairs = kernel.shape[:2]
    visits = rng.multinomial(
        observations, np.full(kernel[..., 0].size, 1.0 / kernel[..., 0].size)
    ).reshape(pairs)
    return DirichletBelief(concentration + rng.multinomial(visits, kernel))
