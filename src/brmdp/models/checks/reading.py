"""What was left out of the log."""

from __future__ import annotations

import numpy as np

from brmdp.models.checks.bench import Bench
from brmdp.models.checks.consequences import Outcome
from brmdp.models.checks.verdicts import percentage
from brmdp.models.checks.worlds import World
from brmdp.models.results import Check, Curve, Picture, Verdict
from brmdp.models.wording import figure

__all__ = ["check_reading"]

QUESTION = "How much of the log was left out, and does it contradict what is said to be known?"

EXPECTED = ("last line", "duplicate")
"""Reasons to leave a line out that lose nothing."""

LOST = 0.05
"""Share of lines lost that calls for a look."""

CONTRADICTED = 0.05
"""Share of an action's steps that may contradict what is known of it."""

IMPOSSIBLE = 0.1
"""Share of all steps that may be larger than what is said to be possible."""

NAMED = 3


def check_reading(bench: Bench) -> Check:
    """Sum up what reading dropped, and try what the contradictions would change."""
    model, report = bench.model, bench.model.log.report
    lost = [one for one in report.dropped if one.reason not in EXPECTED]
    ending = min(_ending(bench), sum(one.lines for one in lost))
    n = sum(one.lines for one in lost) - ending
    share = n / max(report.lines, 1)
    wrong = model.contradictions
    contradicted = _contradicted(bench)
    plans, worst = bench.plans, max(contradicted.values(), default=0.0)
    outcomes = [Outcome(plan.value, 0.0) for plan in plans]
    if wrong.size:
        outcomes = [_if_true(bench, k) for k in range(len(plans))]
    losses = [outcome.loss for outcome in outcomes]
    loss, scale = bench.average(losses), bench.average(p.scale for p in bench.plans)
    hit = bench.average(
        float(p.material(x.loss) or bench.breaks(p, x.value))
        for p, x in zip(plans, outcomes, strict=True)
    )
    value = bench.average(outcome.value for outcome in outcomes)
    verdict: Verdict = "fine"
    if share > LOST or wrong.size:
        verdict = "look"
    if worst > CONTRADICTED and hit >= 0.1:
        verdict = "stop"
    leaps = wrong[~np.isin(model.log.action[wrong], list(model.known))]
    leaps = leaps[~np.isin(model.log.state[leaps], model.ends)]
    if leaps.size > IMPOSSIBLE * model.log.state.size:
        verdict = "stop"
    finding = f"{report.lines:,} lines gave {report.transitions:,} transitions"
    reasons = sorted(lost, key=lambda one: -one.lines)[:NAMED]
    listed = ", ".join(f"{one.reason} {one.lines:,}" for one in reasons)
    if ending:
        finding += f"; {ending:,} lines without an action only say where steps led"
    finding += f"; {n:,} lines ({percentage(share)}) were lost ({listed})." if n else "; none lost."
    parts = []
    if wrong.size:
        named = ", ".join(f"{name} {percentage(x)}" for name, x in contradicted.items() if x)
        finding += (
            f" {wrong.size:,} transitions contradict what is said to be known"
            + (f" ({named} of its steps)" if named else "")
            + " and were left out."
        )
        planned = bench.shown(bench.average(p.value for p in plans))
        parts.append(
            f"If they were right, the plan's {model.word} would hardly change"
            if bench.shown(value) == planned
            else f"If they were right, the plan's {model.word} would be {bench.shown(value)} "
            f"instead of {planned}"
        )
        parts[-1] += f", and it would lose {figure(loss, 3)} against the best plan."
    if n:
        parts.append(
            f"The decision rests on the other {percentage(1.0 - share)} of the lines; it is right "
            "for the lines left out if these are like the others."
        )
    return Check(
        "log",
        QUESTION,
        verdict,
        finding,
        " ".join((*(parts or ["Nothing that bears on the decision was left out."]), bench.about)),
        {
            "lines": report.lines,
            "lost": n,
            "lost_share": share,
            "contradictions": int(wrong.size),
            "loss": loss,
            "loss_share": loss / scale,
        },
        ""
        if verdict == "fine"
        else "Look at the examples in the reading report; correct the log or what is said of it.",
        _picture(bench),
    )


def _ending(bench: Bench) -> int:
    """Lines without an action that are where steps led, at least; such as deaths."""
    log, report = bench.model.log, bench.model.log.report
    states = {axis.column for axis in log.states.axes}
    incomplete = sum(
        one.lines
        for one in report.dropped
        if one.reason == "missing" and not one.line_kept and one.column not in states
    )
    # steps that no step follows lead to a line that begins none: a valid one, or one of these
    followed = np.unique(log.previous[log.previous >= 0]).size
    valid = sum(one.lines for one in report.dropped if one.line_kept)
    return max(0, min(incomplete, log.state.size - followed - valid))


def _contradicted(bench: Bench) -> dict[str, float]:
    """Share of each known action's steps that contradict what is known of it."""
    model, log = bench.model, bench.model.log
    wrong = np.zeros(log.state.size, dtype=bool)
    wrong[model.contradictions] = True
    found = {}
    for action in range(len(model.actions)):
        mine = log.action == action
        if wrong[mine].any():
            found[model.actions[action]] = float(wrong[mine].mean())
    return found


def _if_true(bench: Bench, number: int) -> Outcome:
    """The plan's value and loss if what contradicts had happened as logged.

    An action said to lead to one state is taken to lead where its steps led, in all states alike.
    Other steps are added to those of their pairs.
    """
    model, log, plan = bench.model, bench.model.log, bench.plans[number]
    n, k = bench.pattern.n_states, bench.pattern.n_actions
    if n * n * k > 20_000_000:
        return Outcome(plan.value, 0.0)
    rows = np.zeros((n * k, n))
    rows[bench.pattern.pair_of_transition, bench.pattern.next_states] = plan.world.entries
    mine = np.ones(log.state.size, dtype=bool)
    if log.group is not None and len(bench.plans) > 1 and not model.pooled:
        mine = log.group == number
    leaps = model.contradictions
    leaps = leaps[mine[leaps] & ~np.isin(log.action[leaps], list(model.known))]
    pairs = log.state[leaps] * k + log.action[leaps]
    weight = np.bincount(log.state[mine] * k + log.action[mine], minlength=n * k) + 1.0
    rows *= (1.0 - np.bincount(pairs, minlength=n * k) / weight)[:, None]
    np.add.at(rows, (pairs, log.next_state[leaps]), 1.0 / weight[pairs])
    for action in model.known:
        taken = mine & (log.action == action)
        if not taken.any():
            continue
        seen = np.bincount(log.next_state[taken], minlength=n).astype(np.float64)
        rows[action::k] = np.where(model.admissible[:, action, None], seen / seen.sum(), 0.0)
    admissible = np.repeat(model.admissible.ravel(), n)
    widths = np.where(model.admissible.ravel(), n, 0)
    indptr = np.concatenate(([0], np.cumsum(widths)))
    pattern = type(bench.pattern)(n, k, indptr, np.tile(np.arange(n), n * k)[admissible])
    rewards = bench.rewards_on(pattern, plan)
    world = World(pattern, rows.ravel()[admissible], rewards, model.discount)
    _, best = world.best(plan.policy)
    value = float(plan.start @ world.values(plan.policy))
    known = plan.best - plan.value
    return Outcome(value, max(0.0, float(plan.start @ best) - value - known))


def _picture(bench: Bench) -> Picture | None:
    report = bench.model.log.report
    lost = [one for one in report.dropped if one.reason != "last line" and one.lines]
    if not lost:
        return None
    lost = sorted(lost, key=lambda one: -one.lines)[:10]
    return Picture(
        "bars",
        "Lines that begin no transition, by reason",
        "reason",
        "lines",
        (Curve("lines", tuple(o.reason for o in lost), tuple(float(o.lines) for o in lost)),),
    )
