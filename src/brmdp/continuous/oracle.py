"""True values of the continuous lake, for regret: of the optimum and of any greedy policy.

With h(s') = 1[s' in the goal] + γV(s'), a movement in direction e contributes

    E[h] = (1/θ) ∫_0^θ h(s + (ℓ0 + u)e) du,

where lengths that leave the square contribute h(s) = γV(s) instead. Because of that, and of the
immobility in holes, V(s) appears linearly on both sides; solving for it divides the rest by 1 − γ
Pr(stay). V(goal) is the mean of h over the ordinary cells.

Between the nodes of a grid h is taken to be linear, and the integrals are differences of running
sums along rows and columns. V* jumps between cells and has kinks only at nodes and where the best
action changes, so its error falls like n⁻². Under a policy V also jumps where the action changes,
on lines that do not follow the grid. These are located between nodes by linear interpolation of the
action values, or taken half-way if only the actions are known.

Grids are refined by doubling, each starting from the last solution, until the values at the nodes
change by less than the accuracy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial

import numpy as np
from numpy.typing import ArrayLike

from brmdp._kernels import lake as kernels
from brmdp._validation import (
    FloatArray,
    IntArray,
    as_array,
    as_discount,
    as_float_array,
    as_index_array,
    as_positive_number,
)
from brmdp.continuous.checks import as_parameters, as_states
from brmdp.continuous.grid import (
    KINDS,
    Grid,
    blocked_part,
    doubled,
    grid,
    landing,
    located,
    thinned,
)
from brmdp.continuous.lake import GOAL, MODES, SIDE, TRUTH, LakeParameters, cells
from brmdp.errors import ConvergenceError, InvalidInputError

__all__ = ["LakeValues", "optimal_values", "policy_nodes", "policy_values"]

COARSEST, POLICY_NODES, POLICY_FINEST, FINEST = 8, 32, 128, 512
"""n of the first grid, of the nodes where a policy is evaluated, and of the finest grids.

The finest grid is coarser for a policy than for the optimum.
"""

RAY = 16
"""Number of intervals into which ``at`` divides the reach of a movement within one cell."""

INSIDE = 1e-6
"""Distance from the border of a cell at which a policy is evaluated instead of on the border.

It is larger than rounding in single precision.
"""

SLACK = 0.1
"""Share of the accuracy that the iteration on a grid may use."""

BLOCK = 4096
"""Number of states that ``at`` handles together, to limit its memory."""

_ACTIONS = len(MODES)

Greedy = Callable[[FloatArray], ArrayLike]
"""Maps states (n, 2) to actions (n,) or to action values (n, 4)."""


@dataclass(frozen=True, eq=False)
class LakeValues:
    """Values of the continuous lake under the best or a given policy.

    They come from :func:`optimal_values` or :func:`policy_values`.

    Attributes
    ----------
    values : (N, N) array
        V at the nodes, indexed [y, x]: one-sided limits on the borders of cells, and one number
        throughout the goal.
    nodes : (N,) array
        Coordinates of the nodes, the same for x and y. Those between two cells occur twice.
    discount : float
        Discount factor γ.
    parameters : LakeParameters
        The model.
    error : float
        Estimate of the largest error: the largest change at a node compared with the grid half as
        fine, plus a bound on the remaining error of the iteration. Between the nodes, ``at`` may
        add about 1e-4 under a policy, and several times the estimate near kinks if the lengths do
        not fit the grid (θ not a multiple of 1/4).

    Examples
    --------
    >>> from brmdp.continuous import optimal_values
    >>> best = optimal_values(0.5, accuracy=1e-3)
    >>> best.at([[0.5, 0.5], [2.5, 3.5]]).round(2).tolist()
    [0.0, 0.62]
    >>> best.actions([[2.5, 3.5]]).tolist()  # Right, into the goal
    [1]
    """

    values: FloatArray = field(repr=False)
    nodes: FloatArray = field(repr=False)
    discount: float
    parameters: LakeParameters
    error: float
    _along: tuple[FloatArray, FloatArray] = field(repr=False)
    _greedy: Greedy | None = field(repr=False)

    def at(self, states: ArrayLike) -> FloatArray:
        """(n,) V at any states (n, 2), by one backup.

        For the optimum, it is the value of the best action. For a policy, it is the value of the
        action taken at the state, and V along its movements is backed up once more with the actions
        taken there, so that borders between actions are where they should be. This evaluates the
        policy at about 50 points per state.
        """
        states = as_states(states)
        value = self._best if self._greedy is None else self._followed
        return np.concatenate(
            [value(block) for block in np.split(states, range(BLOCK, len(states), BLOCK))]
        )

    def actions(self, states: ArrayLike) -> IntArray:
        """(n,) action taken at states (n, 2); for the optimum, the first of the best actions."""
        chosen: IntArray = self._preferences(as_states(states)).argmax(axis=1)
        return chosen

    def action_values(self, states: ArrayLike) -> FloatArray:
        """(n, 4) Q(s, a) of taking each action at states (n, 2), then following the policy."""
        states = as_states(states)
        moving, staying = self._backups(states, self._integrals(states))
        return moving + self.discount * staying * self.at(states)[:, None]

    def _preferences(self, states: FloatArray) -> FloatArray:
        return (
            self._repeated(states)
            if self._greedy is None
            else _preferences(_answer(self._greedy, states))
        )

    def _best(self, states: FloatArray) -> FloatArray:
        best: FloatArray = self._repeated(states).max(axis=1)
        return best

    def _followed(self, states: FloatArray) -> FloatArray:
        actions = self._preferences(states).argmax(axis=1)
        return _chosen(self._repeated(states, self._ray_integrals(states, actions)), actions)

    def _repeated(self, states: FloatArray, integrals: FloatArray | None = None) -> FloatArray:
        """(n, 4) values of repeating an action until the state is left.

        The best of these is the action with the largest Q(s, a).
        """
        moving, staying = self._backups(
            states, self._integrals(states) if integrals is None else integrals
        )
        return moving / (1.0 - self.discount * staying)

    def _backups(self, states: FloatArray, integrals: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(n, 4) contribution of movements to each action, and (n, 4) probability of staying.

        ``integrals`` are the contributions of movements in each direction.
        """
        spread = float(self.parameters.spread)
        movement, staying = _dynamics(self.parameters)
        kinds = KINDS[cells(states)]
        blocked = np.stack(
            [blocked_part(*landing(states[:, d // 2], d % 2, spread), spread) for d in range(4)],
            axis=1,
        )
        moving: FloatArray = np.einsum("kad,kd->ka", movement[kinds], integrals)
        moving[kinds == KINDS[GOAL]] = self.values[-1, -1]
        return moving, staying[kinds, None] + np.einsum("kad,kd->ka", movement[kinds], blocked)

    def _integrals(self, states: FloatArray) -> FloatArray:
        """(n, 4) contribution of movements in each direction, interpolated between nodes."""
        n, spread = len(self.nodes) // SIDE - 1, float(self.parameters.spread)
        found = np.empty((len(states), 4))
        for direction in range(4):
            axis, side = divmod(direction, 2)
            lines = self._along[0] if axis == 0 else self._along[1].T
            line, between = located(states[:, 1 - axis], n)
            begin, end = (
                (1.0 - part)
                * ((1.0 - between) * lines[line, node] + between * lines[line + 1, node])
                + part
                * ((1.0 - between) * lines[line, node + 1] + between * lines[line + 1, node + 1])
                for node, part in (
                    located(points, n) for points in landing(states[:, axis], side, spread)
                )
            )
            found[:, direction] = (end - begin) / spread
        return found

    def _ray_integrals(self, states: FloatArray, actions: IntArray) -> FloatArray:
        """(n, 4) the same for the directions that ``actions`` may take, by backups along them."""
        spread = float(self.parameters.spread)
        movement, _ = _dynamics(self.parameters)
        who, direction = np.nonzero(movement[KINDS[cells(states)], actions])
        axis, side = np.divmod(direction, 2)
        begin, end = landing(states[who, axis], side, spread)
        # one piece for every cell on the way, because V jumps between cells
        low = np.maximum(begin[:, None], np.arange(SIDE))
        high = np.minimum(end[:, None], np.arange(1, SIDE + 1))
        ray, cell = np.nonzero(high > low)
        low, length = low[ray, cell], (high - low)[ray, cell]
        along = low[:, None] + length[:, None] * np.linspace(0.0, 1.0, RAY + 1)
        points = np.repeat(states[who[ray], None], RAY + 1, axis=1)
        points[np.arange(len(ray)), :, axis[ray]] = np.clip(
            along, cell[:, None] + INSIDE, cell[:, None] + 1 - INSIDE
        )
        flat = points.reshape(-1, 2)
        preferences = self._preferences(flat).reshape(*along.shape, _ACTIONS)
        there = _actions(preferences)
        values = _chosen(self._repeated(flat), there.ravel())
        worth = (self.discount * values + (cells(flat) == GOAL)).reshape(along.shape)
        shares = _shares(preferences, there)
        pieces = length * (worth[:, 1:] + shares * (worth[:, :-1] - worth[:, 1:])).mean(axis=1)
        found = np.zeros((len(states), 4))
        np.add.at(found, (who[ray], direction[ray]), pieces / spread)
        return found


def optimal_values(
    discount: float, *, parameters: LakeParameters = TRUTH, accuracy: float = 1e-5
) -> LakeValues:
    """V*, the values under the best policy.

    Parameters
    ----------
    discount : float in [0, 1)
        Discount factor γ.
    parameters : LakeParameters
        The model; by default the true one.
    accuracy : float
        Largest error allowed.

    Returns
    -------
    LakeValues

    Raises
    ------
    ConvergenceError
        If the finest grid does not reach the accuracy.

    Examples
    --------
    >>> from brmdp.continuous import optimal_values
    >>> best = optimal_values(0.5, accuracy=1e-3)
    >>> best.error <= 1e-3
    True
    """
    accuracy = as_positive_number(accuracy, "accuracy")
    found = _solved(as_discount(discount), as_parameters(parameters), accuracy, FINEST)
    if not found.error <= accuracy:
        raise ConvergenceError(
            f"accuracy must be at least {found.error:.2g}, the estimated error on the finest grid; "
            f"got {accuracy}",
            found,
        )
    return found


def policy_values(
    greedy: Greedy, discount: float, *, parameters: LakeParameters = TRUTH, accuracy: float = 1e-3
) -> LakeValues:
    """Values under a policy.

    Parameters
    ----------
    greedy : function
        The policy as a function of states (n, 2). It returns the actions, (n,) integers, or,
        better, the action values (n, 4), of which the policy takes the largest (the first if tied):
        these show where between two states the action changes. It is called once with
        :func:`policy_nodes`, and by ``at`` with other states.
    discount : float in [0, 1)
        Discount factor γ.
    parameters : LakeParameters
        The model; by default the true one.
    accuracy : float
        Largest error aimed for. The finest grid may leave a larger one if borders between actions
        run along a movement, or if only actions are known; see ``error`` of the result.

    Returns
    -------
    LakeValues

    Examples
    --------
    >>> import numpy as np
    >>> from brmdp.continuous import policy_values
    >>> right = policy_values(lambda states: np.ones(len(states), dtype=int), 0.5)
    >>> right.actions([[0.5, 0.5]]).tolist()
    [1]
    """
    discount, parameters = as_discount(discount), as_parameters(parameters)
    accuracy = as_positive_number(accuracy, "accuracy")
    if not callable(greedy):
        raise InvalidInputError(f"greedy must be a function of states (n, 2); got {greedy!r}")
    answer = _answer(greedy, policy_nodes())
    asked = grid(POLICY_NODES, float(parameters.spread)).kinds != KINDS[GOAL]
    preferences = np.zeros((*asked.shape, _ACTIONS))
    preferences[asked] = _preferences(answer)
    finest = POLICY_FINEST if answer.ndim == 2 else POLICY_NODES
    return _solved(discount, parameters, accuracy, finest, preferences, greedy)


@lru_cache(maxsize=1)
def policy_nodes() -> FloatArray:
    """(16335, 2) states at which :func:`policy_values` evaluates a policy.

    It is always the same read-only array.
    """
    mesh = grid(POLICY_NODES, float(TRUTH.spread))
    cell = np.repeat(np.arange(SIDE), POLICY_NODES + 1)
    inside = np.clip(mesh.nodes, cell + INSIDE, cell + 1 - INSIDE)
    nodes: FloatArray = np.stack(np.meshgrid(inside, inside), axis=-1)[mesh.kinds != KINDS[GOAL]]
    nodes.setflags(write=False)
    return nodes


# --- solving --------------------------------------------------------------------------------------


def _solved(
    discount: float,
    parameters: LakeParameters,
    accuracy: float,
    finest: int,
    preferences: FloatArray | None = None,
    greedy: Greedy | None = None,
) -> LakeValues:
    """Values on ever finer grids, under the best policy or under given preferences.

    The preferences belong to the nodes of the grid POLICY_NODES.
    """
    movement, staying = _dynamics(parameters)
    n, coarser = COARSEST, None
    values = np.zeros((SIDE * (n + 1), SIDE * (n + 1)))
    while True:
        mesh = grid(n, float(parameters.spread))
        if preferences is None:
            shares = (np.full(values.shape, 0.5), np.full(values.shape, 0.5))
            backup = partial(kernels.improve, movement, staying, mesh.blocked)
        else:
            asked = _on_grid(preferences, n)
            actions = _actions(asked)
            shares = (_shares(asked, actions), _shares(asked.swapaxes(0, 1), actions.T).T)
            weights = np.empty((_ACTIONS, *values.shape))
            kernels.weigh(actions, mesh.kinds, movement, staying, mesh.blocked, discount, weights)
            backup = partial(kernels.follow, weights)
        along, slack = _iterate(
            mesh, discount, float(parameters.spread), shares, backup, values, SLACK * accuracy
        )
        error = (
            np.inf if coarser is None else float(np.abs(thinned(values, 2) - coarser).max()) + slack
        )
        if error <= accuracy or n == finest:
            return LakeValues(values, mesh.nodes, discount, parameters, error, along, greedy)
        n, coarser, values = 2 * n, values, doubled(values)


def _iterate(
    mesh: Grid,
    discount: float,
    spread: float,
    shares: tuple[FloatArray, FloatArray],
    backup: Callable[..., float],
    values: FloatArray,
    tolerance: float,
) -> tuple[tuple[FloatArray, FloatArray], float]:
    """Iterate ``values`` to the fixed point, in place.

    Returns their integrals along rows and columns, and an error bound.
    """
    along = (np.empty(values.shape), np.empty(values.shape))
    geometry = (*mesh.begins, *mesh.ends, 1.0 / spread)
    change = np.inf
    while True:
        kernels.accumulate(values, mesh.kinds, discount, mesh.lengths, *shares, *along)
        error = discount * change / (1.0 - discount)
        if error <= tolerance:
            return along, error
        before, change = (
            change,
            backup(mesh.kinds, mesh.restart, discount, geometry, *along, values),
        )
        if not change < before:  # a contraction always lowers it until only rounding is left
            return along, error


def _dynamics(parameters: LakeParameters) -> tuple[FloatArray, FloatArray]:
    """Probabilities of movement, (kinds, actions, directions), and of no movement, (kinds,)."""
    movement = np.zeros((3, _ACTIONS, _ACTIONS))
    for action in range(_ACTIONS):
        movement[0, action, MODES[action]] = parameters.slip
        movement[1, action, action] = parameters.mobility
    return movement, np.array([0.0, 1.0 - float(parameters.mobility), 0.0])


# --- policies -------------------------------------------------------------------------------------


def _answer(greedy: Greedy, states: FloatArray) -> FloatArray | IntArray:
    """The checked answer of a policy at states: actions (n,) or action values (n, 4)."""
    name = "the result of greedy"
    answer = as_array(greedy(states), name, "actions (n,) or action values (n, 4)")
    if answer.shape == (len(states),):
        return as_index_array(answer, _ACTIONS, name)
    if answer.shape == (len(states), _ACTIONS):
        return as_float_array(answer, name)
    raise InvalidInputError(
        f"{name} must have shape ({len(states)},) or ({len(states)}, {_ACTIONS}) for {len(states)} "
        f"states; got {answer.shape}"
    )


def _preferences(answer: FloatArray | IntArray) -> FloatArray:
    """Action values; for bare actions, one for the action taken, which puts borders half-way."""
    return np.eye(_ACTIONS)[answer] if answer.ndim == 1 else answer.astype(np.float64, copy=False)


def _on_grid(preferences: FloatArray, n: int) -> FloatArray:
    if n <= POLICY_NODES:
        return thinned(preferences, POLICY_NODES // n)
    return doubled(_on_grid(preferences, n // 2))


def _actions(preferences: FloatArray) -> IntArray:
    actions = np.empty(preferences.shape[:2], dtype=np.int64)
    kernels.lead(preferences, actions)
    return actions


def _shares(preferences: FloatArray, actions: IntArray) -> FloatArray:
    """Share of each interval between neighbours in a row that belongs to the first one's action."""
    shares = np.empty((actions.shape[0], actions.shape[1] - 1))
    kernels.share(preferences, actions, shares)
    return shares


def _chosen(values: FloatArray, actions: IntArray) -> FloatArray:
    """(n,) entry of each row that belongs to its action."""
    return values[np.arange(len(values)), actions]
