"""
What a certificate gives away
=============================

How much is a policy worth at least, with probability 0.9? By the belief, the answer is the 10 %
quantile of its value, and a bound that can be proved must lie below it. Proposition 1 of the paper
needs no draws but combines quantiles of single rows, which costs a great deal. The order statistic
of posterior draws (the default of ``certify``) comes close.
"""

import matplotlib.pyplot as plt
import numpy as np

import brmdp

river = brmdp.envs.riverswim(6)
belief = brmdp.DirichletBelief.uniform(6, 2, possible=river)
rng = np.random.default_rng(1)
for state, action in np.ndindex(6, 2):
    belief.observe(state, action, rng.choice(6, size=100, p=river.kernel()[state, action]))

# %%
# Both bounds for the same policy, from the left end of the river.

policy = np.ones(6, dtype=int)  # always swim to the right
nested = brmdp.certify(belief, river.rewards, 0.9, method="nested", policy=policy, start=0)
sharp = brmdp.certify(belief, river.rewards, 0.9, policy=policy, start=0, rng=0)
print(sharp)

# %%
# All of this is by the belief. In this case we know the truth, too.

drawn = brmdp.values_in_draws(belief, river.rewards, 0.9, policy, start=0, draws=20_000, rng=1)
worth = brmdp.evaluate_in_mdp(river, policy)[0]

figure, axes = plt.subplots()
axes.hist(drawn.values.ravel(), bins=80, density=True, color="#cccccc")
for value, label, line, colour in [
    (nested.value, "Proposition 1", ":", "#D55E00"),
    (sharp.value, "certified from draws", "-", "#0072B2"),
    (sharp.quantile, "10 % quantile itself", "--", "black"),
    (worth, "true value", "-.", "#009E73"),
]:
    axes.axvline(value, linestyle=line, color=colour, linewidth=2, label=f"{label}: {value:.3f}")
axes.set(
    title="Worth of swimming right, by the belief", xlabel="discounted value", ylabel="density"
)
axes.set_xlim(0.2, 2.4)
axes.legend()
