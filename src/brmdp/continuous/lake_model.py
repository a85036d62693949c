"""Targets of the continuous-state FrozenLake for all posterior draws, without inner Monte Carlo.

With h(s') = R(s') + γ max_a Q(s', a) and ℓ0 the shortest length, a movement along the unit vector e
gives

    E[h] = h(s) + m_e(s, θ),    m_e(s, θ) = (1/θ) ∫_0^min(θ, reach) [h(s + (ℓ0 + u) e) − h(s)] du,

where lengths that would cross the border leave the agent at s and contribute nothing. So the
integral ends at the border, and it is exact however heavy the tail of θ. On an ordinary cell
G(s, a) = h(s) + Σ_modes p_mode m_e, in a hole h(s) + p_h m_a, and from the goal the reset makes G
the mean of h over the ordinary cells.

h is evaluated on one lattice for all states. Every side of a cell is cut into panels with four
Gauss–Legendre nodes each, so that no panel contains the border of a cell, where h jumps. The cubic
through the nodes gives h on the line through s (and perpendicular to it, by interpolation inside
the panel of s). Its antiderivative, a quartic per panel, gives the integral up to any θ. So a draw
costs a clipped polynomial per panel and direction, and a sum of three products.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.polynomial import legendre
from numpy.typing import ArrayLike, NDArray

from brmdp._validation import BoolArray, FloatArray, as_positive_int
from brmdp.continuous.checks import as_states
from brmdp.continuous.lake import (
    CENTRES,
    GOAL,
    HOLES,
    MODES,
    ORDINARY,
    SHORTEST,
    SIDE,
    LakeParameters,
    cells,
)
from brmdp.continuous.model import Value

__all__ = ["LakeModel"]

NODES = 4
"""Number of Gauss–Legendre nodes per panel."""

_POINTS, _WEIGHTS = legendre.leggauss(NODES)

_CUBIC = np.linalg.inv(np.vander(_POINTS, increasing=True))
"""Maps values at the nodes of [−1, 1] to coefficients of 1, x, x², x³."""

_QUARTIC = np.zeros((NODES + 1, NODES))
"""Maps values at the nodes to coefficients of the antiderivative that is zero at −1."""
_QUARTIC[1:] = _CUBIC / np.arange(1, NODES + 1)[:, None]
_QUARTIC[0] = -((-1.0) ** np.arange(NODES + 1)) @ _QUARTIC


class _Lattice(NamedTuple):
    states: FloatArray
    """(L², 2) nodes, row by row."""
    goal: FloatArray
    """(L²,) one in the goal, otherwise zero."""
    reset: FloatArray
    """(L²,) weights of the mean over the ordinary cells."""


@dataclass(frozen=True)
class LakeModel:
    """The continuous-state FrozenLake, known up to :class:`~brmdp.continuous.LakeParameters`.

    Parameters
    ----------
    panels : int
        Number of panels per side of a cell, each with four nodes.

    Notes
    -----
    The 20 features are the coordinates divided by 4, 16 indicators of the cell, and indicators of
    hole and goal.

    Examples
    --------
    >>> from brmdp.continuous import LakeModel
    >>> LakeModel()
    LakeModel(panels=2)
    """

    panels: int = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "panels", as_positive_int(self.panels, "panels"))

    @property
    def n_actions(self) -> int:
        """Left, Right, Up, Down."""
        return len(MODES)

    @property
    def centres(self) -> FloatArray:
        """(15, 2) cell centres without the goal's."""
        return np.delete(CENTRES, GOAL, axis=0)

    def as_states(self, value: ArrayLike, name: str) -> FloatArray:
        """``value`` as states (n, 2) in [0, 4]²."""
        return as_states(value, name)

    def known(self, states: NDArray[Any]) -> BoolArray:
        """(n,) whether states are in the goal, from which the reset is known."""
        found: BoolArray = cells(states) == GOAL
        return found

    def sample_states(self, n: int, *, rng: np.random.Generator) -> FloatArray:
        """(n, 2) states, uniform on [0, 4]²."""
        return rng.uniform(0.0, SIDE, (n, 2))

    def bounds(self, discount: float) -> tuple[float, float]:
        """Zero, and the value of a reward every second step: the goal never leads to itself."""
        return 0.0, 1.0 / (1.0 - discount**2)

    def features(self, states: jax.Array) -> jax.Array:
        """(n, 20) features of states (n, 2)."""
        cell = _cells(states)
        kinds = jnp.stack([_among(cell, HOLES), cell == GOAL], axis=-1)
        one_hot = jax.nn.one_hot(cell, SIDE * SIDE, dtype=states.dtype)
        return jnp.concatenate([states / SIDE, one_hot, kinds.astype(states.dtype)], axis=-1)

    def targets(
        self, value: Value, states: jax.Array, draws: LakeParameters, discount: float
    ) -> jax.Array:
        """(n, 4, B) targets of states (n, 2)."""
        lattice = _Lattice(*(part.astype(states.dtype) for part in self._lattice()))
        field, here = (
            discount * value(jnp.asarray(lattice.states)) + lattice.goal,
            discount * value(states),
        )
        gain = self._gains(
            field.reshape(-1, SIDE * self.panels * NODES), here, states, draws.spread
        )
        cell = _cells(states)
        # draws are the last and longest axis, along which everything is vectorised
        intended, *sideways = draws.slip.T
        slipping = intended * gain + sum(
            p * gain[MODES[:, mode]] for mode, p in enumerate(sideways, start=1)
        )
        moving = jnp.where(_among(cell, HOLES)[:, None], draws.mobility * gain, slipping)
        reset = jnp.dot(field, lattice.reset)
        return jnp.moveaxis(jnp.where((cell == GOAL)[:, None], reset, here[:, None] + moving), 0, 1)

    def _gains(
        self, field: jax.Array, here: jax.Array, states: jax.Array, spread: Any
    ) -> jax.Array:
        """(4, n, B) m_e(s, θ): the mean gain of a movement in each of the four directions."""
        x, y = states[:, 0], states[:, 1]
        along_x, along_y = self._weights(y) @ field, self._weights(x) @ field.T
        # one line per direction, in the direction of travel
        lines = jnp.stack([along_x[:, ::-1], along_x, along_y[:, ::-1], along_y]) - here[:, None]
        travelled = jnp.stack([SIDE - x, x, SIDE - y, y]) + SHORTEST
        half = 0.5 / self.panels
        # (4 directions, 5 coefficients, panels, n)
        quartics = jnp.einsum(
            "dnpj,kj->dkpn", lines.reshape(*lines.shape[:2], -1, NODES), _QUARTIC.astype(x.dtype)
        )
        quartics *= half
        # in units of half a panel, so that panel p extends from 2p to 2p + 2
        begin, middles = travelled / half, 2.0 * np.arange(SIDE * self.panels, dtype=x.dtype) + 1.0
        reached = slice(int(SHORTEST * self.panels), None)
        quartics, middles = quartics[:, :, reached], middles[reached]
        before = _polynomials(
            jnp.moveaxis(quartics, 1, 0), _position(begin[:, None], middles[:, None])
        ).sum(axis=1)

        def gain(arguments: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
            quartic, begin, before = arguments
            total, end = -before[:, None], begin[:, None] + spread / half
            for panel, middle in enumerate(middles):
                total = total + _polynomials(quartic[:, panel, :, None], _position(end, middle))
            # beyond the border the gain is exactly zero, without rounding, so that such pairs have
            # no uncertainty at all
            return jnp.where(begin[:, None] < SIDE / half, total * (1.0 / spread), 0.0)

        # a loop: with one long array, XLA would compute each gain again for every action that uses
        # it
        gains: jax.Array = lax.map(gain, (quartics, begin, before))
        return gains

    def _weights(self, coordinate: jax.Array) -> jax.Array:
        """(n, L) weights of the nodes that interpolate at ``coordinate`` within its panel."""
        n_panels = SIDE * self.panels
        panel = jnp.minimum((coordinate * self.panels).astype(jnp.int32), n_panels - 1)
        position = 2.0 * (coordinate * self.panels - panel) - 1.0
        basis = jnp.vander(position, NODES, increasing=True) @ _CUBIC.astype(coordinate.dtype)
        chosen = jax.nn.one_hot(panel, n_panels, dtype=coordinate.dtype)
        weights: jax.Array = chosen[:, :, None] * basis[:, None, :]
        return weights.reshape(len(coordinate), -1)

    def _lattice(self) -> _Lattice:
        half = 0.5 / self.panels
        middles = half * (2 * np.arange(SIDE * self.panels) + 1)
        axis = (middles[:, None] + half * _POINTS).ravel()
        states = np.stack([np.tile(axis, axis.size), np.repeat(axis, axis.size)], axis=-1)
        cell = cells(states)
        lengths = np.tile(half * _WEIGHTS, middles.size)
        areas = np.outer(lengths, lengths).ravel()
        return _Lattice(
            states, (cell == GOAL).astype(float), np.isin(cell, ORDINARY) * areas / len(ORDINARY)
        )


def _position(end: jax.Array, middle: Any) -> jax.Array:
    """Position in a panel that a movement reaches, from −1 to 1."""
    return jnp.clip(end - middle, -1.0, 1.0)


def _polynomials(coefficients: jax.Array, position: jax.Array) -> jax.Array:
    """Values of polynomials, with coefficients from the lowest power up."""
    value = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        value = value * position + coefficient
    return value


def _cells(states: jax.Array) -> jax.Array:
    """The same as :func:`brmdp.continuous.lake.cells`, for JAX."""
    corner = jnp.minimum(states.astype(jnp.int32), SIDE - 1)
    return SIDE * corner[..., 1] + corner[..., 0]


def _among(cell: jax.Array, chosen: tuple[int, ...]) -> jax.Array:
    return (cell[..., None] == jnp.array(chosen)).any(axis=-1)
