"""Comparisons of policies, and the value of information.

Both policies are evaluated in the same posterior draws P of the whole model, so that what they have
in common cancels. The *gain* is V^π_P(μ) − V^π0_P(μ) at the start μ. Its spread over draws is the
belief's doubt, and more draws do not shrink it; the error of its mean is the simulation's, and they
do. The *regret* of a policy is V*_P(μ) − V^π_P(μ): what it loses against somebody who knows P.

*What a difference is worth*: the baseline with the action of a single state changed to that of the
policy, in common draws. Such values need not add up to the gain, since changes interact.

*Value of information*, in units of value. Perfect information: E[V*_P(μ)] − E[V^π_P(μ)] for the
best candidate π today. Sample information: draw P, simulate n transitions of given pairs in it,
update a copy of the belief, plan its mean, and measure in P what changed. An estimate may be
negative, by chance or because planning the mean is not the best use of data: look at its interval.

If rewards are uncertain, they belong to what is drawn: somebody who knows the model knows them. The
simulated transitions of sample information teach nothing about them.

With a horizon, all of this is for H steps in one drawn kernel, and policies may depend on the step.
A difference is then a state in which the policies differ at some step.

Without discounting and horizon, means over draws may be infinite. A comparison then needs a proof
that they are not, and that their Monte Carlo error is not (:mod:`brmdp.decisions.exit_times`); it
is refused otherwise. The value of information is not computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from brmdp._validation import (
    FloatArray,
    IntArray,
    Seed,
    as_array,
    as_discount,
    as_float_array,
    as_index,
    as_positive_int,
    rng_for,
)
from brmdp.beliefs.base import Belief
from brmdp.beliefs.checked import (
    caveat_of,
    learns_rewards,
    mean_of,
    method_of,
    require_belief,
)
from brmdp.beliefs.dirichlet import DirichletBelief
from brmdp.beliefs.disturbance import DisturbanceBelief, Rewards
from brmdp.beliefs.observations import as_observed
from brmdp.beliefs.outcomes import OutcomeBelief
from brmdp.decisions.certificate import candidate_policies, prior_words, reliance_of
from brmdp.decisions.draws import Sampler, independent_draws, worth_of
from brmdp.decisions.exit_times import exit_moments
from brmdp.decisions.hierarchical import FEWEST_INDEPENDENT, HierarchicalBelief
from brmdp.decisions.policies import (
    Policies,
    default_start,
    is_deterministic,
    is_random,
    mean_stages,
    named_policies,
    same_policy,
)
from brmdp.decisions.uncertain_rewards import (
    RewardsOrDoubt,
    caveat_about,
    is_uncertain,
    mean_rewards,
    refuse_endless,
)
from brmdp.errors import InvalidInputError
from brmdp.planning.finite_horizon import as_horizon
from brmdp.planning.guarantees import clopper_pearson
from brmdp.planning.planner import Problem
from brmdp.planning.prior import PriorReliance
from brmdp.planning.text import call_like, percent, wrapped
from brmdp.risk.measures import Mean

__all__ = [
    "Comparison",
    "Difference",
    "Estimate",
    "InformationValue",
    "UnitLog",
    "UnitResampling",
    "compare",
    "value_of_information",
]

FEWEST_DRAWS = 100
"""With fewer draws, a 95 % interval would rest on one or two of them."""

SHOWN_DIFFERENCES = 20
"""Differences that are evaluated in draws, unless another number is asked for."""

REGRET_NUMBERS, WORTH_NUMBERS = 50_000_000, 300_000_000
"""Sizes of the simulations for regret and for the worth of differences; large problems get fewer
draws."""

MOST_REGRET_DRAWS, FEWEST_LARGE_DRAWS = 1_000, 30

RESAMPLES = 200
"""Resamples of the units."""

FEW_NONZERO = 30
"""A mean of values that are zero in all but fewer draws gets no interval: the normal approximation
fails, and larger values may not have been seen."""

FEW_UNITS = 20
"""With fewer units, intervals from resampling them are clearly too narrow."""

WIDE = 1.5
"""Ratio of spreads from which units that vary more than the belief says are pointed out."""


@dataclass(frozen=True)
class Estimate:
    """A mean over draws, and its Monte Carlo error.

    Attributes
    ----------
    mean : float
    error : float
        Standard error of the mean, from the simulation alone.
    draws : int
    nonzero : int or None
        Number of draws in which the value is not zero, if known.

    Examples
    --------
    >>> from brmdp.decisions import Estimate
    >>> print(Estimate(1.25, 0.1, 400))
    1.25 (95 % Monte Carlo interval 1.054 to 1.446)
    """

    mean: float
    error: float
    draws: int
    nonzero: int | None = None

    @property
    def rare(self) -> bool:
        """Whether the mean rests on so few draws that its error cannot be judged."""
        return self.nonzero is not None and 0 < self.nonzero < FEW_NONZERO

    @property
    def interval(self) -> tuple[float, float]:
        """95 % Monte Carlo interval of the mean, by the normal approximation."""
        return self.mean - 1.96 * self.error, self.mean + 1.96 * self.error

    @classmethod
    def of(cls, values: FloatArray, independent: float = math.inf) -> Estimate:
        """The mean of values in draws of a belief that are worth ``independent`` ones at most."""
        spread = float(values.std(ddof=1)) if values.size > 1 else math.inf
        error = spread / math.sqrt(values.size)
        if math.isfinite(independent):
            error = spread * math.sqrt(1.0 / values.size + 1.0 / independent)
        seen = np.count_nonzero(np.abs(values) > 1e-9 * float(np.abs(values).max()))
        return cls(float(values.mean()), error, int(values.size), int(seen))

    def __str__(self) -> str:
        if self.mean == self.error == 0.0:
            # an interval from 0 to 0 would rule out rare exceptions, which draws cannot
            return f"0 in all {self.draws} draws"
        if self.rare:
            return (
                f"{self.mean:.4g} (not zero in only {self.nonzero} of {self.draws} draws, too few "
                "for an interval)"
            )
        low, high = self.interval
        return f"{self.mean:.4g} (95 % Monte Carlo interval {low:.4g} to {high:.4g})"


def credible_interval(values: FloatArray) -> tuple[float, float]:
    """The 95 % credible interval that draws of a posterior stand for.

    The k-th smallest of n draws is taken for the k/(n + 1) quantile: one more draw then lies in the
    interval with 95 % probability, also if there are few. Interpolation between the smallest and
    the largest draw would make it 93 % for a hundred draws.
    """
    low, high = np.quantile(values, (0.025, 0.975), method="weibull")
    return float(low), float(high)


@dataclass(frozen=True)
class Difference:
    """A state in which two policies differ, and what the change there alone is worth.

    Attributes
    ----------
    state : int
    baseline_visits, policy_visits : float
        Share of discounted time in the state under the mean kernel.
    worth : Estimate
        Gain over the baseline if only this state follows the policy.
    interval : (float, float)
        95 % credible interval of that gain.

    Examples
    --------
    >>> import numpy as np
    >>> import brmdp
    >>> belief = brmdp.DirichletBelief.uniform(2, 2)
    >>> for state, action in np.ndindex(2, 2):
    ...     belief.observe(state, action, [action] * 9 + [1 - action])
    >>> found = brmdp.compare(belief, [[0.0, 0.0], [1.0, 1.0]], 0.5, [1, 0], [0, 0], start=0, rng=0)
    >>> found.differences[0].state
    0
    """

    state: int
    baseline_visits: float
    policy_visits: float
    worth: Estimate
    interval: tuple[float, float]

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"state {self.state}: {self.worth.mean:.3g} [{low:.3g}, {high:.3g}], "
            f"{percent(self.baseline_visits)} of the baseline's time"
        )


@dataclass(frozen=True, eq=False)
class UnitLog:
    """The log behind a belief, with the unit (bus, patient, shop) of every step.

    Attributes
    ----------
    prior : Belief
        The belief before these data; it needs ``copy()`` and ``observe(…)``. The log must be what
        the belief learned from since then.
    units, states, actions, next_states : (n,) columns
        Units may be numbers or names.
    rewards : (n,) column, optional
        What each step paid, if the belief learns rewards; it must know which are possible.
    learn_rewards : callable, optional
        Needed with :class:`brmdp.decisions.UncertainRewards`: given (n,) numbers, how often each
        step counts, it returns the (S, A) mean rewards that would be learned.

    Examples
    --------
    >>> import brmdp
    >>> from brmdp.decisions import UnitLog
    >>> prior = brmdp.DirichletBelief.uniform(2, 1)
    >>> UnitLog(prior, ["a", "a", "b"], [0, 1, 0], [0, 0, 0], [1, 0, 1]).n_units
    2
    """

    prior: Any
    units: ArrayLike
    states: ArrayLike
    actions: ArrayLike
    next_states: ArrayLike
    rewards: ArrayLike | None = None
    learn_rewards: Callable[[IntArray], ArrayLike] | None = None

    def __post_init__(self) -> None:
        require_belief(self.prior)
        for name in ("copy", "observe"):
            method_of(self.prior, name, "to be learned from resampled units")
        pattern = self.prior.pattern
        labels = as_array(self.units, "units", "one label per step")
        columns = {
            "units": labels,
            "states": as_observed(self.states, pattern.n_states, "state"),
            "actions": as_observed(self.actions, pattern.n_actions, "action"),
            "next_states": as_observed(self.next_states, pattern.n_states, "next_state"),
        }
        if learns_rewards(self.prior) != (self.rewards is not None) or caveat_of(self.prior):
            raise InvalidInputError(
                "rewards must be given if and only if the prior learns rewards, and it must know "
                f"which rewards are possible; got a {self.prior!r:.100}"
            )
        if self.rewards is not None:
            columns["rewards"] = as_float_array(self.rewards, "rewards")
        shapes = {name: column.shape for name, column in columns.items()}
        if labels.ndim != 1 or len(set(shapes.values())) > 1 or labels.size == 0:
            raise InvalidInputError(
                "units, states, actions and next_states must be columns of one length; got "
                + ", ".join(f"{name} {shape}" for name, shape in shapes.items())
            )
        if any(item is None or item != item for item in labels.tolist()):
            raise InvalidInputError("units must not have missing labels")
        # copies: what the caller does to them later must not count
        object.__setattr__(self, "prior", self.prior.copy())
        for name, column in columns.items():
            object.__setattr__(self, name, np.array(column))

    @property
    def n_units(self) -> int:
        """Number of different units."""
        return int(np.unique(np.asarray(self.units)).size)

    def require_behind(self, belief: Any) -> None:
        """Refuse a belief that counts its transitions and has counted others since the prior.

        Units that the belief did not learn from would be compared with a doubt that is not theirs.
        """
        if not isinstance(belief, DirichletBelief | HierarchicalBelief):
            return
        before = self.prior.counts("flat") if isinstance(self.prior, DirichletBelief) else 0
        columns = (self.states, self.actions, self.next_states)
        entries = belief.pattern.locate_many(*map(np.asarray, columns))
        logged = np.bincount(entries, minlength=belief.pattern.n_transitions)
        counted = belief.counts("flat") - before
        if not np.array_equal(counted, logged):
            raise InvalidInputError(
                "units must hold the transitions that the belief has learned from since "
                f"units.prior; it has counted {int(counted.sum()):,}, and units have "
                f"{int(logged.sum()):,}" + (" others" if counted.sum() == logged.sum() else "")
            )

    def resampled(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray | None]:
        """What is learned from resampled units: mean kernels (n, transitions), rewards (n, S·A).

        The latter are None if rewards are known or a part of the belief.
        """
        labels, which = np.unique(np.asarray(self.units), return_inverse=True)
        chosen = [rng.integers(labels.size, size=labels.size) for _ in range(n)]
        of_counts = getattr(self.prior, "means_of_counts", None)
        if of_counts is None and type(self.prior) is DirichletBelief:
            of_counts = self._means_of_counts
        if of_counts is None:
            means = self._means(which, labels.size, chosen)
        else:
            means = of_counts(self._resampled_counts(which, labels.size, chosen))
        if self.learn_rewards is None:
            return means, None
        times = (np.bincount(units, minlength=labels.size)[which] for units in chosen)
        pattern = self.prior.pattern
        paid = [as_float_array(self.learn_rewards(one), "learn_rewards") for one in times]
        if paid[0].shape != (pattern.n_states, pattern.n_actions):
            raise InvalidInputError(
                f"learn_rewards must return shape {(pattern.n_states, pattern.n_actions)}; got "
                f"{paid[0].shape}"
            )
        return means, np.stack(paid).reshape(n, -1)

    def _means(self, which: IntArray, n_units: int, chosen: list[IntArray]) -> FloatArray:
        """Mean kernels of beliefs that observe the chosen units."""
        order = np.argsort(which, kind="stable")
        bounds = np.searchsorted(which[order], np.arange(n_units + 1))
        given = [self.states, self.actions, self.next_states]
        given += [] if self.rewards is None else [self.rewards]
        columns = [np.asarray(c)[order] for c in given]
        found = np.empty((len(chosen), self.prior.pattern.n_transitions))
        for k, units in enumerate(chosen):
            steps = np.concatenate([np.arange(bounds[u], bounds[u + 1]) for u in units])
            belief = self.prior.copy()
            belief.observe(*(column[steps] for column in columns))
            found[k] = mean_of(belief)
        return found

    def _resampled_counts(self, unit: IntArray, n_units: int, chosen: list[IntArray]) -> FloatArray:
        """Counts (n, transitions) of the log of every choice of units."""
        pattern = self.prior.pattern
        entries = pattern.locate_many(
            *(np.asarray(column) for column in (self.states, self.actions, self.next_states))
        )
        counts = sparse.csr_array(
            (np.ones(entries.size), (unit, entries)), shape=(n_units, pattern.n_transitions)
        )
        times = np.stack([np.bincount(units, minlength=n_units) for units in chosen])
        resampled: FloatArray = (times @ counts).astype(np.float64)
        return resampled

    def _means_of_counts(self, counts: FloatArray) -> FloatArray:
        """Mean kernels after these counts, for independent Dirichlet rows."""
        pattern = self.prior.pattern
        weight: FloatArray = counts + self.prior.concentration_entries
        sums = np.add.reduceat(weight, pattern.indptr[pattern.pairs], axis=1)
        weight /= np.repeat(sums, pattern.row_widths, axis=1)
        return weight


@dataclass(frozen=True)
class UnitResampling:
    """The gain in beliefs that are learned from resampled units.

    Attributes
    ----------
    n_units, resamples : int
    interval : (float, float)
        95 % percentile interval of the gain under the mean kernels of these beliefs.
    spread : float
        Standard deviation of these gains.
    ratio : float
        That spread over the one that the belief itself expects; well above one, steps of a unit
        depend on each other and the belief is too sure.

    Examples
    --------
    >>> import numpy as np
    >>> import brmdp
    >>> from brmdp.decisions import UnitLog, compare
    >>> rng = np.random.default_rng(0)
    >>> s, a, t, unit = (rng.integers(k, size=200) for k in (2, 2, 2, 10))
    >>> prior = brmdp.DirichletBelief.uniform(2, 2)
    >>> belief = prior.copy()
    >>> belief.observe(s, a, t)
    >>> log = UnitLog(prior, unit, s, a, t)
    >>> rewards = [[0.0, 0.0], [1.0, 1.0]]
    >>> found = brmdp.compare(belief, rewards, 0.5, [1, 1], [0, 0], units=log, rng=0)
    >>> found.units.n_units, 0.3 < found.units.ratio < 3
    (10, True)
    """

    n_units: int
    resamples: int
    interval: tuple[float, float]
    spread: float
    ratio: float


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """A policy against a baseline, in common posterior draws; see :func:`compare`.

    Attributes
    ----------
    gain : Estimate
        Mean gain of the policy over the baseline at the start, with its Monte Carlo error.
    interval : (float, float)
        95 % credible interval of the gain: the belief's doubt, which more draws do not shrink.
    better : float
        Share of draws in which the policy is better.
    better_interval : (float, float)
        95 % Clopper–Pearson interval of that probability.
    ties : float
        Share of draws in which the difference is within the solver's error.
    regret, baseline_regret : Estimate or None
        Expected loss of each against the optimum of the drawn kernel, from draws of their own;
        None if switched off.
    differences : tuple of Difference
        Single states in which the two differ, the one worth most first.
    n_different : int
        Number of states in which they differ; not all of them may be among ``differences``.
    different_states : (n_different,) integers
    start : str
        Where the policies begin: "given", "observed states" or "all states equally".
    units : UnitResampling or None
        The same comparison with resampled units.
    solver_error : float
        Largest numerical error of a gain.
    caveat : str
        What to know about the belief or the rewards, if they are only an approximation of a
        posterior; else empty.
    prior : PriorReliance or None
        How far the policy rests on the prior instead of data; all figures above include the prior.
        None for beliefs that do not separate the two.
    baseline_prior : PriorReliance or None
        The same for the baseline.
    rewards_drawn : bool
        Whether the rewards are themselves uncertain, and drawn with the kernel.

    Examples
    --------
    >>> import numpy as np
    >>> import brmdp
    >>> belief = brmdp.DirichletBelief.uniform(2, 2)
    >>> for state, action in np.ndindex(2, 2):
    ...     belief.observe(state, action, [action] * 9 + [1 - action])
    >>> brmdp.compare(belief, [[0.0, 0.0], [1.0, 1.0]], 0.5, [1, 1], [0, 0], start=0, rng=0)
    Comparison(gain=0.6661 ± 0.005, 95 % interval 0.3947 to 0.8749, better in 2000 of 2000 draws,
               regret=6.25e-05 (baseline 0.669), 2 states differ)
    """

    gain: Estimate
    interval: tuple[float, float]
    better: float
    better_interval: tuple[float, float]
    ties: float
    regret: Estimate | None
    baseline_regret: Estimate | None
    differences: tuple[Difference, ...]
    different_states: IntArray
    start: str
    units: UnitResampling | None
    solver_error: float
    caveat: str = ""
    prior: PriorReliance | None = None
    baseline_prior: PriorReliance | None = None
    rewards_drawn: bool = False

    @property
    def n_different(self) -> int:
        """Number of states in which the policies differ."""
        return int(self.different_states.size)

    def __str__(self) -> str:
        low, high = self.interval
        least, most = self.better_interval
        parts = [
            f"The policy gains {self.gain} over the baseline (start: {self.start}). By the belief, "
            f"the gain lies between {low:.4g} and {high:.4g} with probability 0.95.",
            f"It is better in {round(self.better * self.gain.draws)} of {self.gain.draws} "
            f"posterior draws (95 % interval {100 * least:.1f} to {100 * most:.1f} %)"
            + (f", and as good in another {percent(self.ties)}." if self.ties else "."),
        ]
        if self.regret is not None and self.baseline_regret is not None:
            parts.append(
                f"Against knowing {_what_is_drawn(self.rewards_drawn)}, the policy loses "
                f"{self.regret} and the baseline {self.baseline_regret} "
                f"({self.regret.draws} draws)."
            )
        if self.n_different == 0:
            parts.append("They take the same actions everywhere, with the same probabilities.")
        elif self.differences:
            shown = self.differences[:5]
            parts.append(
                f"They differ in {self.n_different} states. Changed one at a time, these are worth "
                f"most ({shown[0].worth.draws} draws; they need not add up): "
                + "; ".join(map(str, shown))
                + "."
            )
        if self.units is not None:
            low, high = self.units.interval
            parts.append(
                f"With the {self.units.n_units} units resampled {self.units.resamples} times, the "
                f"gain lies between {low:.4g} and {high:.4g} in 95 % of them"
                + (
                    f": {self.units.ratio:.2g} times the spread that the belief expects, so steps "
                    "of a unit depend on each other, and the belief is too sure."
                    if self.units.ratio > WIDE
                    else "."
                )
                + (
                    " Few units show too little of how units differ: the true range is wider."
                    if self.units.n_units < FEW_UNITS
                    else ""
                )
            )
        if self.caveat:
            parts.append(self.caveat)
        for what, prior in (("policy", self.prior), ("baseline", self.baseline_prior)):
            parts += prior_words(prior, f"The value of the {what}")
        return "\n".join(map(wrapped, parts))

    def __repr__(self) -> str:
        low, high = self.interval
        parts = [
            f"gain={self.gain.mean:.4g} ± {1.96 * self.gain.error:.1g}",
            f"95 % interval {low:.4g} to {high:.4g}",
            f"better in {round(self.better * self.gain.draws)} of {self.gain.draws} draws",
        ]
        if self.regret is not None and self.baseline_regret is not None:
            parts.append(
                f"regret={self.regret.mean:.3g} (baseline {self.baseline_regret.mean:.3g})"
            )
        parts.append(f"{self.n_different} states differ")
        if self.caveat:
            parts.append("of an approximate belief (see caveat)")
        if any(p is not None and p.outweighs for p in (self.prior, self.baseline_prior)):
            parts.append("rests on the prior")
        return call_like("Comparison", parts)


def compare(
    belief: Belief,
    rewards: RewardsOrDoubt,
    discount: float,
    policy: Any,
    baseline: Any,
    *,
    start: ArrayLike | None = None,
    draws: int = 2_000,
    regret_draws: int | None = None,
    differences: int = SHOWN_DIFFERENCES,
    units: UnitLog | None = None,
    horizon: int | None = None,
    terminal: ArrayLike | None = None,
    rng: Seed = None,
) -> Comparison:
    """How much better a policy is than a baseline, and how surely.

    Parameters
    ----------
    belief, rewards, discount
        As in :func:`brmdp.plan`. The discount may be 1 with a horizon, or if both policies surely
        end and their expected times to the end have finite posterior variances. Rewards may be
        :class:`brmdp.decisions.UncertainRewards`, which are drawn with the kernel.
    policy, baseline : (S,) actions, (S, A) probabilities, or a Practice
        A :class:`Practice` is drawn anew with every kernel, so the interval includes the doubt
        about it; the worth of single states is that over its mean. With a horizon also by step,
        (H, S) actions or (H, S, A) probabilities.
    start : int or (S,) probabilities, optional
        Where both begin; by default the states that the data come from, in proportion, or all
        states equally if the belief does not record them.
    draws : int
        Number of posterior draws, at least 100.
    regret_draws : int, optional
        Number of draws for the regret, which needs the optimum of every drawn kernel; by default up
        to 1,000, fewer for large problems. 0 switches it off.
    differences : int
        Number of differing states whose worth is evaluated, those first that matter most under the
        mean kernel. 0 switches it off.
    units : UnitLog, optional
        The log by units, to repeat the comparison with resampled units.
    horizon : int, optional
        Compare the values of this number of steps, in a kernel that stays the same.
    terminal : (S,) array, optional
        Values after the last step of the horizon; zero by default.
    rng : numpy.random.Generator or seed, optional
        Random stream of the draws.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import numpy as np
    >>> import brmdp
    >>> belief = brmdp.DirichletBelief.uniform(2, 2)
    >>> for state, action in np.ndindex(2, 2):
    ...     belief.observe(state, action, [action] * 9 + [1 - action])
    >>> rewards = [[0.0, 0.0], [1.0, 1.0]]
    >>> print(brmdp.compare(belief, rewards, 0.5, [1, 1], [[0.5, 0.5], [0.5, 0.5]], start=0, rng=0))
    The policy gains 0.3319 (95 % Monte Carlo interval 0.3294 to 0.3343) over the baseline
    (start: given). By the belief, the gain lies between 0.2063 and 0.4264 with probability 0.95.
    It is better in 2000 of 2000 posterior draws (95 % interval 99.8 to 100.0 %).
    Against knowing the kernel, the policy loses 6.25e-05 (not zero in only 2 of 1000 draws, too
    few for an interval) and the baseline 0.3328 (95 % Monte Carlo interval 0.3294 to 0.3361) (1000
    draws).
    They differ in 2 states. Changed one at a time, these are worth most (2000 draws; they need not
    add up): state 0: 0.214 [0.114, 0.278], 75 % of the baseline's time; state 1: 0.101 [0.0462,
    0.148], 25 % of the baseline's time.
    """
    require_belief(belief)
    independent = independent_draws(belief)
    gamma = as_discount(discount, one_allowed=True)
    n = _as_draws(draws, "draws", FEWEST_DRAWS)
    admissible = belief.pattern.admissible
    over: dict[str, Any] = {"horizon": horizon, "terminal": terminal}
    steps = None if horizon is None else as_horizon(horizon, belief.pattern.n_states)
    weights = mean_stages(policy, admissible, steps, "policy")
    base = mean_stages(baseline, admissible, steps, "baseline")
    refuse_endless(rewards, gamma, horizon)
    uncertain = is_uncertain(rewards)
    most = _as_count(differences, "differences")
    begin, origin = default_start(belief, start)
    if units is not None:
        if not isinstance(units, UnitLog):
            raise InvalidInputError(f"units must be a UnitLog; got {type(units).__name__}")
        if not units.prior.pattern.same_as(belief.pattern):
            raise InvalidInputError("units.prior must have the same possible transitions as belief")
        units.require_behind(belief)
        if uncertain != (units.learn_rewards is not None):
            raise InvalidInputError(
                "units.learn_rewards must be given if and only if rewards are uncertain"
            )
    stream = rng_for("comparison", rng)
    known = mean_rewards(belief, rewards)
    both = {
        "policy": policy if is_random(policy) else weights,
        "baseline": baseline if is_random(baseline) else base,
    }
    if gamma == 1.0 and horizon is None:
        regret_draws = _require_finite_means(
            belief, known, {"policy": policy, "baseline": baseline}, begin, most, regret_draws
        )
    sampler = Sampler(belief, rewards, gamma, both, **over, rng=stream)
    gains, doubts = np.empty(n), np.empty(n)
    done = 0
    for block in sampler.blocks(n):
        here = slice(done, done + len(block.errors))
        gains[here] = (block.values[:, 0] - block.values[:, 1]) @ begin
        doubts[here] = block.errors.sum(axis=1)
        done = here.stop
    tied = np.abs(gains) <= doubts
    better = int(((gains > 0.0) & ~tied).sum())
    worth = worth_of(n, independent)
    different = _different_states(weights, base)
    regrets = _regrets(belief, rewards, gamma, both, begin, n, regret_draws, over, stream)
    return Comparison(
        gain=Estimate.of(gains, independent),
        interval=credible_interval(gains),
        better=better / n,
        better_interval=clopper_pearson(round(better * worth / n), worth),
        ties=float(tied.mean()),
        regret=regrets[0],
        baseline_regret=regrets[1],
        differences=_differences(
            belief, rewards, gamma, weights, base, different, begin, n, most, over, stream
        ),
        different_states=different,
        start=origin,
        units=None if units is None else _resampled(sampler, units, begin, gains, stream),
        solver_error=float(doubts.max()),
        caveat=" ".join(filter(None, (caveat_of(belief), caveat_about(rewards)))),
        prior=reliance_of(belief, sampler.rewards, weights, gamma, steps, start),
        baseline_prior=reliance_of(belief, sampler.rewards, base, gamma, steps, start),
        rewards_drawn=uncertain,
    )


def _what_is_drawn(rewards_drawn: bool) -> str:
    return "the kernel and the rewards" if rewards_drawn else "the kernel"


def _different_states(one: FloatArray, other: FloatArray) -> IntArray:
    """States in which two policies differ, at some step if there are steps."""
    differ = (one != other).any(axis=-1)
    return np.flatnonzero(differ if differ.ndim == 1 else differ.any(axis=0))


def _require_finite_means(
    belief: Belief,
    rewards: Rewards,
    policies: dict[str, Any],
    begin: FloatArray,
    differences: int,
    regret_draws: int | None,
) -> int:
    """Refuse a comparison without discounting unless its means and their errors are finite.

    Returns the number of draws for the regret, which is zero.
    """
    remedy = "Use a horizon, a discount below 1, or quantiles (certify)"
    if differences or regret_draws:
        raise InvalidInputError(
            "differences and regret_draws must be 0 with discount 1 and no horizon: whether the "
            "means behind them are finite is not known"
        )
    for name, policy in policies.items():
        if is_random(policy) or np.ndim(policy) != 1:
            raise InvalidInputError(
                f"{name} must hold one action per state with discount 1 and no horizon: whether "
                f"the mean value of a policy with probabilities is finite is not known. {remedy}"
            )
        found = exit_moments(belief, rewards, policy, start=begin)
        if not found.finite(2.0):
            raise InvalidInputError(
                f"the mean value of {name} over posterior draws cannot be estimated without "
                f"discounting. {found} {remedy}".replace("\n", " ")
            )
    return 0


def _as_draws(value: Any, name: str, fewest: int) -> int:
    n = as_positive_int(value, name)
    if n < fewest:
        raise InvalidInputError(f"{name} must be at least {fewest}; got {n}")
    return n


def _as_count(value: Any, name: str) -> int:
    return 0 if type(value) is int and value == 0 else as_positive_int(value, name)


def _regrets(
    belief: Belief,
    rewards: RewardsOrDoubt,
    discount: float,
    policies: dict[str, Any],
    begin: FloatArray,
    draws: int,
    wanted: int | None,
    over: dict[str, Any],
    rng: np.random.Generator,
) -> tuple[Estimate, Estimate] | tuple[None, None]:
    """Expected regret of both policies, from draws of their own."""
    affordable = max(FEWEST_LARGE_DRAWS, REGRET_NUMBERS // belief.pattern.n_transitions)
    n = (
        min(draws, MOST_REGRET_DRAWS, affordable)
        if wanted is None
        else _as_count(wanted, "regret_draws")
    )
    if n == 0:
        return None, None
    sampler = Sampler(belief, rewards, discount, policies, optimal=True, **over, rng=rng)
    lost = []
    for block in sampler.blocks(n):
        assert block.optimal is not None
        lost.append((block.optimal[:, None] - block.values) @ begin)
    found = np.concatenate(lost)
    independent = independent_draws(belief)
    return Estimate.of(found[:, 0], independent), Estimate.of(found[:, 1], independent)


def _differences(
    belief: Belief,
    rewards: RewardsOrDoubt,
    discount: float,
    policy: FloatArray,
    baseline: FloatArray,
    different: IntArray,
    begin: FloatArray,
    draws: int,
    most: int,
    over: dict[str, Any],
    rng: np.random.Generator,
) -> tuple[Difference, ...]:
    """The worth of single states, those first that matter most under the mean kernel."""
    if different.size == 0 or most == 0:
        return ()
    two = Sampler(belief, rewards, discount, [baseline, policy], **over, rng=rng)
    visits = two.visits(begin)
    rough = two.rough_worths(begin)[different]
    chosen = different[np.argsort(-rough, kind="stable")[:most]]
    policies = [baseline]
    for s in chosen:
        changed = baseline.copy()
        changed[..., s, :] = policy[..., s, :]
        policies.append(changed)
    sampler = Sampler(belief, rewards, discount, policies, **over, rng=rng)
    work = sampler.rows.size + 3 * len(policies) * sampler.rows.widest_policy
    n = min(draws, max(FEWEST_DRAWS, WORTH_NUMBERS // work))
    worth = np.concatenate(
        [(block.values[:, 1:] - block.values[:, :1]) @ begin for block in sampler.blocks(n)]
    )
    found = []
    for k, s in enumerate(chosen):
        found.append(
            Difference(
                int(s),
                float(visits[0, s]),
                float(visits[1, s]),
                Estimate.of(worth[:, k], independent_draws(belief)),
                credible_interval(worth[:, k]),
            )
        )
    return tuple(sorted(found, key=lambda item: -abs(item.worth.mean)))


def _resampled(
    sampler: Sampler,
    log: UnitLog,
    begin: FloatArray,
    gains: FloatArray,
    rng: np.random.Generator,
) -> UnitResampling:
    """The gain under the mean kernels of beliefs learned from resampled units."""
    block = max(1, 20_000_000 // log.prior.pattern.n_transitions)
    found: list[FloatArray] = []
    left = RESAMPLES
    while left:
        size = min(block, left)
        values = sampler.evaluate(*log.resampled(size, rng)).values
        found.append((values[:, 0] - values[:, 1]) @ begin)
        left -= size
    resampled = np.concatenate(found)
    spread, expected = float(resampled.std(ddof=1)), float(gains.std(ddof=1))
    ratio = spread / expected if expected > 0.0 else (1.0 if spread == 0.0 else math.inf)
    return UnitResampling(log.n_units, RESAMPLES, credible_interval(resampled), spread, ratio)


# --- the value of information ---------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class InformationValue:
    """What it would be worth to know more; see :func:`value_of_information`.

    Attributes
    ----------
    perfect : Estimate
        Gain from knowing the kernel: no data can be worth more, up to the choice of today's policy.
    sample : Estimate or None
        Gain from the additional transitions, if pairs were given.
    changed : float or None
        Share of simulated data sets after which the mean plan is another policy.
    transitions : int
        Number of additional transitions per pair.
    pairs : tuple of (int, int)
        The pairs (state, action) that would be observed.
    policy : (S,) integers or (S, A) probabilities
        Today's policy: the candidate with the largest mean value in selection draws.
    name : str
        Its name.
    value : Estimate
        Its mean value today.
    start : str
        Where it begins.
    caveat : str
        What to know about the belief or the rewards, if they are only an approximation of a
        posterior; else empty.
    prior : PriorReliance or None
        How far today's policy rests on the prior; what data are worth rests on it even more.
    worn : float
        Share of simulated data sets that a learned prior's stored draws could hardly follow; if
        there are any, the data may be worth more than ``sample`` says.
    rewards_drawn : bool
        Whether the rewards are themselves uncertain, and drawn with the kernel.

    Examples
    --------
    >>> import numpy as np
    >>> import brmdp
    >>> belief = brmdp.DirichletBelief.uniform(2, 2)
    >>> for state, action in np.ndindex(2, 2):
    ...     belief.observe(state, action, [action] * 4 + [1 - action] * 2)
    >>> found = brmdp.value_of_information(
    ...     belief, [[0.0, 0.0], [1.0, 1.0]], 0.5, pairs=[(0, 1)], transitions=50, start=0, rng=0
    ... )
    >>> 0.0 < found.sample.mean < found.perfect.mean
    True
    """

    perfect: Estimate
    sample: Estimate | None
    changed: float | None
    transitions: int
    pairs: tuple[tuple[int, int], ...]
    policy: IntArray | FloatArray
    name: str
    value: Estimate
    start: str
    caveat: str = ""
    prior: PriorReliance | None = None
    worn: float = 0.0
    rewards_drawn: bool = False

    def __str__(self) -> str:
        parts = [
            f"Today's policy ({self.name}) is worth {self.value} (start: {self.start}).",
            f"Knowing {_what_is_drawn(self.rewards_drawn)} would be worth another {self.perfect}.",
        ]
        if self.sample is not None and self.changed is not None:
            low, high = self.sample.interval
            verdict = (
                ""
                if low > 0.0 and not self.sample.rare
                else " In no simulated case would it gain or lose anything."
                if low == high == 0.0
                else " This is not clearly above zero: use more draws to be sure."
                if high >= 0.0 or self.sample.rare
                else " This is below zero: planning the mean after these data would lose something."
            )
            parts.append(
                f"{self.transitions} more transitions of each of {len(self.pairs)} pairs would be "
                f"worth {self.sample}; they change the mean plan in {percent(self.changed)} of "
                f"simulated cases.{verdict}"
            )
        if self.worn:
            parts.append(
                f"In {percent(self.worn)} of simulated cases, the belief's stored draws could "
                f"hardly follow the data: they were worth fewer than {FEWEST_INDEPENDENT} "
                "independent ones. Plans from so few are poorer than they need be, so the data may "
                "be worth more than this; learn the prior with more draws (learn_prior: draws=…)."
            )
        if self.caveat:
            parts.append(self.caveat)
        parts += prior_words(self.prior, "The value of today's policy")
        return "\n".join(map(wrapped, parts))

    def __repr__(self) -> str:
        parts = [f"perfect={self.perfect.mean:.4g} ± {1.96 * self.perfect.error:.1g}"]
        if self.sample is not None and self.changed is not None:
            parts += [
                f"sample={self.sample.mean:.4g} ± {1.96 * self.sample.error:.1g}",
                f"changed={self.changed:.3g}",
                f"{self.transitions} transitions of {len(self.pairs)} pairs",
            ]
        parts += [f"policy {self.name!r}", f"value={self.value.mean:.4g}"]
        if self.caveat:
            parts.append("of an approximate belief (see caveat)")
        if self.prior is not None and self.prior.outweighs:
            parts.append("rests on the prior")
        return call_like("InformationValue", parts)


def value_of_information(
    belief: Belief,
    rewards: RewardsOrDoubt,
    discount: float,
    *,
    pairs: ArrayLike | None = None,
    transitions: int | None = None,
    candidates: Policies | None = None,
    start: ArrayLike | None = None,
    draws: int = 1_000,
    horizon: int | None = None,
    terminal: ArrayLike | None = None,
    rng: Seed = None,
) -> InformationValue:
    """What perfect information, or more transitions of given pairs, would be worth.

    Parameters
    ----------
    belief, rewards, discount
        As in :func:`brmdp.compare`. Sample information needs ``belief.copy()`` and
        ``observe(…)``.
    pairs : (k, 2) integers, optional
        Pairs (state, action) that could be observed.
    transitions : int, optional
        Number of additional transitions of each pair.
    candidates : mapping or list of policies, optional
        What could be done today; by default :func:`candidate_policies`. For sample information,
        today's mean plan is always among them.
    start : int or (S,) probabilities, optional
        As in :func:`compare`.
    draws : int
        Number of posterior draws, at least 100; each needs the optimum of the drawn kernel and, for
        sample information, a plan.
    horizon : int, optional
        Values of this number of steps, in a kernel that stays the same.
    terminal : (S,) array, optional
        Values after the last step of the horizon; zero by default.
    rng : numpy.random.Generator or seed, optional
        Random stream of the draws.

    Returns
    -------
    InformationValue

    Notes
    -----
    After simulated data, today's policy is kept if the mean plan is the same as today's; otherwise
    the new mean plan is followed. A better rule would make the data worth more. For a shared
    disturbance, the simulated transitions reveal it; to a
    :class:`brmdp.CensoredDisturbanceBelief`, only as far as the next state does.

    Examples
    --------
    >>> import numpy as np
    >>> import brmdp
    >>> belief = brmdp.DirichletBelief.uniform(2, 2)
    >>> for state, action in np.ndindex(2, 2):
    ...     belief.observe(state, action, [action] * 4 + [1 - action] * 2)
    >>> brmdp.value_of_information(belief, [[0.0, 0.0], [1.0, 1.0]], 0.5, start=0, rng=0)
    InformationValue(perfect=0.01701 ± 0.003, policy 'mean', value=0.6237)
    """
    require_belief(belief)
    independent = independent_draws(belief)
    gamma = as_discount(discount, one_allowed=horizon is not None)
    over: dict[str, Any] = {"horizon": horizon, "terminal": terminal}
    steps = None if horizon is None else as_horizon(horizon, belief.pattern.n_states)
    n = _as_draws(draws, "draws", FEWEST_DRAWS)
    if (pairs is None) != (transitions is None):
        raise InvalidInputError("pairs and transitions must be given together")
    where = () if pairs is None else _as_pairs(pairs, belief)
    count = 0 if transitions is None else as_positive_int(transitions, "transitions")
    if where:
        for method in ("copy", "observe"):
            method_of(belief, method, "for the value of sample information")
    begin, origin = default_start(belief, start)
    stream = rng_for("information", rng)
    given: dict[str, Any] = (
        dict(candidate_policies(belief, rewards, gamma, **over, rng=stream))
        if candidates is None
        else named_policies(candidates, "candidates")
    )
    known = mean_rewards(belief, rewards)
    update = _Update(belief, known, gamma, where, count, over) if where else None
    admissible = belief.pattern.admissible
    weights = {
        name: mean_stages(item, admissible, steps, f"candidates[{name!r}]")
        for name, item in given.items()
    }
    items = {name: item if is_random(item) else weights[name] for name, item in given.items()}
    if update is not None:
        # what can be done after the data can be done today, or the data would be paid for it
        plan = mean_stages(update.today.policy, admissible, steps)
        if not any(same_policy(plan, other) for other in weights.values()):
            name = "mean plan" if "mean plan" not in weights else f"mean plan {len(weights)}"
            weights[name] = items[name] = plan
    name = next(iter(weights))
    if len(weights) > 1:
        selection = Sampler(belief, rewards, gamma, items, **over, rng=stream)
        totals = sum((block.values @ begin).sum(axis=0) for block in selection.blocks(n))
        name = list(weights)[int(np.argmax(totals))]
    today = weights[name]
    sampler = Sampler(
        belief,
        rewards,
        gamma,
        [items[name]],
        optimal=True,
        kernels=bool(where),
        **over,
        rng=stream,
    )
    values, lost, gained, changes = [], [], [], 0
    for block in sampler.blocks(n):
        assert block.optimal is not None
        now = block.values[:, 0] @ begin
        values.append(now)
        lost.append(block.optimal @ begin - now)
        if update is None or block.kernels is None:
            continue
        for m, (kernel, value) in enumerate(zip(block.kernels, now, strict=True)):
            policy = update.plan_after(kernel, stream)
            if policy is None:
                gained.append(0.0)
                continue
            changes += 1
            paid = None if block.rewards is None else block.rewards[m : m + 1]
            after = Sampler(belief, known, gamma, [policy], **over, rng=0).evaluate(
                kernel[None], paid
            )
            gained.append(float(after.values[0, 0] @ begin) - value)
    sure = is_deterministic(today)
    return InformationValue(
        perfect=Estimate.of(np.concatenate(lost), independent),
        sample=Estimate.of(np.array(gained), independent) if where else None,
        changed=changes / n if where else None,
        transitions=count,
        pairs=where,
        policy=today.argmax(axis=-1) if sure else today,
        name=name,
        value=Estimate.of(np.concatenate(values), independent),
        start=origin,
        caveat=" ".join(filter(None, (caveat_of(belief), caveat_about(rewards)))),
        prior=reliance_of(belief, sampler.rewards, today, gamma, steps, start),
        worn=update.worn / n if update is not None else 0.0,
        rewards_drawn=is_uncertain(rewards),
    )


def _as_pairs(pairs: Any, belief: Belief) -> tuple[tuple[int, int], ...]:
    pattern = belief.pattern
    given = as_array(pairs, "pairs", "pairs (state, action)")
    if given.ndim != 2 or given.shape[1] != 2 or given.shape[0] == 0:
        raise InvalidInputError(
            f"pairs must be a list of (state, action), shape (k, 2); got shape {given.shape}"
        )
    found = []
    for k, (s, a) in enumerate(given):
        state = as_index(s, pattern.n_states, f"pairs[{k}], state")
        action = as_index(a, pattern.n_actions, f"pairs[{k}], action")
        if not pattern.admissible[state, action]:
            raise InvalidInputError(
                f"pairs[{k}] must be admissible; action {action} is not in state {state}"
            )
        found.append((state, action))
    if len(set(found)) < len(found):
        raise InvalidInputError("pairs must be distinct")
    return tuple(found)


class _Update:
    """Simulates data in a drawn kernel and plans with what the belief learns from them."""

    def __init__(
        self,
        belief: Belief,
        rewards: Rewards,
        discount: float,
        pairs: tuple[tuple[int, int], ...],
        count: int,
        over: dict[str, Any],
    ) -> None:
        self.belief: Any = belief
        self.pairs = pairs
        self.count = count
        self.over = over
        self.problem = Problem.of(belief, rewards, discount, undiscounted=True)
        self.worn = 0
        self.today: Any = None
        self.today = self._plan(belief)

    def _plan(self, belief: Any) -> Any:
        """The mean plan, from the values of today's if there are any."""
        if self.over["horizon"] is not None:
            return self.problem.solve_over(belief, Mean(), **self.over)
        initial = None if self.today is None else self.today.values
        return self.problem.solve(belief, Mean(), initial)

    def plan_after(self, kernel: FloatArray, rng: np.random.Generator) -> IntArray | None:
        """The mean plan after data from ``kernel``; None if it is today's."""
        pattern = self.belief.pattern
        updated = self.belief.copy()
        for s, a in self.pairs:
            begin, end = pattern.indptr[s * pattern.n_actions + a :][:2]
            row = kernel[begin:end]
            counts = rng.multinomial(self.count, row / row.sum())
            seen = np.repeat(np.arange(end - begin), counts)
            if isinstance(updated, DisturbanceBelief):
                updated.observe_disturbance(seen)
            elif isinstance(updated, OutcomeBelief):
                paid = self.belief.outcome_rewards[begin + seen]
                updated.observe(s, a, pattern.next_states[begin + seen], paid)
            elif isinstance(updated, HierarchicalBelief):
                updated.observe(s, a, pattern.next_states[begin + seen], fewest=0.0)
            elif isinstance(updated, DirichletBelief):
                updated.observe(s, a, pattern.next_states[begin + seen])
            else:
                for t in pattern.next_states[begin + seen].tolist():
                    updated.observe(s, a, t)
        self.worn += independent_draws(updated) < FEWEST_INDEPENDENT
        plan = self._plan(updated)
        return None if np.array_equal(plan.policy, self.today.policy) else np.array(plan.policy)
