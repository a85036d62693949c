"""The paper's two illustrative examples.

*robustness* and *trap* check Propositions 2 and 3 for parameters drawn at random within their
conditions; half of the levels equal 1 − μ, the largest that is allowed. Then one condition is
broken: at a level just above 1 − μ both statements must fail. *exposure* computes the posterior
downside exposure of both policies of the first example for many thresholds. *probing* lets an agent
act in the second example.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from brmdp._validation import BoolArray, FloatArray, IntArray, as_positive_int
from brmdp.agents import AdaptiveLevel, EveryStep, aq_brmdp, fixed_quantile
from brmdp.runs import REQUIRED, Columns, Computation, Experiment, Program, column
from brmdp.runs.spec import require_known
from brmdp.theory import (
    adaptive_escape_episode,
    check_robustness,
    check_trap,
    downside_exposure,
    follow_example,
    probing_example,
    robustness_example,
)
from brmdp.theory.examples import RISKY, SAFE

__all__ = [
    "EXPERIMENT",
    "EXPOSURE",
    "PROBING",
    "ROBUSTNESS",
    "TRAP",
    "ExposureColumns",
    "ProbingColumns",
    "RobustnessColumns",
    "TrapColumns",
]

ABOVE_THE_ATOM = 1e-6
"""Distance above 1 − μ of the level that breaks the condition."""


# --- Proposition 2 --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RobustnessColumns(Columns):
    """One row per parameter set of the first example."""

    good_probability: FloatArray = column("μ, the probability of the good kernel")
    safe_reward: FloatArray = column("c, the reward of the safe action")
    loss: FloatArray = column("L, the loss per step in state b")
    discount: FloatArray = column("discount factor γ")
    alpha: FloatArray = column("level α of the quantile policy")
    threshold: FloatArray = column("threshold Λ of the downside exposure")
    mean_risky: BoolArray = column("whether the posterior-mean policy takes the risky action")
    quantile_safe: BoolArray = column("whether the quantile policy takes the safe action")
    mean_exposure: FloatArray = column("downside exposure of the posterior-mean policy")
    quantile_exposure: FloatArray = column("downside exposure of the quantile policy")
    risky_above_the_atom: BoolArray = column(
        "whether the quantile policy takes the risky action at a level just above 1 − μ"
    )


def _robustness(seed: np.random.SeedSequence, *, problems: int) -> RobustnessColumns:
    """Check Proposition 2 for random parameters within its conditions."""

    def check(rng: np.random.Generator) -> dict[str, Any]:
        mu, gamma = rng.uniform(0.55, 0.95), rng.uniform(0.5, 0.99)
        loss = rng.uniform(0.05, 0.95) * mu / (1.0 - mu)
        low, high = max(gamma * (1.0 - loss) / 2.0, 0.0), gamma * (mu - (1.0 - mu) * loss)
        c = low + rng.uniform(0.05, 0.95) * (high - low)
        example = robustness_example(mu, c, loss, gamma)
        assert example.thresholds is not None
        least, most = example.thresholds
        threshold = least + rng.uniform(0.05, 1.0) * (most - least)
        found = check_robustness(example, _cautious_level(rng, mu), threshold)
        curious = check_robustness(example, 1.0 - mu + ABOVE_THE_ATOM, threshold, strict=False)
        return {
            "good_probability": mu,
            "safe_reward": c,
            "loss": loss,
            "discount": gamma,
            "alpha": found.alpha,
            "threshold": threshold,
            "mean_risky": found.mean_policy[0] == RISKY,
            "quantile_safe": found.quantile_policy[0] == SAFE,
            "mean_exposure": found.mean_exposure.probability,
            "quantile_exposure": found.quantile_exposure.probability,
            "risky_above_the_atom": curious.quantile_policy[0] == RISKY,
        }

    return RobustnessColumns.of_rows(_repeated(check, seed, problems))


ROBUSTNESS = Program(_robustness, RobustnessColumns, {"problems": 50})


# --- Proposition 3 --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TrapColumns(Columns):
    """One row per parameter set of the second example."""

    good_probability: FloatArray = column("μ, the probability of the good kernel")
    safe_reward: FloatArray = column("c, the reward of the safe action")
    discount: FloatArray = column("discount factor γ")
    alpha: FloatArray = column("fixed level α of the agent")
    regret: FloatArray = column("regret R_T of the agent")
    stated_regret: FloatArray = column("T(γ² − c)/(1 − γ), the regret that Proposition 3 states")
    left_start: BoolArray = column("whether the agent ever left s₀")
    learnt: BoolArray = column("whether its belief changed")
    explores_above_the_atom: BoolArray = column(
        "whether the agent explores at once at a level just above 1 − μ"
    )
    stated_escape: IntArray = column(
        "pseudo-episode in which the adaptive agent should explore, as computed beforehand"
    )
    escape: IntArray = column("pseudo-episode in which it explored; 0 if it did not")


def _trap(
    seed: np.random.SeedSequence, *, problems: int, steps: int, delta: float, floor: float
) -> TrapColumns:
    """Check Proposition 3 for random parameters, and when the adaptive agent leaves the trap."""
    schedule = AdaptiveLevel(delta, floor)

    def check(rng: np.random.Generator) -> dict[str, Any]:
        mu, gamma = rng.uniform(0.1, 0.9), rng.uniform(0.5, 0.99)
        example = probing_example(mu, rng.uniform(0.05, 0.95) * gamma**2, gamma)
        found = check_trap(example, _cautious_level(rng, mu), steps)
        curious = check_trap(example, 1.0 - mu + ABOVE_THE_ATOM, 1, strict=False)
        predicted = adaptive_escape_episode(example, schedule)
        agent = aq_brmdp(
            example.belief,
            example.rewards,
            gamma,
            delta=delta,
            floor=floor,
            restart=EveryStep(),
            rng=rng,
        )
        escaped = follow_example(example, agent, predicted + 1).escape_episode
        return {
            "good_probability": mu,
            "safe_reward": example.safe_reward,
            "discount": gamma,
            "alpha": found.alpha,
            "regret": found.regret,
            "stated_regret": found.stated_regret,
            "left_start": found.run.escape_step is not None,
            "learnt": found.run.good_probability != example.belief.weights[0],
            "explores_above_the_atom": curious.run.escape_step == 0,
            "stated_escape": predicted,
            "escape": 0 if escaped is None else escaped,
        }

    return TrapColumns.of_rows(_repeated(check, seed, problems))


TRAP = Program(_trap, TrapColumns, {"problems": 10, "steps": 100, "delta": 5.0, "floor": 0.2})


def _cautious_level(rng: np.random.Generator, good_probability: float) -> float:
    """A level of at most 1 − μ, and 1 − μ itself half of the time."""
    rest = 1.0 - good_probability
    return float(rest if rng.random() < 0.5 else rng.uniform(0.05, 1.0) * rest)


def _repeated(
    check: Callable[[np.random.Generator], dict[str, Any]], seed: np.random.SeedSequence, times: int
) -> list[dict[str, Any]]:
    """Rows of several checks, one after the other on the same generator."""
    rng = np.random.default_rng(seed)
    return [check(rng) for _ in range(as_positive_int(times, "problems"))]


# --- exposures ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ExposureColumns(Columns):
    """One row per threshold."""

    threshold: FloatArray = column("threshold Λ on the regret")
    mean_exposure: FloatArray = column("downside exposure of the posterior-mean policy")
    quantile_exposure: FloatArray = column("downside exposure of the quantile policy")


def _exposure(
    seed: np.random.SeedSequence,
    *,
    good_probability: float,
    safe_reward: float,
    loss: float,
    discount: float,
    alpha: float,
    points: int,
) -> ExposureColumns:
    """Downside exposures of both policies of the first example on a grid of thresholds."""
    example = robustness_example(good_probability, safe_reward, loss, discount)
    assert example.thresholds is not None
    count = as_positive_int(points, "points")
    # include the ends of the proposition's interval, where the exposures jump
    thresholds = np.sort(
        [*np.linspace(0.0, 1.2 * example.thresholds[1], count + 1)[1:], *example.thresholds]
    )
    check = check_robustness(example, alpha)
    curves = [
        [
            downside_exposure(
                example.belief, example.rewards, example.discount, policy, float(threshold)
            ).probability
            for threshold in thresholds
        ]
        for policy in (check.mean_policy, check.quantile_policy)
    ]
    return ExposureColumns(thresholds, np.array(curves[0]), np.array(curves[1]))


EXPOSURE = Program(
    _exposure,
    ExposureColumns,
    {
        "good_probability": REQUIRED,
        "safe_reward": REQUIRED,
        "loss": REQUIRED,
        "discount": REQUIRED,
        "alpha": REQUIRED,
        "points": 60,
    },
)


# --- agents in the second example -----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ProbingColumns(Columns):
    """One row per step of a run."""

    state: IntArray = column("state, in the order s₀, y_G, y_B, g, b")
    action: IntArray = column("action: 0 safe, 1 explore, 2 exploit")
    regret: FloatArray = column("V*(s_t) − V^{π_t}(s_t) under the true kernel")


def _probing(
    seed: np.random.SeedSequence,
    *,
    good_probability: float,
    safe_reward: float,
    discount: float,
    steps: int,
    alpha: float | None,
    delta: float,
    floor: float,
    restart: Literal["geometric", "every-step"],
    truth: Literal["good", "bad"],
) -> ProbingColumns:
    """One run in the second example, at a fixed level, or with the adaptive schedule if it is None.

    ``restart`` says how long an agent keeps its plan: "geometric" or "every-step".
    """
    require_known(restart, ("geometric", "every-step"), "restart")
    example = probing_example(good_probability, safe_reward, discount)
    parts = (example.belief, example.rewards, example.discount)
    rule = EveryStep() if restart == "every-step" else None
    agent = (
        aq_brmdp(*parts, delta=delta, floor=floor, restart=rule, rng=seed)
        if alpha is None
        else fixed_quantile(*parts, alpha=alpha, restart=rule, rng=seed)
    )
    run = follow_example(example, agent, steps, truth=truth)
    return ProbingColumns(run.state, run.action, run.regret)


PROBING = Program(
    _probing,
    ProbingColumns,
    {
        "good_probability": REQUIRED,
        "safe_reward": REQUIRED,
        "discount": REQUIRED,
        "steps": 300,
        "alpha": None,
        "delta": 5.0,
        "floor": 0.2,
        "restart": "geometric",
        "truth": "good",
    },
)


# --- the experiment -------------------------------------------------------------------------------

_FIRST = {"good_probability": 0.7, "safe_reward": 0.3, "loss": 0.5, "discount": 0.9, "alpha": 0.2}
_SECOND = {"good_probability": 0.7, "safe_reward": 0.5, "discount": 0.9}


def _agent(name: str, **parameters: Any) -> Computation:
    # the world is deterministic, so runs differ only in the lengths of their pseudo-episodes
    most = 1 if parameters.get("restart") == "every-step" else 0
    return Computation(name, f"{__name__}:PROBING", {**_SECOND, **parameters}, max_runs=most)


EXPERIMENT = Experiment(
    "examples",
    "Illustrative examples",
    (
        Computation("robustness", f"{__name__}:ROBUSTNESS", max_runs=5),
        Computation("trap", f"{__name__}:TRAP", max_runs=5),
        Computation("exposure", f"{__name__}:EXPOSURE", _FIRST, max_runs=1),
        _agent("brmdp-0.2", alpha=0.2, restart="every-step"),
        _agent("aq-brmdp-delta-5"),
        _agent("aq-brmdp-delta-10", delta=10.0),
        _agent("aq-brmdp-delta-15", delta=15.0),
        _agent("every-step", restart="every-step"),
        _agent("bad-world", truth="bad"),
        _agent("bad-world-every-step", truth="bad", restart="every-step"),
    ),
    runs=60,
)
