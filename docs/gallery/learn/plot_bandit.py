"""
Which arm does caution choose?
==============================

A bandit with three arms that pay 0 or 1, and nobody knows how often. One was pulled a hundred
times and won 55 times, one won 6 of 10, one 1 of 2. With ``OutcomeBelief`` the rewards are learned,
too, and ``rewards=None`` says so. A cautious plan takes the arm it knows; a curious one takes the
arm that might be better than anything seen.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import brmdp

belief = brmdp.OutcomeBelief.uniform(1, 3, rewards=[0, 1])
won, lost = [55, 6, 1], [45, 4, 1]
for arm in range(3):
    belief.observe(0, [arm] * (won[arm] + lost[arm]), 0, reward=[1] * won[arm] + [0] * lost[arm])

# %%
# With a discount of 0 nothing but the next reward counts, so the value of an arm is the quantile of
# its chance to win. Plans that take the third arm rest on the prior as much as on two pulls, and
# warn of it.

warnings.simplefilter("ignore", brmdp.PriorWarning)
levels = np.linspace(0.02, 0.98, 49)
worth = np.array(
    [brmdp.plan(belief, None, 0.0, risk=brmdp.Quantile(a)).q_values[0] for a in levels]
)

figure, axes = plt.subplots()
for arm in range(3):
    label = f"{won[arm]} of {won[arm] + lost[arm]} won"
    axes.plot(levels, worth[:, arm], markevery=(2 * arm, 8), label=label)
best = {"color": "#bbbbbb", "linewidth": 7, "linestyle": "-", "marker": "", "zorder": 0}
axes.plot(levels, worth.max(axis=1), label="chosen", **best)
axes.set(
    title="Worth of the arms",
    xlabel="cautious ← quantile level → curious",
    ylabel="quantile of the chance to win",
)
axes.legend()
