"""The two illustrative examples.

Propositions 2 and 3 for random parameters, and what agents do in the trap.

*robustness*, *trap*: parameters drawn from those for which the proposition speaks; half of the
levels stand at the atom 1 − μ. One condition is then broken, by a level just above 1 − μ, where
both statements must fail. *exposure*: the posterior downside exposure of both policies against its
threshold. *probing*: an agent in the second example.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from brmdp._validation import as_positive_int
from brmdp.agents import AdaptiveLevel, EveryStep, aq_brmdp, fixed_quantile
from brmdp.runs.program import REQUIRED, Columns, Program
from brmdp.runs.spec import Computation, Experiment, require_known
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

__all__ = ["EXPERIMENT", "PROGRAMS"]

ABOVE_THE_ATOM = 1e-6
"""How far the level that breaks a condition lies above 1 − μ."""


def _robustness(seed: np.random.SeedSequence, *, problems: int) -> Columns:
    """Proposition 2 for random parameters within its conditions."""

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

    return _each(check, seed, problems)


def _trap(
    seed: np.random.SeedSequence, *, problems: int, steps: int, delta: float, floor: float
) -> Columns:
    """Proposition 3 for random parameters within its conditions.

    And when the adaptive schedule leaves the same trap.
    """
    schedule = AdaptiveLevel(delta, floor)

    def check(rng: np.random.Generator) -> dict[str, Any]:
        mu, gamma = rng.uniform(0.1, 0.9), rng.uniform(0.5, 0.99)
        example = probing_example(mu, rng.uniform(0.05, 0.95) * gamma**2, gamma)
        found = check_trap(example, _cautious_level(rng, mu), steps)
        curious = check_trap(example, 1.0 - mu + ABOVE_THE_ATOM, 1, strict=False)
        predicted = adaptive_escape_episode(example, schedule)
        agent = aq_brmdp(
            example.posterior,
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
            "learnt": found.run.good_probability != example.posterior.weights[0],
            "explores_above_the_atom": curious.run.escape_step == 0,
            "stated_escape": predicted,
            "escape": 0 if escaped is None else escaped,
        }

    return _each(check, seed, problems)


def _exposure(
    seed: np.random.SeedSequence,
    *,
    good_probability: float,
    safe_reward: float,
    loss: float,
    discount: float,
    alpha: float,
    points: int,
) -> Columns:
    """Posterior downside exposures of both policies of the first example.

    On a grid of thresholds.
    """
    example = robustness_example(good_probability, safe_reward, loss, discount)
    assert example.thresholds is not None
    count = as_positive_int(points, "points")
    # the ends of the proposition's interval among them: there the exposures jump
    thresholds = np.sort(
        [*np.linspace(0.0, 1.2 * example.thresholds[1], count + 1)[1:], *example.thresholds]
    )
    check = check_robustness(example, alpha)
    curves = [
        [
            downside_exposure(
                example.posterior, example.rewards, example.discount, policy, float(threshold)
            ).probability
            for threshold in thresholds
        ]
        for policy in (check.mean_policy, check.quantile_policy)
    ]
    return {
        "threshold": thresholds,
        "mean_exposure": np.array(curves[0]),
        "quantile_exposure": np.array(curves[1]),
    }


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
    restart: str,
    truth: str,
) -> Columns:
    """One run in the second example, at the level ``alpha`` or, where there is none.

    With the adaptive schedule.
    """
    require_known(restart, ("geometric", "every-step"), "restart")
    example = probing_example(good_probability, safe_reward, discount)
    parts = (example.posterior, example.rewards, example.discount)
    rule = EveryStep() if restart == "every-step" else None
    agent = (
        aq_brmdp(*parts, delta=delta, floor=floor, restart=rule, rng=seed)
        if alpha is None
        else fixed_quantile(*parts, alpha=alpha, restart=rule, rng=seed)
    )
    run = follow_example(example, agent, steps, truth=truth)
    return {"state": run.state, "action": run.action, "regret": run.regret}


def _cautious_level(rng: np.random.Generator, good_probability: float) -> float:
    """At most 1 − μ, and that itself in half of the cases."""
    rest = 1.0 - good_probability
    return float(rest if rng.random() < 0.5 else rng.uniform(0.05, 1.0) * rest)


def _each(
    check: Callable[[np.random.Generator], dict[str, Any]], seed: np.random.SeedSequence, times: int
) -> Columns:
    """What repeated checks found, as columns."""
    rng = np.random.default_rng(seed)
    rows = [check(rng) for _ in range(as_positive_int(times, "problems"))]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


PROGRAMS: dict[str, Program] = {
    "robustness-example": Program(_robustness, {"problems": 50}),
    "trap-example": Program(_trap, {"problems": 10, "steps": 100, "delta": 5.0, "floor": 0.2}),
    "exposure-example": Program(
        _exposure,
        {
            "good_probability": REQUIRED,
            "safe_reward": REQUIRED,
            "loss": REQUIRED,
            "discount": REQUIRED,
            "alpha": REQUIRED,
            "points": 60,
        },
    ),
    "probing-example": Program(
        _probing,
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
    ),
}
"""By name."""

_FIRST = {"good_probability": 0.7, "safe_reward": 0.3, "loss": 0.5, "discount": 0.9, "alpha": 0.2}
_SECOND = {"good_probability": 0.7, "safe_reward": 0.5, "discount": 0.9}


def _agent(name: str, **parameters: Any) -> Computation:
    # the world is deterministic, so only the lengths of pseudo-episodes are left to chance
    most = 1 if parameters.get("restart") == "every-step" else 0
    return Computation(name, "probing-example", {**_SECOND, **parameters}, max_runs=most)


EXPERIMENT = Experiment(
    "examples",
    "Illustrative examples",
    (
        Computation("robustness", "robustness-example", max_runs=5),
        Computation("trap", "trap-example", max_runs=5),
        Computation("exposure", "exposure-example", _FIRST, max_runs=1),
        Computation(
            "brmdp-0.2",
            "probing-example",
            {**_SECOND, "alpha": 0.2, "restart": "every-step"},
            max_runs=1,
        ),
        _agent("aq-brmdp-delta-5"),
        _agent("aq-brmdp-delta-10", delta=10.0),
        _agent("aq-brmdp-delta-15", delta=15.0),
        _agent("every-step", restart="every-step"),
        _agent("bad-world", truth="bad"),
        _agent("bad-world-every-step", truth="bad", restart="every-step"),
    ),
    runs=60,
)
