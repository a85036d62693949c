"""Plans and evaluations, for a belief or a known MDP.

Discounted problems are solved here; those with a finite horizon by
:mod:`brmdp.planning.finite_horizon`, and undiscounted ones, in which every policy surely ends, by
:mod:`brmdp.planning.endings`.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike

from brmdp._kernels import linear
from brmdp._validation import (
    FloatArray,
    IntArray,
    PolicyArray,
    as_actions_or_weights,
    as_discount,
    as_float_array,
    as_policies,
    as_positive_int,
    as_positive_number,
)
from brmdp.beliefs.base import Belief
from brmdp.beliefs.checked import caveat_of, learns_rewards, require_belief, rewards_of
from brmdp.beliefs.disturbance import Rewards
from brmdp.errors import ConvergenceError, InvalidInputError
from brmdp.mdp import TabularMDP
from brmdp.pattern import TransitionPattern
from brmdp.planning.bellman import DENSE_STATES, Bellman
from brmdp.planning.compiled import COARSE_SWEEPS, Memory, Solved, is_small, solve_compiled
from brmdp.planning.endings import failure_with_ends, solve_with_ends
from brmdp.planning.finite_horizon import (
    HorizonSolution,
    as_horizon,
    as_stages,
    as_terminal,
    backward_induction,
)
from brmdp.planning.fixed_point import (
    METHODS,
    RELATIVE,
    Accuracy,
    FixedPoint,
    iterate,
    settle_ties,
    tie_width,
)
from brmdp.planning.horizon_prior import reliance_over, reliance_until_end
from brmdp.planning.mixture import MixedRisk, PolicyRows
from brmdp.planning.prior import PriorReliance, check_start, reliance, warn_about_prior
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

Method: TypeAlias = Literal["newton", "value-iteration"]
"""Methods of the solver."""

LARGEST_VALUE = 1e140
"""Largest |value| accepted."""

ANY = object()
"""Means that no policy is given and the best one is wanted."""

COARSE = 1e-4
"""Accuracy of a cheaper approximation to start from, relative to max|r|/(1 − γ)."""


class Backup(NamedTuple):
    """One application of a risk measure: values and risk-adjusted rows of every pair.

    Examples
    --------
    >>> import brmdp
    >>> belief = brmdp.DirichletBelief.uniform(2, 1)
    >>> found = brmdp.backup(belief, [[0.0], [0.0]], 0.5, [0.0, 1.0], risk=brmdp.Mean())
    >>> found.q_values.ravel(), found.kernel[0, 0]
    (array([0.25, 0.25]), array([0.5, 0.5]))
    """

    q_values: FloatArray
    """(S, A); −inf for inadmissible actions."""
    kernel: FloatArray
    """(S, A, S) risk-adjusted rows; zero for inadmissible actions."""


@overload
def plan(
    belief: Belief,
    rewards: Rewards,
    discount: float,
    *,
    risk: RiskMeasure,
    tolerance: float | None = None,
    initial: Solution | ArrayLike | None = None,
    method: Method = "newton",
    max_iterations: int = 10_000,
    raise_on_failure: bool = True,
    start: ArrayLike | None = None,
    horizon: None = None,
    terminal: None = None,
) -> Solution: ...


@overload
def plan(
    belief: Belief,
    rewards: Rewards,
    discount: float,
    *,
    risk: RiskMeasure,
    tolerance: float | None = None,
    initial: None = None,
    method: Method = "newton",
    max_iterations: int = 10_000,
    raise_on_failure: bool = True,
    start: ArrayLike | None = None,
    horizon: int,
    terminal: ArrayLike | None = None,
) -> HorizonSolution: ...


def plan(
    belief: Belief,
    rewards: Rewards,
    discount: float,
    *,
    risk: RiskMeasure,
    tolerance: float | None = None,
    initial: Solution | ArrayLike | None = None,
    method: Method = "newton",
    max_iterations: int = 10_000,
    raise_on_failure: bool = True,
    start: ArrayLike | None = None,
    horizon: int | None = None,
    terminal: ArrayLike | None = None,
) -> Solution | HorizonSolution:
    """Solve the Bayesian-risk Bellman optimality equation V(s) = max_a ρ[ r(s,a,s') + γV(s') ].

    Parameters
    ----------
    belief : DirichletBelief, DisturbanceBelief, OutcomeBelief, ScenarioBelief, TabularMDP or own
        What is believed about the kernel. It is not changed.
    rewards : (S, A) or (S, A, S) array, sparse (S·A, S), DisturbanceRewards or None
        Known rewards, such as the ``rewards`` of a TabularMDP. Rewards r(s,a,s') are inside the
        risk measure. None only for a belief about rewards (:class:`brmdp.OutcomeBelief`), to whose
        own rewards any given ones are added.
    discount : float in [0, 1]
        Discount factor γ. With a horizon it may be 1. Without one, it may be 1 if every policy
        surely reaches an end, a state that is never left and pays nothing: the values are then
        those of a growing horizon (see :mod:`brmdp.planning.endings`).
    risk : Quantile, CVaR, Mean, PosteriorSample or a custom measure
        The risk measure ρ.
    tolerance : float, optional
        Largest ``error_bound`` accepted, in units of the rewards; ConvergenceError is raised if
        floating-point arithmetic cannot reach it. By default 1e-8 × max|V|, or four times what
        arithmetic resolves, (η + 16ε·max|V|)/(1 − γ), if that is more; :class:`Solution` explains η
        and ε. ConvergenceError is also raised if this default exceeds 1e-3 × max|V| (or, for values
        that cancel, 1e-8 × the largest reward of the actions taken).
    initial : Solution or (S,) array, optional
        Values to start from (warm start).
    method : {"newton", "value-iteration"}
        Method of the solver; both meet the same tolerance.
    max_iterations : int
        Largest number of sweeps.
    raise_on_failure : bool
        If the solver fails, raise :class:`ConvergenceError`, which carries the last accepted
        iterate. If False, return that iterate.
    start : int or (S,) probabilities, optional
        Where the policy will begin. This only serves to judge how far it rests on the prior; see
        :func:`brmdp.prior_reliance`.
    horizon : int, optional
        Plan for this number of steps, with a policy for each of them. The measure is applied at
        every step, as if the kernel were drawn anew each time; draws are made once and serve all
        steps (see :mod:`brmdp.planning.finite_horizon`). ``initial``, ``method`` and
        ``max_iterations`` then have no meaning and must be left out.
    terminal : (S,) array, optional
        Values after the last step of the horizon; zero by default.

    Returns
    -------
    Solution, or HorizonSolution if a horizon is given

    Raises
    ------
    ConvergenceError
        If the tolerance cannot be met.
    InvalidInputError
        If an argument is invalid; with discount 1 and no horizon, if a policy need not end.

    Warns
    -----
    PriorWarning
        If the prior outweighs the data along the policy, by the rule in
        :mod:`brmdp.planning.prior`.

    Examples
    --------
    A hundred observations of RiverSwim's action "right" in every state, and a cautious plan:

    >>> import numpy as np
    >>> import brmdp
    >>> world = brmdp.envs.riverswim(6)
    >>> belief = brmdp.DirichletBelief.uniform(6, 2, possible=world)
    >>> rng = np.random.default_rng(0)
    >>> for state in range(6):
    ...     belief.observe(state, 1, rng.choice(6, size=100, p=world.kernel()[state, 1]))
    >>> plan = brmdp.plan(belief, world.rewards, 0.9, risk=brmdp.Quantile(0.1))
    >>> plan.policy
    array([1, 1, 1, 1, 1, 1])

    The same for ten steps, without discounting:

    >>> plan = brmdp.plan(belief, world.rewards, 1.0, risk=brmdp.Quantile(0.1), horizon=10)
    >>> plan.policy[0], plan.policy[9]
    (array([1, 1, 1, 1, 1, 1]), array([0, 0, 0, 0, 0, 1]))
    """
    check_start(belief, start)
    settings: dict[str, Any] = {
        "tolerance": tolerance,
        "method": method,
        "max_iterations": max_iterations,
    }
    if horizon is not None:
        problem = _over_steps(belief, rewards, discount, settings, initial)
        found = problem.solve_over(
            belief, risk, horizon, terminal, raise_on_failure=raise_on_failure
        )
        return _with_prior_over(found, belief, start, "plan")
    _require_no_terminal(terminal)
    solution = solution_of(
        belief,
        rewards,
        discount,
        risk,
        initial=initial,
        raise_on_failure=raise_on_failure,
        undiscounted=True,
        **settings,
    )
    return _with_prior(solution, belief, rewards, discount, start, "plan")


@overload
def evaluate_under_belief(
    belief: Belief,
    rewards: Rewards,
    discount: float,
    policy: ArrayLike,
    *,
    risk: RiskMeasure,
    tolerance: float | None = None,
    initial: Solution | ArrayLike | None = None,
    method: Method = "newton",
    max_iterations: int = 10_000,
    raise_on_failure: bool = True,
    all_actions: bool = True,
    start: ArrayLike | None = None,
    horizon: None = None,
    terminal: None = None,
) -> Solution: ...


@overload
def evaluate_under_belief(
    belief: Belief,
    rewards: Rewards,
    discount: float,
    policy: ArrayLike,
    *,
    risk: RiskMeasure,
    tolerance: float | None = None,
    initial: None = None,
    method: Method = "newton",
    max_iterations: int = 10_000,
    raise_on_failure: bool = True,
    all_actions: bool = True,
    start: ArrayLike | None = None,
    horizon: int,
    terminal: ArrayLike | None = None,
) -> HorizonSolution: ...


def evaluate_under_belief(
    belief: Belief,
    rewards: Rewards,
    discount: float,
    policy: ArrayLike,
    *,
    risk: RiskMeasure,
    tolerance: float | None = None,
    initial: Solution | ArrayLike | None = None,
    method: Method = "newton",
    max_iterations: int = 10_000,
    raise_on_failure: bool = True,
    all_actions: bool = True,
    start: ArrayLike | None = None,
    horizon: int | None = None,
    terminal: ArrayLike | None = None,
) -> Solution | HorizonSolution:
    """The Bayesian-risk value of a fixed policy, V(s) = Σ_a π(a|s) ρ[ r(s,a,s') + γV(s') ].

    Parameters
    ----------
    belief, rewards, discount
        As in :func:`plan`.
    policy : (S,) integers or (S, A) probabilities
        Action of each state, or π(a|s) for a policy that draws its actions. The risk measure is
        applied to each action, and its values are averaged over the draw. With a horizon also by
        step, (H, S) or (H, S, A).
    risk, tolerance, initial, method, max_iterations, raise_on_failure, start, horizon, terminal
        As in :func:`plan`.
    all_actions : bool
        Also back up the actions that the policy does not take. Those whose ``q_values`` exceed V(s)
        would improve on it. If False, which is faster, their ``q_values`` are −inf.

    Returns
    -------
    Solution, or HorizonSolution if a horizon is given

    Examples
    --------
    >>> import brmdp
    >>> belief = brmdp.DirichletBelief([[[9, 1], [1, 9]], [[9, 1], [1, 9]]])
    >>> rewards = [[0.0, 0.0], [1.0, 1.0]]
    >>> stay = brmdp.evaluate_under_belief(belief, rewards, 0.5, [0, 0], risk=brmdp.Quantile(0.1))
    >>> stay.values.round(4)
    array([0.0116, 1.0116])

    A policy that tosses a coin:

    >>> toss = [[0.5, 0.5], [0.5, 0.5]]
    >>> brmdp.evaluate_under_belief(
    ...     belief, rewards, 0.5, toss, risk=brmdp.Quantile(0.1)
    ... ).values.round(4)
    array([0.393, 1.393])
    """
    check_start(belief, start)
    settings: dict[str, Any] = {
        "tolerance": tolerance,
        "method": method,
        "max_iterations": max_iterations,
    }
    if horizon is not None:
        problem = _over_steps(belief, rewards, discount, settings, initial)
        found = problem.solve_over(
            belief,
            risk,
            horizon,
            terminal,
            policy=policy,
            raise_on_failure=raise_on_failure,
            all_actions=all_actions,
        )
        return _with_prior_over(found, belief, start, "value")
    _require_no_terminal(terminal)
    settings |= {"raise_on_failure": raise_on_failure, "all_actions": all_actions}
    solution = solution_of(
        belief,
        rewards,
        discount,
        risk,
        policy=policy,
        initial=initial,
        undiscounted=True,
        **settings,
    )
    return _with_prior(solution, belief, rewards, discount, start, "value")


def solution_of(
    belief: Belief,
    rewards: Rewards,
    discount: float,
    risk: RiskMeasure,
    *,
    policy: Any = ANY,
    initial: Solution | ArrayLike | None = None,
    raise_on_failure: bool = True,
    all_actions: bool = True,
    **settings: Any,
) -> Solution:
    """A plan, or the value of ``policy``, without checking how far it rests on the prior.

    For computations that make many plans.
    """
    problem = Problem.of(belief, rewards, discount, **settings)
    return problem.solve(
        belief,
        risk,
        problem.start(initial),
        policy=None if policy is ANY else as_actions_or_weights(policy, belief.pattern.admissible),
        raise_on_failure=raise_on_failure,
        all_actions=all_actions,
    )


@overload
def solve(
    mdp: TabularMDP,
    *,
    tolerance: float | None = None,
    initial: Solution | ArrayLike | None = None,
    method: Method = "newton",
    max_iterations: int = 10_000,
    raise_on_failure: bool = True,
    horizon: None = None,
    terminal: None = None,
) -> Solution: ...


@overload
def solve(
    mdp: TabularMDP,
    *,
    tolerance: float | None = None,
    initial: None = None,
    method: Method = "newton",
    max_iterations: int = 10_000,
    raise_on_failure: bool = True,
    horizon: int,
    terminal: ArrayLike | None = None,
) -> HorizonSolution: ...


def solve(
    mdp: TabularMDP,
    *,
    tolerance: float | None = None,
    initial: Solution | ArrayLike | None = None,
    method: Method = "newton",
    max_iterations: int = 10_000,
    raise_on_failure: bool = True,
    horizon: int | None = None,
    terminal: ArrayLike | None = None,
) -> Solution | HorizonSolution:
    """The risk-neutral optimum of a known MDP, by the solver of :func:`plan`.

    Parameters
    ----------
    mdp : TabularMDP
    tolerance, initial, method, max_iterations, raise_on_failure, horizon, terminal
        As in :func:`plan`.

    Returns
    -------
    Solution, or HorizonSolution if a horizon is given

    Examples
    --------
    >>> import brmdp
    >>> brmdp.solve(brmdp.envs.riverswim(6)).policy
    array([1, 1, 1, 1, 1, 1])

    A coin is tossed until it shows heads, and every toss costs 1; state 1 is the end.

    >>> coin = brmdp.TabularMDP([[[0.5, 0.5]], [[0.0, 1.0]]], [[-1.0], [0.0]], discount=1.0)
    >>> brmdp.solve(coin).values
    array([-2.,  0.])
    """
    _require_mdp(mdp)
    settings: dict[str, Any] = {
        "tolerance": tolerance,
        "method": method,
        "max_iterations": max_iterations,
    }
    if horizon is not None:
        problem = _over_steps(mdp, mdp.transition_rewards, mdp.discount, settings, initial)
        return problem.solve_over(mdp, Mean(), horizon, terminal, raise_on_failure=raise_on_failure)
    _require_no_terminal(terminal)
    problem = Problem(
        mdp.pattern, mdp.transition_rewards, mdp.discount, undiscounted=True, **settings
    )
    return problem.solve(mdp, Mean(), problem.start(initial), raise_on_failure=raise_on_failure)


def evaluate_in_mdp(
    mdp: TabularMDP,
    policy: ArrayLike,
    *,
    tolerance: float = 1e-10,
    horizon: int | None = None,
    terminal: ArrayLike | None = None,
) -> FloatArray:
    """Exact value of a policy in a known MDP: the solution of one linear system.

    With a horizon it is computed by backward induction.

    Parameters
    ----------
    mdp : TabularMDP
    policy : (S,) integers or (S, A) probabilities
        Action of each state, or π(a|s). With a horizon also by step, (H, S) or (H, S, A).
    tolerance : float
        Large systems are solved iteratively, to an error of ``tolerance`` × max|V|, or to what
        arithmetic resolves if that is more. It has no meaning with a horizon.
    horizon : int, optional
        Number of steps H.
    terminal : (S,) array, optional
        Values after the last step of the horizon; zero by default.

    Returns
    -------
    (S,) array, or (H + 1, S) values from every step on if a horizon is given

    Examples
    --------
    >>> import brmdp
    >>> world = brmdp.TabularMDP([[[0.5, 0.5]], [[0.0, 1.0]]], [[1.0], [0.0]], 0.5)
    >>> brmdp.evaluate_in_mdp(world, [0, 0]).round(6)
    array([1.333333, 0.      ])
    >>> brmdp.evaluate_in_mdp(world, [0, 0], horizon=2)
    array([[1.25, 0.  ],
           [1.  , 0.  ],
           [0.  , 0.  ]])
    """
    _require_mdp(mdp)
    if horizon is not None:
        problem = Problem(mdp.pattern, mdp.transition_rewards, mdp.discount, undiscounted=True)
        return problem.solve_over(
            mdp, Mean(), horizon, terminal, policy=policy, all_actions=False
        ).values
    _require_no_terminal(terminal)
    chosen = as_actions_or_weights(policy, mdp.admissible)
    values: FloatArray = _values_in_mdp(mdp, chosen[None], tolerance)[0]
    return values


def evaluate_all_in_mdp(
    mdp: TabularMDP, policies: ArrayLike, *, tolerance: float = 1e-10
) -> FloatArray:
    """Exact values (n, S) of many policies in a known MDP; see :func:`evaluate_in_mdp`.

    Parameters
    ----------
    mdp : TabularMDP
    policies : (n, S) integers or (n, S, A) probabilities
        Action of each state, or π(a|s), for each policy.
    tolerance : float
        As in :func:`evaluate_in_mdp`.

    Returns
    -------
    (n, S) array

    Examples
    --------
    >>> import brmdp
    >>> world = brmdp.envs.riverswim(6)
    >>> brmdp.evaluate_all_in_mdp(world, [[0] * 6, [1] * 6]).shape
    (2, 6)
    """
    _require_mdp(mdp)
    return _values_in_mdp(mdp, as_policies(policies, mdp.admissible), tolerance)


def _values_in_mdp(mdp: TabularMDP, policies: PolicyArray, tolerance: float) -> FloatArray:
    """Values (n, S) of policies, (n, S) actions or (n, S, A) probabilities, that were checked."""
    accuracy = as_positive_number(tolerance, "tolerance")
    if mdp.n_states > DENSE_STATES or mdp.discount == 1.0:
        problem = Problem(
            mdp.pattern, mdp.transition_rewards, mdp.discount, relative=accuracy, undiscounted=True
        )
        return np.array(
            [
                problem.solve(mdp, Mean(), policy=policy, all_actions=False).values
                for policy in policies
            ]
        )
    # BLAS uses several threads only from about this size on
    with one_blas_thread if mdp.n_states >= MANY_STATES and len(policies) > 1 else nullcontext():
        if policies.ndim == 2:
            pattern = mdp.pattern
            pairs = policies + np.arange(mdp.n_states) * mdp.n_actions
            return _solved(pairs, pattern, mdp.probabilities, mdp.transition_rewards, mdp.discount)
        found = np.empty(policies.shape[:2])
        states = np.arange(mdp.n_states)[None]
        for k, policy in enumerate(policies):
            rows = PolicyRows.of(mdp.pattern, policy)
            mixed = rows.shares * rows.take(mdp.probabilities)
            rewards = rows.take(mdp.transition_rewards)
            found[k] = _solved(states, rows.pattern, mixed, rewards, mdp.discount)
    return found


def _solved(
    pairs: IntArray,
    pattern: TransitionPattern,
    probabilities: FloatArray,
    rewards: FloatArray,
    discount: float,
) -> FloatArray:
    """Values of policies that use one pair per state, (n, S), by elimination."""
    values: FloatArray = linear.policy_values(
        pairs, pattern.indptr, pattern.next_states, probabilities, rewards, discount
    )
    return values


def _with_caveat(solution: Solution, belief: Belief) -> Solution:
    """The solution, with what is to be known about an approximate belief."""
    caveat = caveat_of(belief)
    return replace(solution, caveat=caveat) if caveat else solution


def backup(
    belief: Belief,
    rewards: Rewards,
    discount: float,
    values: Solution | ArrayLike,
    *,
    risk: RiskMeasure,
) -> Backup:
    """Apply a risk measure once: q(s,a) and the risk-adjusted row of every pair.

    The rows are the gradient of q: q(s,a; V + dV) ≈ q(s,a; V) + γ kernel[s,a]·dV.

    Parameters
    ----------
    belief, rewards, discount, risk
        As in :func:`plan`.
    values : Solution or (S,) array
        Values V of the next states.

    Returns
    -------
    Backup

    Examples
    --------
    >>> import brmdp
    >>> belief = brmdp.DirichletBelief.uniform(2, 1)
    >>> found = brmdp.backup(belief, [[0.0], [0.0]], 0.5, [0.0, 1.0], risk=brmdp.Quantile(0.1))
    >>> found.q_values.ravel().round(6), found.kernel[0, 0].round(6)
    (array([0.05, 0.05]), array([0.9, 0.1]))
    """
    problem = Problem.of(belief, rewards, discount, undiscounted=True)
    pattern = belief.pattern
    bellman = problem.bellman(bind_risk(risk, belief), None)
    next_values = problem.start(values, "values")
    if next_values is None:
        raise InvalidInputError("values must be one number per state; got None")
    targets = bellman.targets(next_values)
    q, _ = bellman.backup(targets, pattern.pairs)
    rows = bellman.risk.rows(targets, q.reshape(-1), pattern.pairs)
    return Backup(q, pattern.dense(rows))


def _with_prior(
    solution: Solution,
    belief: Belief,
    rewards: Rewards,
    discount: float,
    start: ArrayLike | None,
    what: str,
) -> Solution:
    """Add the field ``prior`` to a solution, and warn if the prior outweighs the data."""
    found = reliance_of(solution, belief, rewards, discount, start)
    warn_about_prior(found, what, 3)
    return solution if found is None else replace(solution, prior=found)


def reliance_of(
    solution: Solution,
    belief: Belief,
    rewards: Rewards,
    discount: float,
    start: ArrayLike | None,
) -> PriorReliance | None:
    """How far the policy of a solution rests on the prior."""
    if discount == 1.0:
        return reliance_until_end(belief, rewards_of(belief, rewards), solution.policy, start)
    return reliance(belief, solution.policy, discount, start)


def _with_prior_over(
    solution: HorizonSolution, belief: Belief, start: ArrayLike | None, what: str
) -> HorizonSolution:
    """The same over a horizon."""
    found = reliance_over(belief, solution.policy, solution.discount, start)
    warn_about_prior(found, what, 3)
    return solution if found is None else replace(solution, prior=found)


def _over_steps(
    belief: Belief, rewards: Rewards, discount: float, settings: dict[str, Any], initial: Any
) -> Problem:
    """The problem of a plan with a horizon; refuses what only an iteration needs."""
    if initial is not None:
        raise InvalidInputError(
            "initial must not be given with a horizon: values are computed backwards from the end, "
            "not iterated from a start. Values after the last step are passed as terminal"
        )
    for name, default in (("method", "newton"), ("max_iterations", 10_000)):
        if settings[name] != default:
            raise InvalidInputError(
                f"{name} must be left out with a horizon, which takes one backup per step; got "
                f"{settings[name]!r}"
            )
    return Problem.of(belief, rewards, discount, settings["tolerance"], undiscounted=True)


def _require_no_terminal(terminal: Any) -> None:
    if terminal is not None:
        raise InvalidInputError("terminal must be given only together with a horizon")


def _require_mdp(mdp: Any) -> None:
    if not isinstance(mdp, TabularMDP):
        raise InvalidInputError(f"mdp must be a brmdp.TabularMDP; got {type(mdp).__name__}")


def _completed(
    risk: RiskOperator, targets: FloatArray, missing: IntArray, known: FloatArray
) -> FloatArray:
    """The values of all actions, of which those of ``missing`` are not known."""
    q = known.copy()
    risk.evaluate(targets, missing, q.reshape(-1))
    q.flags.writeable = False
    return q


class Problem:
    """Rewards, discount and accuracy, checked once, for solving with any belief on one pattern.

    Parameters
    ----------
    pattern : TransitionPattern
        Possible transitions.
    rewards : (transitions,) array
        One reward per possible transition; :meth:`of` takes the other forms.
    discount : float in [0, 1)
    tolerance, method, max_iterations
        As in :func:`plan`.
    relative : float
        The default tolerance, relative to max|V|.
    undiscounted : bool
        Whether the discount may be 1.

    Examples
    --------
    >>> import brmdp
    >>> from brmdp.planning import Problem
    >>> world = brmdp.envs.riverswim(6)
    >>> belief = brmdp.DirichletBelief.uniform(6, 2, possible=world)
    >>> problem = Problem.of(belief, world.rewards, 0.9)
    >>> problem.solve(belief, brmdp.Mean()).status
    'converged'
    """

    def __init__(
        self,
        pattern: TransitionPattern,
        rewards: FloatArray,
        discount: float,
        tolerance: float | None = None,
        method: Method = "newton",
        max_iterations: int = 10_000,
        relative: float = RELATIVE,
        *,
        undiscounted: bool = False,
    ) -> None:
        self.pattern = pattern
        self.rewards = rewards
        self.discount = as_discount(discount, one_allowed=undiscounted)
        largest = max(abs(float(rewards.max())), abs(float(rewards.min())))
        # without discounting, how much adds up is known only after the fact
        largest /= 1.0 - self.discount if self.discount < 1.0 else 1.0
        if not largest <= LARGEST_VALUE:
            raise InvalidInputError(
                f"rewards/(1 − discount) must lie within ±{LARGEST_VALUE:g}; got {largest:g}"
            )
        self.largest = largest
        self.tolerance = None if tolerance is None else as_positive_number(tolerance, "tolerance")
        self.accuracy = Accuracy(self.tolerance, relative)
        if not isinstance(method, str) or method not in METHODS:
            raise InvalidInputError(f"method must be one of {METHODS}; got {method!r}")
        self.method: Method = method
        self.max_iterations = as_positive_int(max_iterations, "max_iterations")

    @classmethod
    def of(
        cls, belief: Belief, rewards: Rewards, discount: float, *settings: Any, **named: Any
    ) -> Problem:
        """The problem with rewards in any form that the belief accepts."""
        require_belief(belief)
        return cls(belief.pattern, rewards_of(belief, rewards), discount, *settings, **named)

    def start(
        self, initial: Solution | ArrayLike | None, name: str = "initial"
    ) -> FloatArray | None:
        """Check the values of a warm start, or of the argument called ``name``."""
        n = self.pattern.n_states
        if initial is None:
            return None
        values = as_float_array(initial.values if isinstance(initial, Solution) else initial, name)
        if values.shape != (n,):
            raise InvalidInputError(
                f"{name} must be a Solution or have shape ({n},); got {values.shape}"
            )
        if float(np.abs(values).max()) > LARGEST_VALUE:
            raise InvalidInputError(f"{name} must lie within ±{LARGEST_VALUE:g}")
        return np.array(values)

    def bellman(self, bound: RiskOperator, policy: PolicyArray | None) -> Bellman:
        """The operator of a bound measure."""
        return Bellman(self.pattern, bound, self.rewards, self.discount, policy)

    def solve(
        self,
        belief: Belief,
        risk: RiskMeasure,
        initial: FloatArray | None = None,
        *,
        policy: PolicyArray | None = None,
        raise_on_failure: bool = True,
        all_actions: bool = True,
        memory: Memory | None = None,
        remember: bool = False,
    ) -> Solution:
        """Run the solver and bound the error of the result.

        With ``remember``, the solution has a memory for the next one, which is then passed as
        ``memory`` and saves it most of the work (see ``brmdp.planning.compiled``). It must be
        of this problem; the belief and the levels may have changed.
        """
        if learns_rewards(belief) and belief.pattern is not self.pattern:
            raise InvalidInputError(
                "belief has other outcomes than when this problem was made; make it again: "
                "Problem.of(belief, …)"
            )
        bound = bind_risk(risk, belief)
        if self.discount == 1.0:
            ended = self._solve_with_ends(bound, initial, policy, raise_on_failure, all_actions)
            return _with_caveat(ended, belief)
        solved: Solved | None = None
        if policy is None or policy.ndim == 1:
            solved = self.solve_compiled(bound, initial, policy, memory, remember)
            found = self.fixed_point(bound, initial, policy) if solved is None else solved.found
        else:
            found = self.mixed_fixed_point(bound, initial, policy)
        if isinstance(bound, CheckedRisk) and np.isfinite(found.sweep.targets).all():
            bound.require_contraction(found.sweep.targets)
        solution = _with_caveat(
            self.describe(self.bellman(bound, policy), found, policy, all_actions, solved), belief
        )
        if solution.status == NOT_CONVERGED and raise_on_failure:
            raise ConvergenceError(self.advice(found), solution)
        return solution

    def solve_compiled(
        self,
        bound: RiskOperator,
        initial: FloatArray | None,
        policy: IntArray | None,
        memory: Memory | None,
        remember: bool,
    ) -> Solved | None:
        """What :meth:`fixed_point` does, in one compiled call; None if that cannot be had."""
        bellman = self.bellman(bound, policy)
        if self.method != "newton" or not is_small(bellman):
            return None
        values = self._first_values(initial)
        if initial is None:
            values, _ = self._approximated(bound, values, policy, linear_only=True)
        return solve_compiled(
            bellman,
            values,
            tolerance=self.tolerance,
            relative=self.accuracy.relative,
            coarse=self._coarse,
            max_iterations=self.max_iterations,
            settles=policy is None,
            memory=None if initial is None else memory,
            remember=remember,
        )

    def _first_values(self, initial: FloatArray | None) -> FloatArray:
        # without rewards all values are zero, and any other start would only shrink towards it
        if initial is None or self.largest == 0.0:
            return np.zeros(self.pattern.n_states)
        # Copy: the values of a solution are read-only, and numba would compile again for those.
        return np.array(initial)

    @property
    def _coarse(self) -> float:
        return max(self.tolerance or 0.0, COARSE * self.largest)

    def _approximated(
        self,
        bound: RiskOperator,
        values: FloatArray,
        policy: IntArray | None,
        *,
        warm: bool = False,
        linear_only: bool = False,
    ) -> tuple[FloatArray, IntArray | None]:
        """Values of cheaper approximations, and the pairs that these leave in question."""
        pairs: IntArray | None = None
        cheaper = self.approximations(bound, not warm)
        while cheaper:
            # what one of them needs is forgotten before the next is solved
            values, near = self._near(cheaper.pop(), values, policy, linear_only)
            pairs = pairs if near is None else near
        return values, pairs

    def _near(
        self, cheaper: RiskOperator, values: FloatArray, policy: IntArray | None, linear_only: bool
    ) -> tuple[FloatArray, IntArray | None]:
        """Values of one approximation, and the pairs it leaves in question unless it is linear."""
        is_linear = cheaper.fixed_entries() is not None
        if linear_only and not is_linear:
            return values, None
        sketch = self.bellman(cheaper, policy)
        sketch.reuse_targets()
        near = iterate(sketch, values, Accuracy(self._coarse), "newton", COARSE_SWEEPS).sweep
        if not math.isfinite(near.residual):
            return values, None
        if is_linear:
            return near.best, None
        return near.best, np.flatnonzero(near.q >= near.best[:, None] - self._coarse)

    def fixed_point(
        self, bound: RiskOperator, initial: FloatArray | None, policy: IntArray | None
    ) -> FixedPoint:
        """The fixed point of a bound measure, for the best actions or those of ``policy``."""
        bellman = self.bellman(bound, policy)
        values, pairs = self._approximated(
            bound, self._first_values(initial), policy, warm=initial is not None
        )
        bellman.reuse_targets()
        found = iterate(bellman, values, self.accuracy, self.method, self.max_iterations, pairs)
        if policy is None:
            found = settle_ties(bellman, found, self.max_iterations)
        bellman.keep_targets(found.sweep)
        return found

    def mixed_fixed_point(
        self, bound: RiskOperator, initial: FloatArray | None, policy: FloatArray
    ) -> FixedPoint:
        """The fixed point for (S, A) probabilities of actions, in terms of this problem's pairs."""
        rows = PolicyRows.of(self.pattern, policy)
        mixed = MixedRisk(bound, rows)
        found = self._of_policy(rows).fixed_point(mixed, initial, None)
        last = found.sweep
        q, _ = mixed.values_of_pairs(last.targets)
        targets = self.bellman(bound, policy).targets(last.values)
        found.sweep = replace(last, targets=targets, q=q.reshape(policy.shape), pairs=rows.pairs)
        return found

    def _of_policy(self, rows: PolicyRows) -> Problem:
        """The problem of a policy: the same one with a single, mixed row per state."""
        return Problem(
            rows.pattern,
            rows.take(self.rewards),
            self.discount,
            self.tolerance,
            self.method,
            self.max_iterations,
            self.accuracy.relative,
            undiscounted=self.discount == 1.0,
        )

    def solve_over(
        self,
        belief: Belief,
        risk: RiskMeasure,
        horizon: int,
        terminal: ArrayLike | None = None,
        *,
        policy: Any = None,
        raise_on_failure: bool = True,
        all_actions: bool = True,
    ) -> HorizonSolution:
        """Backward induction over ``horizon`` steps; ``policy`` as in evaluate_under_belief."""
        n = self.pattern.n_states
        steps = as_horizon(horizon, n)
        last = as_terminal(terminal, n)
        paid = max(abs(float(self.rewards.max())), abs(float(self.rewards.min())))
        if not paid * steps + float(np.abs(last).max()) <= LARGEST_VALUE:
            raise InvalidInputError(
                f"rewards × horizon + terminal must lie within ±{LARGEST_VALUE:g}"
            )
        stages = None if policy is None else as_stages(policy, self.pattern.admissible, steps)
        bellman = self.bellman(bind_risk(risk, belief), None)
        solution = backward_induction(
            bellman, last, steps, stages, tolerance=self.tolerance, all_actions=all_actions
        )
        if solution.status == NOT_CONVERGED and raise_on_failure:
            raise ConvergenceError(
                f"error bound {solution.error_bound.max():.3g} over {steps} steps, tolerance "
                f"{solution.tolerance:.3g}: the numerical errors of the backups add up to this, "
                "and arithmetic cannot resolve more; loosen tolerance, or shorten the horizon",
                solution,
            )
        return solution

    def _solve_with_ends(
        self,
        bound: RiskOperator,
        initial: FloatArray | None,
        policy: PolicyArray | None,
        raise_on_failure: bool,
        all_actions: bool,
    ) -> Solution:
        """Solve without discounting."""
        if getattr(bound, "needs_discount", False):
            raise InvalidInputError(
                "discount must be below 1, or a horizon be given, for a measure with a ceiling or "
                "a fictitious state"
            )
        if policy is not None and policy.ndim == 2:
            return self._mixed_with_ends(bound, initial, policy, raise_on_failure, all_actions)
        if self.method != "newton":
            raise InvalidInputError(
                f"method must be 'newton' with discount 1 and no horizon; got {self.method!r}"
            )
        solution, longest = solve_with_ends(
            self.bellman(bound, policy),
            initial,
            policy,
            tolerance=self.tolerance,
            relative=self.accuracy.relative,
            max_iterations=self.max_iterations,
            all_actions=all_actions,
        )
        if solution.status == NOT_CONVERGED and raise_on_failure:
            raise ConvergenceError(
                failure_with_ends(solution, longest, self.max_iterations), solution
            )
        return solution

    def _mixed_with_ends(
        self,
        bound: RiskOperator,
        initial: FloatArray | None,
        policy: FloatArray,
        raise_on_failure: bool,
        all_actions: bool,
    ) -> Solution:
        """The values of (S, A) probabilities of actions, without discounting."""
        rows = PolicyRows.of(self.pattern, policy)
        only = np.zeros(self.pattern.n_states, dtype=np.int64)
        found = self._of_policy(rows)._solve_with_ends(
            MixedRisk(bound, rows), initial, only, raise_on_failure, False
        )
        bellman = self.bellman(bound, policy)
        targets = bellman.targets(found.values)
        q, _ = bellman.backup(targets, self.pattern.pairs if all_actions else bellman.pairs)
        for array in (q, policy):
            array.flags.writeable = False
        return replace(
            found,
            known_q=q,
            policy=policy,
            _pattern=self.pattern,
            _rows=partial(bound.rows, targets, q.reshape(-1), bellman.pairs),
        )

    def approximations(self, bound: RiskOperator, cold: bool) -> list[RiskOperator]:
        """Ever cheaper measures to start from, linear ones only if there are no values yet."""
        found: list[RiskOperator] = []
        cheaper = bound.approximation() if self.method == "newton" else None
        while cheaper is not None and (cold or cheaper.fixed_entries() is None):
            found.append(cheaper)
            cheaper = cheaper.approximation()
        return found

    def describe(
        self,
        bellman: Bellman,
        found: FixedPoint,
        policy: PolicyArray | None,
        all_actions: bool,
        solved: Solved | None = None,
    ) -> Solution:
        """Make the solution: error bounds, ties and the risk-adjusted kernel."""
        gamma = self.discount
        last = found.sweep
        q = last.q
        error = last.numerical_error
        width = tie_width(bellman, last) if solved is None else solved.width
        others = None
        if policy is None:
            chosen, pairs, tied, given_away = (
                linear.lowest_tied(q, last.best, width) if solved is None else solved.ties
            )
            if solved is not None and solved.exact is not None:
                missing = self.pattern.pairs[~solved.exact[self.pattern.pairs]]
                q.reshape(-1)[missing] = -np.inf
                others = partial(_completed, bellman.risk, last.targets, missing)
            gap = (2.0 * (gamma * last.residual + error) + given_away) / (1.0 - gamma)
        else:
            chosen = policy
            tied = np.zeros(len(policy), dtype=bool)
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
            # the status of such a plan is the basis of its values
            status = basis
        # the bound measure is a snapshot, so its rows can be computed when they are needed
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
            _others=others,
            memory=None if solved is None else solved.memory,
        )

    def advice(self, found: FixedPoint) -> str:
        """Say why the solver failed and what to do."""
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
                f"{last.numerical_error:.3g}); loosen tolerance (an argument of plan and of "
                "agents; in a sweep, a key of [[agent]])"
            )
            + (
                ", or leave it out: the default follows the scale of the problem"
                if self.tolerance is not None
                else ""
            )
        )
