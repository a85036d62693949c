"""
Would more data pay?
====================

Two ways to serve a customer are known from 30 trials each; a third was tried four times. Before
deciding, you could try it more often. ``value_of_information`` simulates what would be seen, plans
anew each time, and states what that gains over deciding today, with its Monte Carlo error.
"""

import matplotlib.pyplot as plt
import numpy as np

import brmdp

# state 0: the customer is waiting; 1: content; 2: lost. A content one pays 1, then the next waits.
possible = np.zeros((3, 3, 3))
possible[0, :, 1:] = possible[1:, :, 0] = 1.0
belief = brmdp.DirichletBelief.uniform(3, 3, possible=possible)
for way, (content, lost) in enumerate([(18, 12), (20, 10), (2, 2)]):
    belief.observe(0, way, [1] * content + [2] * lost)
rewards = np.zeros((3, 3))
rewards[1] = 1.0

# %%
# The same for one, then two, four … and 256 more trials of the third way.

trials = 2 ** np.arange(9)
found = [
    brmdp.value_of_information(
        belief, rewards, 0.95, pairs=[(0, 2)], transitions=n, start=0, draws=1000, rng=0
    )
    for n in trials.tolist()
]
gain = np.array([one.sample.mean for one in found])
error = 1.96 * np.array([one.sample.error for one in found])
print(found[-1])

figure, axes = plt.subplots()
axes.errorbar(trials, gain, error, capsize=3, label="more trials of the third way")
axes.axhline(found[0].perfect.mean, color="black", linestyle="--", label="knowing everything")
axes.set(
    title="What more trials would add", xscale="log", xlabel="trials", ylabel="discounted value"
)
axes.set_xticks(trials, [str(n) for n in trials])
axes.minorticks_off()
axes.set_ylim(0.0, 0.5)
axes.legend(loc="upper left", bbox_to_anchor=(0.0, 0.82))

# %%
# Compare the curve with what a trial costs. More trials add less and less, and no number of them
# is worth more than knowing all three ways.
