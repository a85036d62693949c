"""Asymptotic normality of the quantile value of a policy (Theorem 1 of the paper).

After N transitions along one trajectory of π, with a Dirichlet belief φ and w(s') = r(s,π(s),s') +
γV^π(s'),

    √N (I − γP_π)(V^π_{φ,α} − V^π)  ⇒  N(γλ_π, diag((γσ_π)²)),
    γσ_π(s) = √(Var[w(s')] / n̄_s),    λ_π = z_α σ_π,

where n̄ are the visit frequencies of :mod:`brmdp.theory.chains` and z_α is the standard normal
quantile. If the reward does not depend on s', Var[w] = γ² Var[V^π(s')] and this is the paper's σ_π.
So the level α shifts the mean and leaves the covariance unchanged; α = ½ is neutral. With R = (I −
γP_π)⁻¹ the expansion of the value itself is

    V^π_{φ,α} = V^π + R (γλ_π + γσ_π Z)/√N + o_p(N^{−1/2}),    Z ~ N(0, I).

Its mean shift Rγλ_π/√N is at most γ|z_α| max σ_π / ((1 − γ)√N) in every state. One backup changes
by ρ^α_φ(w·P) − w·P^c, whose mean is γλ_π/√N to first order: γ times the paper's one-step adjustment
b^α.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import kolmogi, ndtr, ndtri

from brmdp._validation import (
    FloatArray,
    IntArray,
    Seed,
    as_discount,
    as_float_array,
    as_level,
    as_levels,
    as_number,
    as_policy,
    as_positive_int,
    as_positive_number,
    as_rng,
    first_bad,
)
from brmdp.beliefs import DirichletBelief
from brmdp.beliefs.base import Belief
from brmdp.errors import InvalidInputError
from brmdp.mdp import TabularMDP
from brmdp.planning import backup, evaluate_in_mdp
from brmdp.planning.planner import solution_of
from brmdp.risk import Mean, Quantile
from brmdp.theory.chains import policy_matrix, policy_pairs, transition_counts, visit_frequencies
from brmdp.theory.checks import as_state_values, require_belief_about, require_mdp

__all__ = [
    "ErgodicProblem",
    "NormalFit",
    "NormalityLimit",
    "asymptotic_normality",
    "normal_fit",
    "one_step_adjustment",
    "random_ergodic_mdp",
    "replicate_normality",
    "row_deviations",
    "target_deviations",
]

ACCURACY = 1e-10
"""Accuracy of values relative to max|r|/(1 − γ), far below the N^{−1/2} under study."""

MAX_DRAWS = 10_000
"""Number of random kernels to try before giving up on ``least_visited``."""


@dataclass(frozen=True, eq=False)
class NormalityLimit:
    """Theorem 1 in numbers, for one policy and the levels α.

    Attributes
    ----------
    alpha : (…) array
        The levels, of any shape.
    discount : float
        Discount factor γ.
    values : (S,) array
        V^π.
    visit_frequencies : (S,) array
        n̄.
    system : (S, S) array
        I − γP_π.
    one_step_sd : (S,) array
        γσ_π, the standard deviation of the limit of √N (I − γP_π)(V_{φ,α} − V), whose entries are
        independent.
    one_step_mean : (…, S) array
        γλ_π, the mean of the same limit at each level.
    mean, covariance : (…, S) and (S, S) arrays
        Mean and covariance of the limit of √N (V_{φ,α} − V).
    mean_bound : (…) array
        γ|z_α| max σ_π/(1 − γ), an upper bound on max|mean|.

    Examples
    --------
    >>> from brmdp.theory import asymptotic_normality, random_ergodic_mdp
    >>> mdp, policy = random_ergodic_mdp(3, 2, rng=1)
    >>> limit = asymptotic_normality(mdp, policy, [0.1, 0.5])
    >>> bool((limit.mean[0] < 0).all()), bool((limit.mean[1] == 0).all())
    (True, True)
    """

    alpha: FloatArray
    discount: float
    values: FloatArray
    visit_frequencies: FloatArray
    system: FloatArray
    one_step_sd: FloatArray
    one_step_mean: FloatArray
    mean: FloatArray
    covariance: FloatArray
    mean_bound: FloatArray

    @property
    def sigma(self) -> FloatArray:
        """(S,) the paper's σ_π."""
        sigma: FloatArray = self.one_step_sd / self.discount
        return sigma

    @property
    def lambda_(self) -> FloatArray:
        """(…, S) the paper's λ_π = z_α σ_π."""
        shift: FloatArray = self.one_step_mean / self.discount
        return shift

    @property
    def sd(self) -> FloatArray:
        """(S,) standard deviation of the limit of √N (V_{φ,α} − V) at each state."""
        sd: FloatArray = np.sqrt(np.diag(self.covariance))
        return sd

    def one_step(self, deviations: ArrayLike) -> FloatArray:
        """(…, S) product of I − γP_π with each of the vectors ``deviations`` (…, S)."""
        vectors = as_float_array(deviations, "deviations")
        if vectors.ndim == 0 or vectors.shape[-1] != self.values.size:
            raise InvalidInputError(
                f"deviations must have shape (…, {self.values.size}); got {vectors.shape}"
            )
        moved: FloatArray = vectors @ self.system.T
        return moved

    def expansion(self, steps: int, noise: ArrayLike | None = None) -> FloatArray:
        """(…, S) leading terms of V_{φ,α} after ``steps`` transitions.

        Parameters
        ----------
        steps : int
            Number of steps N.
        noise : (S,) array, optional
            Standard normal numbers Z that stand for the sampling noise; by default zero, which
            gives the mean of the leading terms.
        """
        root = np.sqrt(as_positive_int(steps, "steps"))
        normal = np.zeros(self.values.size) if noise is None else as_float_array(noise, "noise")
        if normal.shape != self.values.shape:
            raise InvalidInputError(
                f"noise must have shape {self.values.shape}; got {normal.shape}"
            )
        leading: FloatArray = (
            self.values
            + (self.mean + np.linalg.solve(self.system, self.one_step_sd * normal)) / root
        )
        return leading

    def adjustment(self, steps: int) -> FloatArray:
        """(…, S) first-order mean γλ_π/√N of what the quantile adds to one backup.

        N = ``steps`` is the number of transitions.
        """
        mean: FloatArray = self.one_step_mean / np.sqrt(as_positive_int(steps, "steps"))
        return mean


class ErgodicProblem(NamedTuple):
    """An MDP and a policy whose chain visits every state often.

    Attributes
    ----------
    mdp : TabularMDP
        The MDP.
    policy : (S,) integers
        The policy.

    Examples
    --------
    >>> from brmdp.theory import random_ergodic_mdp
    >>> problem = random_ergodic_mdp(3, 2, rng=1)
    >>> problem.policy.shape
    (3,)
    """

    mdp: TabularMDP
    policy: IntArray


@dataclass(frozen=True, eq=False)
class NormalFit:
    """How far samples are from the normal laws that they should follow.

    All arrays have the shape of one replication.

    Attributes
    ----------
    bias, bias_error : arrays
        Sample mean minus the mean of the law, and its standard error.
    variance_ratio, variance_ratio_error : arrays
        Sample variance divided by the variance of the law, and its standard error for a normal
        sample.
    distance : array
        Kolmogorov–Smirnov distance: the largest difference between the two distribution functions.
    critical_distance : float
        Distance that a sample of this size from the law itself exceeds with probability 0.05.
    replications : int
        Sample size.

    Examples
    --------
    >>> import numpy as np
    >>> from brmdp.theory import normal_fit
    >>> fit = normal_fit(np.random.default_rng(4).normal(size=500), mean=0.0, sd=1.0)
    >>> bool(fit.distance < fit.critical_distance)
    True
    """

    bias: FloatArray
    bias_error: FloatArray
    variance_ratio: FloatArray
    variance_ratio_error: FloatArray
    distance: FloatArray
    critical_distance: float
    replications: int


def asymptotic_normality(mdp: TabularMDP, policy: ArrayLike, alpha: ArrayLike) -> NormalityLimit:
    """The limit law of the quantile value of ``policy`` around its true value (Theorem 1).

    Parameters
    ----------
    mdp : TabularMDP
        The true kernel, with a discount in (0, 1).
    policy : (S,) integers
        π. Its chain must be ergodic; if it is not, the error says why.
    alpha : float or array in (0, 1)
        Levels, of any shape.

    Returns
    -------
    NormalityLimit

    Examples
    --------
    >>> from brmdp.theory import asymptotic_normality, random_ergodic_mdp
    >>> mdp, policy = random_ergodic_mdp(3, 2, rng=1)
    >>> asymptotic_normality(mdp, policy, 0.5).expansion(100).round(2).tolist()
    [5.0, 4.86, 4.49]
    """
    values = evaluate_in_mdp(mdp, policy)
    if mdp.discount in (0.0, 1.0):
        raise InvalidInputError(
            f"discount must lie strictly between 0 and 1 for Theorem 1; got {mdp.discount}"
        )
    levels = _some_levels(alpha, "alpha")
    frequencies = visit_frequencies(mdp, policy)
    system = np.eye(mdp.n_states) - mdp.discount * policy_matrix(mdp, policy)
    one_step_sd = target_deviations(mdp, policy, values) / np.sqrt(frequencies)
    scores = ndtri(levels)
    propagation = np.linalg.inv(system)
    spread = propagation * one_step_sd
    return NormalityLimit(
        alpha=levels,
        discount=mdp.discount,
        values=values,
        visit_frequencies=frequencies,
        system=system,
        one_step_sd=one_step_sd,
        one_step_mean=scores[..., None] * one_step_sd,
        mean=scores[..., None] * spread.sum(axis=1),
        covariance=spread @ spread.T,
        mean_bound=np.abs(scores) * one_step_sd.max() / (1.0 - mdp.discount),
    )


def target_deviations(mdp: TabularMDP, policy: ArrayLike, values: FloatArray) -> FloatArray:
    """(S,) standard deviation of w(s') = r(s,π(s),s') + γV(s') over s' ~ P(·|s,π(s))."""
    targets = mdp.transition_rewards + mdp.discount * values[mdp.pattern.next_states]
    return row_deviations(mdp, policy, targets)


def row_deviations(belief: Belief, policy: ArrayLike, entries: FloatArray) -> FloatArray:
    """(S,) standard deviation of ``entries`` over the mean row of each pair (s, π(s)).

    ``entries`` holds one number per possible transition.
    """
    pattern = belief.pattern
    pairs = policy_pairs(belief, policy)
    chances = pattern.take(belief.mean_entries(), pairs)
    targets = pattern.take(entries, pairs)
    starts = np.concatenate(([0], np.cumsum(pattern.widths[pairs])[:-1]))
    means = np.add.reduceat(chances * targets, starts)
    centred = targets - np.repeat(means, pattern.widths[pairs])
    deviations: FloatArray = np.sqrt(np.add.reduceat(chances * centred**2, starts))
    return deviations


def one_step_adjustment(
    belief: Belief, mdp: TabularMDP, values: ArrayLike, alpha: float
) -> FloatArray:
    """(S, A) amount ρ^α_φ(w·P) − w·P^c, with w = r + γV, that the quantile adds to one backup.

    If the reward does not depend on s', this is γ b^α_φ(s,a)(V) of the paper. Penalties are
    negative, bonuses positive; inadmissible actions get −inf.

    Parameters
    ----------
    belief : Belief
        φ, on the same states and admissible actions as ``mdp``.
    mdp : TabularMDP
        The true kernel P^c, rewards and discount.
    values : (S,) array
        Values V of the next states.
    alpha : float in (0, 1)
        Level.

    Examples
    --------
    >>> import brmdp
    >>> from brmdp.theory import one_step_adjustment
    >>> mdp, belief = brmdp.envs.riverswim(3), brmdp.DirichletBelief.uniform(3, 2)
    >>> one_step_adjustment(belief, mdp, [0.0, 0.0, 1.0], 0.1).shape
    (3, 2)
    """
    require_belief_about(belief, mdp, "mdp")
    risk = Quantile(as_level(alpha))
    problem = (mdp.rewards, mdp.discount, as_state_values(values, mdp.n_states, "values"))
    risky = backup(belief, *problem, risk=risk).q_values
    true = backup(mdp, *problem, risk=Mean()).q_values
    added = np.full(mdp.admissible.shape, -np.inf)
    np.subtract(risky, true, out=added, where=mdp.admissible)
    return added


def random_ergodic_mdp(
    n_states: int,
    n_actions: int,
    least_visited: float = 0.02,
    *,
    discount: float = 0.9,
    rng: Seed = None,
) -> ErgodicProblem:
    """Draw an MDP and a policy that spends at least ``least_visited`` of its time in every state.

    Kernel rows are uniform on the simplex, rewards r(s,a,s') are uniform on [0, 1], and in each
    state the policy takes one action, drawn uniformly. Kernels are drawn until one visits every
    state often enough.

    Parameters
    ----------
    n_states, n_actions : int
        S and A.
    least_visited : float in [0, 1/S)
        Smallest visit frequency allowed.
    discount : float in [0, 1)
        Discount factor γ.
    rng : numpy.random.Generator or seed, optional
        Source of the MDP and of the policy.

    Examples
    --------
    >>> from brmdp.theory import random_ergodic_mdp, visit_frequencies
    >>> mdp, policy = random_ergodic_mdp(4, 2, 0.05, rng=1)
    >>> bool(visit_frequencies(mdp, policy).min() >= 0.05)
    True
    """
    stream = as_rng(rng)
    n_states, n_actions = (
        as_positive_int(n_states, "n_states"),
        as_positive_int(n_actions, "n_actions"),
    )
    discount = as_discount(discount)
    least = as_number(least_visited, "least_visited", "a number in [0, 1/n_states)")
    if not 0.0 <= least < 1.0 / n_states:
        raise InvalidInputError(
            f"least_visited must lie in [0, 1/{n_states}); got {least_visited!r}"
        )
    rewards = stream.random((n_states, n_actions, n_states))
    policy = stream.integers(n_actions, size=n_states)
    for _ in range(MAX_DRAWS):
        kernel = stream.dirichlet(np.ones(n_states), (n_states, n_actions))
        mdp = TabularMDP(kernel, rewards, discount)
        if visit_frequencies(mdp, policy).min() >= least:
            return ErgodicProblem(mdp, policy)
    raise InvalidInputError(
        f"least_visited={least:g} is too high: none of {MAX_DRAWS} random kernels with {n_states} "
        "states visits every state that often"
    )


def replicate_normality(
    mdp: TabularMDP,
    policy: ArrayLike,
    steps: int,
    alphas: ArrayLike,
    *,
    prior: float = 1.0,
    rng: Seed = None,
) -> FloatArray:
    """√N (V_{φ,α} − V) at each level and state, after one on-policy trajectory of N transitions.

    The belief starts from Dir(prior, …, prior) over all S successors. Quantiles are exact.

    Parameters
    ----------
    mdp : TabularMDP
        The true kernel. Its rewards must be given for all successors: (S, A), (S, A, S) or sparse.
    policy : (S,) integers
        π.
    steps : int
        Number of steps N.
    alphas : float or array in (0, 1)
        Levels, of any shape.
    prior : float
        Concentration of every successor before the data.
    rng : numpy.random.Generator or seed, optional
        Source of the trajectory.

    Returns
    -------
    (…, S) array
        The shape of the levels, then the states.

    Examples
    --------
    >>> from brmdp.theory import random_ergodic_mdp, replicate_normality
    >>> mdp, policy = random_ergodic_mdp(3, 2, rng=1)
    >>> replicate_normality(mdp, policy, 100, [0.1, 0.5], rng=2).shape
    (2, 3)
    """
    require_mdp(mdp, "mdp")
    values = evaluate_in_mdp(mdp, policy)
    chosen = as_policy(policy, mdp.admissible)
    levels = _some_levels(alphas, "alphas")
    concentration = np.full(
        (mdp.n_states, mdp.n_actions, mdp.n_states), as_positive_number(prior, "prior")
    )
    concentration[np.arange(mdp.n_states), chosen] += transition_counts(
        mdp, chosen, steps, rng=as_rng(rng)
    )
    belief = DirichletBelief(concentration)
    rewards = belief.gather_rewards(mdp.rewards)
    scale = float(np.abs(rewards).max()) / (1.0 - mdp.discount) or 1.0
    found = np.empty((levels.size, mdp.n_states))
    nearest: Any = None
    # in order of level, so that each solution is a good start for the next
    for position in np.argsort(levels, axis=None):
        nearest = solution_of(
            belief,
            rewards,
            mdp.discount,
            Quantile(levels.flat[position]),
            policy=chosen,
            tolerance=ACCURACY * scale,
            initial=nearest,
            all_actions=False,
        )
        found[position] = nearest.values
    deviations: FloatArray = np.sqrt(steps) * (found - values).reshape(*levels.shape, mdp.n_states)
    return deviations


def normal_fit(samples: ArrayLike, mean: ArrayLike, sd: ArrayLike) -> NormalFit:
    """Compare R independent replications with the normal laws N(mean, sd²), entry by entry.

    Parameters
    ----------
    samples : (R, …) array
        At least two replications, for example from :func:`replicate_normality`.
    mean, sd : arrays
        Parameters of the laws; they must broadcast to the shape of one replication. ``sd`` must be
        positive.

    Examples
    --------
    >>> import numpy as np
    >>> from brmdp.theory import normal_fit
    >>> samples = np.random.default_rng(1).normal([0.0, 5.0], 2.0, size=(400, 2))
    >>> normal_fit(samples, [0.0, 5.0], 2.0).variance_ratio.shape
    (2,)
    """
    values = as_float_array(samples, "samples")
    if values.ndim == 0 or values.shape[0] < 2:
        raise InvalidInputError(
            f"samples must hold at least two replications; got shape {values.shape}"
        )
    replications, shape = values.shape[0], values.shape[1:]
    centre, scale = (_broadcast(part, shape, name) for part, name in ((mean, "mean"), (sd, "sd")))
    if not (scale > 0.0).all():
        where = first_bad(scale <= 0.0)
        raise InvalidInputError(
            f"sd must be positive, otherwise the law is a point mass; got {scale[where]} at index "
            f"{where}"
        )
    below = ndtr((np.sort(values, axis=0) - centre) / scale)
    ranks = np.arange(1, replications + 1).reshape(-1, *[1] * len(shape)) / replications
    variance = values.var(axis=0, ddof=1)
    ratio = np.asarray(variance / scale**2)
    return NormalFit(
        bias=np.asarray(values.mean(axis=0) - centre),
        bias_error=np.asarray(np.sqrt(variance / replications)),
        variance_ratio=ratio,
        variance_ratio_error=ratio * np.sqrt(2.0 / (replications - 1)),
        distance=np.asarray(
            np.maximum(ranks - below, below - ranks + 1.0 / replications).max(axis=0)
        ),
        critical_distance=float(kolmogi(0.05)) / float(np.sqrt(replications)),
        replications=replications,
    )


def _some_levels(value: ArrayLike, name: str) -> FloatArray:
    """At least one level."""
    levels = as_levels(value, name)
    if levels.size == 0:
        raise InvalidInputError(f"{name} must hold at least one level; got shape {levels.shape}")
    return levels


def _broadcast(value: ArrayLike, shape: tuple[int, ...], name: str) -> FloatArray:
    array = as_float_array(value, name)
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise InvalidInputError(
            f"{name} must broadcast to the shape {shape}; got {array.shape}"
        ) from None
