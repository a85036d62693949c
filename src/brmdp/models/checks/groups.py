"""Whether groups share their dynamics."""

from __future__ import annotations

import numpy as np

from brmdp.models.checks.bench import Bench
from brmdp.models.checks.verdicts import percentage, verdict_of
from brmdp.models.checks.worlds import World
from brmdp.models.results import Check, Curve, Picture
from brmdp.models.wording import figure

__all__ = ["check_groups"]

QUESTION = "Do units of different groups behave alike?"
CONCERNED = 0.1
"""A loss or a false guarantee is material if it concerns this share of the units."""

MOST_GROUPS = 200


def check_groups(bench: Bench) -> Check | None:
    """Compare pooled, partially pooled and separate groups; None if there are no groups."""
    model = bench.model
    if model.log.group is None or len(model.groups) < 2:
        return None
    if len(model.groups) > MOST_GROUPS:
        return Check(
            "groups",
            QUESTION,
            "look",
            f"There are {len(model.groups)} groups, too many to compare one by one.",
            "What pooling them costs is not known.",
            {"groups": len(model.groups)},
            "Use coarser groups.",
        )
    label = model.log.group[bench.free]
    split = bench.split(label)
    if split is None or bench.free.size == 0:
        return None
    sign, how = split.sign(model.stream("checks", 3))
    base = split.kernels(0, "pooled")[0]
    if not model.pooled:
        return _own_beliefs(bench, base, sign.words("the groups differ"), sign.errors)
    kernels = split.kernels(0, how)
    plan = bench.plans[0]
    losses = [
        max(0.0, p.loss(own) - p.loss(base)) for p, own in zip(bench.plans, kernels, strict=True)
    ]
    values = [p.value_in(own) for p, own in zip(bench.plans, kernels, strict=True)]
    broken = [bench.breaks(p, value) for p, value in zip(bench.plans, values, strict=True)]
    n_units = sum(model.units(g) for g in model.groups)
    false_for = sum(model.units(g) for g, bad in zip(model.groups, broken, strict=True) if bad)
    hit = bench.average(float(p.material(x)) for p, x in zip(bench.plans, losses, strict=True))
    average = bench.average(losses)
    material = hit >= CONCERNED or false_for >= CONCERNED * n_units or plan.material(average)
    verdict = verdict_of(sign.strong, sign.clear or sign.blind, material and sign.hinted)
    if_so = "With groups that differ as the log says"
    if not sign.clear:
        if_so = "If groups differed as they seem to, which may be chance"
    share = 100.0 * average / bench.average(p.scale for p in bench.plans)
    consequence = (
        f"{if_so}, the one plan for all loses {figure(average, 3)} "
        f"per unit on average ({share:.2g} % of its {model.word}), against a plan for each group; "
        f"the guarantee for all would be false for {false_for} of {n_units} units."
    )
    return Check(
        "groups",
        QUESTION,
        verdict,
        sign.words("groups differ"),
        consequence,
        {
            "standard_errors": sign.errors,
            "detectable": sign.detectable,
            "loss": average,
            "loss_share": share / 100.0,
            "units_with_false_guarantee": false_for,
            "units": n_units,
            **{f"loss_{g}": x for g, x in zip(model.groups, losses, strict=True)},
        },
        "" if verdict == "fine" else 'Let groups be partially pooled: pooling = "partial".',
        _picture(bench, [p.value for p in bench.plans], values, "pooled", "its own"),
    )


def _own_beliefs(bench: Bench, base: np.ndarray, words: str, errors: float) -> Check:
    """Groups have beliefs of their own: what pooling them would have cost."""
    model = bench.model
    world = World(bench.pattern, base, bench.plans[0].world.rewards, model.discount)
    policy, values = world.best(bench.plans[0].policy)
    losses = [max(0.0, p.best - float(p.start @ p.world.values(policy))) for p in bench.plans]
    average = bench.average(losses)
    share = average / bench.average(p.scale for p in bench.plans)
    how = "partially pooled"
    if model.learned is None or model.learned.pooling == "separate":
        how = "separate"
    return Check(
        "groups",
        QUESTION,
        "fine",
        f"Groups are {how}, so they may differ. {words}",
        f"One plan for all would lose {figure(average, 3)} per unit on average "
        f"({percentage(share)} of its {model.word}).",
        {"standard_errors": errors, "loss_if_pooled": average, "loss_share_if_pooled": share},
        "",
        _picture(
            bench,
            [float(p.start @ values) for p in bench.plans],
            [p.value for p in bench.plans],
            "if pooled",
            "its own",
        ),
    )


def _picture(
    bench: Bench, pooled: list[float], own: list[float], before: str, after: str
) -> Picture:
    """The plan's value by the pooled belief and by the group's own."""
    word = bench.model.word
    names = tuple(str(group) for group in bench.model.groups)
    return Picture(
        "bars",
        f"The {word} of the plan, by the belief that pools all groups and by each group's own",
        "group",
        word,
        (
            Curve(before, names, tuple(bench.own(v) for v in pooled)),
            Curve(after, names, tuple(bench.own(v) for v in own)),
        ),
    )
