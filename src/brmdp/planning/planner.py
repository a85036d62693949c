"""Plans and evaluations.

From a belief (or a known MDP), rewards, a discount and a risk measure to a :class:`Solution`.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from brmdp._kernels import linear
from brmdp._validation import (
    FloatArray,
    IntArray,
    as_discount,
    as_float_array,
    as_policies,
    as_policy,
    as_positive_int,
    as_positive_number,
)
from brmdp.beliefs.base import Belief
from brmdp.beliefs.checked import require_belief, rewards_of
from brmdp.errors import ConvergenceError, InvalidInputError
from brmdp.mdp import TabularMDP
from brmdp.pattern import TransitionPattern
from brmdp.planning.bellman import DENSE_STATES, Bellman
from brmdp.planning.fixed_point import (
    METHODS,
    RELATIVE,
    Accuracy,
    FixedPoint,
    iterate,
    settle_ties,
    tie_width,
)
from brmdp.planning.prior import check_start, reliance, warn_about_prior
from brmdp.planning.solution import CONVERGED, NOT_CONVERGED, Solution
from brmdp.risk.base import APPROXIMATE, EXACT, RiskMeasure, RiskOperator
from brmdp.risk.boundary import CheckedRisk, bind_risk
from brmdp.risk.measures import Mean
from brmdp.risk.threads import MANY_STATES, one_blas_thread

__all__ = [
    "Backup",
    "Problem",
    "backup",
    "evaluate_all_in_mdp",
    "evaluate_in_mdp",
    "evaluate_under_belief",
    "plan",
    "solve",
]

LARGEST_VALUE = 1e140

ANY = object()
"""No policy is given: the best is looked for."""

COARSE = 1e-4
"""Accuracy, relative to max|r|/(1 − γ).

To which a cheaper approximation is solved to start from.
"""

COARSE_SWEEPS = 60
"""Most sweeps of a cheaper approximation."""


class Backup(NamedTuple):
    """One application of a risk measure: values and risk-adjusted rows of every pair."""

    q_values: FloatArray
    """(S, A); −inf for inadmissible actions."""
    kernel: FloatArray
    """(S, A, S) risk-adjusted rows; zero for inadmissible actions."""


def plan(
    belief: Belief,
    rewards: Any,
    discount: float,
    *,
    risk: RiskMeasure,
    tolerance: float | None = None,
    initial: Any = None,
    method: str = "newton",
    max_iterations: int = 10_000,
    raise_on_failure: bool = True,
    start: Any = None,
) -> Solution:
    """Solve the Bayesian-risk Bellman optimality equation V(s) = max_a ρ[ r(s,a,s') + γV(s') ].

    Parameters
    ----------
    posterior : DirichletBelief, DisturbanceBelief, ScenarioBelief or TabularMDP
        What is believed about the kernel. It is not changed.
    rewards : (S, A), (S, A, S), sparse (S·A, S), or a TabularMDP's ``.rewards``
        Known rewards; r(s,a,s') sits inside the risk measure.
    discount : float in [0, 1)
    risk : Quantile, CVaR, Mean, PosteriorSample
        The risk measure ρ.
    tolerance : float, optional
        Largest ``error_bound`` accepted, in units of the rewards; if arithmetic cannot resolve it,
        that is an error. By default 1e-8 × max|V|, or four times what arithmetic resolves, (η +
        16ε·max|V|)/(1 − γ), where that is more; a default above 1e-3 × max|V| (or 1e-8 × the
        rewards of the actions taken, for values that cancel) is an error too.
    initial : Solution or (S,) array, optional
        Warm start.
    method : {"newton", "value-iteration"}
    max_iterations : int
        Most sweeps.
    raise_on_failure : bool
        Raise :class:`ConvergenceError` (which carries the last iterate) instead of returning it.
    start : int or (S,) probabilities, optional
        Where the policy will begin, to judge how far it rests on the prior; see
        :func:`brmdp.prior_reliance`.

    Returns
    -------
    Solution

    Warns
    -----
    PriorWarning
        If the prior outweighs the data in what the policy does, by the rule in
        :mod:`brmdp.planning.prior`.
    """
    check_start(belief, start)
    settings: dict[str, Any] = {
        "tolerance": tolerance,
        "method": method,
        "max_iterations": max_iterations,
    }
    solution = solution_of(
        belief,
        rewards,
        discount,
        risk,
        initial=initial,
        raise_on_failure=raise_on_failure,
        **settings,
    )
    return _with_prior(solution, belief, discount, start, "plan")


def evaluate_under_belief(
    belief: Belief,
    rewards: Any,
    discount: float,
    policy: Any,
    *,
    risk: RiskMeasure,
    tolerance: float | None = None,
    initial: Any = None,
    method: str = "newton",
    max_iterations: int = 10_000,
    raise_on_failure: bool = True,
    all_actions: bool = True,
    start: Any = None,
) -> Solution:
    """The Bayesian-risk value of a fixed policy, the fixed point of T^π.

    Arguments as in :func:`plan`.

    ``q_values`` are the backups of all actions at that value, so actions above V(s) would improve
    on the policy; with ``all_actions=False``, which is faster, only those of the policy's actions
    (−inf for the others).
    """
    check_start(belief, start)
    settings: dict[str, Any] = {
        "tolerance": tolerance,
        "method": method,
        "max_iterations": max_iterations,
    }
    settings |= {"raise_on_failure": raise_on_failure, "all_actions": all_actions}
    solution = solution_of(
        belief, rewards, discount, risk, policy=policy, initial=initial, **settings
    )
    return _with_prior(solution, belief, discount, start, "value")


def solution_of(
    belief: Belief,
    rewards: Any,
    discount: float,
    risk: RiskMeasure,
    *,
    policy: Any = ANY,
    initial: Any = None,
    raise_on_failure: bool = True,
    all_actions: bool = True,
    **settings: Any,
) -> Solution:
    """A plan, or the value of ``policy``, without a look at what it owes to the prior.

    For computations that make many.
    """
    problem = Problem.of(belief, rewards, discount, **settings)
    return problem.solve(
        belief,
        risk,
        problem.start(initial),
        policy=None if policy is ANY else as_policy(policy, belief.pattern.admissible),
        raise_on_failure=raise_on_failure,
        all_actions=all_actions,
    )


def solve(
    mdp: TabularMDP,
    *,
    tolerance: float | None = None,
    initial: Any = None,
    method: str = "newton",
    max_iterations: int = 10_000,
    raise_on_failure: bool = True,
) -> Solution:
    """Risk-neutral optimum of a known MDP, by the same solver; arguments as in :func:`plan`."""
    _require_mdp(mdp)
    problem = Problem(
        mdp.pattern, mdp.transition_rewards, mdp.discount, tolerance, method, max_iterations
    )
    return problem.solve(mdp, Mean(), problem.start(initial), raise_on_failure=raise_on_failure)


def evaluate_in_mdp(mdp: TabularMDP, policy: Any, *, tolerance: float = 1e-10) -> FloatArray:
    """Exact value of a policy in a known MDP, (S,): one linear system.

    A large one is solved iteratively, to an error of ``tolerance`` × max|V|, or what arithmetic
    resolves if that is more.
    """
    _require_mdp(mdp)
    values: FloatArray = evaluate_all_in_mdp(
        mdp, as_policy(policy, mdp.admissible)[None], tolerance=tolerance
    )[0]
    return values


def evaluate_all_in_mdp(mdp: TabularMDP, policies: Any, *, tolerance: float = 1e-10) -> FloatArray:
    """Exact values of many policies (n, S) in a known MDP, (n, S); see :func:`evaluate`."""
    _require_mdp(mdp)
    chosen = as_policies(policies, mdp.admissible)
    accuracy = as_positive_number(tolerance, "tolerance")
    if mdp.n_states <= DENSE_STATES:
        pairs = chosen + np.arange(mdp.n_states) * mdp.n_actions
        pattern = mdp.pattern
        # BLAS goes to several threads only from about here on
        with one_blas_thread if mdp.n_states >= MANY_STATES and len(chosen) > 1 else nullcontext():
            values: FloatArray = linear.policy_values(
                pairs,
                pattern.indptr,
                pattern.next_states,
                mdp.probabilities,
                mdp.transition_rewards,
                mdp.discount,
            )
        return values
    problem = Problem(mdp.pattern, mdp.transition_rewards, mdp.discount, relative=accuracy)
    return np.array(
        [problem.solve(mdp, Mean(), policy=policy, all_actions=False).values for policy in chosen]
    )


def backup(
    belief: Belief, rewards: Any, discount: float, values: Any, *, risk: RiskMeasure
) -> Backup:
    """Apply a risk measure once.

    Q(s,a) and the risk-adjusted row of every pair at next-state values ``values``.

    The rows are the gradient of q: q(s,a; V + dV) ≈ q(s,a; V) + γ kernel[s,a]·dV.
    """
    problem = Problem.of(belief, rewards, discount)
    pattern = belief.pattern
    bellman = problem.bellman(bind_risk(risk, belief), None)
    next_values = problem.start(values)
    if next_values is None:
        raise InvalidInputError("values must be one number per state; got None")
    targets = bellman.targets(next_values)
    q, _ = bellman.backup(targets, pattern.pairs)
    rows = bellman.risk.rows(targets, q.reshape(-1), pattern.pairs)
    return Backup(q, pattern.dense(rows))


def _with_prior(
    solution: Solution, belief: Belief, discount: float, start: Any, what: str
) -> Solution:
    """The solution with its field ``prior``, and a warning if the prior outweighs the data."""
    found = reliance(belief, solution.policy, discount, start)
    warn_about_prior(found, what, 3)
    return solution if found is None else replace(solution, prior=found)


def _require_mdp(mdp: Any) -> None:
    if not isinstance(mdp, TabularMDP):
        raise InvalidInputError(f"mdp must be a brmdp.TabularMDP; got {type(mdp).__name__}")


class Problem:
    """Rewards, discount and accuracy, validated once.

    To be solved for any belief on the same pattern.

    ``rewards`` are flat, one per possible transition.
    """

    def __init__(
        self,
        pattern: TransitionPattern,
        rewards: FloatArray,
        discount: float,
        tolerance: float | None = None,
        method: str = "newton",
        max_iterations: int = 10_000,
        relative: float = RELATIVE,
    ) -> None:
        self.pattern = pattern
        self.rewards = rewards
        self.discount = as_discount(discount)
        largest = max(abs(float(rewards.max())), abs(float(rewards.min()))) / (1.0 - self.discount)
        if not largest <= LARGEST_VALUE:
            raise InvalidInputError(
                f"rewards/(1 − discount) must lie within ±{LARGEST_VALUE:g}; got {largest:g}"
            )
        self.largest = largest
        self.tolerance = None if tolerance is None else as_positive_number(tolerance, "tolerance")
        self.accuracy = Accuracy(self.tolerance, relative)
        if not isinstance(method, str) or method not in METHODS:
            raise InvalidInputError(f"method must be one of {METHODS}; got {method!r}")
        self.method = method
        self.max_iterations = as_positive_int(max_iterations, "max_iterations")

    @classmethod
    def of(
        cls, belief: Belief, rewards: Any, discount: float, *settings: Any, **named: Any
    ) -> Problem:
        """Rewards in any form that the belief can gather."""
        require_belief(belief)
        return cls(belief.pattern, rewards_of(belief, rewards), discount, *settings, **named)

    def start(self, initial: Any) -> FloatArray | None:
        """A warm start, checked."""
        n = self.pattern.n_states
        if initial is None:
            return None
        values = as_float_array(
            initial.values if isinstance(initial, Solution) else initial, "initial"
        )
        if values.shape != (n,):
            raise InvalidInputError(
                f"initial must be a Solution or have shape ({n},); got {values.shape}"
            )
        if float(np.abs(values).max()) > LARGEST_VALUE:
            raise InvalidInputError(f"initial must lie within ±{LARGEST_VALUE:g}")
        return np.array(values)

    def bellman(self, bound: RiskOperator, policy: IntArray | None) -> Bellman:
        """The operator of a bound measure."""
        return Bellman(self.pattern, bound, self.rewards, self.discount, policy)

    def solve(
        self,
        belief: Belief,
        risk: RiskMeasure,
        initial: FloatArray | None = None,
        *,
        policy: IntArray | None = None,
        raise_on_failure: bool = True,
        all_actions: bool = True,
    ) -> Solution:
        """Run the solver and certify the result."""
        bound = bind_risk(risk, belief)
        # without rewards the values are zero, and a start elsewhere would only shrink towards it
        cold = initial is None or self.largest == 0.0
        # a copy: those of a solution are read-only, for which kernels would be compiled once more
        values = np.zeros(self.pattern.n_states) if cold else np.array(initial)
        bellman = self.bellman(bound, policy)
        pairs: IntArray | None = None
        for cheaper in reversed(self.approximations(bound, initial is None)):
            coarse = max(self.tolerance or 0.0, COARSE * self.largest)
            near = iterate(
                self.bellman(cheaper, policy), values, Accuracy(coarse), "newton", COARSE_SWEEPS
            ).sweep
            if math.isfinite(near.residual):
                values = near.best
                if cheaper.fixed_entries() is None:
                    pairs = np.flatnonzero(near.q >= near.best[:, None] - coarse)
        found = iterate(bellman, values, self.accuracy, self.method, self.max_iterations, pairs)
        if policy is None:
            found = settle_ties(bellman, found, self.max_iterations)
        if isinstance(bound, CheckedRisk) and np.isfinite(found.sweep.targets).all():
            bound.require_contraction(found.sweep.targets)
        solution = self.describe(bellman, found, policy, all_actions)
        if solution.status == NOT_CONVERGED and raise_on_failure:
            raise ConvergenceError(self.advice(found), solution)
        return solution

    def approximations(self, bound: RiskOperator, cold: bool) -> list[RiskOperator]:
        """Cheaper and cheaper measures to start from.

        A linear one only where nothing better is known.
        """
        found: list[RiskOperator] = []
        cheaper = bound.approximation() if self.method == "newton" else None
        while cheaper is not None and (cold or cheaper.fixed_entries() is None):
            found.append(cheaper)
            cheaper = cheaper.approximation()
        return found

    def describe(
        self, bellman: Bellman, found: FixedPoint, policy: IntArray | None, all_actions: bool
    ) -> Solution:
        """Certificates, ties and the risk-adjusted kernel."""
        gamma = self.discount
        last = found.sweep
        q = last.q
        error = last.numerical_error
        width = tie_width(bellman, last)
        if policy is None:
            chosen, pairs, tied, given_away = linear.lowest_tied(q, last.best, width)
            gap = (2.0 * (gamma * last.residual + error) + given_away) / (1.0 - gamma)
        else:
            chosen = policy
            tied = np.zeros(policy.size, dtype=bool)
            pairs = bellman.pairs
            gap = 0.0
            if all_actions:
                q, _ = bellman.backup(last.targets, self.pattern.pairs)
        bound = last.bound(gamma)
        status = CONVERGED if found.converged else NOT_CONVERGED
        basis = bellman.risk.basis
        if basis == APPROXIMATE:
            bound = gap = np.inf
        if found.converged and basis != EXACT:
            # the word for what the values are is the word for the plan
            status = basis
        # the bound measure is a snapshot, so the rows can wait until somebody asks
        rows = partial(bellman.risk.rows, last.targets, q.reshape(-1), pairs)
        arrays = (last.best, q, chosen, tied)
        for array in arrays:
            array.flags.writeable = False
        return Solution(
            *arrays,
            residual=last.residual,
            error_bound=bound,
            policy_gap=gap,
            iterations=found.sweeps,
            status=status,
            basis=basis,
            tolerance=found.tolerance,
            tie_width=width,
            _pattern=self.pattern,
            _rows=rows,
        )

    def advice(self, found: FixedPoint) -> str:
        """Why it failed and what to do."""
        last = found.sweep
        asked = "tolerance" if self.tolerance is not None else "default tolerance"
        text = (
            f"error bound {last.bound(self.discount):.3g} after {found.sweeps} sweeps, {asked} "
            f"{found.tolerance:.3g} (residual {last.residual:.3g}, discount {self.discount}): "
        )
        if found.sweeps >= self.max_iterations:
            faster = (
                ""
                if self.method == "newton"
                else ", or use method='newton', which needs far fewer sweeps"
            )
            return text + f"raise max_iterations={self.max_iterations} or loosen tolerance{faster}"
        return (
            text
            + (
                "arithmetic cannot resolve more (numerical error of a backup "
                f"{last.numerical_error:.3g}); loosen tolerance: an argument of plans and agents, "
                "a key of [[agent]] in a sweep"
            )
            + (
                ", or leave it out: the default follows the scale of the problem"
                if self.tolerance is not None
                else ""
            )
        )
