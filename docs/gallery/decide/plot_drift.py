"""
A check that sees drift
=======================

A machine wears faster in the second half of its log. The check "drift" asks whether the halves are
alike, by predicting what was held out. It says *stop* only if chance would hardly show such a
difference and the difference matters for the decision. We change the wear by more and more, six
logs each.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import brmdp


def log_of(factor, seed):
    """Twenty machines for 60 days; from day 30 on, they wear ``factor`` times as fast."""
    rng, rows = np.random.default_rng(seed), []
    for machine in range(20):
        wear = 0
        for day in range(60):
            did = "renew" if rng.random() < 0.02 + 0.03 * wear else "run"
            rows.append((machine, day, wear, did))
            speed = 0.2 * (factor if day >= 30 else 1.0)
            wear = 0 if did == "renew" else min(wear + int(rng.random() < speed), 9)
    table = pd.DataFrame(rows, columns=["machine", "day", "wear", "did"])
    return brmdp.read_log(table, unit="machine", time="day", state="wear", action="did")


# %%
# Running costs 1 per step of wear, renewing costs 6.

factors = [1.0, 1.4, 2.0, 3.0]
costs = {"run": {"per": 1.0}, "renew": 6.0}
verdicts = []
for factor in factors:
    for seed in range(6):
        model = brmdp.Model(
            log_of(factor, seed), costs=costs, discount=0.95, start=0, reset={"renew": 0}
        )
        verdicts += [(factor, check.verdict) for check in model.check() if check.name == "drift"]

figure, axes = plt.subplots()
bottom = np.zeros(len(factors))
for verdict, colour, hatch in [
    ("stop", "#D55E00", "//"),
    ("look", "#E69F00", ".."),
    ("fine", "#56B4E9", ""),
]:
    count = np.array([verdicts.count((factor, verdict)) for factor in factors])
    axes.bar(range(4), count, bottom=bottom, color=colour, hatch=hatch, ec="white", label=verdict)
    bottom += count
axes.set(title='What the check "drift" says', xlabel="wear in the second half", ylabel="logs")
axes.set_xticks(range(4), ["as before"] + [f"× {factor:g}" for factor in factors[1:]])
axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), handlelength=1.5)
