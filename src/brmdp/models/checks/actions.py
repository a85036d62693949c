"""Whether actions matter at all.

If they do not, the actions taken in a state can be exchanged among its steps. Two figures are
compared with those after exchanging them at random: Pearson's χ² of action and next state within
each state, and how far the mean value of the next state differs between actions, over all states.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaincc, gammainccinv

from brmdp._validation import FloatArray, IntArray
from brmdp.decisions.families import family_of, locate
from brmdp.errors import InvalidInputError
from brmdp.models.checks.bench import Bench, Plan
from brmdp.models.checks.splits import Observed, Split
from brmdp.models.checks.verdicts import BLIND, CLEAR, percentage
from brmdp.models.checks.worlds import World
from brmdp.models.results import Check
from brmdp.models.wording import figure
from brmdp.pattern import TransitionPattern

__all__ = ["check_actions", "difference_of"]

QUESTION = "Does it matter for what happens next which action is taken?"

MOST_STEPS, WORK = 100_000, 4_000_000
"""Steps that are compared, and that are exchanged in all."""

MOST_EXCHANGES, FEWEST_EXCHANGES = 300, 40
SENSITIVE = 0.1
"""A log that shows differences as small as this, and shows none, speaks against any."""


def check_actions(bench: Bench) -> Check | None:
    """Compare actions that have laws of their own with actions that have one law."""
    model = bench.model
    free = [a for a in range(len(model.actions)) if a not in model.known]
    used = np.unique(model.log.action[bench.free])
    if len(free) < 2 or used.size < 2 or bench.family is None:
        return None
    pattern, map_ = _merged(bench.pattern, free)
    name = bench.family.name if bench.family.name != "actions" else "destinations"
    try:
        family = family_of(name, pattern)
    except InvalidInputError:
        family = family_of("uniform", pattern)
    states = model.log.state[bench.free]
    entry = locate(pattern, states, model.log.next_state[bench.free])
    label = np.searchsorted(used, model.log.action[bench.free])
    observed = Observed.of(entry, bench.blocks, label, bench.strata())
    split = Split(family, observed)
    values = np.array([plan.values for plan in bench.plans])
    chance, detectable = difference_of(
        bench.strata() * bench.pattern.n_states + states,
        label,
        model.log.next_state[bench.free],
        values[bench.plan_of_row, model.log.next_state[bench.free]],
        model.stream("checks", 7),
    )
    clear = chance <= CLEAR
    own = observed.strata == len(bench.plans) > 1
    losses = [
        _gain(bench, plan, split.kernels(k if own else 0, "pooled")[0], map_)
        for k, plan in enumerate(bench.plans)
    ]
    gain = bench.average(losses)
    share = gain / bench.average(p.scale for p in bench.plans)
    resets = list(model.known)
    besides = f" (besides {', '.join(model.actions[a] for a in resets)})" if resets else ""
    depends = f"what happens next depends on the action{besides}"
    n = f"{bench.free.size:,} transitions"
    if clear:
        finding = (
            f"There are signs that {depends}: if it did not, differences like those between the "
            f"actions of a state would show in {percentage(chance)} of all logs ({n})."
        )
    elif detectable >= BLIND:
        finding = (
            f"No clear sign that {depends} ({n}). But there are too few steps with different "
            "actions in one state to show any but an extreme difference."
        )
    else:
        finding = (
            f"No clear sign that {depends} ({n}). Only differences between actions that move more "
            f"than about {percentage(detectable)} of the steps elsewhere would show."
        )
    against = "" if clear or detectable > SENSITIVE else " The log hardly supports this."
    return Check(
        "actions",
        QUESTION,
        "fine" if clear else "look",
        finding,
        f"Telling actions apart is worth {figure(gain, 3)} ({100.0 * share:.2g} % of the plan's "
        f"{model.word}) by the model, against choosing by {model.word}s and known effects, and as "
        "was done most often where these do not decide." + against,
        {
            "chance": chance,
            "detectable": detectable,
            "gain": gain,
            "gain_share": share,
        },
        "" if clear else "Try actions more evenly before trusting differences between them.",
        bench.mean_surprises(
            "steps",
            label,
            tuple(model.actions[a] for a in used),
            "How steps turned out against what the model expects, by action",
            "action",
        ),
    )


def difference_of(
    state: IntArray,
    action: IntArray,
    following: IntArray,
    worth: FloatArray,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """How far the next state depends on the action, within states.

    Returns
    -------
    chance : float
        Probability that chance alone shows as much.
    detectable : float
        Difference in total variation between actions from which it would be clear: one of δ adds
        at least 4 δ² Σ n q (1 − q) to χ², with n steps in a state, a share q of one action.
    """
    if state.size > MOST_STEPS:
        kept = rng.choice(state.size, MOST_STEPS, replace=False)
        state, action, following, worth = state[kept], action[kept], following[kept], worth[kept]
    order = np.argsort(state, kind="stable")
    action, following, worth = action[order], following[order], worth[order]
    _, state = np.unique(state[order], return_inverse=True)
    k = int(action.max(initial=0)) + 1
    size = np.bincount(state).astype(np.float64)
    share = np.bincount(state * k + action, minlength=size.size * k).reshape(-1, k) / size[:, None]
    compared = float((size * (1.0 - (share**2).sum(axis=1))).sum()) / 2.0
    if compared <= 0.0:
        return 1.0, 1.0
    _, move = np.unique(state * (int(following.max()) + 1) + following, return_inverse=True)
    moves = np.bincount(move).astype(np.float64)
    rest = worth - (np.bincount(state, worth) / size)[state]
    # what a cell weighs in χ², less what does not change: n² / (n of action · n of move / n)
    weight = size[state] / moves[move]
    taken = np.maximum(share * size[:, None], 1.0)
    total = (size[:, None] * share * (1.0 - share)).sum(axis=0)
    varied = total > 1e-9 * state.size  # the others are never an alternative

    def figures(action: IntArray) -> tuple[float, float]:
        cell, place, count = np.unique(move * k + action, return_index=True, return_counts=True)
        here = state[place]
        square = float((count**2 * weight[place] / taken[here, cell % k]).sum()) - state.size
        mean = np.bincount(action, rest, k)
        return square, float((mean[varied] ** 2 / total[varied]).sum())

    seen = figures(action)
    exchanges = min(MOST_EXCHANGES, max(FEWEST_EXCHANGES, WORK // state.size))
    random = np.array(
        [figures(action[np.argsort(state + rng.random(state.size))]) for _ in range(exchanges)]
    )
    chances, least = [], 1.0
    for own, drawn in zip(seen, random.T, strict=True):
        mean, deviation = float(drawn.mean()), float(drawn.std(ddof=1))
        if deviation <= 1e-9 * max(mean, 1e-300):
            continue
        form, width = (mean / deviation) ** 2, deviation**2 / mean
        chances.append(float(gammaincc(form, max(own, 0.0) / width)))
        if len(chances) == 1:
            rise = width * float(gammainccinv(form, CLEAR / 2.0)) - mean
            least = min(1.0, math.sqrt(rise / (4.0 * compared)))
    return min(1.0, 2.0 * min(chances, default=1.0)), least


def _merged(pattern: TransitionPattern, free: list[int]) -> tuple[TransitionPattern, IntArray]:
    """The transitions possible under any of the actions, and each free entry's place there."""
    n, k = pattern.n_states, pattern.n_actions
    states, actions = np.divmod(pattern.pair_of_transition, k)
    mine = np.isin(actions, free)
    keys = np.unique((states * n + pattern.next_states)[mine])
    begins, following = np.divmod(keys, n)
    missing = np.setdiff1d(np.arange(n), begins)
    if missing.size:  # states without a free action
        keys = np.sort(np.concatenate((keys, missing * (n + 1))))
        begins, following = np.divmod(keys, n)
    indptr = np.searchsorted(begins, np.arange(n + 1))
    place = np.full(pattern.n_transitions, -1, dtype=np.int64)
    place[mine] = np.searchsorted(keys, (states * n + pattern.next_states)[mine])
    return TransitionPattern(n, 1, indptr, following), place


def _gain(bench: Bench, plan: Plan, alike: FloatArray, place: IntArray) -> float:
    """What the plan gains over the one for actions that are all alike."""
    pattern = bench.pattern
    entries = np.where(place >= 0, alike[np.maximum(place, 0)], plan.world.entries)
    sums = np.bincount(pattern.pair_of_transition, entries, pattern.n_pairs)
    entries = entries / sums[pattern.pair_of_transition]
    # where nothing else decides, what is done most often stays
    usual = plan.practice.argmax(axis=1)
    policy, _ = World(pattern, entries, plan.world.rewards, bench.model.discount).best(usual)
    return max(0.0, plan.best - float(plan.start @ plan.world.values(policy)))
