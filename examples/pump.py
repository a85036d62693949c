"""An agent drives a pump hour by hour, and is stopped and resumed halfway.

The pump wears, and may run or be serviced. How fast it wears is not known to the agent, which
learns it while it decides. Put your own system in place of ``pump``.

Run ``python examples/pump.py`` (or ``make agent``).
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import brmdp

RUN, SERVICE = 0, 1
WEAR = 6
HOURS = 400


def pump(wear: int, action: int, rng: np.random.Generator) -> int:
    """One hour of the real system; the agent never sees its inside."""
    if action == SERVICE:
        return 0
    return min(wear + int(rng.random() < 0.15 + 0.1 * wear), WEAR - 1)


def new_agent() -> brmdp.Agent:
    """What is known beforehand: wear grows by one at most, a service resets it, and what pays."""
    possible = np.zeros((WEAR, 2, WEAR))
    for wear in range(WEAR):
        possible[wear, RUN, [wear, min(wear + 1, WEAR - 1)]] = 1
        possible[wear, SERVICE, 0] = 1
    prior = brmdp.DirichletBelief.uniform(WEAR, 2, possible=possible)
    output = 1.0 - np.array([0.0, 0.05, 0.1, 0.2, 0.4, 1.5])
    rewards = np.column_stack([output, np.full(WEAR, -0.6)])
    return brmdp.agents.aq_brmdp(prior, rewards, discount=0.95, delta=1, rng=0)


def main() -> None:
    """Drive the pump, save the agent, load it again, and go on."""
    rng = np.random.default_rng(0)
    agent, wear, services = new_agent(), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "agent.npz"
        for hour in range(1, HOURS + 1):
            action = agent.act(wear)
            following = pump(wear, action, rng)
            agent.observe(wear, action, following)
            wear, services = following, services + (action == SERVICE)
            if hour in (1, 20, 100, HOURS):
                plan = " ".join("service" if a == SERVICE else "run" for a in agent.policy)
                print(f"hour {hour:3}, {services:2} services; the plan by wear: {plan}")
            if hour == HOURS // 2:
                agent.save(file)
                agent = brmdp.Agent.load(file)
    print("\nAt a wear of 3:")
    for report, name in zip(agent.explain(3), ("run", "service"), strict=True):
        print(
            f"  {name:7}  value {report.value:.3f} at level {report.level:.2f}, "
            f"{report.visits} times tried{', chosen' if report.chosen else ''}"
        )


if __name__ == "__main__":
    main()
