"""
A quantile without sampling
===========================

From one state there are four possible successors, worth 0, 1, 2 and 5. Having been there 20 times,
we believe in a Dirichlet law for their probabilities, so the expected value of the next state is
uncertain, too. Its quantile can be estimated from posterior draws, as in the paper, or computed.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

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
# The paper's planner sorts posterior draws of every row and takes one of them. Its budget rule says
# how many; 150 is its constant for RiverSwim-6. We repeat that a thousand times.

n = int(np.ceil(150 * level * (1 - level) / norm.pdf(norm.ppf(level)) ** 2))
samples = rng.dirichlet(belief, size=(1000, n)) @ values
estimates = np.sort(samples, axis=1)[:, int(np.ceil(level * n)) - 1]

figure, (above, below) = plt.subplots(2, figsize=(5.2, 5.2))
above.hist(drawn, bins=60, density=True, color="#cccccc", label="5,000 draws")
above.plot(grid, density, linestyle="-", marker="", label="exact law")
above.set(title="Expected value of the next state", ylabel="density", xlim=(0.0, 2.0))
below.hist(estimates, bins=30, density=True, color="#cccccc", label=f"from {n} draws")
below.set(title="Its 10 % quantile", xlabel="value", ylabel="density", xlim=(0.48, 0.66))
for axes in (above, below):
    axes.axvline(exact, color="black", linestyle="--", label="exact 10 % quantile")
    axes.legend()
print(f"exact {exact:.6f}; from {n} draws {estimates.mean():.3f} ± {estimates.std():.3f}")

# %%
# A sampled planner has such an error for every state and action.
