"""Logs of shops with a known demand."""

from __future__ import annotations

import datetime

import numpy as np
import pandas

import brmdp
from brmdp.models import Stock, StockModel

PRICES = {"sold": 3.0, "ordered": -1.2, "order": -2.0, "held": -0.2, "lost": -0.5}
LAW = np.array([0.1, 0.2, 0.25, 0.2, 0.1, 0.08, 0.04, 0.03])
CAPACITY, LARGEST_ORDER, DISCOUNT = 6, 5, 0.95


def lines(law, *, days, unit="a", rng, group="g"):
    """Lines of one unit whose demand follows a law, or a law per day."""
    laws = np.broadcast_to(law, (days, np.shape(law)[-1]))
    stock, found = 3, []
    for day in range(days):
        order = 0
        if stock <= rng.integers(1, 4):
            order = min(int(rng.integers(2, LARGEST_ORDER + 1)), CAPACITY - stock)
        date = datetime.date(2026, 1, 5) + datetime.timedelta(days=day)
        found.append((group, unit, date.isoformat(), stock, order))
        stock = max(stock + order - int(rng.choice(laws.shape[1], p=laws[day])), 0)
    return found


def model_of(rows, *, groups=False, prices=None, costs=None, stock=None, **settings):
    """The model for lines of (group, unit, day, stock, order)."""
    table = pandas.DataFrame(rows, columns=["group", "unit", "day", "stock", "order"])
    log = brmdp.read_log(
        table,
        state="stock",
        action="order",
        unit="unit",
        time="day",
        groups="group" if groups else None,
        actions=tuple(map(str, range(LARGEST_ORDER + 1))),
    )
    paid = {"costs": costs} if costs else {"rewards": prices or PRICES}
    return StockModel(
        log,
        discount=DISCOUNT,
        stock=stock or Stock(CAPACITY, LAW.size - 1),
        start=settings.pop("start", 3),
        **paid,
        **settings,
    )


def truth(law, prices=PRICES):
    """The inventory of the library with the same rules and this demand."""
    return brmdp.envs.inventory(
        CAPACITY,
        LARGEST_ORDER,
        law,
        price=prices["sold"],
        unit_cost=-prices["ordered"],
        order_cost=-prices["order"],
        holding_cost=-prices["held"],
        shortage_cost=-prices["lost"],
        discount=DISCOUNT,
    )
