"""Pest control: a population that grows logistically, and four ways to spray.

The world of the Bayesian robust literature (Petrik and Russel 2019; Tirinzoni and others 2018;
Lobo, Ghavamzadeh and Petrik 2020), with the parameters of the example that comes with the CRAAM
library. There the kernel is estimated from simulated transitions; here its law is computed.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from brmdp._validation import FloatArray, as_positive_int
from brmdp.envs.rendering import StockPainter
from brmdp.envs.tabular_env import RenderMode, TabularEnv
from brmdp.errors import InvalidInputError
from brmdp.mdp import TabularMDP

__all__ = ["PopulationEnv", "population"]

DEVIATIONS = (0.6, 0.6, 0.5, 0.4, 0.3)
"""Standard deviations of the growth rate: without spraying, and with each of four pesticides."""

COSTS = (0.0, 800.0, 840.0, 880.0, 920.0)
HARVEST, DAMAGE = 1000.0, 2500.0
GROWTH, IMMIGRATION = 2.0, 0.06
"""Growth rate without spraying, and mean immigration as a share of the capacity."""

SMALLEST = 1e-9
"""Less likely transitions are left out."""


def population(capacity: int = 50, *, discount: float = 0.9) -> TabularMDP:
    """A pest of 0…capacity animals; action 0 does nothing, 1 to 4 spray with a pesticide.

    The growth rate g is normal, cut off at zero. Its mean is 2 without spraying, and 0.2 + (2n/C −
    1)² with it: pesticides work best on middling populations n of the capacity C. Their standard
    deviations are 0.6, 0.5, 0.4 and 0.3 (0.6 without). The population becomes n + (g − 1)·n·(C −
    n)/C, rounded; then come immigrants, normal with mean 0.06·C and half that deviation, cut off at
    zero and rounded; and no more than C stay. The reward is 1000 − 2500·(n/C)² less the cost of
    spraying, 800, 840, 880 or 920. At the capacity itself, n does not change: the published model
    has it so.

    Parameters
    ----------
    capacity : int
        C (50 in the published model, whose immigrants and damage grow in proportion here).
    discount : float in [0, 1]
        γ.

    Returns
    -------
    TabularMDP

    Examples
    --------
    >>> import brmdp
    >>> field = brmdp.envs.population()
    >>> field.n_states, field.n_actions, field.start
    (51, 5, 10)
    """
    capacity = as_positive_int(capacity, "capacity")
    if not 2 <= capacity <= 500:
        raise InvalidInputError(f"capacity must lie between 2 and 500; got {capacity}")
    levels = np.arange(capacity + 1)
    arrivals = _arrivals(capacity)
    kernel = np.zeros((levels.size, len(COSTS), levels.size))
    for n in levels:
        sprayed = 0.2 + (2.0 * n / capacity - 1.0) ** 2
        for action, deviation in enumerate(DEVIATIONS):
            grown = _grown(int(n), capacity, sprayed if action else GROWTH, deviation)
            together = np.convolve(grown, arrivals)
            row = together[: levels.size]
            row[-1] += together[levels.size :].sum()
            kernel[n, action] = np.where(row < SMALLEST, 0.0, row)
    kernel /= kernel.sum(axis=2, keepdims=True)
    rewards = HARVEST - DAMAGE * (levels[:, None] / capacity) ** 2 - np.array(COSTS)
    names = ("nothing", *(f"pesticide {k}" for k in range(1, len(COSTS))))
    return TabularMDP(kernel, rewards, discount, start=capacity // 5, action_names=names)


def _grown(n: int, capacity: int, mean: float, deviation: float) -> FloatArray:
    """Probabilities of the population after its growth."""
    slope = n * (capacity - n) / capacity
    if slope == 0.0:
        certain: FloatArray = np.eye(capacity + 1)[n]
        return certain
    # the growth rate at which the rounded population reaches k; half a unit is rounded up
    needed = 1.0 + (np.arange(1, capacity + 1) - 0.5 - n) / slope
    reached = np.where(needed <= 0.0, 1.0, ndtr((mean - needed) / deviation))
    grown: FloatArray = -np.diff(reached, prepend=1.0, append=0.0)
    return grown


def _arrivals(capacity: int) -> FloatArray:
    """Probabilities of 0, 1, … immigrants; the last entry holds all larger numbers."""
    mean = IMMIGRATION * capacity
    reached = ndtr((mean - (np.arange(1, capacity + 1) - 0.5)) / (0.5 * mean))
    arrivals: FloatArray = -np.diff(reached, prepend=1.0, append=0.0)
    return arrivals


class PopulationEnv(TabularEnv):
    """Pest control as an environment; the population is drawn as a filled shelf.

    Parameters
    ----------
    capacity, discount
        As in :func:`brmdp.envs.population`.
    render_mode : {None, "ansi", "rgb_array"}
        As in :class:`TabularEnv`.

    Examples
    --------
    >>> import brmdp
    >>> env = brmdp.envs.PopulationEnv(10, render_mode="ansi")
    >>> state, _ = env.reset(seed=1)
    >>> print(env.render().rstrip())
    state 2
    [##........] 2 of 10
    """

    def __init__(
        self, capacity: int = 50, *, discount: float = 0.9, render_mode: RenderMode | None = None
    ) -> None:
        mdp = population(capacity, discount=discount)
        super().__init__(mdp, render_mode, StockPainter(mdp.n_states - 1))
