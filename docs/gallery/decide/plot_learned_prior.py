"""
A prior learned from the log
============================

The queue at a desk changes by −2 to 2 an hour, with the same probabilities whatever its length. The
library is not told that. With a uniform prior, every length is a case of its own, and what is
expected of rare ones is mostly prior. ``learn_prior`` asks by held-out prediction whether lengths
resemble each other; if so, rare ones lean on the others.
"""

import matplotlib.pyplot as plt
import numpy as np

import brmdp

LONGEST, CHANGE, LOGS = 15, np.array([0.25, 0.3, 0.2, 0.15, 0.1]), 20
lengths = np.arange(LONGEST + 1)
possible = (abs(np.subtract.outer(lengths, lengths)) <= 2)[:, None]
kernel = np.zeros((LONGEST + 1, LONGEST + 1))
for change, share in enumerate(CHANGE):
    np.add.at(kernel, (lengths, np.clip(lengths + change - 2, 0, LONGEST)), share)
truth = kernel @ lengths - lengths  # expected change

# %%
# Twenty logs of sixty days, and two beliefs from each. Bars are two standard errors.

rng = np.random.default_rng(0)
error, chosen = np.empty((LOGS, 2, LONGEST + 1)), []
for number in range(LOGS):
    queue = np.full((60, 9), 6)  # days × hours
    for hour in range(8):
        moved = queue[:, hour] + rng.choice(5, p=CHANGE, size=60) - 2
        queue[:, hour + 1] = np.clip(moved, 0, LONGEST)
    before, after = queue[:, :-1].ravel(), queue[:, 1:].ravel()
    log = brmdp.Transitions(before, 0, after, np.repeat(np.arange(60), 8), None, LONGEST + 1, 1)
    learned = brmdp.learn_prior(log, reach=2, draws=200, rng=0)
    chosen.append(learned.shape)
    uniform = brmdp.DirichletBelief.uniform(LONGEST + 1, 1, possible=possible)
    uniform.observe(before, 0, after)
    for k, belief in enumerate([learned.posterior(), uniform]):
        error[number, k] = abs(belief.mean()[:, 0] @ lengths - lengths - truth)
print(f"lengths found to be alike in {chosen.count('increments')} of {LOGS} logs")

figure, (above, below) = plt.subplots(2, sharex=True, figsize=(5.2, 5.0), height_ratios=[2, 1])
for k, label in enumerate(["learned prior", "uniform prior"]):
    reach = 2.0 * error[:, k].std(axis=0, ddof=1) / np.sqrt(LOGS)
    above.errorbar(lengths, error[:, k].mean(axis=0), reach, capsize=2, label=label)
above.set(title="Error of the expected change", ylabel="customers an hour")
above.legend()
below.bar(lengths, np.bincount(before, minlength=LONGEST + 1), color="#bbbbbb")
below.set(title="How often seen, last log", xlabel="length of the queue", ylabel="times")
