"""A stock with lost sales: everything is known but the demand.

Every step, the stock in the morning is known, an order arrives, demand takes what it can, and the
rest is the stock of the next morning: max(stock + order − demand, 0). The demand of every step has
the same law, whatever the stock and the order, so every step teaches about all pairs. If something
was left, the demand is known exactly; if nothing was, it was at least what was there
(:class:`brmdp.CensoredDisturbanceBelief`).

The prior is uniform over the demands 0, 1, …, ``largest_demand``, and worth one step in all: it
says hardly anything where there are data, and leaves open what lies beyond the largest stock that
was ever on the shelf. A prior worth one step *per value* would expect far too many customers: in
trials with negative binomial demands of up to 24, its guarantees at 90 % were false after 100 steps
for most logs, and those of a prior worth one step in all for at most 7 %.

Groups have demands of their own, or share one; no prior is learned across them.

Orders that would exceed the capacity are not admissible. What the log contradicts (a stock that
grew by more than the order, a stock and order above the capacity, more sold than the largest
demand) is left out and counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from brmdp._validation import (
    BoolArray,
    FloatArray,
    IntArray,
    as_number,
    as_positive_int,
    as_positive_number,
)
from brmdp.beliefs.censored import CensoredDisturbanceBelief
from brmdp.beliefs.disturbance import DisturbanceRewards
from brmdp.errors import InvalidInputError
from brmdp.logs import Bins, Categories, Log, StateSpace
from brmdp.logs.spaces import shown
from brmdp.models.costs import Costs, _End
from brmdp.models.file import PRICES, Figure, Prices, Word
from brmdp.models.model import Dynamics, Model
from brmdp.models.wording import LISTED, NEGLIGIBLE, policy_in_words
from brmdp.pattern import TransitionPattern
from brmdp.risk.base import SAMPLED, rounding
from brmdp.risk.measures import Quantile
from brmdp.risk.monte_carlo import order_statistic_rank

__all__ = ["DemandBelief", "DemandQuantile", "Stock", "StockModel"]

STRENGTH = 1.0
"""Weight of the prior in steps, by default."""

MOST_STOCK = 2_000
"""Largest capacity or demand; more needs another unit, such as dozens."""

MOST_ENTRIES = 4_000_000
"""Largest number of triples of stock, order and demand."""

TINY = 1e-9
"""Share of time below which a state is not reached."""

DRAWS = 2_048
"""Draws of the demand's law behind a plan; more for levels in the far tails."""

RELATIVE = 0.1
"""Change of a price that is given without a range, in the sensitivities."""

STRONGER = 10.0
"""Factor on the prior's weight, in the sensitivities."""


# --- what is said about a stock -------------------------------------------------------------------


@dataclass(frozen=True)
class Stock:
    """What is known about a stock; see the table in :mod:`brmdp.models.file`.

    Attributes
    ----------
    capacity : int, optional
        Largest stock; by default the largest stock and order together in the log.
    largest_demand : int, optional
        Largest possible demand. By default the capacity, since a larger demand empties the shelf
        just the same; it must be given if lost demand has a price.
    strength : float
        Weight of the uniform prior over demands, in steps.
    pooling : "separate" or "pooled"
        Whether every group has a demand of its own.

    Examples
    --------
    >>> from brmdp.models import Stock
    >>> Stock(capacity=10).strength
    1.0
    """

    capacity: int | None = None
    largest_demand: int | None = None
    strength: float = STRENGTH
    pooling: Literal["separate", "pooled"] = "separate"

    def __post_init__(self) -> None:
        for name in ("capacity", "largest_demand"):
            value = getattr(self, name)
            if value is not None and as_positive_int(value, name) > MOST_STOCK:
                raise InvalidInputError(f"{name} must be at most {MOST_STOCK:,}; got {value:,}")
        as_positive_number(self.strength, "strength")
        if self.pooling not in ("separate", "pooled"):
            raise InvalidInputError(
                f"pooling must be 'separate' or 'pooled'; got {shown(self.pooling)}"
            )


def prices_of(given: Prices | Mapping[str, Any], word: Word) -> Prices:
    """Prices from a mapping of their names to numbers."""
    if isinstance(given, Prices):
        return given
    if not isinstance(given, Mapping) or not set(given) <= set(PRICES) or not given:
        found = sorted(map(str, given)) if isinstance(given, Mapping) else shown(given)
        raise InvalidInputError(
            f"{word}s must map one or more of {', '.join(PRICES)} to numbers; got {found}"
        )
    numbers = {}
    for name, value in given.items():
        number = as_number(value, f"{word}s[{name!r}]", "a finite number")
        if not np.isfinite(number):
            raise InvalidInputError(f"{word}s[{name!r}] must be finite; got {value!r}")
        numbers[name] = Figure.sure(number)
    return Prices(word, **numbers)


def price_words(prices: Prices) -> str:
    """What a step costs or earns, as a sentence."""
    meaning = {
        "sold": "per unit sold",
        "ordered": "per unit ordered",
        "order": "per order",
        "held": "per unit left over",
        "lost": "per unit of demand that is lost",
    }
    parts = []
    for name in prices.given:
        figure = prices.figure(name)
        text = f"{figure.value:.12g} {meaning[name]}"
        if figure.low < figure.high:
            text += f" (between {figure.low:.12g} and {figure.high:.12g})"
        parts.append(text)
    return f"The {prices.word} of a step: {', '.join(parts) or 'nothing'}."


# --- the law of the demand ------------------------------------------------------------------------


class DemandBelief(CensoredDisturbanceBelief):
    """A belief about demand, which learns from columns of steps at once.

    Parameters
    ----------
    outcomes : (S, A, D) integers
        The stock that is left: max(available − demand, 0), and −1 for inadmissible orders.
    concentration : (D,) positive numbers, or one number for all

    Examples
    --------
    >>> import numpy as np
    >>> from brmdp.models.stock import DemandBelief
    >>> left = np.maximum(np.arange(4)[:, None, None] - np.arange(6), 0)
    >>> belief = DemandBelief(left)
    >>> belief.observe([3, 2, 2, 3], 0, [2, 0, 0, 0])
    >>> belief.counts(), belief.at_least_counts()
    (array([0, 1, 0, 0, 0, 0]), array([0, 0, 2, 1, 0, 0]))
    """

    def observe(
        self,
        state: int | ArrayLike,
        action: int | ArrayLike,
        next_state: int | ArrayLike,
        disturbance: int | ArrayLike | None = None,
    ) -> None:
        """Add observed steps, in place; as in the base class, but without a loop over them."""
        if disturbance is None:
            s, a, left = map(np.asarray, (state, action, next_state))
            if all(column.dtype.kind in "iu" for column in (s, a, left)) and self._learn(
                s, a, left
            ):
                return
        super().observe(state, action, next_state, disturbance)

    def _learn(self, state: IntArray, action: IntArray, left: IntArray) -> bool:
        """Learn from columns of integers; False, and nothing learned, if any step is impossible."""
        if state.size and min(state.min(), action.min(), left.min()) < 0:
            return False
        if state.max(initial=0) >= self.n_states or action.max(initial=0) >= self.pattern.n_actions:
            return False
        try:
            available, left = np.broadcast_arrays(self.outcomes[state, action, 0], left)
        except (IndexError, ValueError):
            return False
        demand, empty = available - left, left == 0
        if ((available < 0) | (demand < 0) | (demand >= self.n_disturbances)).any():
            return False
        self._add(demand[~empty], demand[empty])
        return True


class DemandQuantile:
    """Quantile of w·p over fixed draws of the demand's law, for all pairs at once.

    What :class:`brmdp.Quantile` does for a belief that offers only draws, faster: all pairs share
    one law, and pairs with as much on the shelf have the same targets up to a constant, by which
    quantiles translate.

    Parameters
    ----------
    draws : (n, D) array
    alpha : float in (0, 1)
    """

    def __init__(self, draws: FloatArray, alpha: float) -> None:
        self.draws, self.alpha = draws, alpha

    def bind(self, belief: DemandBelief) -> _DemandOperator:
        """Apply the measure to a belief about demand."""
        return _DemandOperator(belief, self.draws, self.alpha)


class _DemandOperator:
    """The measure for the pairs of one stock, all of which have D outcomes."""

    basis = SAMPLED

    def __init__(self, belief: DemandBelief, draws: FloatArray, alpha: float) -> None:
        self.pattern, self.draws = belief.pattern, draws
        self.available = belief.outcomes[:, :, 0].ravel()
        self.rank = int(order_statistic_rank(draws.shape[0], alpha)) - 1

    def _drawn(self, targets: FloatArray, pairs: IntArray) -> tuple[FloatArray, IntArray]:
        """(k, n) values in the draws of k different shelves, and the shelf of each pair."""
        _, first, shelf = np.unique(self.available[pairs], return_index=True, return_inverse=True)
        width = self.draws.shape[1]
        rows = targets.reshape(-1, width)[self.pattern.indptr[pairs[first]] // width]
        # many small products: threads of the linear algebra would wait for each other
        drawn: FloatArray = np.einsum("kd,nd->kn", rows - rows[:, :1], self.draws)
        return drawn, shelf

    def evaluate(self, targets: FloatArray, pairs: IntArray, out: FloatArray) -> float:
        """Empirical quantiles."""
        drawn, shelf = self._drawn(targets, pairs)
        drawn.partition(self.rank, axis=1)
        out[pairs] = drawn[shelf, self.rank] + targets[self.pattern.indptr[pairs]]
        return 4.0 * rounding(self.pattern, float(np.abs(targets).max()))

    def rows(
        self, targets: FloatArray, values: FloatArray, pairs: IntArray, *, precise: bool = True
    ) -> FloatArray:
        """The draws that attain the quantiles."""
        drawn, shelf = self._drawn(targets, pairs)
        attained = np.argpartition(drawn, self.rank, axis=1)[:, self.rank]
        rows: FloatArray = self.draws[attained[shelf]].ravel()
        return rows

    def fixed_entries(self) -> FloatArray | None:
        """The rows depend on the targets."""
        return None

    def approximation(self) -> None:
        """Nothing is cheaper."""


# --- the model ------------------------------------------------------------------------------------


class StockModel(Model):
    """A decision problem about a stock with lost sales: how much to order at which stock.

    Parameters
    ----------
    log : Log
        Its states are stocks in the morning and its actions orders: labels that are whole numbers.
    costs, rewards : mapping
        One of the two, with one or more of the keys ``sold``, ``ordered``, ``held``, ``lost`` (per
        unit) and ``order`` (per order).
    discount : float
        γ per time step of the log, below 1.
    stock : Stock
    confidence, start, admissible, level, title, file, digest, seed
        As for :class:`brmdp.Model`.

    Examples
    --------
    >>> import brmdp, pandas
    >>> from brmdp.models import Stock, StockModel
    >>> table = {"day": range(60), "stock": [0, 2, 0] * 20, "order": [4, 0, 3] * 20}
    >>> log = brmdp.read_log(pandas.DataFrame(table), time="day", state="stock", action="order")
    >>> rewards = {"sold": 3.0, "ordered": -1.0, "held": -0.1}
    >>> model = StockModel(log, rewards=rewards, discount=0.95)
    >>> model
    StockModel(5 states, 3 actions, 59 transitions, rewards, discount=0.95, confidence=0.9)
    >>> model.belief()
    CensoredDisturbanceBelief(5 states, 3 actions, 5 disturbances, 20 observed, 39 at least)
    """

    def __init__(
        self,
        log: Log,
        *,
        discount: float,
        costs: Prices | Mapping[str, float] | None = None,
        rewards: Prices | Mapping[str, float] | None = None,
        stock: Stock | None = None,
        confidence: float = 0.9,
        start: Any = None,
        admissible: Any = "all",
        level: float | None = None,
        title: str = "",
        file: str = "",
        digest: str = "",
        seed: int = 0,
    ) -> None:
        if (costs is None) == (rewards is None):
            raise InvalidInputError("exactly one of costs and rewards must be given")
        self.stock = Stock() if stock is None else stock
        word: Word = "cost" if rewards is None else "reward"
        self.prices = prices_of(costs if rewards is None else rewards, word)  # type: ignore[arg-type]
        if not isinstance(log, Log):
            raise InvalidInputError(f"log must be a Log (see read_log); got {type(log).__name__}")
        self._drawn: tuple[Any, FloatArray] = (None, np.zeros((0, 0)))
        self.orders: IntArray = orders_of(log.actions)
        shelf = log_of_stocks(log, self.orders, self.stock.capacity)
        self.capacity = shelf.states.n_states - 1
        self.largest_demand = self._largest_demand()
        self._require_size()
        super().__init__(
            shelf,
            discount=discount,
            costs=self._costs() if word == "cost" else None,
            rewards=self._costs() if word == "reward" else None,
            dynamics=Dynamics(
                prior="uniform", pooling="pooled" if log.group_names is None else self.stock.pooling
            ),
            confidence=confidence,
            start=start,
            admissible=admissible,
            level=level,
            title=title,
            file=file,
            digest=digest,
            seed=seed,
        )

    def _largest_demand(self) -> int:
        if self.stock.largest_demand is not None:
            return self.stock.largest_demand
        if "lost" in self.prices.given:
            raise InvalidInputError(
                "largest_demand must be given where lost demand has a price: no log of sales tells "
                "how large demand can be"
            )
        return self.capacity

    def _require_size(self) -> None:
        triples = (self.capacity + 1) * self.orders.size * (self.largest_demand + 1)
        if triples > MOST_ENTRIES:
            raise InvalidInputError(
                f"capacity, orders and largest_demand must make at most {MOST_ENTRIES:,} triples; "
                f"got {triples:,}. Count in larger units, such as dozens"
            )

    # --- what is known ----------------------------------------------------------------------------

    @cached_property
    def available(self) -> IntArray:
        """(S, A) what is on the shelf after the order has come."""
        return np.arange(self.capacity + 1)[:, None] + self.orders

    @cached_property
    def outcomes(self) -> IntArray:
        """(S, A, D) what is left of it; −1 for orders that do not fit."""
        left = np.maximum(self.available[:, :, None] - np.arange(self.largest_demand + 1), 0)
        return np.where(self.admissible[:, :, None], left, -1)

    @cached_property
    def pattern(self) -> TransitionPattern:
        """The possible steps: one per demand."""
        found: TransitionPattern = self.plan_belief(self.groups[0]).pattern
        return found

    def rewards_of(self, amounts: FloatArray) -> Any:
        """What the engine maximises, for amounts by stock, order and demand."""
        return DisturbanceRewards(self.sign * amounts)

    def _amounts(self, prices: Prices) -> FloatArray:
        """(S, A, D) amounts at the values of the prices."""
        demand = np.arange(self.largest_demand + 1)
        available = (np.arange(self.capacity + 1)[:, None] + self.orders)[:, :, None]
        sold = np.minimum(available, demand)
        orders = self.orders[:, None]
        amounts: FloatArray = (
            prices.sold.value * sold
            + prices.ordered.value * orders
            + prices.order.value * (orders > 0)
            + prices.held.value * (available - sold)
            + prices.lost.value * (demand - sold)
        )
        return amounts

    def _costs(self) -> Costs:
        """The prices as amounts, and their alternatives: ranges, or ten per cent up and down."""
        prices, ends = self.prices, []
        ranged = [name for name in prices.given if self._has_range(name)]
        for name in ranged or prices.given:
            figure = prices.figure(name)
            around = sorted(((1.0 - RELATIVE) * figure.value, (1.0 + RELATIVE) * figure.value))
            for value in (figure.low, figure.high) if ranged else around:
                changed: dict[str, Any] = {name: Figure.sure(value)}
                other = replace(prices, **changed)
                words = f"{name} {value:.6g} instead of {figure.value:.6g}"
                ends.append(_End(words, self._amounts(other)))
        # nothing is sold, ordered, held or lost less than zero times: amounts rise with prices
        low, high = (
            self._amounts(replace(prices, **self._prices_at(end))) if ranged else None
            for end in ("low", "high")
        )
        return Costs(
            prices.word,
            self._amounts(prices),
            low,
            high,
            words=(price_words(prices),),
            _ends=tuple(ends),
        )

    def _prices_at(self, end: Literal["low", "high"]) -> dict[str, Any]:
        prices = self.prices
        return {name: Figure.sure(getattr(prices.figure(name), end)) for name in prices.given}

    def _has_range(self, name: str) -> bool:
        figure = self.prices.figure(name)
        return figure.low < figure.high

    def _as_admissible(self, admissible: Any, shape: tuple[int, int]) -> BoolArray:
        fits = self.available <= self.capacity
        mask = super()._as_admissible(admissible, shape) & fits
        return np.where(mask.any(axis=1, keepdims=True), mask, fits)

    # --- what was logged --------------------------------------------------------------------------

    @cached_property
    def contradictions(self) -> IntArray:
        """Rows of the log that contradict what is known of the stock."""
        wrong = np.zeros(self.log.state.size, dtype=bool)
        for rows in self.contradicted.values():
            wrong[rows] = True
        return np.flatnonzero(wrong)

    @cached_property
    def contradicted(self) -> dict[str, IntArray]:
        """The same by reason; the first reason counts."""
        log = self.log
        there = self.available[log.state, log.action]
        reasons = {
            "the stock grew by more than was ordered": log.next_state > there,
            "stock and order exceed the capacity": there > self.capacity,
            "more was sold than the largest demand": there - log.next_state > self.largest_demand,
        }
        # what empties a shelf that holds more than the largest demand is among the third
        found, before = {}, np.zeros(log.state.size, dtype=bool)
        for reason, wrong in reasons.items():
            if (wrong & ~before).any():
                found[reason] = np.flatnonzero(wrong & ~before)
            before |= wrong
        return found

    def evidence(self, group: str | None = None) -> IntArray:
        """(S, A) number of steps with at least as much on the shelf, whatever stock and order."""
        rows = self.rows(None if self.pooled else group)
        there = self.available[self.log.state[rows], self.log.action[rows]]
        size = int(self.available.max()) + 1
        beyond = np.cumsum(np.bincount(there, minlength=size)[::-1])[::-1]
        return np.asarray(beyond[self.available], dtype=np.int64)

    # --- what is believed -------------------------------------------------------------------------

    @property
    def pooled(self) -> bool:
        """Whether all groups are believed to have the same demand."""
        return self.groups == (None,) or self.stock.pooling == "pooled"

    def prior_belief(self, group: str | None = None, strength: float | None = None) -> Any:
        """The belief about demand before the log."""
        weight = self.stock.strength if strength is None else strength
        return DemandBelief(self.outcomes, weight / (self.largest_demand + 1))

    def plan_belief(self, group: str | None = None) -> Any:
        """The belief about a group's demand."""
        key = None if self.pooled else group
        if key not in self._beliefs:
            self._beliefs[key] = self.learned_from(self.prior_belief(), key)
        return self._beliefs[key]

    def belief(self, group: str | None = None) -> Any:
        """The same: its draws leave nothing out."""
        return self.plan_belief(group)

    def learned_from(self, prior: DemandBelief, group: str | None) -> DemandBelief:
        """A prior with the log of a group added."""
        rows, log = self.rows(group), self.log
        prior.observe(log.state[rows], log.action[rows], log.next_state[rows])
        return prior

    def naive_belief(self, group: str | None, way: Literal["left out", "sales"]) -> DemandBelief:
        """What would be believed if sold-out steps were left out, or sales were taken for demand.

        Both make the demand look smaller than it is.
        """
        rows, log = self.rows(None if self.pooled else group), self.log
        sold = self.available[log.state[rows], log.action[rows]] - log.next_state[rows]
        belief: DemandBelief = self.prior_belief()
        belief.observe_disturbance(sold if way == "sales" else sold[log.next_state[rows] > 0])
        return belief

    def other_beliefs(self, group: str | None) -> Iterator[tuple[str, DemandBelief]]:
        """Beliefs under other assumptions, for the sensitivities."""
        key, strength = None if self.pooled else group, self.stock.strength
        for factor in (1.0 / STRONGER, STRONGER):
            words = f"a prior worth {factor * strength:.4g} steps instead of {strength:.4g}"
            yield words, self.learned_from(self.prior_belief(strength=factor * strength), key)

    def quantile(self, belief: DemandBelief, level: float) -> Any:
        """The measure to plan with: exact as long as every demand is known, else from draws."""
        if belief.is_dirichlet:
            return Quantile(level)
        n = max(DRAWS, int(np.ceil(20.0 / min(level, 1.0 - level))))
        known, draws = self._drawn
        if known is not belief or draws.shape[0] < n:
            draws = belief.sample_disturbance(n, rng=np.random.default_rng(0))
            self._drawn = belief, draws
        return DemandQuantile(draws, level)

    def informative(self, policy: IntArray) -> tuple[tuple[int, int], ...]:
        """Pairs that would show most of the demand: the fullest shelf, and that of the policy."""
        there = np.where(self.admissible, self.available, -1)
        fullest = divmod(int(np.argmax(there)), self.orders.size)
        own = there[np.arange(policy.size), policy]
        emptiest = int(np.flatnonzero(own > 0)[0]) if (own > 0).any() else fullest[0]
        pairs = (fullest, (emptiest, int(policy[emptiest])))
        return tuple(dict.fromkeys(pairs))

    # --- words ------------------------------------------------------------------------------------

    def words(self, policy: IntArray, visits: FloatArray) -> tuple[str, ...]:
        """A policy in sentences; order-up-to rules are recognised."""
        every = np.ones(policy.size, dtype=bool)
        rule = self._order_up_to(policy, every)
        if rule:
            return (rule,)
        visited = visits > NEGLIGIBLE / policy.size
        rule = self._order_up_to(policy, visited)
        if rule:
            left = float(visits[~visited].sum())
            share = f"{100.0 * left:.2g} % of its time" if left > TINY else "no time"
            return (
                rule,
                f"Elsewhere, where it spends {share}, it may do otherwise: see the table.",
            )
        named = tuple(f"order {number}" for number in self.orders)
        return policy_in_words(self.states, named, policy, visits, self.ends)

    def _order_up_to(self, policy: IntArray, counts: BoolArray) -> str:
        """The policy as an order-up-to rule in the states that count; empty if it is none."""
        stocks = np.flatnonzero(counts)
        order = self.orders[policy[stocks]]
        if not order.any():
            return "Never order anything."
        last = int(stocks[order > 0].max())
        level = int((stocks + order)[order > 0].max())
        low = stocks <= last
        # the largest order that does not exceed the level
        ladder = np.sort(self.orders)
        wanted = ladder[np.searchsorted(ladder, level - stocks[low], side="right") - 1]
        if not np.array_equal(order[low], wanted):
            return ""
        name = self.states.name
        text = f"Order up to {level}"
        if (wanted < level - stocks[low]).any():
            text += f" as far as orders allow (at most {ladder[-1]} at a time)"
        if last >= min(level - 1, self.capacity - 1):
            return f"{text}."
        return f"{text} where {name} is {last} or less, and nothing where it is more."

    def assumptions(self) -> tuple[str, ...]:
        """What the decision takes for granted, in sentences."""
        found = [
            "The next stock is the stock and the order less the demand, and never below zero; "
            "orders come before the demand, and demand that finds the shelf empty is lost.",
            f"The stock is at most {self.capacity} and the demand of a step at most "
            f"{self.largest_demand}.",
            "The demand does not depend on stock, order or earlier demand, and its law does not "
            "change over time.",
            "Where the shelf was empty in the end, the demand is taken to have been at least what "
            "was there; sold-out steps are neither left out nor taken for the demand.",
            "The prior over the demand is uniform and worth "
            f"{self.stock.strength:.6g} step{'s' * (self.stock.strength != 1.0)} in all.",
        ]
        if self.groups != (None,):
            found.append(
                "All groups are taken to have the same demand."
                if self.pooled
                else "Every group has a demand of its own, learned from its own lines alone."
            )
        return (*found, *self.costs.words)


# --- stocks and orders of a log -------------------------------------------------------------------


def orders_of(actions: tuple[str, ...]) -> IntArray:
    """The order quantities that actions stand for."""
    numbers = [_whole(label) for label in actions]
    for label, number in zip(actions, numbers, strict=True):
        if number is None or number > MOST_STOCK:
            raise InvalidInputError(
                f"actions must be orders: whole numbers from 0 to {MOST_STOCK:,}; got "
                f"{shown(label)}"
            )
    orders = np.array(numbers, dtype=np.int64)
    if 0 not in orders:
        raise InvalidInputError(
            "orders must contain 0, since nothing else fits on a full shelf; got "
            f"{', '.join(map(str, np.sort(orders)[:LISTED]))}. List all possible orders when the "
            "log is read (actions), or in the model file ([action] labels)"
        )
    if np.unique(orders).size < orders.size:
        raise InvalidInputError("actions must be different orders; some are the same number")
    return orders


def stocks_of(states: StateSpace) -> IntArray:
    """The stocks that states stand for."""
    axis = states.axes[0]
    if len(states.axes) > 1:
        raise InvalidInputError(
            f"the state must be one column, the stock; got {len(states.axes)} columns"
        )
    if isinstance(axis, Bins):
        if any(high - low != 1.0 for low, high in zip(axis.edges, axis.edges[1:], strict=False)):
            raise InvalidInputError("bins of a stock must have width 1")
        labels = tuple(f"{edge:.12g}" for edge in axis.edges[:-1])
    else:
        labels = states.labels
    numbers = [_whole(label) for label in labels]
    for label, number in zip(labels, numbers, strict=True):
        if number is None or number > MOST_STOCK:
            raise InvalidInputError(
                f"states must be stocks: whole numbers from 0 to {MOST_STOCK:,}; got "
                f"{shown(label)}. With capacity in a model file, other lines are dropped"
            )
    return np.array(numbers, dtype=np.int64)


def log_of_stocks(log: Log, orders: IntArray, capacity: int | None) -> Log:
    """The log with the states 0, 1, …, capacity."""
    stocks = stocks_of(log.states)
    seen = stocks[np.concatenate((log.line_state, log.state, log.next_state))]
    largest = int(seen.max(initial=0))
    if capacity is None:
        most = stocks[log.line_state] + orders[log.line_action]
        capacity = max(largest, int(most.max(initial=0)), 1)
        if capacity > MOST_STOCK:
            raise InvalidInputError(
                f"capacity must be given: the largest stock and order of the log is {capacity:,}"
            )
    elif largest > capacity:
        raise InvalidInputError(
            f"capacity must be at least the largest stock of the log, {largest:,}; got {capacity}"
        )
    labels = tuple(str(stock) for stock in range(capacity + 1))
    return replace(
        log,
        states=StateSpace((Categories(log.states.axes[0].column, labels),)),
        state=stocks[log.state],
        next_state=stocks[log.next_state],
        line_state=stocks[log.line_state],
    )


def _whole(label: str) -> int | None:
    """The whole number, not negative, that a label is."""
    text = label.removeprefix("+")
    if text.isascii() and text.isdigit() and len(text) <= 9:
        return int(text)
    return None
