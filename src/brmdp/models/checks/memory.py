"""Whether it matters how a state was reached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from brmdp._validation import FloatArray, IntArray
from brmdp.models.checks.bench import Bench, Plan
from brmdp.models.checks.consequences import Consequence, Outcome, consequence_of
from brmdp.models.checks.splits import How, Split
from brmdp.models.checks.verdicts import verdict_of
from brmdp.models.checks.worlds import World
from brmdp.models.results import Check
from brmdp.pattern import TransitionPattern

__all__ = ["Past", "check_memory", "past_of", "remembering"]

QUESTION = "Does the present state say all that matters, or also what came before?"
CLASSES = 3
LARGEST = 15_000_000
"""Largest number of transitions of the problem with memory."""


@dataclass(frozen=True, eq=False)
class Past:
    """What came before a step, in a few classes.

    Attributes
    ----------
    label : (rows,) integers
        Class of each free row; −1 if nothing precedes it.
    names : tuple of str
    after : (transitions,) integers
        The class that a transition leads to.
    """

    label: IntArray
    names: tuple[str, ...]
    after: IntArray


def past_of(bench: Bench) -> Past | None:
    """Classes of the past: thirds of the change before, or how common the state before was."""
    model, log = bench.model, bench.model.log
    previous = log.previous[bench.free]
    used = previous >= 0
    if not used.any():
        return None
    pattern = bench.pattern
    begins, actions = np.divmod(pattern.pair_of_transition, pattern.n_actions)
    known = np.array(sorted(model.known), dtype=np.int64)
    if not model.states.ordered:
        before, now = log.state[previous[used]], log.state[bench.free][used]
        ranks = _Ranks(before, now, pattern.n_states)
        names: tuple[str, ...] = ("commonest state before", "second commonest", "another state")
        classes = ranks.of(before, now)
        after = ranks.of(begins, pattern.next_states)
    else:
        change = log.next_state[previous[used]] - log.state[previous[used]]
        reset = np.isin(log.action[previous[used]], known)
        moved = change[~reset]
        if not moved.size:
            return None
        ends = np.unique(np.quantile(moved, [1 / 3, 2 / 3], method="lower"))
        ends = ends[ends < change.max()]
        if not ends.size:
            return None
        middle = int(np.searchsorted(ends, np.median(moved)))
        names = _change_names(ends)
        # the size of a reset tells nothing
        classes = np.where(reset, middle, np.searchsorted(ends, change))
        after = np.where(
            np.isin(actions, known), middle, np.searchsorted(ends, pattern.next_states - begins)
        )
    if np.unique(classes).size < 2:
        return None
    label = np.full(bench.free.size, -1, dtype=np.int64)
    label[used] = classes
    return Past(label, names, after.astype(np.int64))


class _Ranks:
    """How common a state is among those before another: 0, 1, or the last class."""

    def __init__(self, before: IntArray, now: IntArray, n: int) -> None:
        self._n = n
        self._keys, times = np.unique(now * n + before, return_counts=True)
        order = np.lexsort((self._keys, -times, self._keys // n))
        owner = self._keys[order] // n
        self._ranks = np.empty(owner.size, dtype=np.int64)
        self._ranks[order] = np.arange(owner.size) - np.searchsorted(owner, owner)

    def of(self, before: IntArray, now: IntArray) -> IntArray:
        """The ranks of states before others."""
        wanted = now * self._n + before
        place = np.minimum(np.searchsorted(self._keys, wanted), self._keys.size - 1)
        found = self._keys[place] == wanted
        return np.where(found, np.minimum(self._ranks[place], CLASSES - 1), CLASSES - 1)


def _change_names(ends: FloatArray) -> tuple[str, ...]:
    numbers = [f"{end:+.0f}" if end else "0" for end in ends]
    names = [f"change of {numbers[0]} or less"]
    names += [f"more, up to {number}" for number in numbers[1:]]
    return (*names, f"more than {numbers[-1]}")


def remembering(
    pattern: TransitionPattern,
    kernels: list[FloatArray],
    rewards: FloatArray,
    after: IntArray,
    discount: float,
) -> World:
    """The problem whose states are (state, class of the past); number s·C + c."""
    n, k, c = pattern.n_states, pattern.n_actions, len(kernels)
    pairs = np.arange(n * k).reshape(n, 1, k).repeat(c, axis=1).ravel()
    classes = np.arange(c).reshape(1, c, 1).repeat(n, axis=0).repeat(k, axis=2).ravel()
    entry = pattern.take(np.arange(pattern.n_transitions), pairs)
    widths = pattern.widths[pairs]
    indptr = np.concatenate(([0], np.cumsum(widths)))
    arrivals = pattern.next_states[entry] * c + after[entry]
    entries = np.array(kernels)[np.repeat(classes, widths), entry]
    return World(TransitionPattern(n * c, k, indptr, arrivals), entries, rewards[entry], discount)


def check_memory(bench: Bench) -> Check | None:
    """Compare rows by what came before."""
    model = bench.model
    past = past_of(bench) if bench.free.size > 1 else None
    if past is None:
        return None
    split = bench.split(past.label, bench.strata())
    if split is None:
        return None
    sign, how = split.sign(model.stream("checks", 6))
    affordable = bench.pattern.n_transitions * len(past.names) <= LARGEST
    found: Consequence | None = None
    words = "What this costs was not computed: the problem with memory would be too large."
    if affordable:
        found = consequence_of(bench, split, how, _outcome_in(bench, past, split))
        if_so = "If it is so" if sign.clear else "If it were as it seems, which may be chance"
        words = found.words(bench, if_so)
    material = found is not None and found.material
    matters = sign.clear and not (found is not None and found.negligible)
    verdict = verdict_of(sign.strong, matters or sign.blind, material and sign.hinted)
    return Check(
        "memory",
        QUESTION,
        verdict,
        sign.words("the step before matters, too"),
        words,
        {
            "standard_errors": sign.errors,
            "detectable": sign.detectable,
            "loss": None if found is None else found.loss,
            "loss_share": None if found is None else found.share,
            "value": None if found is None else bench.own(found.value),
            "guarantee_false": None if found is None else found.broken,
        },
        ""
        if verdict == "fine"
        else "Add to the state what the past tells, such as the last change, as a second column.",
        bench.mean_surprises(
            "steps",
            past.label,
            past.names,
            "How steps turned out against what the model expects, by what came before",
            "before",
        ),
    )


def _outcome_in(bench: Bench, past: Past, split: Split) -> Callable[[Plan, int, How], Outcome]:
    """A plan without memory in the problem that has one."""
    log, c = bench.model.log, len(past.names)
    used = past.label >= 0
    states = log.state[bench.free][used]
    n = bench.pattern.n_states

    def outcome(plan: Plan, stratum: int, how: How) -> Outcome:
        kernels = split.kernels(stratum, how)
        pad = [kernels[0]] * (c - len(kernels))
        world = remembering(
            bench.pattern, kernels + pad, plan.world.rewards, past.after, bench.model.discount
        )
        seen = np.bincount(states * c + past.label[used], minlength=n * c).reshape(n, c)
        usual = seen.sum(axis=0) / seen.sum()
        share = (seen + usual) / (seen.sum(axis=1, keepdims=True) + 1.0)
        start = (plan.start[:, None] * share).ravel()
        policy = np.repeat(plan.policy, c)
        _, best = world.best(policy)
        mine = float(start @ world.values(policy))
        return Outcome(mine, max(0.0, float(start @ best) - mine))

    return outcome
