"""The dual-benchmark optimism lemma, as something a run can record.

At the start of pseudo-episode k the agent believes φ_k, sets the levels α_k and finds V_k =
V*_{φ_k,α_k}. With w = r + γV_k, the optimistic event is

    G_k = { P^c_{s,a}·w ≤ ρ^{α_k(s,a)}_{φ_k(s,a)}(w·P) for all (s,a) };

on it V* ≤ V_k. If the true kernel P^c was drawn from the prior,

    Pr(G_k | history) ≥ 1 − Σ (1 − α_k(s,a)) ≥ 1 − δ·n·ln(2k)/√k   (part i; n = SA, the number of
    admissible pairs),

and with independent rows Pr(G_k | history) is Π α_k(s,a), or more where some w is constant. The
last bound, the stated one, is below zero for small k, and says nothing then. Part ii, V*_{φ_k,α̲} ≤
V_k, always holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from brmdp._streams import independent_streams
from brmdp._validation import FloatArray, as_levels, as_positive_int, as_positive_number
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
from brmdp.theory.checks import as_state_values, require_about, require_mdp
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
"""Of δ·n, so that no number on the way overflows."""


@dataclass(frozen=True)
class OptimismReport:
    """The lemma at the start of one pseudo-episode.

    Attributes
    ----------
    episode : int
        k.
    event : bool
        Whether G_k holds in the true kernel.
    optimistic : bool
        Whether V* ≤ V_k at all states (part i).
    robust_optimistic : bool
        Whether V*_{φ_k,α̲} ≤ V_k at all states (part ii).
    stated_probability : float
        1 − δ·n·ln(2k)/√k; negative where the lemma says nothing.
    union_probability : float
        1 − Σ (1 − α_k(s,a)), from which the stated one follows.
    event_probability : float or None
        Π α_k(s,a), the probability of G_k itself; None for a posterior whose rows are dependent.
    """

    episode: int
    event: bool
    optimistic: bool
    robust_optimistic: bool
    stated_probability: float
    union_probability: float
    event_probability: float | None


def optimism_probability(n_pairs: int, delta: float, episode: int) -> float:
    """1 − δ·n·ln(2k)/√k, the stated posterior probability of optimism.

    Negative where it says nothing.

    Parameters
    ----------
    n_pairs : int
        n = SA.
    delta : float
        δ > 0.
    episode : int
        k ≥ 1.
    """
    n, k = as_positive_int(n_pairs, "n_pairs"), as_positive_int(episode, "episode")
    return 1.0 - as_positive_number(delta, "delta") * n * math.log(2 * k) / math.sqrt(k)


def first_informative_episode(n_pairs: int, delta: float, *, for_good: bool = True) -> int:
    """The first pseudo-episode k at which the stated probability is positive.

    ln(2k)/√k rises up to k = 4 and falls from there, so for small δ·n the statement may say
    something at k = 1, then nothing for a while.

    Parameters
    ----------
    n_pairs, delta
        As in :func:`optimism_probability`.
    for_good : bool
        The first k from which on it stays positive (default), or the first at all.
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
    levels: Any,
    *,
    schedule: AdaptiveLevel,
    episode: int,
    optimum: FloatArray | None = None,
) -> OptimismReport:
    """Compare one plan with the truth.

    Parameters
    ----------
    truth : TabularMDP
        P^c, rewards and discount.
    belief : Belief
        φ_k, on the truth's states and admissible actions.
    solution : Solution
        The plan under ``belief`` at ``levels`` with exact quantiles and the truth's rewards and
        discount: its values are V_k.
    levels : (S, A) array
        α_k.
    schedule : AdaptiveLevel
        δ and α̲.
    episode : int
        k.
    optimum : (S,) array, optional
        V*, if it is known already.

    Notes
    -----
    Inequalities hold up to what the solutions may be off: a tie by rounding is no failure. A plan
    that is not the one described (other levels, rewards or discount, sampled quantiles) is known by
    an exact backup of its values, which does not give them back.
    """
    require_about(belief, truth, "truth")
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
    """Watches an agent with the adaptive schedule and checks the lemma at every plan.

    Any run can record this: pass :meth:`begin_episode` to :func:`brmdp.simulate`. It changes
    nothing of what happens.

    Parameters
    ----------
    agent : Agent
        With an :class:`~brmdp.agents.AdaptiveLevel` schedule and exact quantiles.
    truth : TabularMDP
        With the states, admissible actions, rewards and discount that the agent plans for.

    Attributes
    ----------
    reports : list of OptimismReport
        One per plan. A plan that was made before the agent was saved and loaded is left out: a file
        does not hold it.

    Examples
    --------
    >>> import brmdp
    >>> from brmdp.theory import OptimismMeter, draw_mdp
    >>> truth = draw_mdp(1, 3, 2, 0.8)
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
        """Check the plan that step ``t`` follows."""
        report = self.agent.report
        if report.solution is None:
            return
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
    rng: Any,
    n_states: int,
    n_actions: int,
    steps: int,
    *,
    delta: float,
    floor: float = 0.2,
    discount: float = 0.9,
    concentration: float = 1.0,
    rewards: Any = None,
) -> list[OptimismReport]:
    """One run of AQ-BRMDP in a world drawn from its prior, with the lemma checked at every plan.

    Parameters
    ----------
    rng : numpy.random.Generator or seed
    n_states, n_actions, discount, concentration, rewards
        As in :func:`draw_mdp`.
    steps : int
    delta, floor : float
        δ and α̲ of the schedule.

    Returns
    -------
    list of OptimismReport
        One per pseudo-episode.
    """
    world_stream, environment, agent_stream = independent_streams(rng, 3)
    truth = draw_mdp(
        world_stream, n_states, n_actions, discount, concentration=concentration, rewards=rewards
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
    """Refuse a solution that is not the plan under the belief at the levels."""
    exact = backup(belief, *problem, solution.values, risk=Quantile(levels)).q_values
    admissible = belief.pattern.admissible
    apart = float(np.abs(exact - solution.q_values)[admissible].max())
    # q is a backup of the iterate before the last, which is nearer than the error bound; rounding
    # is relative
    if not apart <= 2.0 * solution.error_bound + 1e-12 * float(np.abs(exact[admissible]).max()):
        raise InvalidInputError(
            "solution must be the plan under belief at levels, with exact quantiles and the "
            "rewards and discount of truth; an exact backup of its values differs from it by "
            f"{apart:.3g}"
        )


def _require_truth_of(agent: Agent, truth: Any) -> None:
    """Refuse a truth that is not what the agent plans for."""
    require_mdp(truth, "truth")
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
    if not np.array_equal(agent.belief.gather_rewards(truth.rewards), agent.rewards):
        raise InvalidInputError(
            "truth must have the rewards that the agent plans with; they differ"
        )


def _require_adaptive(schedule: Any) -> AdaptiveLevel:
    if not isinstance(schedule, AdaptiveLevel):
        raise InvalidInputError(
            f"the lemma is about the schedule brmdp.agents.AdaptiveLevel; got {schedule!r}"
        )
    return schedule
