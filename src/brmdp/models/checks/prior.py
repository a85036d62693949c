"""Whether another prior would predict better, and how far the plan rests on the prior."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from brmdp._validation import FloatArray, IntArray
from brmdp.decisions.families import Family, family_of
from brmdp.decisions.held_out import Evidence
from brmdp.errors import InvalidInputError
from brmdp.models.checks.bench import Bench
from brmdp.models.checks.splits import Fixed, Observed, Split, compared, sign_of
from brmdp.models.checks.verdicts import MATERIAL, Sign, percentage, verdict_of
from brmdp.models.checks.worlds import World
from brmdp.models.results import Check, Curve, Picture, Verdict
from brmdp.models.wording import figure
from brmdp.pattern import TransitionPattern
from brmdp.planning.prior import PriorReliance, reliance_in, separates_prior

if TYPE_CHECKING:
    from brmdp.models.model import Model

__all__ = ["check_prior"]

QUESTION = "Is the prior a good one, and how much rests on it?"
IN_USE = "in use"
LARGEST = 4_000_000
"""Up to this many possible transitions, other priors are tried."""

FLATTERED = (
    "Which successors are possible was read off the log from which the strength of the prior was "
    "learned, too, so it is too strong. "
)

WORDS = {
    "uniform": "all successors alike",
    "increments": "states that change alike",
    "destinations": "states that lead to the same places",
    "staying": "states that stay, or lead to the same places",
    "actions": "actions that lead to the same places",
}


def check_prior(bench: Bench) -> Check:
    """Compare the prior in use with those that could be learned; also its weight in the plan."""
    model = bench.model
    plans = bench.plans
    reliances = [_reliance(bench, k) for k in range(len(plans))]
    shares = [0.0 if r is None else r.share for r in reliances]
    # the worst group decides: an average would hide it
    verdicts: list[Verdict] = [
        "look" if r is not None and r.outweighs else "fine" for r in reliances
    ]
    _, number = bench.worst(verdicts, shares)
    group, named = bench.naming(verdicts, number)
    outweighs = "look" in verdicts
    assumed = bench.of(shares, number)
    borrowed = bench.of((0.0 if r is None else r.borrowed for r in reliances), number)
    weight = (
        f"In the pairs that {named} uses, {percentage(assumed)} of the weight comes from the "
        f"prior itself and {percentage(borrowed)} from other rows of the log."
    )
    figures: dict[str, float | int | str | None] = {
        "prior_share": assumed,
        "borrowed_share": borrowed,
    }
    chosen = model.learned is not None and model.learned.evidence is not None
    if chosen and not model.observed_only:
        assert model.learned is not None
        bench.evidence = model.learned.evidence
        found = model.learned.evidence
        assert found is not None
        words = f"The shape of the prior was chosen by held-out prediction: {found.chosen}."
        figures["shape"] = found.chosen
        if not found.folds:
            words = "The log is too short to choose a prior by prediction; the simplest was taken."
        return Check(
            "prior",
            QUESTION,
            "look" if outweighs or not found.folds else "fine",
            f"{words} {weight}",
            _resting(bench, outweighs, number),
            figures,
            "Collect more data where the plan goes, or say what is impossible (reach)."
            if outweighs
            else "",
            _picture(found, found.chosen),
            group,
        )
    return _against_others(bench, weight, number, outweighs, figures)


def _resting(bench: Bench, outweighs: bool, number: int | None) -> str:
    value = bench.shown(bench.of((p.value for p in bench.plans), number))
    if outweighs:
        return (
            f"The plan's {bench.model.word} of {value} rests more on what was assumed than on what "
            "was observed."
        )
    return f"The plan's {bench.model.word} of {value} rests mostly on what was observed."


def _reliance(bench: Bench, number: int) -> PriorReliance | None:
    plan = bench.plans[number]
    belief = bench.model.plan_belief(plan.group)
    if not separates_prior(belief):
        return None
    # the time after the end, of which everything is known, would hide the rest
    pairs = np.arange(plan.policy.size) * len(bench.model.actions) + plan.policy
    return reliance_in(belief, pairs, plan.visits, "given", 1e-7)


def _wide(bench: Bench) -> TransitionPattern:
    """The possible transitions without what was read off the log."""
    pattern, model = bench.pattern, bench.model
    if not model.observed_only:
        return pattern
    n, k = pattern.n_states, pattern.n_actions
    known = np.isin(np.arange(n * k) % k, sorted(model.known))
    known |= np.isin(np.arange(n * k) // k, model.ends)
    widths = np.where(known | (pattern.widths == 0), pattern.widths, n)
    if int(widths.sum()) > LARGEST:
        return pattern
    indptr = np.concatenate(([0], np.cumsum(widths)))
    following = np.arange(indptr[-1]) - np.repeat(indptr[:-1], widths)
    own = known[pattern.pair_of_transition]
    following[np.repeat(known, widths)] = pattern.next_states[own]
    return TransitionPattern(n, k, indptr, following)


def _against_others(
    bench: Bench,
    weight: str,
    number: int | None,
    outweighs: bool,
    figures: dict[str, float | int | str | None],
) -> Check:
    model = bench.model
    wide = _wide(bench)
    flattered = FLATTERED if model.observed_only and model.learned is not None else ""
    if wide.n_transitions > LARGEST or bench.free.size < 2:
        few = bench.free.size < 2
        return Check(
            "prior",
            QUESTION,
            "look",
            ("The log is too short" if few else "The problem is too large")
            + f" to compare the prior with others. {flattered}{weight}",
            _resting(bench, outweighs, number),
            figures,
            _remedy(model),
            group=None if number is None else bench.plans[number].group,
        )
    families = _families(bench, wide)
    keys = wide.pair_of_transition * wide.n_states + wide.next_states
    wanted = bench.pairs * wide.n_states + model.log.next_state[bench.free]
    entry = np.searchsorted(keys, wanted)
    observed = Observed.of(entry, bench.blocks, stratum=bench.strata())
    splits = {name: Split(family, observed) for name, family in families.items()}
    predictors: dict[str, Callable[[IntArray], FloatArray]] = {
        IN_USE: _in_use(bench, observed, wide, splits)
    }
    shape = None if model.learned is None else model.learned.shape
    for name, split in splits.items():
        if name != shape:
            predictors[name] = split.predictor("pooled")
    sign, better = Sign(-np.inf, 0.0, observed.cells.n_units, int(bench.free.size)), ""
    found: Evidence | None = None
    if observed.cells.n_units >= 2 and len(predictors) > 1:
        found = compared(observed, predictors, model.stream("checks", 2))
        bench.evidence = found
        others = [name for name in predictors if name != IN_USE]
        better = max(others, key=lambda name: found[name].score if found else 0.0)
        sign = sign_of(found, IN_USE, better, len(others))
    figures |= {"standard_errors": sign.errors, "better": better if sign.errors > 0 else None}
    losses, values = [0.0] * len(bench.plans), [p.value for p in bench.plans]
    if better:
        split = splits[better]
        own = observed.strata == len(bench.plans) > 1
        for k, plan in enumerate(bench.plans):
            kernel = split.kernels(k if own else 0, "pooled")[0]
            rewards = bench.rewards_on(wide, plan)
            world = World(wide, kernel, rewards, model.discount)
            _, best = world.best(plan.policy)
            mine = world.values(plan.policy)
            losses[k] = max(0.0, float(plan.start @ (best - mine)) - (plan.best - plan.value))
            values[k] = float(plan.start @ mine)
    # the worst group decides here, too
    off = [abs(v - p.value) / p.scale for v, p in zip(values, bench.plans, strict=True)]
    material = [
        p.material(x) or y >= MATERIAL for p, x, y in zip(bench.plans, losses, off, strict=True)
    ]
    verdicts: list[Verdict] = ["fine"] * len(bench.plans)
    if sign.errors > 0 and better:
        verdicts = [verdict_of(sign.strong, sign.clear, m and sign.clear) for m in material]
        badness = (x / p.scale + y for p, x, y in zip(bench.plans, losses, off, strict=True))
        if any(material) and sign.clear:
            _, number = bench.worst(verdicts, badness)
    group, named = bench.naming(verdicts, number)
    loss = bench.of(losses, number)
    scale = bench.of((p.scale for p in bench.plans), number)
    figures |= {"loss": loss, "loss_share": loss / scale, "value_off": bench.of(off, number)}
    name = WORDS.get(better, better)
    if sign.errors > 0 and better:
        verdict = verdict_of(sign.strong, sign.clear, any(material) and sign.clear)
        statistics = (
            f"A prior learned from the log ({name}) predicts held-out transitions better than the "
            f"one in use, by {sign.errors:.1f} standard errors."
        )
        consequence = (
            f"Under the better prior, {named} would lose {figure(loss, 3)} "
            f"({percentage(loss / scale)} of its {model.word}); its {model.word} would be "
            f"{bench.shown(bench.of(values, number))}, not "
            f"{bench.shown(bench.of((p.value for p in bench.plans), number))}."
        )
    else:
        verdict = verdict_of(False, False, False)
        statistics = "No prior that could be learned predicts held-out transitions better."
        consequence = _resting(bench, outweighs, number)
    if (outweighs or flattered) and verdict == "fine":
        verdict = "look"
    return Check(
        "prior",
        QUESTION,
        verdict,
        f"{statistics} {flattered}{weight}",
        consequence,
        figures,
        "" if verdict == "fine" else _remedy(model),
        None if found is None else _picture(found, IN_USE),
        group,
    )


def _remedy(model: Model) -> str:
    if model.observed_only:
        return 'Say what is possible instead of reading it off the log: reach, or possible = "all".'
    return 'Let the prior be learned from the log: prior = "learned".'


def _families(bench: Bench, pattern: TransitionPattern) -> dict[str, Family]:
    learned, found = bench.model.learned, {}
    for name in dict.fromkeys(
        (*bench.model.shapes, *(() if learned is None else (learned.shape,)))
    ):
        try:
            found[name] = family_of(name, pattern)
        except InvalidInputError:
            continue
    return found


def _in_use(
    bench: Bench, observed: Observed, wide: TransitionPattern, splits: dict[str, Split]
) -> Callable[[IntArray], FloatArray]:
    """The prediction of the prior in use."""
    learned = bench.model.learned
    if learned is not None and learned.shape in splits and not bench.model.observed_only:
        return splits[learned.shape].predictor("pooled")
    pattern = bench.pattern
    belief = bench.model.prior_belief(bench.plans[0].group)
    pairs, row = np.unique(wide.pair_of_transition[observed.seen], return_inverse=True)
    prior = np.asarray(belief.concentration("flat"), dtype=np.float64)
    whole = np.bincount(pattern.pair_of_transition, prior, pattern.n_pairs)[pairs].astype(
        np.float64
    )
    keys = pattern.pair_of_transition * pattern.n_states + pattern.next_states
    wanted = wide.pair_of_transition * wide.n_states + wide.next_states
    mine = prior[np.searchsorted(keys, wanted[observed.seen])]
    if not bench.model.observed_only:
        return Fixed(observed, mine, whole, row).predict
    return _Unforeseen(observed, wide, mine, whole, row).predict


class _Unforeseen:
    """A prior over the successors that were seen, learned anew from what may be fitted to.

    A transition that the rest of the log does not foresee is impossible to it. It is scored as if
    one more observation had been set aside for all of these, so the prior is flattered.
    """

    def __init__(
        self,
        observed: Observed,
        pattern: TransitionPattern,
        prior: FloatArray,
        whole: FloatArray,
        row: IntArray,
    ) -> None:
        self.fixed = Fixed(observed, prior, whole, row)
        self.n_states = pattern.n_states
        begins = pattern.pair_of_transition[observed.seen] // pattern.n_actions
        following = pattern.next_states[observed.seen]
        _, self.moves = np.unique(begins * pattern.n_states + following, return_inverse=True)
        self.staying = begins == following

    def predict(self, given: IntArray) -> FloatArray:
        """From counts by cell to ln p̂ of the transition of each cell."""
        found = self.fixed.observed
        sums = np.bincount(found.place, given, found.seen.size)
        foreseen = (np.bincount(self.moves, sums)[self.moves] > 0) | self.staying
        logs = self.fixed.predict(given)
        totals = np.bincount(self.fixed.row, sums, self.fixed.whole.size) + self.fixed.whole
        rare = -np.log((totals[self.fixed.row] + 1.0) * self.n_states)
        return np.where(foreseen[found.place], logs, rare[found.place])


def _picture(found: Evidence, own: str) -> Picture | None:
    """Held-out scores per transition, below the best."""
    tried = [one for one in found.candidates if not one.note and np.isfinite(one.score)]
    if len(tried) < 2:
        return None
    n = max(found.transitions, 1)
    names = tuple(one.name if one.name != own else f"{one.name} (in use)" for one in tried)
    if own == IN_USE:
        names = tuple(one.name for one in tried)
    return Picture(
        "points",
        "How much worse than the best each prior predicts held-out transitions",
        "prior",
        "lost in log score, per transition",
        (
            Curve(
                "priors",
                names,
                tuple(one.difference / n for one in tried),
                tuple(max(0.0, one.difference - 1.96 * one.standard_error) / n for one in tried),
                tuple((one.difference + 1.96 * one.standard_error) / n for one in tried),
            ),
        ),
    )
