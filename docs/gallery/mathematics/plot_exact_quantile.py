"""
A quantile without sampling
===========================

From one state there are four possible successors, worth 0, 1, 2 and 5. Having been there 20 times,
we believe in a Dirichlet law for their probabilities, so the expected value of the next state is
uncertain, too. Its quantile can be estimated from posterior draws, as in the paper, or computed.
"""

import matplotlib.pyplot as plt
import numpy as np

from brmdp import dirichlet

seen = np.array([11.0, 6.0, 2.0, 1.0])
belief, values, level = seen + 0.5, np.array([0.0, 1.0, 2.0, 5.0]), 0.1
exact = dirichlet.quantile(belief, values, level)

# %%
# The density is the slope of the exact distribution function.

grid = np.linspace(0.0, 2.5, 251)
density = np.gradient(dirichlet.cdf(belief, values, grid), grid)
rng = np.random.default_rng(0)
drawn = rng.dirichlet(belief, size=5000) @ values

# %%
# The paper's planner takes 147 draws, sorts them and picks the 15th. We repeat that a thousand
# times.

samples = rng.dirichlet(belief, size=(1000, 147)) @ values
estimates = np.sort(samples, axis=1)[:, int(np.ceil(level * 147)) - 1]

figure, (above, below) = plt.subplots(2, figsize=(5.2, 5.2))
above.hist(drawn, bins=60, density=True, color="#cccccc", label="5,000 draws")
above.plot(grid, density, linestyle="-", marker="", label="exact law")
above.set(title="Expected value of the next state", ylabel="density", xlim=(0.0, 2.0))
below.hist(estimates, bins=30, density=True, color="#cccccc", label="from 147 draws")
below.set(title="Its 10 % quantile", xlabel="value", ylabel="density", xlim=(0.45, 0.75))
for axes in (above, below):
    axes.axvline(exact, color="black", linestyle="--", label="exact 10 % quantile")
    axes.legend()
print(f"exact {exact:.6f}; from 147 draws {estimates.mean():.3f} ± {estimates.std():.3f}")

# %%
# The sampled planner meets this error in every state and at every sweep; the exact one does not.
