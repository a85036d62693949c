"""Whether actions matter at all."""

from __future__ import annotations

import numpy as np

from brmdp._validation import FloatArray, IntArray
from brmdp.decisions.families import family_of, locate
from brmdp.errors import InvalidInputError
from brmdp.models.checks.bench import Bench, Plan
from brmdp.models.checks.splits import Observed, Split
from brmdp.models.checks.worlds import World
from brmdp.models.results import Check
from brmdp.models.wording import figure
from brmdp.pattern import TransitionPattern

__all__ = ["check_actions"]

QUESTION = "Does it matter for what happens next which action is taken?"


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
    sign, _ = split.sign(model.stream("checks", 7))
    own = observed.strata == len(bench.plans) > 1
    losses = [
        _gain(bench, plan, split.kernels(k if own else 0, "pooled")[0], map_)
        for k, plan in enumerate(bench.plans)
    ]
    gain = bench.average(losses)
    share = gain / bench.average(p.scale for p in bench.plans)
    resets = list(model.known)
    besides = f" (besides {', '.join(model.actions[a] for a in resets)})" if resets else ""
    finding = sign.words(f"what happens next depends on the action{besides}")
    return Check(
        "actions",
        QUESTION,
        "fine" if sign.clear else "look",
        finding,
        f"Telling actions apart is worth {figure(gain, 3)} ({100.0 * share:.2g} % of the plan's "
        f"{model.word}) by the model, against choosing by {model.word}s and known effects alone."
        + ("" if sign.clear else f" The log hardly supports this; the {model.word}s decide."),
        {
            "standard_errors": sign.errors,
            "detectable": sign.detectable,
            "gain": gain,
            "gain_share": share,
        },
        "" if sign.clear else "Try actions more evenly before trusting differences between them.",
        bench.mean_surprises(
            "steps",
            label,
            tuple(model.actions[a] for a in used),
            "How steps turned out against what the model expects, by action",
            "action",
        ),
    )


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
    policy, _ = World(pattern, entries, plan.world.rewards, bench.model.discount).best(plan.policy)
    return max(0.0, plan.best - float(plan.start @ plan.world.values(policy)))
