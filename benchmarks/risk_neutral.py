"""Against QuantEcon's risk-neutral policy iteration on the posterior-mean MDP."""

from __future__ import annotations

import statistics
from dataclasses import asdict
from importlib import import_module

import numpy as np
from quantecon.markov import DiscreteDP

import brmdp
from benchmarks.scenario import Moment, Scenario, moments, scenarios
from benchmarks.timing import Case, Ratio, interleave, milliseconds, print_table, verdict

REFERENCE = "QuantEcon policy iteration"
WITH_CONSTRUCTION = "QuantEcon policy iteration, with construction"
TARGETS = {
    "brmdp exact quantile, cold": 30,
    "brmdp exact quantile, warm": 30,
    "brmdp.plan, posterior mean": 1,
    "brmdp.solve": 1,
    "brmdp.solve, with construction": 1,
}
MDPSOLVER = "mdpsolver, modified policy iteration from zero"
"""Measured if that package is installed; no extra of ours asks for it."""


def run(quick: bool) -> dict:
    """Time both libraries on the posterior means of both worlds."""
    return {
        scenario.name: _measure(scenario, rounds=5 if quick else 25) for scenario in scenarios()
    }


def _measure(scenario: Scenario, rounds: int) -> dict:
    before, now = moments(scenario, 2)
    cases, difference = _cases(scenario, before, now)
    seconds = interleave(cases, rounds)
    rows, report = [], {"max_difference_of_values": difference}
    if MDPSOLVER not in cases:
        report[MDPSOLVER] = "not measured: mdpsolver is not installed"
        print(f"\n{report[MDPSOLVER]}")
    for name, times in seconds.items():
        reference = WITH_CONSTRUCTION if "with construction" in name else REFERENCE
        slower = Ratio.of(times, seconds[reference])
        target = TARGETS.get(name)
        report[name] = {
            "median_seconds": statistics.median(times),
            "seconds": times,
            "times_as_long_as_quantecon": asdict(slower),
            "target": target,
        }
        rows.append((name, milliseconds(times), slower, verdict(slower.median, at_most=target)))
    print_table(
        f"Posterior-mean {scenario.name} at step {now.step}, {rounds} alternating rounds "
        f"(values agree to {difference:.0e})",
        ("method", "ms (range)", "times as long (range)", "target"),
        rows,
    )
    return report


def _cases(scenario: Scenario, before: Moment, now: Moment) -> tuple[dict[str, Case], float]:
    discount = scenario.discount
    mean = now.concentration / now.concentration.sum(axis=2, keepdims=True)
    rewards = np.einsum("sap,sap->sa", mean, scenario.rewards)
    quantecon, mdp = DiscreteDP(rewards, mean, discount), brmdp.TabularMDP(mean, rewards, discount)
    exact, neutral = brmdp.Quantile(now.levels), brmdp.Mean()
    previous = brmdp.plan(
        before.belief, scenario.rewards, discount, risk=brmdp.Quantile(before.levels)
    )

    def plan(risk, initial=None):
        return brmdp.plan(now.belief, scenario.rewards, discount, risk=risk, initial=initial)

    optimum = quantecon.solve(method="policy_iteration").v
    answers = brmdp.solve(mdp).values, plan(neutral).values
    difference = max(float(np.max(np.abs(values - optimum))) for values in answers)
    assert difference < 1e-7, "the libraries solve different problems"

    others = {}
    try:
        other = import_module("mdpsolver").model()
    except ImportError:
        pass
    else:
        other.mdp(discount=discount, rewards=rewards.tolist(), tranMatWithZeros=mean.tolist())

        def solve_other(_):
            # without a start it would go on from its last values
            other.solve(
                algorithm="mpi", tolerance=1e-9, parallel=False, initValueVector=[0.0] * len(mean)
            )

        solve_other(0)
        found = np.asarray(other.getValueVector())
        assert np.abs(found - optimum).max() < 1e-6, "mdpsolver solves another problem"
        others[MDPSOLVER] = Case(solve_other)

    return others | {
        REFERENCE: Case(lambda _: quantecon.solve(method="policy_iteration")),
        "brmdp.solve": Case(lambda _: brmdp.solve(mdp)),
        "brmdp.plan, posterior mean": Case(lambda _: plan(neutral)),
        "brmdp exact quantile, cold": Case(lambda _: plan(exact)),
        "brmdp exact quantile, warm": Case(lambda _: plan(exact, previous)),
        WITH_CONSTRUCTION: Case(
            lambda _: DiscreteDP(rewards, mean, discount).solve(method="policy_iteration")
        ),
        "brmdp.solve, with construction": Case(
            lambda _: brmdp.solve(brmdp.TabularMDP(mean, rewards, discount))
        ),
    }, difference
