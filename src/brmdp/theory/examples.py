"""The paper's two illustrative examples and its Propositions 2 and 3, ready to solve and simulate.

In both examples the belief rests on two kernels, φ = μ δ_G + (1 − μ) δ_B, and the safe action at s₀
pays c and stays there.

*Robustness* (Proposition 2). The risky action pays 0 and leads for good to g (reward 1) under P^G,
to b (reward −L) under P^B. If γ(1 − L)/2 < c < γ(μ − (1 − μ)L), μ > 1/2 and α ≤ 1 − μ, the
posterior-mean policy is risky and the α-quantile policy is safe, and for (γ − c)/(1 − γ) < Λ ≤ (c +
γL)/(1 − γ) their posterior downside exposures are 1 − μ and 0. (The first condition implies the
second: its interval is empty unless μ > 1/2.)

*Probing* (Proposition 3). Exploring at s₀ pays 0 and leads to y_G under P^G and y_B under P^B, so
it reveals the kernel. There, exploiting pays 0 and leads for good to g (reward 1) under P^G and b
(reward 0) under P^B, while the safe action pays c and stays. If α ≤ 1 − μ and c < γ², an agent that
plans at level α after every step stays at s₀ forever, learns nothing, and under P^G has regret R_T
= T(γ² − c)/(1 − γ): a self-confirming trap. With the adaptive schedule the agent leaves it as soon
as the level of the untried exploiting action exceeds 1 − μ (:func:`adaptive_escape_episode`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

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
"""ln(2k)/√k falls from this k on."""

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
        P^G and P^B, with named states and actions.
    belief : ScenarioBelief
        The belief, with weights (μ, 1 − μ).
    good_probability, safe_reward : float
        μ and c.
    thresholds : (float, float) or None
        For the robustness example, the range of Λ in Proposition 2: Λ must exceed the first number
        and be at most the second.
    violations : tuple of str
        Conditions of the proposition that the parameters violate; empty unless the example was
        built with ``strict=False``.

    Examples
    --------
    >>> import brmdp
    >>> from brmdp.theory import probing_example
    >>> example = probing_example(0.7, safe_reward=0.5, discount=0.9)
    >>> [int(example.best_policy(risk)[0]) for risk in (brmdp.Quantile(0.2), brmdp.Mean())]
    [0, 1]
    """

    name: str
    good: TabularMDP
    bad: TabularMDP
    belief: ScenarioBelief
    good_probability: float
    safe_reward: float
    thresholds: tuple[float, float] | None
    violations: tuple[str, ...]

    @property
    def rewards(self) -> FloatArray:
        """(S, A) known rewards."""
        rewards: FloatArray = self.good.rewards
        return rewards

    @property
    def discount(self) -> float:
        """γ."""
        return self.good.discount

    @property
    def largest_value(self) -> float:
        """max|r|/(1 − γ), the scale of all accuracies."""
        return float(np.abs(self.rewards).max()) / (1.0 - self.discount)

    def best_policy(self, risk: RiskMeasure) -> IntArray:
        """The optimal policy under the belief for a risk measure.

        It takes the first action whose value is within RESOLUTION of the best.
        """
        slack = RESOLUTION * self.largest_value
        q_values = solution_of(
            self.belief, self.rewards, self.discount, risk, tolerance=slack / 10.0
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
        Reward c of the safe action.
    loss : float
        L > 0; b pays −L.
    discount : float in (0, 1)
        Discount factor γ.
    strict : bool
        Whether to raise an error if the parameters violate a condition of Proposition 2. If False,
        the violated conditions are listed in ``violations``.

    Raises
    ------
    InvalidInputError
        If a condition is violated; the message names it, with the numbers.

    Examples
    --------
    >>> from brmdp.theory import robustness_example
    >>> example = robustness_example(0.7, safe_reward=0.3, loss=0.5, discount=0.9)
    >>> low, high = example.thresholds
    >>> round(low, 6), round(high, 6)
    (6.0, 7.5)
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
    """The informative-exploration example: states (s0, y_G, y_B, g, b).

    The actions are safe, explore (at s0) and exploit (at y_G and y_B).

    Parameters
    ----------
    good_probability, safe_reward, discount
        As in :func:`robustness_example`.
    strict : bool
        Whether to raise an error if the parameters violate the condition of Proposition 3. If
        False, the violated condition is listed in ``violations``.

    Raises
    ------
    InvalidInputError
        If the condition is violated; the message names it, with the numbers.

    Examples
    --------
    >>> from brmdp.theory import probing_example
    >>> probing_example(0.7, safe_reward=0.5, discount=0.9).belief.weights.round(3).tolist()
    [0.7, 0.3]
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
        Optimal policies for the posterior mean and for the α-quantile.
    mean_exposure, quantile_exposure : Exposure
        Exact posterior downside exposures of these policies.
    stated_mean_exposure, stated_quantile_exposure : float
        Exposures stated in the proposition: 1 − μ and 0.
    holds : bool
        Whether the policies and their exposures are as stated.

    Examples
    --------
    >>> from brmdp.theory import check_robustness, robustness_example
    >>> check = check_robustness(robustness_example(0.7, 0.3, 0.5, 0.9), alpha=0.2)
    >>> check.holds, check.quantile_exposure.probability
    (True, 0.0)
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
        Level, at most 1 − μ. Equality is allowed however 1 − μ is rounded.
    threshold : float, optional
        Λ; by default the largest that the proposition allows. Regrets come from the planner and
        are compared up to :data:`~brmdp.theory.exposure.RESOLUTION`. So a Λ that exceeds one end of
        the proposition's interval by no more than twice that share of the largest value cannot be
        distinguished from that end. It raises an error whether or not ``strict`` is set.
    strict : bool
        Whether to raise an error if a condition of the proposition is violated. If False, ``holds``
        says whether the statement is true anyway.

    Returns
    -------
    RobustnessCheck

    Examples
    --------
    >>> from brmdp.theory import check_robustness, robustness_example
    >>> example = robustness_example(0.7, safe_reward=0.3, loss=0.5, discount=0.9)
    >>> check_robustness(example, alpha=0.3).holds
    True
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
                f"threshold must not exceed {end!r} by {resolved:.1g} or less, because regrets are "
                f"not resolved more finely; got {threshold!r}"
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
            example.belief, example.rewards, example.discount, policy, least, state=START
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
        s_t and a_t.
    regret : (T,) array
        V*(s_t) − V^{π_t}(s_t) under the true kernel.
    escape_step : int or None
        First step t at which the agent did not take the safe action at s₀; None if it always did.
    escape_episode : int or None
        The pseudo-episode k in which that happened.
    good_probability : float
        Weight of P^G in the belief of the last plan.

    Examples
    --------
    >>> from brmdp.theory import check_trap, probing_example
    >>> run = check_trap(probing_example(0.7, 0.5, 0.9), alpha=0.2, steps=20).run
    >>> run.escape_step is None, len(run.regret)
    (True, 20)
    """

    state: IntArray
    action: IntArray
    regret: FloatArray
    escape_step: int | None
    escape_episode: int | None
    good_probability: float


def follow_example(
    example: Example, agent: Agent, steps: int, *, truth: Literal["good", "bad"] = "good"
) -> ExampleRun:
    """Let an agent act in an example.

    Parameters
    ----------
    example : Example
        From :func:`robustness_example` or :func:`probing_example`.
    agent : Agent
        An agent that starts from the example's belief.
    steps : int
        Number of steps T.
    truth : {"good", "bad"}
        Which kernel is the true one.

    Returns
    -------
    ExampleRun

    Examples
    --------
    >>> from brmdp.agents import aq_brmdp
    >>> from brmdp.theory import follow_example, probing_example
    >>> example = probing_example(0.7, safe_reward=0.5, discount=0.9)
    >>> agent = aq_brmdp(example.belief, example.rewards, 0.9, delta=1.0, rng=1)
    >>> follow_example(example, agent, 50).escape_step is not None
    True
    """
    if truth not in ("good", "bad"):
        raise InvalidInputError(f"truth must be 'good' or 'bad'; got {truth!r}")
    _require_example(example, ROBUSTNESS, PROBING)
    if not isinstance(agent, Agent) or not isinstance(agent.belief, ScenarioBelief):
        raise InvalidInputError(
            f"agent must be a brmdp.Agent that starts from the example's belief; got {agent!r}"
        )
    world = World(TabularEnv(example.good if truth == "good" else example.bad), example.discount)
    # the kernels are deterministic, so the seed does not matter
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
        Level.
    run : ExampleRun
        A run under P^G that plans at level α after every step.
    regret : float
        R_T, the sum of the run's regrets.
    stated_regret : float
        T(γ² − c)/(1 − γ).
    holds : bool
        Whether the agent never moved, learnt nothing, and had the stated regret.

    Examples
    --------
    >>> from brmdp.theory import check_trap, probing_example
    >>> check = check_trap(probing_example(0.7, 0.5, 0.9), alpha=0.2, steps=100)
    >>> check.holds, round(check.regret, 6)
    (True, 310.0)
    """

    alpha: float
    run: ExampleRun
    regret: float
    stated_regret: float
    holds: bool


def check_trap(
    example: Example, alpha: float, steps: int = 1000, *, strict: bool = True
) -> TrapCheck:
    """Simulate the probing example at a fixed level and compare with Proposition 3.

    Parameters
    ----------
    example : Example
        From :func:`probing_example`.
    alpha : float in (0, 1)
        Level, at most 1 − μ. Equality is allowed however 1 − μ is rounded.
    steps : int
        Number of steps T.
    strict : bool
        Whether to raise an error if a condition of the proposition is violated. If False, ``holds``
        says whether the statement is true anyway.

    Returns
    -------
    TrapCheck

    Examples
    --------
    >>> from brmdp.theory import check_trap, probing_example
    >>> check_trap(probing_example(0.7, 0.5, 0.9), alpha=0.3, steps=50).holds
    True
    """
    _require_example(example, PROBING)
    level = as_level(alpha)
    horizon = as_positive_int(steps, "steps")
    violations = example.violations + _failing(_cautious(level, example))
    if strict:
        _refuse(PROBING, violations)
    gamma = example.discount
    agent = fixed_quantile(
        example.belief, example.rewards, gamma, alpha=level, restart=EveryStep(), rng=0
    )
    run = follow_example(example, agent, horizon)
    regret = math.fsum(run.regret)
    stated = horizon * (gamma**2 - example.safe_reward) / (1.0 - gamma)
    still = bool((run.state == START).all() and (run.action == SAFE).all())
    unmoved = run.good_probability == float(example.belief.weights[0])
    close = abs(regret - stated) <= RESOLUTION * horizon / (1.0 - gamma)
    return TrapCheck(level, run, regret, stated, holds=still and unmoved and close)


def adaptive_escape_episode(example: Example, schedule: AdaptiveLevel) -> int:
    """The pseudo-episode k in which an agent with the adaptive schedule leaves the trap.

    The agent plans after every step. Until it leaves, only (s₀, safe) has been visited, k − 1
    times, so with n admissible pairs an untried pair has the level max{1 − δ·ln(2k)/√k · n/(max{k −
    1, 1} + n − 1), α̲}. The agent explores once this level exceeds 1 − μ at the exploiting action,
    whose quantile is then the value of g; k is the first such number. For k ≥ 4, ln(2k)/√k falls
    and the visits grow, so there k is found by bisection. It exists for every μ above the tolerance
    :data:`~brmdp.risk.ATOM_TOLERANCE` of quantiles at atoms; for smaller μ no level is high enough
    for the planner to see P^G.

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

    Examples
    --------
    >>> from brmdp.agents import AdaptiveLevel
    >>> from brmdp.theory import adaptive_escape_episode, probing_example
    >>> adaptive_escape_episode(probing_example(0.7, 0.5, 0.9), AdaptiveLevel(5, 0.2))
    36
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
            "atoms; otherwise the agent never leaves the trap; got "
            f"{example.good_probability!r}"
        )

    def explores(k: int) -> bool:
        mean_visits = (max(k - 1, 1) + pairs - 1) / pairs
        # small factors first, because δ may be close to the largest float
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
    """Checked values of μ, c and γ."""
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
    """The example with two kernels; an action is admissible where its row is not zero."""
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
    belief = ScenarioBelief([good, bad], [mu, 1.0 - mu])
    return Example(name, good, bad, belief, mu, c, thresholds, violations)


def _cautious(level: float, example: Example) -> tuple[bool, str]:
    """Whether α ≤ 1 − μ, up to the tolerance of quantiles at atoms, and the condition in words."""
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
