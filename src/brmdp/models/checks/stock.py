"""Checks of a stock with lost sales: what was seen of the demand, and whether it has one law.

Steps are split into classes: by time, by what was on the shelf, by the demand before, by the day of
the week, by unit. Does a law for each class, which varies about the common one, predict held-out
steps better than the common law? A step that sold out is predicted by the probability of "at least
what was there". The consequence is what the plan would lose if the demand always followed the laws
of the classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import bdtrc

from brmdp._validation import BoolArray, FloatArray, IntArray
from brmdp.models.checks.bench import Bench, Plan
from brmdp.models.checks.consequences import CONCERNED, Consequence
from brmdp.models.checks.splits import blocks_of
from brmdp.models.checks.verdicts import (
    CLEAR,
    MATERIAL,
    SHORTFALL,
    Sign,
    beyond_rounding,
    percentage,
    verdict_of,
)
from brmdp.models.results import Check, Curve, Picture, Verdict
from brmdp.models.stock import StockModel
from brmdp.models.wording import figure

__all__ = ["CHECKS", "Steps", "StockBench", "check_stock"]

THIN = 5
"""A shelf was hardly seen if it was at least as full on fewer steps."""

THIN_TIME = 0.05
"""Share of the plan's time on such shelves that calls for a look."""

SOLD_OUT = 0.5
"""Share of sold-out steps that calls for a look."""

PRIOR_SHARE = 0.25
"""Share of the prior that calls for a look."""

EXPECTED = ("last line", "duplicate")
LOST, CONTRADICTED = 0.05, 0.05
"""Shares of lines lost, and of steps that contradict what is known."""

NAMED = 3
FOLDS, WITHIN = 5, 4
"""Parts that are held out in turn, and parts of a unit if units are compared."""

LOOSENESS = (5.0, 50.0)
"""How many steps the common law is worth in a class."""

MOST_UNITS, FEWEST_STEPS = 2_000, 20
WEEK = 7
PREDICTED = 4_000_000
"""Steps that are simulated."""

PICTURED = 30


class StockBench(Bench):
    """A model of a stock, with what its checks share."""

    model: StockModel

    @cached_property
    def rewards(self) -> FloatArray:
        """What is maximised, one number per pair and demand."""
        belief = self.model.plan_belief(self.model.groups[0])
        return np.asarray(belief.gather_rewards(self.model.rewards), dtype=np.float64)

    def entries_of(self, law: FloatArray) -> FloatArray:
        """A law of the demand as probabilities of all steps."""
        return np.tile(law, self.pattern.pairs.size)

    @cached_property
    def steps(self) -> Steps:
        """What every step of the log says about the demand."""
        log, rows = self.model.log, self.rows
        there = self.model.available[log.state[rows], log.action[rows]]
        empty = log.next_state[rows] == 0
        return Steps(there, there - log.next_state[rows], empty, self.strata())

    def law(self, plan: Plan) -> FloatArray:
        """The mean law of the demand that a plan expects."""
        law: FloatArray = self.model.plan_belief(plan.group).disturbance_mean()
        return law


@dataclass(frozen=True, eq=False)
class Steps:
    """What steps say about the demand.

    Attributes
    ----------
    there : (n,) integers
        What was on the shelf.
    sold : (n,) integers
        Demand, or the least that it was.
    empty : (n,) booleans
        Whether nothing was left, so the demand was at least what was sold.
    stratum : (n,) integers
        The group.
    """

    there: IntArray
    sold: IntArray
    empty: BoolArray
    stratum: IntArray

    def log_chance(self, survival: FloatArray, cell: IntArray, rows: IntArray) -> FloatArray:
        """Ln Pr of the steps under the laws of their cells, given by Pr(demand ≥ k)."""
        sold = self.sold[rows]
        least = survival[cell, sold]
        chance = np.where(self.empty[rows], least, least - survival[cell, sold + 1])
        return np.log(np.maximum(chance, 1e-300))


def survivals(prior: FloatArray, exact: FloatArray, beyond: FloatArray) -> FloatArray:
    """(…, D + 1) mean of Pr(demand ≥ k) under Dirichlet priors with censored counts added."""
    known = prior + exact
    weight = known + beyond
    left = np.cumsum(weight[..., ::-1], axis=-1)[..., ::-1] - weight
    total = known + left
    stay = np.divide(left, total, out=np.zeros_like(total), where=total > 0.0)
    found = np.zeros((*prior.shape[:-1], prior.shape[-1] + 1))
    found[..., 0] = 1.0
    np.cumprod(stay[..., :-1], axis=-1, out=found[..., 1:-1])
    return found


@dataclass(frozen=True, eq=False)
class Split:
    """Steps in classes, and what a law for each class predicts.

    Attributes
    ----------
    sign : Sign
        How much better laws by class predict what was held out.
    laws : (strata, classes, D) array
        Mean laws of the classes, which vary about the common one.
    common : (strata, D) array
    weights : (strata, classes) array
        Shares of the steps.
    """

    sign: Sign
    laws: FloatArray
    common: FloatArray
    weights: FloatArray


def split(
    bench: StockBench,
    label: IntArray,
    rng: np.random.Generator,
    blocks: IntArray | None = None,
    strata: IntArray | None = None,
) -> Split | None:
    """Compare laws by class with a law common to each stratum.

    Steps with a negative label are left out. Strata are the groups, unless others are given, so
    that differences between groups are not taken for something else.
    """
    used = np.flatnonzero(label >= 0)
    if used.size < FEWEST_STEPS or np.unique(label[used]).size < 2:
        return None
    steps, width = bench.steps, bench.model.largest_demand + 1
    classes = int(label.max()) + 1
    own = steps.stratum if strata is None else strata
    n_strata = int(own.max()) + 1
    unit = bench.model.log.unit[bench.rows]
    _, block = np.unique((blocks_of(unit) if blocks is None else blocks)[used], return_inverse=True)
    folds = rng.permutation(np.arange(int(block.max()) + 1) % FOLDS)[block]
    stratum = own[used]
    cell = stratum * classes + label[used]
    counts = np.zeros((2, FOLDS, n_strata * classes, width))
    exact = ~steps.empty[used] | (steps.sold[used] == width - 1)
    np.add.at(counts, (np.where(exact, 0, 1), folds, cell, steps.sold[used]), 1.0)
    counts[1, :, :, 0] = 0.0
    weak = np.full((n_strata, width), bench.model.stock.strength / width)

    def laws(tally: FloatArray, loose: float) -> tuple[FloatArray, FloatArray]:
        """Survival of the common law of each stratum, and of the law of each cell."""
        sums = tally.reshape(2, n_strata, classes, width).sum(axis=2)
        common = survivals(weak, sums[0], sums[1])
        prior = np.repeat(loose * -np.diff(common, axis=1), classes, axis=0)
        return common, survivals(prior, tally[0], tally[1])

    gains = np.zeros((len(LOOSENESS), used.size))
    total = counts.sum(axis=1)
    for fold in range(FOLDS):
        held = np.flatnonzero(folds == fold)
        for k, loose in enumerate(LOOSENESS):
            common, apart = laws(total - counts[:, fold], loose)
            gains[k, held] = steps.log_chance(apart, cell[held], used[held])
            gains[k, held] -= steps.log_chance(common, stratum[held], used[held])
    best = int(np.argmax(gains.sum(axis=1)))
    sums = np.bincount(block, gains[best])
    error = float(sums.std(ddof=1)) * np.sqrt(sums.size) if sums.size > 1 else 0.0
    sign = Sign(float(sums.sum()), float(error), sums.size, used.size, len(LOOSENESS))
    common, apart = laws(total, LOOSENESS[best])
    weights: FloatArray = np.bincount(cell, minlength=n_strata * classes).astype(np.float64)
    weights = weights.reshape(n_strata, classes)
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1.0)
    return Split(
        sign,
        -np.diff(apart, axis=1).reshape(n_strata, classes, width),
        -np.diff(common, axis=1),
        weights,
    )


def consequence(
    bench: StockBench,
    found: Split,
    use: Callable[[FloatArray], FloatArray] | None = None,
    *,
    lasting: bool = True,
) -> Consequence:
    """What the plans lose if demand follows the laws of the classes, averaged over these.

    ``use`` turns the classes' shares into the weights with which they count. A guarantee can be
    false only for classes that last, such as units, and not for days of the week.
    """
    losses, values, broken, hit, promises = [], [], [], [], []
    for k, plan in enumerate(bench.plans):
        stratum = k if len(found.common) == len(bench.plans) else 0
        weights = found.weights[stratum] if use is None else use(found.weights[stratum])
        base = bench.entries_of(found.common[stratum])
        known, value = plan.loss(base), plan.value_in(base)
        promised = bench.guarantee(plan)
        lost, worth, short = 0.0, 0.0, 0.0
        for weight, law in zip(weights, found.laws[stratum], strict=True):
            if weight <= 0.0:
                continue
            entries = bench.entries_of(law)
            own = plan.value + plan.value_in(entries) - value
            lost += weight * max(0.0, plan.loss(entries) - known)
            worth += weight * own
            if lasting and promised is not None and own < promised - SHORTFALL * plan.scale:
                short += weight
        losses.append(lost)
        values.append(worth)
        broken.append(short)
        # of classes that hardly differ, some fall short of a guarantee by chance
        hit.append(max(float(plan.material(lost)), short if found.sign.clear else 0.0))
        promises.append(promised)
    loss, scale = bench.average(losses), bench.average(p.scale for p in bench.plans)
    known_promises = [promised for promised in promises if promised is not None]
    complete = len(known_promises) == len(promises)
    return Consequence(
        loss,
        loss / scale,
        bench.average(values),
        bench.average(known_promises) if complete else None,
        bench.average(broken),
        bench.average(hit) >= CONCERNED,
        abs(bench.average(values) - bench.average(p.value for p in bench.plans)) / scale,
    )


def _compared(
    bench: StockBench,
    name: str,
    question: str,
    label: IntArray,
    names: tuple[str, ...],
    richer: str,
    if_so: str,
    remedy: str,
    number: int,
    *,
    use: Callable[[FloatArray], FloatArray] | None = None,
    blocks: IntArray | None = None,
    strata: IntArray | None = None,
    lasting: bool = True,
    title: str,
    x: str,
) -> Check | None:
    """A check that splits the steps into classes."""
    found = split(bench, label, bench.model.stream("checks", number), blocks, strata)
    if found is None:
        return None
    sign, result = found.sign, consequence(bench, found, use, lasting=lasting)
    verdict = verdict_of(sign.strong, sign.clear or sign.blind, result.material)
    return Check(
        name,
        question,
        verdict,
        sign.words(richer),
        result.words(bench, if_so),
        {
            "standard_errors": sign.errors,
            "detectable": sign.detectable,
            "loss": result.loss,
            "loss_share": result.share,
            "value": bench.own(result.value),
            "guarantee_false": result.broken,
        },
        "" if verdict == "fine" else remedy,
        _picture(bench, label, names, title, x),
    )


def _picture(
    bench: StockBench, label: IntArray, names: tuple[str, ...], title: str, x: str
) -> Picture:
    """Mean demand of every class, up to the capacity, with 95 % credible intervals."""
    model, steps = bench.model, bench.steps
    most = np.minimum(np.arange(model.largest_demand + 1), model.capacity)
    rows = []
    for k, name in enumerate(names):
        mine = label == k
        if not mine.any():
            continue
        belief = model.prior_belief()
        belief.observe_disturbance(steps.sold[mine & ~steps.empty])
        belief.observe_at_least(np.minimum(steps.sold[mine & steps.empty], model.largest_demand))
        drawn = belief.sample_disturbance(400, rng=np.random.default_rng(0)) @ most
        mean = float(belief.disturbance_mean() @ most)
        rows.append((name, mean, *np.quantile(drawn, (0.025, 0.975)).tolist()))
    if len(rows) > PICTURED:
        rows.sort(key=lambda row: row[1])
        rows = [rows[k] for k in np.linspace(0, len(rows) - 1, PICTURED).round().astype(int)]
    labels, means, lows, highs = zip(*rows, strict=True)
    curve = Curve("demand", labels, means, lows, highs)
    y = f"mean demand per step (at most {model.capacity})"
    return Picture("points", title, x, y, (curve,))


# --- the checks -----------------------------------------------------------------------------------


def check_log(bench: StockBench) -> Check:
    """Sum up what reading dropped, and what contradicts the rules of a stock."""
    model, report = bench.model, bench.model.log.report
    lost = [one for one in report.dropped if one.reason not in EXPECTED]
    n, wrong = sum(one.lines for one in lost), int(model.contradictions.size)
    share = n / max(report.lines, 1)
    against = wrong / max(len(model.log), 1)
    verdict: Verdict = "fine"
    if share > LOST or wrong:
        verdict = "look"
    if against > CONTRADICTED:
        verdict = "stop"
    finding = f"{report.lines:,} lines gave {report.transitions:,} steps"
    reasons = sorted(lost, key=lambda one: -one.lines)[:NAMED]
    listed = ", ".join(f"{one.reason} {one.lines:,}" for one in reasons)
    finding += f"; {n:,} lines ({percentage(share)}) were lost ({listed})." if n else "; none lost."
    if wrong:
        named = ", ".join(f"{why}: {rows.size:,}" for why, rows in model.contradicted.items())
        finding += f" {wrong:,} steps ({percentage(against)}) contradict a stock ({named})."
    parts = []
    if wrong:
        parts.append(
            "They were left out. If deliveries come after the sales or on later days, the demand "
            "of all other steps is misread, too."
        )
    if n:
        parts.append(
            "The decision rests on all other lines; it is right for those left out if these are "
            "like the others."
        )
    return Check(
        "log",
        "How much of the log was left out, and does it contradict the rules of a stock?",
        verdict,
        finding,
        " ".join((*(parts or ["Nothing that bears on the decision was left out."]), bench.about)),
        {
            "lines": report.lines,
            "lost": n,
            "lost_share": share,
            "contradictions": wrong,
            "contradicted_share": against,
        },
        ""
        if verdict == "fine"
        else "Look at the reading report; find out when deliveries come and stock is counted.",
    )


def check_coverage(bench: StockBench) -> Check:
    """What was seen of the demand, and what shortcuts with sold-out steps would cost."""
    model, plans = bench.model, bench.plans
    sold_out, thin, losses = [], [], []
    shortcuts: dict[str, list[float]] = {"left out": [], "sales": []}
    for k, plan in enumerate(plans):
        mine = bench.plan_of_row == k if len(plans) > 1 else np.ones(bench.rows.size, dtype=bool)
        sold_out.append(float(bench.steps.empty[mine].mean()) if mine.any() else 1.0)
        counts = model.evidence(plan.group)[np.arange(plan.policy.size), plan.policy]
        thin.append(float(plan.visits[counts < THIN].sum()))
        promised = bench.guarantee(plan)
        losses.append(
            0.0 if promised is None else beyond_rounding(plan.value - promised, plan.scale)
        )
        for way, lacking in shortcuts.items():
            law = model.naive_belief(plan.group, way).disturbance_mean()  # type: ignore[arg-type]
            world = type(plan.world)(
                bench.pattern, bench.entries_of(law), bench.rewards, model.discount
            )
            policy, _ = world.best(plan.policy)
            own = float(plan.start @ plan.world.values(policy))
            lacking.append(max(0.0, plan.best - own))
    priors = [_prior_share(bench, plan) for plan in plans]
    # the worst group decides: an average would hide it
    verdicts: list[Verdict] = []
    for share, hidden, prior, lost, plan in zip(thin, sold_out, priors, losses, plans, strict=True):
        material = lost >= MATERIAL * plan.scale
        blind = share >= THIN_TIME and prior >= 0.5 and material
        verdicts.append(verdict_of(blind, max(share / THIN_TIME, hidden / SOLD_OUT) >= 1.0, blind))
    verdict, number = bench.worst(verdicts, map(sum, zip(thin, sold_out, strict=True)))
    group, named = bench.naming(verdicts, number)
    share, hidden = bench.of(thin, number), bench.of(sold_out, number)
    prior, lost = bench.of(priors, number), bench.of(losses, number)
    scale = bench.of((p.scale for p in plans), number)
    value = bench.of((p.value for p in plans), number)
    where = "" if group is None else f" of group {group}"
    finding = f"On {percentage(hidden)} of the steps{where} the shelf was empty in the end."
    if share > 0.0:
        finding += (
            f" {named[0].upper()}{named[1:]} spends {percentage(share)} of its discounted time "
            f"with more on the shelf than there was on all but {THIN - 1} steps of the log; what "
            "demand beyond that is like rests on the prior."
        )
    worse = {way: bench.of(found, number) for way, found in shortcuts.items()}
    word = "cost" if model.word == "cost" else "earn"
    more = "more" if model.word == "cost" else "less"
    text = (
        f"If demand turns out badly (worst {100 * (1 - model.confidence):.3g} % of what the belief "
        f"considers possible), the {model.word} is {bench.shown(value - lost)} instead of "
        f"{bench.shown(value)}. A plan that left sold-out steps out would {word} "
        f"{figure(worse['left out'], 3)} {more} ({percentage(worse['left out'] / scale)}), and one "
        f"that took sales for demand {figure(worse['sales'], 3)} {more} "
        f"({percentage(worse['sales'] / scale)})."
    )
    return Check(
        "coverage",
        "How much of the demand was seen, and how much was hidden by an empty shelf?",
        verdict,
        finding,
        text,
        {
            "sold_out": hidden,
            "thin_time": share,
            "prior_share": prior,
            "loss": lost,
            "loss_share": lost / scale,
            "loss_left_out": worse["left out"],
            "loss_sales": worse["sales"],
        },
        ""
        if verdict == "fine"
        else "Fill the shelf further for some days: what is sold then tells more than any log of "
        "empty shelves.",
        _law_picture(bench, int(np.argmax(sold_out)) if number is None else number),
        group,
    )


def _prior_share(bench: StockBench, plan: Plan) -> float:
    """The prior's share in the law of the demand."""
    weight, seen = bench.model.plan_belief(plan.group).evidence(np.zeros(1, dtype=np.int64))
    return float(weight[0] / (weight[0] + seen[0]))


def _law_picture(bench: StockBench, number: int) -> Picture:
    """Pr(demand ≥ k), as it is believed to be and as sales alone would show it."""
    model, plan = bench.model, bench.plans[number]
    belief = model.plan_belief(plan.group)
    values = tuple(float(k) for k in range(1, model.largest_demand + 1))

    def at_least(laws: FloatArray) -> FloatArray:
        return np.cumsum(laws[..., ::-1], axis=-1)[..., ::-1][..., 1:]

    drawn = at_least(belief.sample_disturbance(1_000, rng=np.random.default_rng(0)))
    low, high = np.quantile(drawn, (0.025, 0.975), axis=0)
    sales = at_least(model.naive_belief(plan.group, "sales").disturbance_mean())
    where = "" if len(bench.plans) == 1 else f" ({plan.group})"
    curves = (
        Curve(
            "demand",
            values,
            tuple(at_least(belief.disturbance_mean()).tolist()),
            tuple(low.tolist()),
            tuple(high.tolist()),
        ),
        Curve("if sales were the demand", values, tuple(sales.tolist())),
    )
    title = f"How likely a demand of so many or more is{where}; the band holds with 95 %"
    return Picture("lines", title, "demand of a step", "probability", curves)


def check_prior(bench: StockBench) -> Check:
    """What the prior contributes, and what a stronger or weaker one would change."""
    model = bench.model
    shares = [_prior_share(bench, plan) for plan in bench.plans]
    losses = []
    for plan in bench.plans:
        worst, known = 0.0, plan.best - plan.value
        for _, other in model.other_beliefs(plan.group):
            worst = max(worst, plan.loss(bench.entries_of(other.disturbance_mean())) - known)
        losses.append(worst)
    # the worst group decides: an average would hide it
    verdicts = [
        verdict_of(share > 0.5, share > PRIOR_SHARE, plan.material(loss))
        for share, loss, plan in zip(shares, losses, bench.plans, strict=True)
    ]
    verdict, number = bench.worst(verdicts, shares)
    group, _ = bench.naming(verdicts, number)
    share, loss = bench.of(shares, number), bench.of(losses, number)
    scale = bench.of((p.scale for p in bench.plans), number)
    where = "" if group is None else f" of group {group}"
    return Check(
        "prior",
        "How much does the result rest on what was assumed before looking at the log?",
        verdict,
        f"The prior makes up {percentage(share)} of what is believed about the demand{where}, "
        "counting steps with an empty shelf only as far as they tell something.",
        "With a prior ten times weaker or stronger, the plan "
        + (
            "would still be the best one."
            if loss <= 1e-6 * scale
            else f"would lose up to {figure(loss, 3)} ({percentage(loss / scale)} of its "
            f"{model.word})."
        ),
        {"share": share, "loss": loss, "loss_share": loss / scale},
        "" if verdict == "fine" else "Log more steps, above all with a full shelf.",
        group=group,
    )


def check_groups(bench: StockBench) -> Check | None:
    """Compare groups that are said to have the same demand."""
    model = bench.model
    if model.log.group is None or not model.pooled or len(model.groups) < 2:
        return None
    return _compared(
        bench,
        "groups",
        "Do groups have the same demand, as the model says?",
        np.asarray(model.log.group[bench.rows]),
        tuple(map(str, model.groups)),
        "groups differ in their demand",
        "If every group has a demand of its own",
        'Let every group have a demand of its own: pooling = "separate".',
        2,
        strata=np.zeros(bench.rows.size, dtype=np.int64),
        title="Mean demand by group",
        x="group",
    )


def check_units(bench: StockBench) -> Check | None:
    """Compare units that are said to have the same demand."""
    log, rows = bench.model.log, bench.rows
    names, label = np.unique(log.unit[rows], return_inverse=True)
    if not 2 <= names.size <= MOST_UNITS or names.size <= int(bench.strata().max(initial=0)) + 1:
        return None
    # parts of units are held out, or nothing would be known of the unit
    size = np.bincount(label)
    first = np.concatenate(([0], np.cumsum(size)[:-1]))
    rank = np.arange(rows.size) - first[label]
    part = rank * WITHIN // size[label]
    return _compared(
        bench,
        "units",
        "Do units of a group have the same demand?",
        label.astype(np.int64),
        tuple(log.unit_names[k] for k in names),
        "units differ in their demand",
        "If units keep such differences",
        "Find out what the units differ in, and make it a group.",
        4,
        blocks=(label * WITHIN + part).astype(np.int64),
        title="Mean demand by unit",
        x="unit",
    )


def check_drift(bench: StockBench) -> Check | None:
    """Compare the first with the second half of the time."""
    log, rows = bench.model.log, bench.rows
    if log.time is not None:
        label = (log.time[rows] > np.median(log.time[rows])).astype(np.int64)
    else:
        _, first, size = np.unique(log.unit[rows], return_index=True, return_counts=True)
        rank = np.arange(rows.size) - np.repeat(first, size)
        label = (rank >= np.repeat((size + 1) // 2, size)).astype(np.int64)
    return _compared(
        bench,
        "drift",
        "Is the demand in the second half of the log like that in the first?",
        label,
        ("first half", "second half"),
        "demand changes over time",
        "If the future is like the second half",
        "Look for what changed; use recent lines only, or make the period a group.",
        5,
        use=lambda shares: np.array([0.0, 1.0]),
        title="Mean demand by half of the time",
        x="half",
    )


def check_memory(bench: StockBench) -> Check | None:
    """Compare steps after high and after low demand."""
    log, steps = bench.model.log, bench.steps
    place = np.full(len(log) + 1, -1)
    place[bench.rows] = np.arange(bench.rows.size)
    before = place[log.previous[bench.rows]]
    label = np.full(bench.rows.size, -1, dtype=np.int64)
    for stratum in range(int(steps.stratum.max(initial=0)) + 1):
        mine = (before >= 0) & (steps.stratum == stratum)
        if not mine.any():
            continue
        middle = float(np.median(steps.sold[mine]))
        earlier = before[mine]
        high = steps.sold[earlier] > middle
        # an empty shelf hides whether a low number was a low demand
        low = ~high & ~steps.empty[earlier]
        label[np.flatnonzero(mine)] = np.where(high, 1, np.where(low, 0, -1))
    return _compared(
        bench,
        "memory",
        "Does the demand depend on the demand before?",
        label,
        ("after low demand", "after high demand"),
        "demand depends on the demand before",
        "If demand were always as after low, or always as after high demand",
        "Look for what makes good and bad days, and make it part of the model.",
        6,
        lasting=False,
        title="Mean demand by the demand before",
        x="step before",
    )


def check_shelf(bench: StockBench) -> Check | None:
    """Compare fuller with emptier shelves."""
    steps = bench.steps
    label = np.zeros(bench.rows.size, dtype=np.int64)
    for stratum in range(int(steps.stratum.max(initial=0)) + 1):
        mine = steps.stratum == stratum
        label[mine] = steps.there[mine] > np.median(steps.there[mine])
    return _compared(
        bench,
        "shelf",
        "Does the demand depend on how much is on the shelf?",
        label,
        ("less on the shelf", "more on the shelf"),
        "demand depends on what is on the shelf",
        "If demand were always as with less, or always as with more on the shelf",
        "Find out whether orders follow expected demand, or a full shelf attracts customers.",
        7,
        lasting=False,
        title="Mean demand by what was on the shelf (sold-out steps count as at least)",
        x="shelf",
    )


def check_week(bench: StockBench) -> Check | None:
    """Compare the days of the week, where steps are days."""
    log = bench.model.log
    daily = any("1 day" in note for note in log.report.notes)
    if log.time is None or not daily:
        return None
    time = np.round(log.time[bench.rows]).astype(np.int64)
    label = time % WEEK
    if time.size < WEEK * FEWEST_STEPS or np.unique(label).size < WEEK:
        return None
    return _compared(
        bench,
        "week",
        "Do days of the week differ in their demand?",
        label,
        tuple(f"day {k + 1}" for k in range(WEEK)),
        "days of the week differ in their demand",
        "If demand were always that of one day of the week",
        "Decide for days of the week apart, or tell them apart by groups if they never follow "
        "each other.",
        8,
        lasting=False,
        title="Mean demand by day of the week (day 1 is that of the log's first line)",
        x="day",
    )


def check_prediction(bench: StockBench) -> Check | None:
    """Simulate what every unit sold, from the shelves that it had."""
    model, log, steps = bench.model, bench.model.log, bench.steps
    names, unit = np.unique(log.unit[bench.rows], return_inverse=True)
    n = min(400, PREDICTED // max(bench.rows.size, 1))
    if n < 40:
        return None
    rng = model.stream("checks", 10)
    simulated = np.zeros((n, names.size))
    own = len(bench.plans) > 1 and not model.pooled
    for k, plan in enumerate(bench.plans if own else bench.plans[:1]):
        mine = np.flatnonzero(bench.plan_of_row == k) if own else np.arange(bench.rows.size)
        laws = model.plan_belief(plan.group).sample_disturbance(n, rng=rng)
        for m, law in enumerate(laws):
            demand = np.searchsorted(np.cumsum(law[:-1]), rng.random(mine.size), side="right")
            sold = np.minimum(demand, steps.there[mine])
            simulated[m] += np.bincount(unit[mine], sold, names.size)
    seen = np.bincount(unit, steps.sold, names.size)
    low, high = np.quantile(simulated, (0.025, 0.975), axis=0)
    outside = int(((seen < low) | (seen > high)).sum())
    chance = float(bdtrc(outside - 1, names.size, 0.05)) if outside else 1.0
    verdict: Verdict = "look" if chance <= CLEAR else "fine"
    order = np.argsort(seen, kind="stable")
    if names.size > PICTURED:
        order = order[np.unique(np.linspace(0, names.size - 1, PICTURED).round().astype(int))]
    labels = tuple(log.unit_names[names[k]] for k in order)
    mean = simulated.mean(axis=0)
    return Check(
        "prediction",
        "Would the model have sold what was sold?",
        verdict,
        f"{names.size - outside} of {names.size} units sold as much as the model expects of them "
        "(95 % intervals, given their shelves).",
        "The model reproduces the log."
        if verdict == "fine"
        else "Units sell more or less than one demand for all allows; see the check of units.",
        {"outside": outside, "units": int(names.size), "chance": chance},
        "" if verdict == "fine" else "Find out what the units differ in, and make it a group.",
        Picture(
            "points",
            "What units sold, and what the model expects of them",
            "unit",
            "units sold in all",
            (
                Curve("sold", labels, tuple(seen[order].tolist())),
                Curve(
                    "expected",
                    labels,
                    tuple(mean[order].tolist()),
                    tuple(low[order].tolist()),
                    tuple(high[order].tolist()),
                ),
            ),
        ),
    )


CHECKS: tuple[Callable[[StockBench], Check | None], ...] = (
    check_log,
    check_coverage,
    check_prior,
    check_groups,
    check_units,
    check_drift,
    check_memory,
    check_shelf,
    check_week,
    check_prediction,
)


def check_stock(
    model: StockModel, policies: Mapping[str | None, IntArray] | None = None
) -> tuple[Check, ...]:
    """Check a model of a stock against its log.

    Parameters
    ----------
    model : StockModel
    policies : mapping from group to (S,) actions, optional
        The policies that are judged; by default, the best ones at the mean of the belief.

    Returns
    -------
    tuple of Check
        "log", "coverage", "prior", "groups", "units", "drift", "memory", "shelf", "week" and
        "prediction", as far as the log allows them.
    """
    bench = StockBench(model, policies)
    return tuple(found for check in CHECKS if (found := check(bench)) is not None)
