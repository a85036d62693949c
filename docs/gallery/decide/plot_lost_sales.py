"""
Lost sales: "at least" is not "equal to"
========================================

A shop fills its shelf to between two and seven units and writes down what it sold. On a day on
which it sold out, the demand was at least that; nobody counted the customers who left. To leave
such days out, or to take sales for demand, makes demand look smaller than it is.
"""

import matplotlib.pyplot as plt
import numpy as np

import brmdp

DEMAND = np.array([0.05, 0.10, 0.15, 0.20, 0.20, 0.15, 0.10, 0.05, 0.0, 0.0])
shop = brmdp.envs.inventory(9, 9, DEMAND)


def believed(rng):
    """Three beliefs about the demand, from the same 100 days."""
    stock = rng.integers(2, 8, size=100)
    sold = np.minimum(stock, rng.choice(10, size=100, p=DEMAND))
    sold_out = sold == stock
    left_out, as_demand, at_least = (
        brmdp.CensoredDisturbanceBelief(shop.outcomes, 0.5) for _ in range(3)
    )
    left_out.observe_disturbance(sold[~sold_out])
    as_demand.observe_disturbance(sold)
    at_least.observe_disturbance(sold[~sold_out])
    at_least.observe_at_least(stock[sold_out])
    return [belief.disturbance_mean() for belief in (left_out, as_demand, at_least)]


# %%
# Averages over a hundred such logs; bars are 95 % intervals of the averages.

rng = np.random.default_rng(0)
means = np.array([believed(rng) for _ in range(100)])  # logs × beliefs × demand
more_than = 1.0 - means.cumsum(axis=2)
average, error = more_than.mean(axis=0), 1.96 * more_than.std(axis=0, ddof=1) / 10.0

figure, axes = plt.subplots()
days = np.arange(9)
axes.bar(days, 1.0 - DEMAND.cumsum()[:9], color="#dddddd", label="truth")
for k, label in enumerate(["sold-out days left out", "sales as demand", "at least"]):
    axes.errorbar(days + 0.15 * (k - 1), average[k, :9], error[k, :9], capsize=2, label=label)
axes.set(
    title="What 100 days make us believe",
    xlabel="units",
    ylabel="probability of a larger demand",
    xticks=days,
)
axes.legend()

# %%
# Where nobody has looked, "at least" leans on its prior, here half an observation for every demand
# from 0 to 9; that is why it expects a few customers too many at the far end.
