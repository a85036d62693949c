"""The paper's two illustrative examples, and its Propositions 2 and 3.

As problems that can be solved and played.

Both posteriors rest on two kernels, φ = μ δ_G + (1 − μ) δ_B; a safe action at s₀ pays c and stays.

*Robustness* (Proposition 2). The risky action pays 0 and leads for good to g (reward 1) under P^G,
to b (reward −L) under P^B. If γ(1 − L)/2 < c < γ(μ − (1 − μ)L), μ > 1/2 and α ≤ 1 − μ, the
posterior-mean policy is risky and the α-quantile policy safe, and for (γ − c)/(1 − γ) < Λ ≤ (c +
γL)/(1 − γ) their posterior downside exposures are 1 − μ and 0. (The first condition implies the
second: its interval is empty unless μ > 1/2.)

*Probing* (Proposition 3). Exploring at s₀ pays 0 and leads to y_G under P^G and y_B under P^B, so
it tells the kernel. There, exploiting pays 0 and leads for good to g (reward 1) under P^G and b
(reward 0) under P^B, while the safe action pays c and stays. If α ≤ 1 − μ and c < γ², an agent that
plans at level α after every step stays at s₀ for ever, learns nothing, and under P^G has the regret
R_T = T(γ² − c)/(1 − γ): a self-confirming trap. The adaptive schedule leaves it as soon as the
level of the untried exploitation exceeds 1 − μ (:func:`adaptive_escape_episode`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from brmdp._validation import (
    FloatArray,
    IntArray,
    as_discount,
    as_level,
    as_number,
    as_positive_int,
    as_positive_number,
)
from brmdp.agents import AdaptiveLevel, Agent, EveryStep, fixed_quantile
from brmdp.agents.schedules import BELOW_ONE
from brmdp.beliefs import ScenarioBelief
from brmdp.envs import TabularEnv
from brmdp.errors import InvalidInputError
from brmdp.mdp import TabularMDP
from brmdp.planning.planner import solution_of
from brmdp.risk import ATOM_TOLERANCE, Mean, Quantile
from brmdp.risk.base import RiskMeasure
from brmdp.simulation import World, simulate
from brmdp.theory.exposure import RESOLUTION, Exposure, downside_exposure

__all__ = [
    "EXPLOIT",
    "EXPLORE",
    "RISKY",
    "SAFE",
    "Example",
    "ExampleRun",
    "RobustnessCheck",
    "TrapCheck",
    "adaptive_escape_episode",
    "check_robustness",
    "check_trap",
    "follow_example",
    "probing_example",
    "robustness_example",
]

SAFE, RISKY = 0, 1
EXPLORE, EXPLOIT = 1, 2
START = 0

TURNING = 4
"""From this k on ln(2k)/√k falls."""

ROBUSTNESS, PROBING = "robustness", "probing"
PROPOSITION = {ROBUSTNESS: 2, PROBING: 3}


@dataclass(frozen=True, eq=False)
class Example:
    """One of the two examples. It begins in state 0.

    Attributes
    ----------
    name : str
        "robustness" or "probing".
    good, bad : TabularMDP
        P^G and P^B, with the names of states and actions.
    posterior : ScenarioBelief
        Weights (μ, 1 − μ).
    good_probability, safe_reward : float
        μ and c.
    thresholds : (float, float) or None
        For the robustness example the Λ of Proposition 2: above the first, at most the second.
    violations : tuple of str
        Conditions of the proposition on the parameters that fail; empty unless built with
        ``strict=False``.
    """

    name: str
    good: TabularMDP
    bad: TabularMDP
    posterior: ScenarioBelief
    good_probability: float
    safe_reward: float
    thresholds: tuple[float, float] | None
    violations: tuple[str, ...]

    @property
    def rewards(self) -> FloatArray:
        """Known rewards, (S, A)."""
        rewards: FloatArray = self.good.rewards
        return rewards

    @property
    def discount(self) -> float:
        """γ."""
        return self.good.discount

    @property
    def largest_value(self) -> float:
        """max|r|/(1 − γ), to which accuracies are relative."""
        return float(np.abs(self.rewards).max()) / (1.0 - self.discount)

    def best_policy(self, risk: RiskMeasure) -> IntArray:
        """The optimal policy under the posterior, for any measure.

        The first action within RESOLUTION of the best.
        """
        slack = RESOLUTION * self.largest_value
        q_values = solution_of(
            self.posterior, self.rewards, self.discount, risk, tolerance=slack / 10.0
        ).q_values
        chosen: IntArray = (q_values >= q_values.max(axis=1, keepdims=True) - slack).argmax(axis=1)
        return chosen


def robustness_example(
    good_probability: float,
    safe_reward: float,
    loss: float,
    discount: float,
    *,
    strict: bool = True,
) -> Example:
    """The posterior downside-exposure example: states (s0, g, b), actions safe and risky.

    Parameters
    ----------
    good_probability : float in (0, 1)
        μ.
    safe_reward : float in (0, discount)
        c.
    loss : float
        L > 0; b pays −L.
    discount : float in (0, 1)
    strict : bool
        Refuse parameters for which Proposition 2 says nothing; otherwise they are listed in
        ``violations``.

    Raises
    ------
    InvalidInputError
        If a condition is violated; the message names it, with the numbers.
    """
    mu, c, gamma = _common_parameters(good_probability, safe_reward, discount)
    lost = as_positive_number(loss, "loss")
    least, most = gamma * (1.0 - lost) / 2.0, gamma * (mu - (1.0 - mu) * lost)
    violations = _failing(
        (mu > 0.5, f"μ > 1/2 (μ = {mu:g})"),
        (least < c, f"γ(1 − L)/2 < c (γ(1 − L)/2 = {least:g}, c = {c:g})"),
        (c < most, f"c < γ(μ − (1 − μ)L) (c = {c:g}, γ(μ − (1 − μ)L) = {most:g})"),
    )
    if strict:
        _refuse(ROBUSTNESS, violations)
    kernels = np.zeros((2, 3, 2, 3))
    kernels[:, START, SAFE, START] = 1.0
    kernels[:, [1, 2], SAFE, [1, 2]] = 1.0
    kernels[0, START, RISKY, 1] = kernels[1, START, RISKY, 2] = 1.0
    rewards = np.array([[c, 0.0], [1.0, 1.0], [-lost, -lost]])
    return _example(
        ROBUSTNESS,
        kernels,
        rewards,
        (mu, c, gamma),
        (("s0", "g", "b"), ("safe", "risky")),
        ((gamma - c) / (1.0 - gamma), (c + gamma * lost) / (1.0 - gamma)),
        violations,
    )


def probing_example(
    good_probability: float, safe_reward: float, discount: float, *, strict: bool = True
) -> Example:
    """The informative exploration example.

    States (s0, y_G, y_B, g, b), actions safe, explore (at s0) and exploit (at y).

    Parameters
    ----------
    good_probability, safe_reward, discount
        As in :func:`robustness_example`.
    strict : bool
        Refuse parameters for which Proposition 3 says nothing; otherwise they are listed in
        ``violations``.

    Raises
    ------
    InvalidInputError
        If a condition is violated; the message names it, with the numbers.
    """
    mu, c, gamma = _common_parameters(good_probability, safe_reward, discount)
    violations = _failing((c < gamma**2, f"c < γ² (c = {c:g}, γ² = {gamma**2:g})"))
    if strict:
        _refuse(PROBING, violations)
    kernels = np.zeros((2, 5, 3, 5))
    kernels[:, range(5), SAFE, range(5)] = 1.0
    kernels[0, START, EXPLORE, 1] = kernels[1, START, EXPLORE, 2] = 1.0
    kernels[0, [1, 2], EXPLOIT, 3] = kernels[1, [1, 2], EXPLOIT, 4] = 1.0
    rewards = np.zeros((5, 3))
    rewards[:3, SAFE] = c
    rewards[3] = 1.0
    names = (("s0", "y_G", "y_B", "g", "b"), ("safe", "explore", "exploit"))
    return _example(PROBING, kernels, rewards, (mu, c, gamma), names, None, violations)


@dataclass(frozen=True, eq=False)
class RobustnessCheck:
    """Proposition 2 in numbers.

    Attributes
    ----------
    alpha, threshold : float
        α and Λ.
    mean_policy, quantile_policy : (S,) integers
        Optimal under the posterior mean, and for the α-quantile.
    mean_exposure, quantile_exposure : Exposure
        Their posterior downside exposures, exact.
    stated_mean_exposure, stated_quantile_exposure : float
        1 − μ and 0.
    holds : bool
        Whether the policies act and the exposures are as stated.
    """

    alpha: float
    threshold: float
    mean_policy: IntArray
    quantile_policy: IntArray
    mean_exposure: Exposure
    quantile_exposure: Exposure
    stated_mean_exposure: float
    stated_quantile_exposure: float
    holds: bool


def check_robustness(
    example: Example, alpha: float, threshold: float | None = None, *, strict: bool = True
) -> RobustnessCheck:
    """Solve the robustness example and compare with Proposition 2.

    Parameters
    ----------
    example : Example
        From :func:`robustness_example`.
    alpha : float in (0, 1)
        At most 1 − μ; equality is meant to be included, whatever the rounding of 1 − μ.
    threshold : float, optional
        Λ; by default the largest that the proposition allows. Regrets are solutions of the planner
        and reach a threshold up to :data:`~brmdp.theory.exposure.RESOLUTION`, so a Λ above one of
        the two ends of the proposition's interval, but by less than twice that share of the largest
        value, cannot be told from the end itself and is refused, whatever ``strict``.
    strict : bool
        Raise if a condition of the proposition is violated; otherwise ``holds`` tells whether the
        statement is true anyway.
    """
    _require_example(example, ROBUSTNESS)
    assert example.thresholds is not None
    low, high = example.thresholds
    level = as_level(alpha)
    least = high if threshold is None else as_positive_number(threshold, "threshold")
    resolved = 2.0 * RESOLUTION * example.largest_value
    for end in (low, high):
        if end < least <= end + resolved:
            raise InvalidInputError(
                f"threshold must not lie within {resolved:.1g} above {end!r}, since regrets are "
                f"resolved to no more; got {threshold!r}"
            )
    violations = example.violations + _failing(
        _cautious(level, example),
        (low < least, f"(γ − c)/(1 − γ) < Λ ((γ − c)/(1 − γ) = {low:g}, Λ = {least:g})"),
        (least <= high, f"Λ ≤ (c + γL)/(1 − γ) (Λ = {least:g}, (c + γL)/(1 − γ) = {high:g})"),
    )
    if strict:
        _refuse(ROBUSTNESS, violations)
    mean, quantile = example.best_policy(Mean()), example.best_policy(Quantile(level))
    mean_exposure, quantile_exposure = (
        downside_exposure(
            example.posterior, example.rewards, example.discount, policy, least, state=START
        )
        for policy in (mean, quantile)
    )
    rest = 1.0 - example.good_probability
    holds = (
        (mean[START], quantile[START]) == (RISKY, SAFE)
        and abs(mean_exposure.probability - rest) <= ATOM_TOLERANCE
        and quantile_exposure.probability == 0.0
    )
    return RobustnessCheck(
        level, least, mean, quantile, mean_exposure, quantile_exposure, rest, 0.0, holds
    )


@dataclass(frozen=True, eq=False)
class ExampleRun:
    """What an agent did in an example.

    Attributes
    ----------
    state, action : (T,) integers
    regret : (T,) array
        V*(s_t) − V^{π_t}(s_t) in the true kernel.
    escape_step : int or None
        First step t at which the agent left the safe action at s₀; None if it never did.
    escape_episode : int or None
        The pseudo-episode k in which that happened.
    good_probability : float
        Weight of P^G when the last plan was made.
    """

    state: IntArray
    action: IntArray
    regret: FloatArray
    escape_step: int | None
    escape_episode: int | None
    good_probability: float


def follow_example(
    example: Example, agent: Agent, steps: int, *, truth: str = "good"
) -> ExampleRun:
    """Let an agent act in an example, such as ``aq_brmdp(example.posterior, example.rewards.

    Example.discount, delta=5.0)``.

    Parameters
    ----------
    example : Example
    agent : Agent
        Made for the example's posterior.
    steps : int
    truth : {"good", "bad"}
        Which kernel is the true one.
    """
    if truth not in ("good", "bad"):
        raise InvalidInputError(f"truth must be 'good' or 'bad'; got {truth!r}")
    _require_example(example, ROBUSTNESS, PROBING)
    if not isinstance(agent, Agent) or not isinstance(agent.belief, ScenarioBelief):
        raise InvalidInputError(
            f"agent must be a brmdp.Agent whose belief is the example's posterior; got {agent!r}"
        )
    world = World(TabularEnv(example.good if truth == "good" else example.bad), example.discount)
    # the kernels are deterministic, so the seed decides nothing
    history = simulate(agent, world, steps, seed=0)
    assert history.true_regret is not None
    left = np.flatnonzero((history.state == START) & (history.action != SAFE))
    return ExampleRun(
        history.state,
        history.action,
        history.true_regret,
        escape_step=int(left[0]) if left.size else None,
        escape_episode=int(history.episode[left[0]]) if left.size else None,
        good_probability=float(agent.belief.weights[0]),
    )


@dataclass(frozen=True, eq=False)
class TrapCheck:
    """Proposition 3 in numbers.

    Attributes
    ----------
    alpha : float
    run : ExampleRun
        Under P^G, planning at level α after every step.
    regret : float
        R_T, the sum of the run's regrets.
    stated_regret : float
        T(γ² − c)/(1 − γ).
    holds : bool
        Whether the agent never moved, learnt nothing, and its regret is the stated one.
    """

    alpha: float
    run: ExampleRun
    regret: float
    stated_regret: float
    holds: bool


def check_trap(
    example: Example, alpha: float, steps: int = 1000, *, strict: bool = True
) -> TrapCheck:
    """Play the probing example at a fixed level and compare with Proposition 3.

    Parameters
    ----------
    example : Example
        From :func:`probing_example`.
    alpha : float in (0, 1)
        At most 1 − μ; equality is meant to be included, whatever the rounding of 1 − μ.
    steps : int
        T.
    strict : bool
        Raise if a condition of the proposition is violated; otherwise ``holds`` tells whether the
        statement is true anyway.
    """
    _require_example(example, PROBING)
    level = as_level(alpha)
    horizon = as_positive_int(steps, "steps")
    violations = example.violations + _failing(_cautious(level, example))
    if strict:
        _refuse(PROBING, violations)
    gamma = example.discount
    agent = fixed_quantile(
        example.posterior, example.rewards, gamma, alpha=level, restart=EveryStep(), rng=0
    )
    run = follow_example(example, agent, horizon)
    regret = math.fsum(run.regret)
    stated = horizon * (gamma**2 - example.safe_reward) / (1.0 - gamma)
    still = bool((run.state == START).all() and (run.action == SAFE).all())
    unmoved = run.good_probability == float(example.posterior.weights[0])
    close = abs(regret - stated) <= RESOLUTION * horizon / (1.0 - gamma)
    return TrapCheck(level, run, regret, stated, holds=still and unmoved and close)


def adaptive_escape_episode(example: Example, schedule: AdaptiveLevel) -> int:
    """The pseudo-episode k in which an agent with the adaptive schedule.

    Planning after every step, leaves the trap.

    Until then only (s₀, safe) has been visited, k − 1 times, so with n admissible pairs an untried
    pair has the level max{1 − δ·ln(2k)/√k · n/(max{k − 1, 1} + n − 1), α̲}. The agent explores when
    that exceeds 1 − μ at the exploitation, for then the quantile there is the value of g; k is the
    first such number. ln(2k)/√k falls from k = 4 on and the visits never do, so beyond it k is
    found by bisection. There is one for every μ above the tolerance
    :data:`~brmdp.risk.ATOM_TOLERANCE` of quantiles at atoms; below, no level is high enough for the
    planner to see P^G.

    Parameters
    ----------
    example : Example
        From :func:`probing_example`, with c < γ².
    schedule : AdaptiveLevel
        δ and α̲.

    Raises
    ------
    InvalidInputError
        If μ is so small that the agent never leaves.
    """
    _require_example(example, PROBING)
    _refuse(PROBING, example.violations)
    if not isinstance(schedule, AdaptiveLevel):
        raise InvalidInputError(f"schedule must be a brmdp.agents.AdaptiveLevel; got {schedule!r}")
    pairs = int(example.good.admissible.sum())
    needed = 1.0 - example.good_probability + ATOM_TOLERANCE
    if needed >= BELOW_ONE:
        raise InvalidInputError(
            f"good_probability must exceed {ATOM_TOLERANCE:g}, the tolerance of quantiles at "
            f"atoms, for the trap to be left; got {example.good_probability!r}"
        )

    def explores(k: int) -> bool:
        mean_visits = (max(k - 1, 1) + pairs - 1) / pairs
        # the small factors first: δ may be near the largest float
        return (
            max(1.0 - math.log(2 * k) / math.sqrt(k) / mean_visits * schedule.delta, schedule.floor)
            > needed
        )

    for k in range(1, TURNING + 1):
        if explores(k):
            return k
    low, high = TURNING, 2 * TURNING
    while not explores(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if explores(middle) else (middle, high)
    return high


def _common_parameters(
    good_probability: Any, safe_reward: Any, discount: Any
) -> tuple[float, float, float]:
    """μ, c and γ, within the definition of both examples."""
    mu = as_level(good_probability, "good_probability")
    gamma = as_discount(discount)
    c = as_number(safe_reward, "safe_reward", "a number strictly between 0 and discount")
    if not 0.0 < c < gamma:
        raise InvalidInputError(
            f"safe_reward must lie strictly between 0 and discount = {gamma:g}; got {safe_reward!r}"
        )
    return mu, c, gamma


def _example(
    name: str,
    kernels: FloatArray,
    rewards: FloatArray,
    parameters: tuple[float, float, float],
    names: tuple[tuple[str, ...], tuple[str, ...]],
    thresholds: tuple[float, float] | None,
    violations: tuple[str, ...],
) -> Example:
    """Both kernels on the actions that lead somewhere."""
    mu, c, gamma = parameters
    states, actions = names
    good, bad = (
        TabularMDP(
            kernel,
            rewards,
            gamma,
            START,
            admissible=kernel.any(axis=2),
            state_names=states,
            action_names=actions,
        )
        for kernel in kernels
    )
    posterior = ScenarioBelief([good, bad], [mu, 1.0 - mu])
    return Example(name, good, bad, posterior, mu, c, thresholds, violations)


def _cautious(level: float, example: Example) -> tuple[bool, str]:
    """The condition α ≤ 1 − μ, with the tolerance of the quantile at atoms."""
    rest = 1.0 - example.good_probability
    return level <= rest + ATOM_TOLERANCE, f"α ≤ 1 − μ (α = {level:g}, 1 − μ = {rest:g})"


def _failing(*conditions: tuple[bool, str]) -> tuple[str, ...]:
    return tuple(what for holds, what in conditions if not holds)


def _refuse(name: str, violations: tuple[str, ...]) -> None:
    if violations:
        raise InvalidInputError(
            f"the conditions of Proposition {PROPOSITION[name]} are violated: it needs "
            f"{'; '.join(violations)}"
        )


def _require_example(example: Any, *names: str) -> None:
    if not isinstance(example, Example) or example.name not in names:
        makers = " or ".join(f"{name}_example(…)" for name in names)
        got = (
            f"the {example.name} example"
            if isinstance(example, Example)
            else type(example).__name__
        )
        raise InvalidInputError(f"example must come from {makers}; got {got}")
