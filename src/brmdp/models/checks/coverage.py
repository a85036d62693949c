"""Whether the plan acts where hardly anything was observed."""

from __future__ import annotations

import numpy as np

from brmdp._validation import IntArray
from brmdp.models.checks.bench import Bench, Plan
from brmdp.models.checks.verdicts import MATERIAL, beyond_rounding, percentage
from brmdp.models.results import Check, Curve, Picture, Verdict
from brmdp.models.wording import figure
from brmdp.planning.prior import reliance

__all__ = ["check_coverage", "thin_quantile"]

QUESTION = "Does the plan act where hardly anything was observed?"

THIN = 5
"""A pair was hardly seen if it was observed less often."""

THIN_TIME = 0.05
"""Share of the plan's time in such pairs that calls for a look."""

BLIND_TIME = 0.5
"""Share of its time where what was assumed outweighs what was observed, for a stop."""

DRAWS = 200
LARGEST = 1_500
"""Up to this many states, the value is computed for draws of the rows hardly seen."""

WORK = 10**10
"""Operations for their linear systems."""

DRAWN_NUMBERS = 20_000_000
PICTURED = 15


def check_coverage(bench: Bench) -> Check:
    """Find the pairs that the plan uses without data, and what rests on them."""
    model = bench.model
    time, never, low, assumed = [], [], [], []
    parts: list[tuple[float, str]] = []
    for plan in bench.plans:
        counts = model.counts(plan.group)[np.arange(plan.policy.size), plan.policy]
        thin = _thin(bench, plan, counts)
        time.append(float(plan.visits[thin].sum()))
        never.append(float(plan.visits[thin[counts[thin] == 0]].sum()))
        value = thin_quantile(bench, plan, thin)
        low.append(plan.value if value is None else value)
        found = reliance(model.plan_belief(plan.group), plan.policy, model.discount, plan.start)
        assumed.append(0.0 if found is None else found.outweighed)
        for s in thin[np.argsort(-plan.visits[thin], kind="stable")[:PICTURED]]:
            of = "" if len(bench.plans) == 1 else f" ({plan.group})"
            label = f"{model.states.labels[s]}: {model.actions[plan.policy[s]]}{of}"
            parts.append((plan.weight * float(plan.visits[s]), label))
    plans = bench.plans
    losses = [beyond_rounding(p.value - v, p.scale) for p, v in zip(plans, low, strict=True)]
    # the worst group decides: an average would hide it
    parted = zip(time, assumed, losses, plans, strict=True)
    verdicts = [_verdict(share, blind, loss, plan) for share, blind, loss, plan in parted]
    badness = [
        share + loss / plan.scale for share, loss, plan in zip(time, losses, plans, strict=True)
    ]
    verdict, number = bench.worst(verdicts, badness)
    group, named = bench.naming(verdicts, number)
    share, unseen = bench.of(time, number), bench.of(never, number)
    blind, lost = bench.of(assumed, number), bench.of(losses, number)
    scale = bench.of((p.scale for p in plans), number)
    value = bench.of((p.value for p in plans), number)
    if share <= 0.0:
        finding = f"The plan uses no pair that was observed fewer than {THIN} times."
        consequence = f"Nothing of its {model.word} of {bench.shown(value)} rests on such pairs."
    else:
        finding = (
            f"Of its discounted time, {named} spends {percentage(share)} in pairs that were "
            f"observed fewer than {THIN} times, {percentage(unseen)} in pairs never observed."
        )
        badly = (
            f"f those pairs turn out badly (worst {100 * (1 - model.confidence):.3g} % of what the "
            f"belief considers possible), the {model.word} is"
        )
        consequence = (
            f"I{badly} {bench.shown(value - lost)} instead of {bench.shown(value)}, a difference "
            f"of {figure(lost, 3)} ({percentage(lost / scale)})."
            if lost > 0.0
            else f"Even i{badly} still {bench.shown(value)}."
        )
    parts.sort(key=lambda part: -part[0])
    picture = None
    if parts:
        picture = Picture(
            "bars",
            "Where the plan acts on pairs hardly seen: share of its time",
            "state and action",
            "share of time (%)",
            (
                Curve(
                    "time",
                    tuple(label for _, label in parts[:PICTURED]),
                    tuple(100.0 * x for x, _ in parts[:PICTURED]),
                ),
            ),
        )
    return Check(
        "coverage",
        QUESTION,
        verdict,
        finding,
        consequence,
        {
            "thin_time": share,
            "never_time": unseen,
            "outweighed_time": blind,
            "loss": lost,
            "loss_share": lost / scale,
        },
        ""
        if verdict == "fine"
        else "Observe these pairs first, or admit only actions that were observed.",
        picture,
        group,
    )


def _verdict(share: float, blind: float, loss: float, plan: Plan) -> Verdict:
    """The verdict on one group."""
    material = loss >= MATERIAL * plan.scale
    if blind >= BLIND_TIME and share >= BLIND_TIME and material:
        return "stop"
    return "look" if share >= THIN_TIME or material else "fine"


def _thin(bench: Bench, plan: Plan, counts: IntArray) -> IntArray:
    """States in which the plan acts on a pair that was hardly seen and is not known."""
    pairs = np.arange(plan.policy.size) * bench.pattern.n_actions + plan.policy
    doubtful = bench.pattern.widths[pairs] > 1
    return np.flatnonzero((counts < THIN) & doubtful & (plan.visits > 0.0))


def thin_quantile(bench: Bench, plan: Plan, thin: IntArray) -> float | None:
    """The low quantile of the plan's value if only the rows of the states ``thin`` are uncertain.

    With B the columns of (I − γP)⁻¹ for these states and D the change of their rows,
    V' = V + B(I − γDB)⁻¹γDV, exactly.
    """
    pattern, model = bench.pattern, bench.model
    n = pattern.n_states
    if n > LARGEST or not thin.size:
        return None
    pairs = thin * pattern.n_actions + plan.policy[thin]
    widths = pattern.widths[pairs]
    draws = min(DRAWS, DRAWN_NUMBERS // int(widths.sum()), max(40, WORK // thin.size**3))
    if draws < 20:
        return None
    gamma = model.discount
    kernel, _ = plan.world.chain(plan.policy)
    columns = np.zeros((n, thin.size))
    columns[thin, np.arange(thin.size)] = 1.0
    reached = np.linalg.solve(plan.world.system(kernel), columns)
    entry = pattern.take(np.arange(pattern.n_transitions), pairs)
    owner = np.repeat(np.arange(thin.size), widths)
    following, mean = pattern.next_states[entry], plan.world.entries[entry]
    drawn = model.belief(plan.group).sample_entries(draws, pairs, rng=model.stream("checks", 9))
    worth = plan.world.rewards[entry] + gamma * plan.values[following]
    weight = plan.start @ reached
    values = np.empty(draws)
    for k, rows in enumerate(drawn):
        change = rows - mean
        gained = np.bincount(owner, change * worth, thin.size)
        moved = np.zeros((thin.size, n))
        np.add.at(moved, (owner, following), change)
        inner = np.eye(thin.size) - gamma * (moved @ reached)
        values[k] = plan.value + weight @ np.linalg.solve(inner, gained)
    return float(np.quantile(values, 1.0 - model.confidence))
