"""
Groups that differ
==================

Twelve depots run the same machine. It wears faster the older it is, and in some depots faster than
in others. Some logs are long, some short. Pooling takes all depots to be alike; separate learning
leaves a short log alone with its prior. Partial pooling learns how much depots differ, and each
leans on the others as far as its own log is short. Five such companies; bars: ± 2 standard errors.
"""

import matplotlib.pyplot as plt
import numpy as np

import brmdp

WORST, DAYS, COMPANIES = 5, np.tile([20, 80, 320, 1280], 3), 5
ages = np.arange(WORST)
possible = np.zeros((WORST + 1, 1, WORST + 1))
possible[ages, 0, ages] = possible[ages, 0, ages + 1] = possible[WORST, 0, WORST] = 1.0


def company(rng):
    """Chance to wear, by depot and wear, and a log with the depot of every line."""
    haste = rng.normal(0.0, 0.7, size=(12, 1))
    truth = 1 / (1 + np.exp(2.0 - 0.4 * ages - haste))
    rows = []
    for depot, days in enumerate(DAYS):
        now = 0
        for _ in range(days):
            after = now + int(now < WORST and rng.random() < truth[depot, now])
            rows.append((now, after, depot))
            now = 0 if rng.random() < 0.08 else after  # renewed after twelve days or so
    state, following, depot = np.array(rows).T
    return truth, brmdp.Transitions(state, 0, following, group=depot, n_actions=1)


# %%
# The three ways. With ``pooling="auto"``, held-out prediction would choose.

rng = np.random.default_rng(0)
error = {"pooled": [], "separate": [], "partial": []}
for _ in range(COMPANIES):
    truth, log = company(rng)
    for way, found in error.items():
        known = {"shape": "uniform", "possible": possible, "draws": 200}
        learned = brmdp.learn_prior(log, pooling=way, rng=0, **known)
        group = (lambda depot: None) if way == "pooled" else (lambda depot: depot)
        wear = [learned.posterior(group(k)).mean()[ages, 0, ages + 1] for k in range(12)]
        found.append(abs(np.array(wear) - truth).mean(axis=1))

figure, axes = plt.subplots()
for way, found in error.items():
    by_length = np.array(found).reshape(COMPANIES, 3, 4).mean(axis=1)
    reach = 2.0 * by_length.std(axis=0, ddof=1) / np.sqrt(COMPANIES)
    axes.errorbar(DAYS[:4], by_length.mean(axis=0), reach, capsize=3, label=way)
axes.set(title="Error of the estimated wear", xscale="log", xlabel="days", ylabel="mean error")
axes.set_xticks(DAYS[:4], DAYS[:4])
axes.minorticks_off()
axes.set_ylim(bottom=0.0)
axes.legend()
