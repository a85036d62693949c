"""
Turning the dial of caution
===========================

A machine wears from 0 to 9 and may break any day, the more worn the likelier. Renewing it costs 3;
once it is broken, it has to be renewed for 15. The log has 200 days. A low quantile level plans as
if whatever the log leaves open turned out badly, so it renews early; a high level waits.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import brmdp

RUN, RENEW, BROKEN = 0, 1, 10
kernel = np.zeros((11, 2, 11))
for wear in range(10):
    kernel[wear, RUN, BROKEN] = breaks = 0.005 + 0.012 * wear**1.2
    for more, share in enumerate([0.45, 0.4, 0.15]):
        kernel[wear, RUN, min(wear + more, 9)] += share * (1 - breaks)
kernel[BROKEN, RUN, 0] = kernel[:, RENEW, 0] = 1.0
profit = np.array([[1.0, -3.0]] * 10 + [[-15.0, -15.0]])
world = brmdp.TabularMDP(kernel, profit, 0.95)

# %%
# Two hundred days, on which somebody renewed the machine on gut feeling. What is taken for known is
# which moves are possible, not how likely they are.

rng = np.random.default_rng(7)
belief = brmdp.DirichletBelief.uniform(11, 2, 0.5, possible=world)
state = 0
for _ in range(200):
    action = RENEW if state == BROKEN or rng.random() < 0.03 + 0.03 * state else RUN
    following = rng.choice(11, p=kernel[state, action])
    belief.observe(state, action, following)
    state = following

# %%
# One plan per level, and what each is worth: in 2,000 worlds drawn from the belief, and in truth.
# Curious plans enter states that were hardly seen; they rest on the prior, and warn of it. One log
# proves nothing about caution: the picture on the start page is of two hundred.

warnings.simplefilter("ignore", brmdp.PriorWarning)
levels = np.linspace(0.04, 0.96, 24)
risks = [brmdp.Quantile(level) for level in levels]
policies = [brmdp.plan(belief, profit, 0.95, risk=risk, start=0).policy for risk in risks]
limits = [int(np.append(policy[:10] == RENEW, True).argmax()) for policy in policies]
drawn = brmdp.values_in_draws(belief, profit, 0.95, policies, start=0, draws=2000, rng=0).values
truth = [brmdp.evaluate_in_mdp(world, policy)[0] for policy in policies]

figure, (above, below) = plt.subplots(2, sharex=True, figsize=(5.2, 5.4))
above.step(levels, limits, where="mid", marker="o", linestyle="-")
above.set(title="The plan", ylabel="renew from this wear on")
below.plot(levels, drawn.mean(axis=0), label="expected by the belief")
below.plot(levels, np.quantile(drawn, 0.1, axis=0), label="exceeded with 90 %, by the belief")
below.plot(levels, truth, label="in truth")
below.set(title="Its worth", ylabel="discounted profit", xlabel="cautious ← level → curious")
below.legend()
