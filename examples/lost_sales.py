"""What to order if nobody counts the customers who find the shelf empty.

A shop has a log of thirty days: stock in the morning, order, stock in the evening. On a day on
which it sold out, the demand was at least what it had; how much more, nobody knows. Three ways to
treat such days:

- *left out*: only days with something left in the evening are used;
- *sales as demand*: on a sold-out day, the demand is taken to be what was sold;
- *at least*: the demand was at least that (:class:`brmdp.CensoredDisturbanceBelief`).

For comparison, *counted*: what could be known if somebody had counted. Each belief gives a plan
(the best for its mean) and a promise: a bound that the true value of this plan exceeds with a
probability of 0.9, if the belief is right. One log decides nothing, so the same is done for 200
logs, for three shops: deliveries that vary widely; deliveries of at most four units, so that nobody
has seen what more would bring; and the same if every shop has a demand of its own, such as the
prior expects. Run it with ``python examples/lost_sales.py``, which takes a few minutes; a smaller
number of logs may follow.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass

import numpy as np
from scipy import stats

import brmdp
from brmdp.envs import InventoryProblem, inventory

DISCOUNT = 0.95
DAYS, LOGS = 30, 200
PRIOR = np.full(10, 0.5)
"""The shop allows for up to nine customers a day, and knows nothing else."""

DEMAND = np.array([0.05, 0.10, 0.15, 0.20, 0.20, 0.15, 0.10, 0.05, 0.0, 0.0])
"""The true demand, 3.5 on average."""

WAYS = ("left out", "sales as demand", "at least", "counted")


@dataclass(frozen=True)
class Shop:
    """Where logs come from: levels up to which the shelf is filled at random, and the demand."""

    title: str
    levels: tuple[int, int]
    demand: np.ndarray | None
    """None: each log has one of its own, drawn from the prior."""

    def problem(self, *, rng: np.random.Generator) -> InventoryProblem:
        """The shop with its true demand."""
        demand = rng.dirichlet(PRIOR) if self.demand is None else self.demand
        costs = {"price": 6.0, "unit_cost": 2.0, "order_cost": 0.0, "holding_cost": 0.5}
        return inventory(9, 9, demand, **costs, discount=DISCOUNT)


SHOPS = (
    Shop("One demand, deliveries up to 2 to 7 units", (2, 7), DEMAND),
    Shop("One demand, deliveries up to 2 to 4 units", (2, 4), DEMAND),
    Shop("Demands from the prior, deliveries up to 2 to 4 units", (2, 4), None),
)


@dataclass(frozen=True)
class Log:
    """Thirty days: stock in the morning, order, stock in the evening; and the hidden demand."""

    stock: np.ndarray
    order: np.ndarray
    evening: np.ndarray
    demand: np.ndarray

    @classmethod
    def drawn(
        cls, problem: InventoryProblem, levels: tuple[int, int], *, rng: np.random.Generator
    ) -> Log:
        """A log of the shop as it was run so far."""
        days, stock = [], 0
        for _ in range(DAYS):
            order = max(int(rng.integers(levels[0], levels[1] + 1)) - stock, 0)
            demand = int(rng.choice(problem.demand.size, p=problem.demand))
            evening = max(stock + order - demand, 0)
            days.append((stock, order, evening, demand))
            stock = evening
        return cls(*np.array(days).T)

    @property
    def sold_out(self) -> np.ndarray:
        """The days on which nothing was left."""
        return self.evening == 0

    def belief(self, problem: InventoryProblem, way: str) -> brmdp.CensoredDisturbanceBelief:
        """What the shop believes if it treats sold-out days in the given way."""
        belief = brmdp.CensoredDisturbanceBelief(problem.outcomes, PRIOR)
        if way == "at least":
            belief.observe(self.stock, self.order, self.evening)
            return belief
        sold = self.stock + self.order - self.evening
        known = {"left out": sold[~self.sold_out], "sales as demand": sold, "counted": self.demand}
        belief.observe_disturbance(known[way])
        return belief


@dataclass(frozen=True)
class Result:
    """A plan for a shop that begins empty: its order, its promise, its true value, and the best."""

    order: int
    promised: float
    worth: float
    best_order: int
    best: float
    warned: bool


def decided(problem: InventoryProblem, belief: brmdp.Belief, seed: int) -> Result:
    """Plan with a belief, certify the plan with 0.9, and look up its true value."""
    rewards = brmdp.DisturbanceRewards(problem.disturbance_rewards)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", brmdp.PriorWarning)  # counted instead
        plan = brmdp.plan(belief, rewards, DISCOUNT, risk=brmdp.Mean())
        certificate = brmdp.certify(
            *(belief, rewards, DISCOUNT, 0.9),
            method="sampled",
            policy=plan.policy,
            start=0,
            draws=2000,
            nested=False,
            rng=seed,
        )
    best = brmdp.solve(problem.mdp)
    worth = brmdp.evaluate_in_mdp(problem.mdp, plan.policy)[0]
    assert certificate.value is not None
    assert plan.prior is not None
    return Result(
        *(int(plan.policy[0]), certificate.value, float(worth)),
        *(int(best.policy[0]), float(best.values[0]), plan.prior.outweighs),
    )


def mean(numbers: list[float]) -> str:
    """The mean with a 95 % interval, as text."""
    error = stats.t.ppf(0.975, len(numbers) - 1) * stats.sem(numbers)
    return f"{np.mean(numbers):.1f} ± {error:.1f}"


def share(hits: list[bool]) -> str:
    """A share with a 95 % Clopper–Pearson interval, as text."""
    found = stats.binomtest(sum(hits), len(hits)).proportion_ci(0.95, method="exact")
    return f"{np.mean(hits):.0%} ({found.low:.0%} to {found.high:.0%})"


def study(shop: Shop, logs: int) -> None:
    """One log in detail, then many."""
    results: dict[str, list[Result]] = {way: [] for way in WAYS}
    sold_out = []
    for number in range(logs):
        rng = np.random.default_rng([7, number])
        problem = shop.problem(rng=rng)
        log = Log.drawn(problem, shop.levels, rng=rng)
        sold_out.append(int(log.sold_out.sum()))
        for way in WAYS:
            results[way].append(decided(problem, log.belief(problem, way), number))
        if number == 0:
            first = results["counted"][0]
            print(
                f"The first log: sold out on {sold_out[0]} of {DAYS} days. In truth it is best to "
                f"order {first.best_order};\nthe future is then worth {first.best:.1f}.\n"
            )
            print("  sold-out days      order   promised with 0.9   true value")
            for way in WAYS:
                one = results[way][0]
                print(f"  {way:<17} {one.order:>6} {one.promised:>19.1f} {one.worth:>12.1f}")
            print(flush=True)
    print(f"{logs} logs, sold out on {np.mean(sold_out):.1f} of {DAYS} days on average\n")
    print("  sold-out days     order − best   promised       worth less than best   promise kept")
    for way, found in results.items():
        print(
            f"  {way:<17} {mean([float(one.order - one.best_order) for one in found]):<14} "
            f"{mean([one.promised for one in found]):<14} "
            f"{mean([one.best - one.worth for one in found]):<22} "
            f"{share([one.promised <= one.worth for one in found])}"
        )
    warned = ", ".join(f"{way} {sum(r.warned for r in found)}" for way, found in results.items())
    print(f"\n  logs with a warning that the plan rests on the prior: {warned}\n")


def main(logs: int = LOGS) -> None:
    """All shops."""
    for shop in SHOPS:
        print(f"--- {shop.title} ---\n")
        study(shop, logs)
    print(
        "Orders are for an empty shelf. Means and shares have 95 % intervals over logs. A promise\n"
        "is to be kept with a probability of at least 0.9 over demands as the prior expects them\n"
        "(the third shop), not for any one demand (the first two)."
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else LOGS)
