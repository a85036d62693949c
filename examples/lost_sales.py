"""What to order if nobody counts the customers who find the shelf empty.

A shop has a log of thirty days: stock in the morning, order, stock in the evening. On a day on which
it sold out, the demand was at least what it had; how much more, nobody knows. Three ways to treat
such days:

- *left out*: only days with something left in the evening are used;
- *sales as demand*: on a sold-out day, the demand is taken to be what was sold;
- *at least*: the demand was at least that (:class:`brmdp.CensoredDisturbanceBelief`).

For comparison, *counted*: what could be known if somebody had counted. Each belief gives a plan
(the best for its mean) and a guarantee for this plan's value: a bound that the true value exceeds
with a probability of 0.9, if the belief is right. One log decides nothing, so the same is done for
200 logs from the same truth. Run it with ``python examples/lost_sales.py``, which takes a minute.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass

import numpy as np
from scipy import stats

import brmdp
from brmdp.decisions import certify_sampled
from brmdp.envs import inventory

DISCOUNT = 0.95
DAYS, LOGS = 30, 200
DEMAND = (0.05, 0.10, 0.15, 0.20, 0.20, 0.15, 0.10, 0.05, 0.0, 0.0)
"""The truth: from 0 to 7 customers a day, 3.5 on average. The shop allows for up to 9."""

SHOP = inventory(
    *(9, 9, DEMAND), price=6.0, unit_cost=2.0, order_cost=0.0, holding_cost=0.5, discount=DISCOUNT
)
REWARDS = brmdp.DisturbanceRewards(SHOP.disturbance_rewards)
PRIOR = 0.5
WAYS = ("left out", "sales as demand", "at least", "counted")


@dataclass(frozen=True)
class Log:
    """Thirty days: stock in the morning, order, stock in the evening; and what nobody wrote down.

    The supplier brings the stock up to a level between 3 and 5, as it happens.
    """

    stock: np.ndarray
    order: np.ndarray
    evening: np.ndarray
    demand: np.ndarray

    @classmethod
    def drawn(cls, *, rng: np.random.Generator) -> Log:
        """A log from the true demand."""
        days, stock = [], 0
        for _ in range(DAYS):
            order = max(int(rng.integers(3, 6)) - stock, 0)
            demand = int(rng.choice(len(DEMAND), p=DEMAND))
            evening = max(stock + order - demand, 0)
            days.append((stock, order, evening, demand))
            stock = evening
        return cls(*np.array(days).T)

    @property
    def sold_out(self) -> np.ndarray:
        """The days on which nothing was left."""
        return self.evening == 0


def belief_of(log: Log, way: str) -> brmdp.CensoredDisturbanceBelief:
    """What the shop believes about the demand, if sold-out days are treated in the given way."""
    belief = brmdp.CensoredDisturbanceBelief(SHOP.outcomes, PRIOR)
    if way == "at least":
        belief.observe(log.stock, log.order, log.evening)
    else:
        sold = log.stock + log.order - log.evening
        known = {"left out": sold[~log.sold_out], "sales as demand": sold, "counted": log.demand}
        belief.observe_disturbance(known[way])
    return belief


@dataclass(frozen=True)
class Result:
    """A plan, what is promised for it, and what it is truly worth, beginning with an empty shop."""

    order: int
    promised: float
    worth: float
    warned: bool


def decided(belief: brmdp.CensoredDisturbanceBelief, seed: int) -> Result:
    """Plan with a belief, certify the plan with 0.9, and look up its true value."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", brmdp.PriorWarning)  # counted instead
        plan = brmdp.plan(belief, REWARDS, DISCOUNT, risk=brmdp.Mean())
        certificate = certify_sampled(
            *(belief, REWARDS, DISCOUNT, 0.9),
            policy=plan.policy,
            start=0,
            draws=2000,
            nested=False,
            rng=seed,
        )
    worth = brmdp.evaluate_in_mdp(SHOP.mdp, plan.policy)[0]
    assert certificate.value is not None
    assert plan.prior is not None
    return Result(int(plan.policy[0]), certificate.value, float(worth), plan.prior.outweighs)


def mean_and_error(numbers: list[float]) -> str:
    """The mean with a 95 % interval, as text."""
    error = stats.t.ppf(0.975, len(numbers) - 1) * stats.sem(numbers)
    return f"{np.mean(numbers):.2f} ± {error:.2f}"


def share(hits: list[bool]) -> str:
    """A share with a 95 % Clopper–Pearson interval, as text."""
    found = stats.binomtest(sum(hits), len(hits)).proportion_ci(0.95, method="exact")
    return f"{np.mean(hits):.0%} ({found.low:.0%} to {found.high:.0%})"


def main(logs: int = LOGS) -> None:
    """One log in detail, then many."""
    best = brmdp.solve(SHOP.mdp)
    print(
        f"The truth: order {best.policy[0]} for an empty shelf; the future is then worth "
        f"{best.values[0]:.1f}.\n"
    )
    results: dict[str, list[Result]] = {way: [] for way in WAYS}
    sold_out = []
    for number in range(logs):
        log = Log.drawn(rng=np.random.default_rng([7, number]))
        sold_out.append(int(log.sold_out.sum()))
        for way in WAYS:
            results[way].append(decided(belief_of(log, way), number))
        if number == 0:
            print(f"The first log: sold out on {sold_out[0]} of {DAYS} days\n")
            print("  sold-out days      order   promised with 0.9   true value")
            for way in WAYS:
                one = results[way][0]
                print(f"  {way:<17} {one.order:>6} {one.promised:>19.1f} {one.worth:>12.1f}")
            print(flush=True)
    print(f"{logs} logs, sold out on {np.mean(sold_out):.1f} of {DAYS} days on average\n")
    print("  sold-out days     order (mean)     promised         true value       promise kept")
    for way, found in results.items():
        print(
            f"  {way:<17} {mean_and_error([float(one.order) for one in found]):<16} "
            f"{mean_and_error([one.promised for one in found]):<16} "
            f"{mean_and_error([one.worth for one in found]):<16} "
            f"{share([one.promised <= one.worth for one in found])}"
        )
    print(
        f"\nMeans with 95 % intervals over logs; the best possible value is {best.values[0]:.1f}.\n"
        "A promise is meant to be kept with a probability of 0.9 over demands as the prior expects\n"
        "them; here the demand is always the same one. The library warns that a plan rests on the\n"
        "prior in "
        + ", ".join(f"{sum(one.warned for one in found)} ({way})" for way, found in results.items())
        + f"\nof {logs} logs."
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else LOGS)
