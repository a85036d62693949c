"""
Quantile, CVaR, mean
====================

Three ways to turn doubt into a number. The mean ignores how sure you are. A quantile is what is
exceeded with a given probability. CVaR averages over everything below that quantile, so at the same
level it is the more cautious of the two.
"""

import matplotlib.pyplot as plt
import numpy as np

import brmdp

river = brmdp.envs.riverswim(6)
belief = brmdp.DirichletBelief.uniform(6, 2, possible=river)
rng = np.random.default_rng(1)
for state, action in np.ndindex(6, 2):
    belief.observe(state, action, rng.choice(6, size=40, p=river.kernel()[state, action]))

# %%
# The value of the best plan from the left end of the river, by level.

levels = np.linspace(0.02, 0.98, 33)


def worth(risk):
    """Value of the best plan from the left end."""
    return brmdp.plan(belief, river.rewards, 0.9, risk=risk).values[0]


figure, axes = plt.subplots()
axes.plot(levels, [worth(brmdp.Quantile(a)) for a in levels], markevery=4, label="Quantile(level)")
axes.plot(levels, [worth(brmdp.CVaR(a)) for a in levels], markevery=4, label="CVaR(level)")
axes.axhline(worth(brmdp.Mean()), color="black", linestyle=":", label="Mean()")
axes.set(
    title="Value of the best plan, by the measure itself",
    xlabel="cautious ← level → curious",
    ylabel="discounted value",
)
axes.legend()

# %%
# CVaR never gets curious: at level 1 it ends at the mean. A quantile passes the mean and goes on,
# which is what AQ-BRMDP explores with. Both apply the measure at every step, so neither curve is a
# quantile of the policy's value; for that, see the example on certificates.
