"""A shop with unknown demand: one item, daily orders, lost sales.

This is a good example to start from. Everything is known except the distribution of the demand,
which is the same every day and at every stock level. So one observed demand teaches about all
states and orders, and the right belief is :class:`brmdp.DisturbanceBelief`::

    problem = brmdp.envs.inventory()
    belief = brmdp.DisturbanceBelief(problem.outcomes)
    rewards = brmdp.DisturbanceRewards(problem.disturbance_rewards)
    belief.observe_disturbance([2, 0, 3])
    plan = brmdp.plan(belief, rewards, problem.mdp.discount, risk=brmdp.Quantile(0.2))

If some stock is left in the evening, the demand was stock + order − next stock. If nothing is left,
the demand was at least stock + order, and the rest of it was not served. Therefore
``DisturbanceBelief.observe(state, action, next_state)`` raises an error for such a day unless it is
given the ``disturbance`` (or only the largest demand could have emptied the shelf). Count the
customers turned away, as :class:`InventoryEnv` does in ``info["disturbance"]``. If nobody counts
them, use :class:`brmdp.CensoredDisturbanceBelief`, which learns "at least stock + order" from such
a day. Leaving those days out, or taking the sales for the demand, would make the demand look
smaller than it is: ``examples/lost_sales.py`` shows by how much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from brmdp._validation import (
    FloatArray,
    IntArray,
    as_array,
    as_float_array,
    as_number,
    as_positive_int,
    check_transition_count,
    rounding_of,
    sum_tolerance,
)
from brmdp.envs.rendering import StockPainter
from brmdp.envs.tabular_env import RenderMode, TabularEnv
from brmdp.errors import InvalidInputError
from brmdp.mdp import TabularMDP
from brmdp.pattern import DENSE_REWARDS

__all__ = ["DEMAND", "InventoryEnv", "InventoryProblem", "inventory"]

DEMAND = (0.10, 0.20, 0.30, 0.20, 0.15, 0.05)
"""The default demand: probabilities of 0, 1, …, 5 units a day, with mean 2.25."""


@dataclass(frozen=True, eq=False)
class InventoryProblem:
    """An inventory with its true demand, and what a belief about the demand needs.

    Attributes
    ----------
    mdp : TabularMDP
        The true MDP; states are stocks and actions are orders. Its rewards r(s, a, s') are
        :attr:`disturbance_rewards` averaged over the demands that lead to s'; for one s'
        they differ only if there is a shortage cost. The rewards are an (S, A, S) array, or a
        sparse (S·A, S) matrix over the possible transitions if the array would hold more than four
        million numbers.
    outcomes : (S, A, D) integers
        Next stock f(s, a, d), or −1 for inadmissible orders, for :class:`brmdp.DisturbanceBelief`.
    disturbance_rewards : (S, A, D) array
        Profit r(s, a, d) of the day, for :class:`brmdp.DisturbanceRewards`.
    demand : (D,) array
        True probabilities of the demands 0, …, D − 1.

    Examples
    --------
    >>> import brmdp
    >>> problem = brmdp.envs.inventory(capacity=4, max_order=2)
    >>> problem.outcomes.shape
    (5, 3, 6)
    >>> problem.outcomes[1, 2].tolist()  # 3 units for demands 0, 1, ..., 5
    [3, 2, 1, 0, 0, 0]
    """

    mdp: TabularMDP
    outcomes: IntArray
    disturbance_rewards: FloatArray
    demand: FloatArray


def inventory(
    capacity: int = 10,
    max_order: int = 5,
    demand: Sequence[float] | FloatArray = DEMAND,
    *,
    price: float = 4.0,
    unit_cost: float = 2.0,
    order_cost: float = 1.0,
    holding_cost: float = 0.1,
    shortage_cost: float = 0.0,
    discount: float = 0.95,
) -> InventoryProblem:
    """An inventory of one item with lost sales.

    The state s is the stock in the morning, the action a the quantity ordered. The order arrives at
    once, then the day's demand d comes: min(s + a, d) units are sold and max(s + a − d, 0) are
    left. The profit of the day is price × sold − unit_cost × a − order_cost × [a > 0] −
    holding_cost × left − shortage_cost × unserved. The shop starts empty.

    Parameters
    ----------
    capacity : int
        Largest stock. Orders beyond it (s + a > capacity) are inadmissible. There are capacity + 1
        states.
    max_order : int, at most ``capacity``
        Largest order. There are max_order + 1 actions.
    demand : (D,) probabilities
        True distribution of the demand 0, …, D − 1; by default :data:`DEMAND`.
    price, unit_cost : float
        Selling price and purchase cost of one unit.
    order_cost : float
        Cost of placing an order, whatever its size.
    holding_cost : float
        Cost of keeping one unit overnight.
    shortage_cost : float
        Cost of one unit of unserved demand, in addition to the lost sale.
    discount : float in [0, 1]
        Discount factor γ.

    Returns
    -------
    InventoryProblem

    Examples
    --------
    >>> import brmdp
    >>> problem = brmdp.envs.inventory()
    >>> brmdp.solve(problem.mdp).policy[:4].tolist()  # what to order for a stock of 0 to 3
    [5, 5, 4, 0]
    """
    capacity = as_positive_int(capacity, "capacity")
    max_order = as_positive_int(max_order, "max_order")
    if max_order > capacity:
        raise InvalidInputError(f"max_order must not exceed capacity={capacity}; got {max_order}")
    demand = _as_demand(demand)
    check_transition_count(
        (capacity + 1) * (max_order + 1) * demand.size, "capacity, max_order and demand together"
    )
    price, unit_cost, order_cost = (
        _amount(price, "price"),
        _amount(unit_cost, "unit_cost"),
        _amount(order_cost, "order_cost"),
    )
    holding_cost, shortage_cost = (
        _amount(holding_cost, "holding_cost"),
        _amount(shortage_cost, "shortage_cost"),
    )

    stock, order, wanted = np.ogrid[: capacity + 1, : max_order + 1, : demand.size]
    available = stock + order
    admissible = available[:, :, 0] <= capacity
    left = np.maximum(available - wanted, 0)
    unserved = np.maximum(wanted - available, 0)
    outcomes = np.where(admissible[:, :, None], left, -1)
    spent = unit_cost * order + order_cost * (order > 0)
    disturbance_rewards = (
        price * (wanted - unserved) - spent - holding_cost * left - shortage_cost * unserved
    )

    # an empty shelf hides the unserved demand: take its mean, given that the demand was at least
    # the available units
    likely = demand * (wanted >= available)
    chance = likely.sum(axis=2)
    hidden = np.divide(
        (likely * unserved).sum(axis=2), chance, out=np.zeros_like(chance), where=chance > 0
    )

    def profit(available: Any, spent: Any, hidden: Any, evening: Any) -> FloatArray:
        sold = np.maximum(available - evening, 0)
        paid: FloatArray = (
            price * sold - spent - holding_cost * evening - shortage_cost * hidden * (evening == 0)
        )
        return paid

    n_states, n_actions = admissible.shape
    shape = (n_states * n_actions, n_states)
    reached = (np.flatnonzero(admissible)[:, None] * n_states + left[admissible]).ravel()
    keys, entry = np.unique(reached, return_inverse=True)
    row, evening = np.divmod(keys, n_states)
    chances = np.bincount(entry.ravel(), np.tile(demand, np.count_nonzero(admissible)))
    kernel = sparse.coo_array((chances, (row, evening)), shape=shape)
    rewards: Any
    if shape[0] * n_states <= DENSE_REWARDS:
        rewards = profit(available, spent, hidden[:, :, None], np.arange(n_states))
    else:
        s, a = np.divmod(row, n_actions)
        rewards = sparse.coo_array(
            (profit(s + a, spent[0, a, 0], hidden[s, a], evening), (row, evening)), shape=shape
        )
    mdp = TabularMDP(
        kernel,
        rewards,
        discount,
        start=0,
        admissible=admissible,
        state_names=[f"stock {s}" for s in range(capacity + 1)],
        action_names=[f"order {a}" for a in range(max_order + 1)],
    )
    for array in (outcomes, disturbance_rewards, demand):
        array.flags.writeable = False
    return InventoryProblem(mdp, outcomes, disturbance_rewards, demand)


class InventoryEnv(TabularEnv):
    """The inventory as a Gymnasium environment.

    ``info["disturbance"]`` is the day's demand, including unserved units, unless lost sales are
    hidden.

    Parameters
    ----------
    render_mode : {None, "ansi", "rgb_array"}
        As in :class:`TabularEnv`.
    reveal_lost_sales : bool
        Whether ``info`` tells the demand. If not, it has to be inferred from the stock, and
        :meth:`brmdp.World.prior` is a :class:`brmdp.CensoredDisturbanceBelief`. The profit stays
        what it is: with a ``shortage_cost``, that of a sold-out day depends on the customers turned
        away and so betrays their number to whoever looks at it. The library's agents do not: they
        learn from states and actions.
    **settings
        Arguments of :func:`inventory`.

    Attributes
    ----------
    problem : InventoryProblem
        The inventory and its true demand.
    reveal_lost_sales : bool
        As given.

    Examples
    --------
    >>> from brmdp.envs import InventoryEnv
    >>> env = InventoryEnv(capacity=4, max_order=2)
    >>> stock, _ = env.reset(seed=1)
    >>> stock, profit, _, _, info = env.step(2)
    >>> stock == max(2 - info["disturbance"], 0)
    True

    A shop that does not count the customers it turns away:

    >>> import brmdp
    >>> world = brmdp.World(InventoryEnv(reveal_lost_sales=False), discount=0.95)
    >>> world.prior()
    CensoredDisturbanceBelief(11 states, 6 actions, 6 disturbances, 0 observed, 0 at least)
    """

    def __init__(
        self,
        render_mode: RenderMode | None = None,
        *,
        reveal_lost_sales: bool = True,
        **settings: Any,
    ) -> None:
        if not isinstance(reveal_lost_sales, bool | np.bool_):
            raise InvalidInputError(
                f"reveal_lost_sales must be True or False; got {reveal_lost_sales!r}"
            )
        self.reveal_lost_sales = bool(reveal_lost_sales)
        self.problem = inventory(**settings)
        super().__init__(self.problem.mdp, render_mode, StockPainter(self.problem.mdp.n_states - 1))

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Simulate a day; returns (next stock, profit, False, False, info).

        ``info`` is {"disturbance": demand}, or empty if lost sales are hidden.
        """
        stock, profit, terminated, truncated, info = super().step(action)
        if self.reveal_lost_sales:
            info["disturbance"] = self._outcome
        return stock, profit, terminated, truncated, info

    def _outcomes(self, state: int, action: int) -> tuple[FloatArray, IntArray, FloatArray]:
        """One outcome per demand, so that ``info`` and the profit account for unserved units."""
        problem = self.problem
        return (
            problem.demand,
            problem.outcomes[state, action],
            problem.disturbance_rewards[state, action],
        )


def _as_demand(demand: Any) -> FloatArray:
    given = as_array(demand, "demand", "probabilities")
    probabilities = np.array(as_float_array(given, "demand"))
    tolerance = sum_tolerance(rounding_of(given), probabilities.size)
    if (
        probabilities.ndim != 1
        or (probabilities < 0).any()
        or abs(probabilities.sum() - 1.0) > tolerance
    ):
        raise InvalidInputError(
            "demand must be a vector of the probabilities of 0, 1, … units, with sum one; "
            f"got shape {probabilities.shape}, sum {probabilities.sum():.12g}"
        )
    normalised: FloatArray = probabilities / probabilities.sum()
    return normalised


def _amount(value: Any, name: str) -> float:
    amount = as_number(value, name, "a finite number that is not negative")
    if not 0.0 <= amount < np.inf:
        raise InvalidInputError(
            f"{name} must be a finite number that is not negative; got {value!r}"
        )
    return amount
