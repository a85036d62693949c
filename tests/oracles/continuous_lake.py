"""Second, obvious implementations for the continuous lake.

Plain loops and SciPy quadrature, nothing imported from the package:

* one step of the law, drawn for many agents at once, and discounted returns of rollouts;
* one Bellman backup of any value function, by quadrature along the movements;
* values on squares of constant value (midpoint collocation), a discretisation that differs from the
  package's;
* brute-force Bayes on a grid of parameters.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
from scipy import integrate

LEFT, RIGHT, UP, DOWN = range(4)
VECTORS = {LEFT: (-1, 0), RIGHT: (1, 0), UP: (0, -1), DOWN: (0, 1)}
PERPENDICULAR = {LEFT: (UP, DOWN), RIGHT: (UP, DOWN), UP: (LEFT, RIGHT), DOWN: (LEFT, RIGHT)}
LAKE = "".join(["SFFF", "FHFH", "FFFH", "HFFG"])
SHORTEST = 0.75
SLIP, MOBILITY, SPREAD = (0.5, 0.25, 0.25), 0.2, 0.5


def letter(x: float, y: float) -> str:
    return LAKE[4 * min(int(y), 3) + min(int(x), 3)]


def directions(
    x: float, y: float, action: int, slip: Sequence[float], mobility: float
) -> list[tuple[float, int]]:
    """Probabilities and directions of the possible movements."""
    if letter(x, y) == "H":
        return [(mobility, action)]
    return list(zip(slip, (action, *PERPENDICULAR[action]), strict=True))


# --- simulation -----------------------------------------------------------------------------------


def step(
    states: np.ndarray,
    actions: np.ndarray,
    rng: np.random.Generator,
    mobility: float = MOBILITY,
    spread: float = SPREAD,
) -> tuple[np.ndarray, np.ndarray]:
    """Next states and rewards of independent agents (n, 2)."""
    ordinary = [cell for cell in range(16) if LAKE[cell] in "SF"]
    column, row = np.minimum(states.astype(int), 3).T
    kind = np.array(list(LAKE))[4 * row + column]
    n = len(states)
    mode = rng.choice(3, size=n, p=SLIP)
    mode[kind == "H"] = 0
    table = np.array([[a, *PERPENDICULAR[a]] for a in range(4)])
    vectors = np.array([VECTORS[d] for d in range(4)])[table[actions, mode]]
    candidates = states + rng.uniform(SHORTEST, SHORTEST + spread, size=(n, 1)) * vectors
    inside = ((candidates >= 0) & (candidates <= 4)).all(axis=1)
    moves = inside & ((kind != "H") | (rng.random(n) < mobility))
    following = np.where(moves[:, None], candidates, states)
    cell = rng.choice(ordinary, size=n)
    fresh = np.stack([cell % 4, cell // 4], axis=1) + rng.random((n, 2))
    following = np.where((kind == "G")[:, None], fresh, following)
    return following, ((following[:, 0] >= 3) & (following[:, 1] >= 3)).astype(float)


def rollouts(
    policy: Callable[[np.ndarray], np.ndarray],
    start: Sequence[float],
    discount: float,
    agents: int,
    horizon: int,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Mean discounted return and its standard error; what follows the horizon is ignored."""
    states = np.tile(np.asarray(start, dtype=float), (agents, 1))
    returns = np.zeros(agents)
    for t in range(horizon):
        states, rewards = step(states, policy(states), rng)
        returns += discount**t * rewards
    return float(returns.mean()), float(returns.std(ddof=1) / np.sqrt(agents))


# --- one backup -----------------------------------------------------------------------------------


def backup(
    value: Callable[[np.ndarray], np.ndarray],
    state: Sequence[float],
    action: int,
    discount: float,
    slip: Sequence[float] = SLIP,
    mobility: float = MOBILITY,
    spread: float = SPREAD,
    pieces: int = 1,
    points: int = 24,
) -> float:
    """E[r + γV(s')] from an ordinary cell or a hole.

    The integral is a Gauss quadrature between all multiples of 1/4 along the way, where the optimal
    values have jumps and kinks; for other values each piece may be divided further.
    """
    state = np.asarray(state, dtype=float)

    def worth(length: np.ndarray, direction: int) -> np.ndarray:
        there = state + np.outer(length, VECTORS[direction])
        outside = ((there < 0) | (there > 4)).any(axis=1)
        there[outside] = state
        return np.array([letter(*place) == "G" for place in there]) + discount * value(there)

    total, activated = 0.0, 0.0
    for probability, direction in directions(*state, action, slip, mobility):
        place = state[0] if direction in (LEFT, RIGHT) else state[1]
        borders = {abs(k / 4 - place) for k in range(17)}
        ends = sorted(
            {SHORTEST, SHORTEST + spread} | {d for d in borders if SHORTEST < d < SHORTEST + spread}
        )
        for low, high in itertools.pairwise(ends):
            for begin, end in itertools.pairwise(np.linspace(low, high, pieces + 1)):
                piece, _ = integrate.fixed_quad(worth, begin, end, args=(direction,), n=points)
                total += probability * piece / spread
        activated += probability
    return float(total + (1.0 - activated) * discount * value(state[None])[0])


# --- another discretisation -----------------------------------------------------------------------


def values_on_squares(
    n: int,
    discount: float,
    policy: Callable[[np.ndarray], np.ndarray] | None = None,
    slip: Sequence[float] = SLIP,
    mobility: float = MOBILITY,
    spread: float = SPREAD,
) -> tuple[np.ndarray, np.ndarray]:
    """Midpoints (m, 2) of n × n squares per cell, and values (m,) constant on each square.

    The values are the best, or those of a policy. ``land[sign][i, k]`` is the probability that a
    movement from midpoint i ends in interval k of the same line.
    """
    side = 4 * n
    middle = (np.arange(side) + 0.5) / n
    states = np.stack(np.meshgrid(middle, middle), axis=-1)
    land = {}
    for sign in (-1, 1):
        matrix = np.zeros((side, side))
        for i in range(side):
            low, high = sorted(
                (middle[i] + sign * SHORTEST, middle[i] + sign * (SHORTEST + spread))
            )
            for k in range(side):
                matrix[i, k] = max(0.0, min(high, (k + 1) / n) - max(low, k / n)) / spread
            matrix[i, i] += 1.0 - matrix[i].sum()  # lengths that leave the square
        land[sign] = matrix
    kinds = np.array([[letter(x, y) for x in middle] for y in middle])
    ordinary = np.isin(kinds, ["S", "F"])
    chosen = None if policy is None else policy(states.reshape(-1, 2)).reshape(1, side, side)
    values = np.zeros((side, side))
    while True:
        worth = (kinds == "G") + discount * values
        moved = {
            LEFT: worth @ land[-1].T,
            RIGHT: worth @ land[1].T,
            UP: land[-1] @ worth,
            DOWN: land[1] @ worth,
        }
        options = []
        for action in range(4):
            one, two = PERPENDICULAR[action]
            slippery = slip[0] * moved[action] + slip[1] * moved[one] + slip[2] * moved[two]
            sticky = mobility * moved[action] + (1.0 - mobility) * worth
            options.append(np.where(kinds == "H", sticky, slippery))
        taken = (
            np.max(options, axis=0)
            if chosen is None
            else np.take_along_axis(np.array(options), chosen, 0)[0]
        )
        new = np.where(kinds == "G", worth[ordinary].mean(), taken)
        change = np.abs(new - values).max()
        values = new
        if change < 1e-10:
            return states.reshape(-1, 2), values.ravel()


# --- Bayes by brute force -------------------------------------------------------------------------


def weights_by_bayes(prior: np.ndarray, log_likelihood: np.ndarray) -> np.ndarray:
    """Posterior weights of the points of a grid, from prior weights and log likelihoods."""
    weights = prior * np.exp(log_likelihood - log_likelihood.max())
    return weights / weights.sum()
