"""
From cautious to curious
========================

AQ-BRMDP gives every pair of state and action its own quantile level. With the paper's δ = 5, all
begin at the floor, the most cautious level. As data arrive, the levels rise, first those of pairs
that were tried less often than the average; those that were tried often follow later.
"""

import matplotlib.pyplot as plt
import numpy as np

import brmdp

world = brmdp.World("brmdp/RiverSwim-v0", discount=0.9)
agent = brmdp.agents.aq_brmdp(world.prior(), world.rewards, 0.9, delta=5, floor=0.2, rng=0)
history = brmdp.simulate(agent, world, steps=3000, seed=0)

# %%
# The history has the levels of every plan, and the first step that followed it.

first = np.array(history.episodes.first_step)
levels = np.array(history.episodes.levels).reshape(len(first), 6, 2)
visits = np.zeros((3000, 6, 2), dtype=int)
visits[np.arange(3000), history.state, history.action] = 1
visits = visits.cumsum(axis=0)

figure, (above, below) = plt.subplots(2, sharex=True, figsize=(5.2, 5.0))
for state, action, label in [
    (0, 1, "leftmost place, right"),
    (5, 1, "rightmost place, right"),
    (5, 0, "rightmost place, left"),
]:
    style = {"markevery": 0.12, "label": label}
    above.plot(first, levels[:, state, action], drawstyle="steps-post", **style)
    below.plot(1 + np.arange(3000), np.maximum(visits[:, state, action], 0.8), **style)
above.set(title="Level at which it is judged", ylabel="quantile level", ylim=(0.0, 1.03))
below.set(title="How often it was tried", ylabel="times", xlabel="step", yscale="log")
below.legend(loc="upper right", bbox_to_anchor=(1.0, 0.5))
