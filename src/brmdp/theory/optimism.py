"""The dual-benchmark optimism lemma, checked plan by plan during a run.

At the start of pseudo-episode k the agent has the belief φ_k, sets the levels α_k and computes V_k
= V*_{φ_k,α_k}. With w = r + γV_k, the optimistic event is

    G_k = { P^c_{s,a}·w ≤ ρ^{α_k(s,a)}_{φ_k(s,a)}(w·P) for all (s,a) }.

On this event V* ≤ V_k. If the true kernel P^c was drawn from the prior and n = SA is the number of
admissible pairs,

    Pr(G_k | history) ≥ 1 − Σ (1 − α_k(s,a)) ≥ 1 − δ·n·ln(2k)/√k   (part i).

With independent rows Pr(G_k | history) equals Π α_k(s,a), or exceeds it if the target w of some
pair is constant. The last bound, the one stated in the lemma, is negative for small k and says
nothing then. Part ii, V*_{φ_k,α̲} ≤ V_k, always holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from brmdp._streams import independent_streams
from brmdp._validation import FloatArray, Seed, as_levels, as_positive_int, as_positive_number
from brmdp.agents import AdaptiveLevel, Agent, aq_brmdp
from brmdp.beliefs import DirichletBelief
from brmdp.beliefs.base import Belief
from brmdp.envs import TabularEnv
from brmdp.errors import InvalidInputError
from brmdp.mdp import TabularMDP
from brmdp.planning import Solution, backup, solve
from brmdp.planning.planner import solution_of
from brmdp.planning.solution import CONVERGED
from brmdp.risk import Mean, Quantile
from brmdp.risk.base import levels_by_pair
from brmdp.simulation import Diagnostics, World, simulate
from brmdp.theory.checks import as_state_values, require_belief_about, require_mdp
from brmdp.theory.worlds import draw_mdp

__all__ = [
    "OptimismMeter",
    "OptimismReport",
    "check_optimism",
    "first_informative_episode",
    "optimism_probability",
    "replicate_optimism",
]

LARGEST_SCALE = 1e100
"""Largest δ·n accepted, so that no intermediate number overflows."""


@dataclass(frozen=True)
class OptimismReport:
    """The dual-benchmark optimism lemma at the start of one pseudo-episode.

    :mod:`brmdp.theory.optimism` states the lemma and explains the symbols.

    Attributes
    ----------
    episode : int
        Number k of the pseudo-episode.
    event : bool
        Whether G_k occurs for the true kernel.
    optimistic : bool
        Whether V* ≤ V_k in all states (part i).
    robust_optimistic : bool
        Whether V*_{φ_k,α̲} ≤ V_k in all states (part ii).
    stated_probability : float
        1 − δ·n·ln(2k)/√k; negative where the lemma says nothing.
    union_probability : float
        1 − Σ (1 − α_k(s,a)), the bound from which the stated one follows.
    event_probability : float or None
        Π α_k(s,a), the probability of G_k itself (a lower bound if the target w = r + γV_k of some
        pair is constant); None for a belief with dependent rows.

    Examples
    --------
    >>> from brmdp.theory import replicate_optimism
    >>> report = replicate_optimism(2, 2, 5, delta=0.1, rng=1)[0]
    >>> report.episode, report.event_probability >= report.union_probability
    (1, True)
    """

    episode: int
    event: bool
    optimistic: bool
    robust_optimistic: bool
    stated_probability: float
    union_probability: float
    event_probability: float | None


def optimism_probability(n_pairs: int, delta: float, episode: int) -> float:
    """Lower bound 1 − δ·n·ln(2k)/√k on the posterior probability of optimism.

    The dual-benchmark optimism lemma states it (:mod:`brmdp.theory.optimism`). Where it is
    negative, the lemma says nothing.

    Parameters
    ----------
    n_pairs : int
        n = SA.
    delta : float
        δ > 0.
    episode : int
        k ≥ 1.

    Examples
    --------
    >>> from brmdp.theory import optimism_probability
    >>> round(optimism_probability(10, delta=0.01, episode=100), 3)
    0.947
    """
    n, k = as_positive_int(n_pairs, "n_pairs"), as_positive_int(episode, "episode")
    return 1.0 - as_positive_number(delta, "delta") * n * math.log(2 * k) / math.sqrt(k)


def first_informative_episode(n_pairs: int, delta: float, *, for_good: bool = True) -> int:
    """The pseudo-episode k from which :func:`optimism_probability` stays positive.

    With ``for_good=False``, the first k for which it is positive. The two may differ: ln(2k)/√k
    rises until k = 4 and falls from there, so for small δ·n the bound may be positive at k = 1 and
    then negative for a while.

    Parameters
    ----------
    n_pairs, delta
        As in :func:`optimism_probability`.
    for_good : bool
        True for the first k from which the bound stays positive, False for the first k at which it
        is positive.

    Examples
    --------
    >>> from brmdp.theory import first_informative_episode
    >>> first_informative_episode(10, delta=0.1)
    7
    """
    scale = as_positive_int(n_pairs, "n_pairs") * as_positive_number(delta, "delta")
    if scale > LARGEST_SCALE:
        raise InvalidInputError(f"delta·n_pairs must be at most {LARGEST_SCALE:g}; got {scale:g}")
    # the largest value of ln(2k)/√k is at k = 4
    if optimism_probability(1, scale, 4) > 0.0 or (
        not for_good and optimism_probability(1, scale, 1) > 0.0
    ):
        return 1
    low, high = 4, 8
    while optimism_probability(1, scale, high) <= 0.0:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if optimism_probability(1, scale, middle) > 0.0:
            high = middle
        else:
            low = middle
    return high


def check_optimism(
    truth: TabularMDP,
    belief: Belief,
    solution: Solution,
    levels: ArrayLike,
    *,
    schedule: AdaptiveLevel,
    episode: int,
    optimum: ArrayLike | None = None,
) -> OptimismReport:
    """Check the dual-benchmark optimism lemma for one plan, given the true MDP.

    :mod:`brmdp.theory.optimism` states the lemma and explains the symbols.

    Parameters
    ----------
    truth : TabularMDP
        P^c, rewards and discount.
    belief : Belief
        φ_k, on the truth's states and admissible actions.
    solution : Solution
        The plan under ``belief`` at ``levels``, with exact quantiles and the truth's rewards and
        discount. Its values are V_k.
    levels : (S, A) array
        α_k.
    schedule : AdaptiveLevel
        δ and α̲.
    episode : int
        Number k of the pseudo-episode.
    optimum : (S,) array, optional
        V*, if it is known already.

    Notes
    -----
    Inequalities are checked up to the error bounds of the solutions, so rounding does not count as
    a failure. A plan other than the one described (other levels, rewards or discount, or sampled
    quantiles) raises an error: an exact backup does not reproduce its values.

    Examples
    --------
    >>> import brmdp
    >>> from brmdp.theory import check_optimism, draw_mdp
    >>> truth, schedule = draw_mdp(3, 2, 0.8, rng=1), brmdp.agents.AdaptiveLevel(0.1)
    >>> belief = brmdp.DirichletBelief.uniform(3, 2)
    >>> agent = brmdp.Agent(belief, truth.rewards, 0.8, risk=brmdp.Quantile(0.5),
    ...                     schedule=schedule, restart=brmdp.agents.EveryStep(), rng=1)
    >>> action, report = agent.act(0), agent.report
    >>> found = check_optimism(truth, belief, report.solution, report.levels,
    ...                        schedule=schedule, episode=1)
    >>> found.robust_optimistic
    True
    """
    require_belief_about(belief, truth, "truth")
    _require_adaptive(schedule)
    if not isinstance(solution, Solution) or solution.status != CONVERGED:
        raise InvalidInputError(
            f"solution must be a converged plan with exact quantiles; got {solution!r}"
        )
    if solution.q_values.shape != truth.admissible.shape:
        raise InvalidInputError(
            "solution must be a plan for the truth's states and actions, "
            f"{truth.admissible.shape}; got {solution.q_values.shape}"
        )
    by_pair = levels_by_pair(as_levels(levels, "levels"), belief.pattern, "levels")
    alpha = by_pair[belief.pattern.pairs]
    problem = (truth.rewards, truth.discount)
    _require_fixed_point(solution, belief, problem, by_pair.reshape(truth.admissible.shape))
    best = (
        solve(truth).values
        if optimum is None
        else as_state_values(optimum, truth.n_states, "optimum")
    )
    true_backup = backup(truth, *problem, solution.values, risk=Mean()).q_values
    floor = solution_of(belief, *problem, Quantile(schedule.floor), initial=solution)
    slack = 2.0 * (solution.error_bound + floor.error_bound) + 1e-12 * float(
        np.abs(solution.values).max()
    )
    return OptimismReport(
        episode=episode,
        event=bool((true_backup <= solution.q_values + slack)[truth.admissible].all()),
        optimistic=bool((best <= solution.values + slack).all()),
        robust_optimistic=bool((floor.values <= solution.values + slack).all()),
        stated_probability=optimism_probability(alpha.size, schedule.delta, episode),
        union_probability=1.0 - float((1.0 - alpha).sum()),
        event_probability=float(alpha.prod()) if belief.rows_independent else None,
    )


class OptimismMeter:
    """Checks the dual-benchmark optimism lemma for every plan of an adaptive agent.

    :mod:`brmdp.theory.optimism` states the lemma. Pass :meth:`begin_episode` to
    :func:`brmdp.simulate` as ``on_episode``. The meter does not affect the run.

    Parameters
    ----------
    agent : Agent
        An agent with an :class:`~brmdp.agents.AdaptiveLevel` schedule and exact quantiles.
    truth : TabularMDP
        The true MDP, with the states, admissible actions, rewards and discount that the agent plans
        for.

    Attributes
    ----------
    reports : list of OptimismReport
        One report per plan. A plan made before the agent was saved and loaded has no report,
        because files do not store it.

    Examples
    --------
    >>> import brmdp
    >>> from brmdp.theory import OptimismMeter, draw_mdp
    >>> truth = draw_mdp(3, 2, 0.8, rng=1)
    >>> prior = brmdp.DirichletBelief.uniform(3, 2)
    >>> agent = brmdp.agents.aq_brmdp(prior, truth.rewards, 0.8, delta=0.1, rng=2)
    >>> meter = OptimismMeter(agent, truth)
    >>> world = brmdp.World(brmdp.envs.TabularEnv(truth), 0.8)
    >>> history = brmdp.simulate(agent, world, 100, seed=3, on_episode=meter.begin_episode)
    >>> [report.episode for report in meter.reports] == list(range(1, agent.episode + 1))
    True
    """

    def __init__(self, agent: Agent, truth: TabularMDP) -> None:
        if not isinstance(agent, Agent):
            raise InvalidInputError(f"agent must be a brmdp.Agent; got {type(agent).__name__}")
        self.schedule = _require_adaptive(agent.schedule)
        if not isinstance(agent.risk, Quantile) or agent.risk.method != "exact":
            raise InvalidInputError(
                f"agent must plan with exact quantiles; its risk measure is {agent.risk!r}"
            )
        _require_truth_of(agent, truth)
        self.agent = agent
        self.truth = truth
        self.reports: list[OptimismReport] = []
        self._optimum = solve(truth).values

    def begin_episode(self, t: int) -> None:
        """Check the plan that the agent follows from step ``t``."""
        report = self.agent.report
        if not isinstance(report.solution, Solution):
            return
        assert report.levels is not None  # the measure is a quantile
        self.reports.append(
            check_optimism(
                self.truth,
                self.agent.belief,
                report.solution,
                report.levels,
                schedule=self.schedule,
                episode=report.episode,
                optimum=self._optimum,
            )
        )


def replicate_optimism(
    n_states: int,
    n_actions: int,
    steps: int,
    *,
    delta: float,
    floor: float = 0.2,
    discount: float = 0.9,
    concentration: float = 1.0,
    rewards: ArrayLike | None = None,
    rng: Seed = None,
) -> list[OptimismReport]:
    """Run AQ-BRMDP in a world drawn from its prior; check dual-benchmark optimism at every plan.

    :mod:`brmdp.theory.optimism` states the lemma.

    Parameters
    ----------
    n_states, n_actions, discount, concentration, rewards
        As in :func:`draw_mdp`.
    steps : int
        Number of steps.
    delta, floor : float
        δ and α̲ of the schedule.
    rng : numpy.random.Generator or seed, optional
        Source of the world, the environment and the agent.

    Returns
    -------
    list of OptimismReport
        One report per pseudo-episode.

    Examples
    --------
    >>> from brmdp.theory import replicate_optimism
    >>> reports = replicate_optimism(2, 2, 20, delta=0.1, rng=1)
    >>> all(report.robust_optimistic for report in reports)
    True
    """
    world_stream, environment, agent_stream = independent_streams(rng, 3)
    truth = draw_mdp(
        n_states,
        n_actions,
        discount,
        concentration=concentration,
        rewards=rewards,
        rng=world_stream,
    )
    belief = DirichletBelief.uniform(n_states, n_actions, concentration)
    agent = aq_brmdp(
        belief, truth.rewards, truth.discount, delta=delta, floor=floor, rng=agent_stream
    )
    world = World(TabularEnv(truth), truth.discount)
    meter = OptimismMeter(agent, truth)
    seed = int(environment.integers(2**63))
    nothing_else = Diagnostics(true_regret=False)
    simulate(
        agent, world, steps, seed=seed, diagnostics=nothing_else, on_episode=meter.begin_episode
    )
    return meter.reports


def _require_fixed_point(
    solution: Solution, belief: Belief, problem: tuple[Any, float], levels: FloatArray
) -> None:
    """Raise unless the solution is the plan under the belief at the levels."""
    exact = backup(belief, *problem, solution.values, risk=Quantile(levels)).q_values
    admissible = belief.pattern.admissible
    apart = float(np.abs(exact - solution.q_values)[admissible].max())
    # q_values come from the iterate before the last, which lies within the error bound; rounding is
    # relative
    if not apart <= 2.0 * solution.error_bound + 1e-12 * float(np.abs(exact[admissible]).max()):
        raise InvalidInputError(
            "solution must be the plan under belief at levels, with exact quantiles and the "
            "rewards and discount of truth; an exact backup of its values is off by "
            f"{apart:.3g}"
        )


def _require_truth_of(agent: Agent, truth: Any) -> None:
    """Raise unless the truth has the sizes, rewards and discount that the agent plans for."""
    require_mdp(truth, "truth")
    if agent.episode_length is not None:
        raise InvalidInputError(
            "agent must plan without episodes, as in the lemma; its episode_length is "
            f"{agent.episode_length}"
        )
    admissible = agent.belief.pattern.admissible
    if truth.admissible.shape != admissible.shape:
        raise InvalidInputError(
            f"truth must have the states and actions of the agent's belief, {admissible.shape}; "
            f"got {truth.admissible.shape}"
        )
    if not np.array_equal(truth.admissible, admissible):
        raise InvalidInputError(
            "truth must have the admissible actions of the agent's belief; they differ"
        )
    if truth.discount != agent.discount:
        raise InvalidInputError(
            f"truth must have the discount of the agent, {agent.discount}; got {truth.discount}"
        )
    known = agent.rewards
    if known is None or not np.array_equal(agent.belief.gather_rewards(truth.rewards), known):
        raise InvalidInputError(
            "truth must have the rewards that the agent plans with; they differ"
        )


def _require_adaptive(schedule: Any) -> AdaptiveLevel:
    if not isinstance(schedule, AdaptiveLevel):
        raise InvalidInputError(
            f"schedule must be a brmdp.agents.AdaptiveLevel, as in the lemma; got {schedule!r}"
        )
    return schedule
