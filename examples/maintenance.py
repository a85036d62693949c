"""Plan a small problem that is not fully known, and see what can be guaranteed.

A machine wears from state 0 (new) to state 4 (broken). Each day you *run* it, *service* it or
*replace* it. You have sixty days of records, and the wear rates are uncertain. Run it with
``python examples/maintenance.py``.
"""

from __future__ import annotations

import time

import numpy as np

import brmdp

STATES = ("new", "good", "worn", "shaky", "broken")
ACTIONS = ("run", "service", "replace")
DISCOUNT = 0.95
LEVELS = (0.05, 0.5, 0.95)


def true_kernel() -> np.ndarray:
    """Wear, servicing and replacement as they really are (the planner never sees this)."""
    kernel = np.zeros((5, 3, 5))
    for s in range(4):
        np.add.at(kernel[s, 0], [s, s + 1, min(s + 2, 4)], (0.72, 0.22, 0.06))
        np.add.at(kernel[s, 1], [max(s - 1, 0), s, s + 1], (0.60, 0.35, 0.05))
    kernel[4, 0, 4] = 1.0
    kernel[4, 1, [3, 4]] = 0.3, 0.7
    kernel[:, 2, 0] = 1.0
    return kernel


def rewards() -> np.ndarray:
    """Daily profit: running earns less as the machine wears and loses once it is broken.

    Service and replacement cost extra.
    """
    profit = np.array([1.0, 0.95, 0.85, 0.7, -1.5])
    return np.stack([profit, profit - 0.35, profit - 1.6], axis=1)


def records(days: int, *, rng: np.random.Generator) -> brmdp.DirichletBelief:
    """The belief after some days with a sensible but random operator.

    The prior holds what is known without data: replacement gives a new machine, a running machine
    never recovers and wears by at most two steps a day, and service changes at most one step.
    """
    kernel = true_kernel()
    now, then = np.arange(5)[:, None], np.arange(5)
    wear, service, new = (
        (then >= now) & (then <= now + 2),
        abs(then - now) <= 1,
        np.broadcast_to(then == 0, (5, 5)),
    )
    possible = np.stack([wear, service, new], axis=1)
    belief = brmdp.DirichletBelief.uniform(5, 3, 0.5, possible=possible)
    state = 0
    for _ in range(days):
        action = (
            int(rng.choice(3, p=(0.2, 0.3, 0.5)))
            if state == 4
            else int(rng.choice(3, p=(0.7, 0.25, 0.05)))
        )
        following = int(rng.choice(5, p=kernel[state, action]))
        belief.observe(state, action, following)
        state = following
    return belief


def main() -> None:
    """Plan at three levels, certify, and compare with the truth."""
    rng = np.random.default_rng(7)
    belief = records(60, rng=rng)
    profit = rewards()
    print("Preparing the numerical kernels (compiled once per installation) ...", flush=True)
    started = time.perf_counter()
    brmdp.plan(belief, profit, DISCOUNT, risk=brmdp.Quantile(0.5))
    print(f"... ready after {time.perf_counter() - started:.1f} s\n")

    plans = {}
    clock = {}
    for level in LEVELS:
        risk = brmdp.Quantile(level)
        started = time.perf_counter()
        plans[level] = brmdp.plan(belief, profit, DISCOUNT, risk=risk)
        clock[level] = 1e3 * (time.perf_counter() - started)

    print(f"{belief}\n")
    print("Policy and value at three posterior quantile levels (low: cautious, high: curious)\n")
    print("  state   days seen  " + "".join(f"   level {level:<4}         " for level in LEVELS))
    seen = belief.counts().sum(axis=(1, 2))
    for s, name in enumerate(STATES):
        cells = "".join(
            f"   {ACTIONS[plan.policy[s]] + ('*' if plan.tied[s] else ''):<8} {plan.values[s]:9.4f}"
            for plan in plans.values()
        )
        print(f"  {name:<7} {seen[s]:>9}  {cells}")
    print(
        "  error bound        "
        + "".join(f"   {plan.error_bound:>18.1e}" for plan in plans.values())
    )
    print("  planned in         " + "".join(f"   {clock[level]:>15.2f} ms" for level in LEVELS))
    if any(plan.tied.any() for plan in plans.values()):
        print("  (* several actions are equally good)")

    print(f"\nHow much the cautious plan depends on the prior\n\n{plans[LEVELS[0]].prior}")

    certificate = brmdp.certify(belief, profit, DISCOUNT, confidence=0.9, rng=rng)
    mdp = brmdp.TabularMDP(true_kernel(), profit, DISCOUNT)
    truth = brmdp.evaluate_in_mdp(mdp, certificate.policy)
    best = brmdp.solve(mdp)
    print("\nThe policy with the best 90 % guarantee\n")
    print("  state     action     certified   its true value   best possible")
    for s, name in enumerate(STATES):
        action = ACTIONS[certificate.policy[s]]
        print(
            f"  {name:<8}  {action:<9} {certificate.values[s]:10.4f} {truth[s]:16.4f} "
            f"{best.values[s]:15.4f}"
        )
    print(f"\n{certificate}")


if __name__ == "__main__":
    main()
