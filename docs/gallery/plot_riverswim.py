"""
Learning to swim against the current
====================================

RiverSwim has a small reward at the near end and a large one at the far end, which only those find
who keep swimming. AQ-BRMDP and Continuing PSRL (one posterior draw per plan) learn it from nothing
but which moves are possible. Thirty runs each, with common seeds; bands are two standard errors of
the mean.
"""

import matplotlib.pyplot as plt
import numpy as np

import brmdp

RUNS, STEPS = 30, 1500
AGENTS = {
    "AQ-BRMDP, δ = 5": lambda *known, rng: brmdp.agents.aq_brmdp(*known, delta=5, rng=rng),
    "Continuing PSRL": lambda *known, rng: brmdp.agents.continuing_psrl(*known, rng=rng),
}
regret = {}
for name, make in AGENTS.items():
    runs = []
    for run in range(RUNS):
        world = brmdp.World("brmdp/RiverSwim-v0", discount=0.9)
        agent = make(world.prior(), world.rewards, 0.9, rng=run)
        runs.append(brmdp.simulate(agent, world, STEPS, seed=run).true_regret.cumsum())
    regret[name] = np.array(runs)

# %%
# True regret is what the plan in force loses against the optimum, computed exactly at every step.

figure, axes = plt.subplots()
for name, runs in regret.items():
    mean = runs.mean(axis=0)
    error = 2.0 * runs.std(axis=0, ddof=1) / np.sqrt(RUNS)
    (line,) = axes.plot(mean, markevery=200, label=name)
    axes.fill_between(
        np.arange(STEPS), mean - error, mean + error, alpha=0.2, color=line.get_color()
    )
axes.set(title="Cumulative true regret, 30 runs", xlabel="step", ylabel="discounted value")
axes.legend()

difference = np.subtract(*regret.values())[:, -1]
reach = 2.0 * difference.std(ddof=1) / np.sqrt(RUNS)
print(f"AQ-BRMDP − PSRL after {STEPS} steps: {difference.mean():.0f} ± {reach:.0f}")

# %%
# One world and a short time. The pages on the paper's experiments have more runs, more worlds and
# fixed levels beside these two.
