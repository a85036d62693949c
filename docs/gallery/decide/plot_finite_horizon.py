"""
The last days of a season
=========================

A shop sells for fourteen more days; what is left then is worth nothing. With ``horizon=`` a plan
has one policy per day. Forty observed demands are all that is known, and one law of demand serves
all stocks and orders, so every one of them teaches something about each.
"""

import matplotlib.pyplot as plt
import numpy as np

import brmdp

shop = brmdp.envs.inventory()  # price 4, cost 2 a unit and 1 an order
belief = brmdp.DisturbanceBelief(shop.outcomes)
demands = np.random.default_rng(0).choice(shop.demand.size, size=40, p=shop.demand)
belief.observe_disturbance(demands)
rewards = brmdp.DisturbanceRewards(shop.disturbance_rewards)

# %%
# No discount is needed: a horizon ends by itself.

plan = brmdp.plan(belief, rewards, 1.0, risk=brmdp.Quantile(0.2), horizon=14)
print("worth of the season, by the 20 % quantile at every step:", plan.values[0][0].round(2))

figure, axes = plt.subplots(figsize=(5.2, 3.9))
orders = np.array([plan.policy[day] for day in range(14)]).T  # stock × day
axes.imshow(orders, cmap="Blues", vmin=0, vmax=9, aspect="auto", origin="lower")
for (stock, day), order in np.ndenumerate(orders):
    axes.text(day, stock, order or "·", ha="center", va="center", color="black")
axes.grid(visible=False)
axes.set_xticks(range(14), range(14, 0, -1))
axes.set(title="What to order", xlabel="days left", ylabel="stock in the morning")
axes.set_yticks(range(11))
