"""What the page says of a decision, in sentences; costs are spoken of as costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from brmdp.models.page.numbers import (
    Direction,
    amount,
    count,
    decimals_for,
    exact_percent,
    number,
    percent,
    plural,
    probability,
)
from brmdp.models.page.text import shorten
from brmdp.models.results import Amount, GroupDecision, PolicyValue

__all__ = ["Figure", "Language", "common_decimals", "discount_in_words"]

SURE, LIKELY, OPEN = 0.95, 0.8, 0.2
MOST_WORDS = 4


@dataclass(frozen=True)
class Figure:
    """A number of the first screen: what it is, the number, and what to know about it."""

    label: str
    value: str
    note: str


@dataclass(frozen=True)
class Language:
    """Words for costs or for rewards.

    Attributes
    ----------
    word : "cost" or "reward"
    coarsest : int or None
        Fewest decimals of the values of any group; groups that need one more do without it.
    """

    word: str
    coarsest: int | None = None

    @classmethod
    def of(cls, word: str, groups: Sequence[GroupDecision]) -> Language:
        """The words for some groups, whose values are shown side by side."""
        plain = cls(word)
        return cls(word, min(plain.value_decimals(group) for group in groups))

    @property
    def costs(self) -> bool:
        """Whether values are costs."""
        return self.word == "cost"

    @property
    def safe(self) -> Direction:
        """The direction in which a bound is rounded."""
        return "up" if self.costs else "down"

    @property
    def bound(self) -> str:
        """What stands before a guaranteed value."""
        return "at most" if self.costs else "at least"

    @property
    def better(self) -> str:
        """Which values are better."""
        return "lower is better" if self.costs else "higher is better"

    @property
    def gained(self) -> str:
        """The name of a gain."""
        return "saved" if self.costs else "gained"

    @property
    def gain(self) -> str:
        """The noun of a gain."""
        return "saving" if self.costs else "gain"

    @property
    def gains(self) -> str:
        """What a better policy does."""
        return "saves" if self.costs else "gains"

    def guaranteed(self, value: float, decimals: int) -> str:
        """A bound, rounded so that it stays true."""
        return f"{self.bound} {number(value, decimals, self.safe)}"

    def value_decimals(self, group: GroupDecision) -> int:
        """Decimals for the values of a group's policies."""
        own = decimals_for(group.policies[group.recommended].mean)
        return own - 1 if self.coarsest is not None and own == self.coarsest + 1 else own

    def in_words(self, policy: PolicyValue, actions: tuple[str, ...]) -> tuple[str, ...]:
        """A policy in a few sentences."""
        if 0 < len(policy.words) <= MOST_WORDS:
            return policy.words
        counts = np.bincount(policy.actions, minlength=len(actions))
        used = np.argsort(-counts, kind="stable")[: int((counts > 0).sum())]
        most = ", ".join(
            f"{shorten(actions[a], 60)} ({plural(counts[a], 'state')})" for a in used[:3]
        )
        if len(used) == 1:
            return (f"Always {shorten(actions[used[0]], 60)}.",)
        if len(used) <= 3:
            return (f"By state: {most}.",)
        return (
            f"It depends on the state: {len(used)} of {plural(len(actions), 'action')} are used, "
            f"most often {most}.",
        )

    def same_as_practice(self, group: GroupDecision) -> bool:
        """Whether nothing would change, as far as the log tells."""
        return group.followed

    def opinion(self, group: GroupDecision, stopped: bool) -> str:
        """How sure it is that the recommendation is better than practice."""
        said = self._opinion(group)
        return f"If the model were right: {said[0].lower()}{said[1:]}" if stopped else said

    def _opinion(self, group: GroupDecision) -> str:
        share = group.probability_better[0]
        if self.same_as_practice(group):
            return "This is what was done so far, wherever anything was logged."
        if not math.isfinite(share):
            return "Whether this is better than today's practice was not computed."
        if group.gain.low == group.gain.high == 0:
            return "It is worth as much as today's practice."
        if share >= SURE:
            return "Very probably better than today's practice."
        if share >= LIKELY:
            return "Probably better than today's practice, but not surely."
        if share > OPEN:
            return "The log does not tell whether this is better than today's practice."
        return "Probably worse than today's practice: no reason to change it."

    def figures(self, group: GroupDecision, stopped: bool) -> tuple[Figure, ...]:
        """The four numbers of the first screen."""
        places = self.value_decimals(group)
        mean, interval = amount(group.policies[group.recommended].mean, places)
        gain, gained = amount(group.gain)
        practice, _ = amount(group.practice)
        share, low, high = group.probability_better
        negative = group.gain.mean < 0
        return (
            Figure(f"Expected {self.word}", mean, _interval("95 % credible interval", interval)),
            Figure(
                f"{self.gained.capitalize()} against practice",
                gain,
                _interval("95 % credible interval", gained)
                + f"; practice {'costs' if self.costs else 'earns'} {practice}"
                + (" (practice is better)" if negative else ""),
            ),
            Figure(
                "Better than practice",
                probability(share, low, high),
                f"probability; simulation error {percent(low, 'down')} to {percent(high, 'up')}"
                if math.isfinite(low) and math.isfinite(high)
                else "probability",
            ),
            Figure(
                "Guaranteed",
                self.guaranteed(group.guarantee.value, places)
                if math.isfinite(group.guarantee.value)
                else "nothing",
                f"with {exact_percent(group.guarantee.confidence)} posterior probability"
                + self._at_worst(group, places)
                + ("; not to be quoted, a check says stop" if stopped else ""),
            ),
        )

    def _at_worst(self, group: GroupDecision, places: int) -> str:
        if group.guarantee.worst_value is None:
            return ""
        bound = self.guaranteed(group.guarantee.worst_value, places)
        return f"; {bound} wherever {self.word}s lie in their ranges"

    def promise(self, group: GroupDecision) -> str:
        """The guarantee in words."""
        if not math.isfinite(group.guarantee.value):
            return "No guarantee could be given."
        places = self.value_decimals(group)
        said = (
            f"With {exact_percent(group.guarantee.confidence)} posterior probability, the "
            f"discounted {self.word} from the start is "
            f"{self.guaranteed(group.guarantee.value, places)}, if the model is right"
        )
        if group.guarantee.worst_value is None:
            return f"{said}."
        return (
            f"{said} and {self.word}s have their stated values; with the same probability, it is "
            f"{self.guaranteed(group.guarantee.worst_value, places)} wherever they lie in their "
            "ranges."
        )

    def start(self, group: GroupDecision, labels: tuple[str, ...]) -> str:
        """Where values are judged from."""
        start = np.asarray(group.start)
        possible = np.flatnonzero(start > 0)
        if possible.size == 1:
            return f"Values are counted from the state “{shorten(labels[int(possible[0])], 80)}”."
        return (
            f"Values are averages over a start in one of {plural(possible.size, 'state')}, as "
            "frequent as in the log."
        )

    def comparison(self, group: GroupDecision) -> tuple[str, ...]:
        """Practice against recommendation."""
        if self.same_as_practice(group):
            return (
                "The recommended policy is what was done so far, wherever anything was logged.",
                *([group.practice_caveat] if group.practice_caveat else []),
            )
        if not math.isfinite(group.gain.mean):
            return ("Practice and recommendation were not compared.",)
        places = self.value_decimals(group)
        mean, _ = amount(group.policies[group.recommended].mean, places)
        practice, practised = amount(group.practice)
        gain, gained = amount(group.gain)
        share, low, high = group.probability_better
        relative = _relative(group.gain.mean, group.practice.mean)
        verb = self.gains if group.gain.mean >= 0 else "loses"
        size, sized = (
            (gain, gained)
            if group.gain.mean >= 0
            else amount(Amount(-group.gain.mean, -group.gain.high, -group.gain.low))
        )
        said = [
            f"Practice has an expected discounted {self.word} of {practice}"
            + (f" (95 % credible interval {practised})" if practised else "")
            + f"; the recommended policy, of {mean}.",
            f"The recommendation {verb} {size}"
            + (f" (95 % credible interval {sized})" if sized else "")
            + (f", {relative} of what practice has" if relative else "")
            + f". It is better with probability {probability(share, low, high)}"
            + (
                f" (simulation error {percent(low, 'down')} to {percent(high, 'up')})."
                if math.isfinite(low) and math.isfinite(high)
                else "."
            ),
        ]
        if group.practice_caveat:
            said.append(group.practice_caveat)
        if group.units_interval is not None:
            low, high = group.units_interval
            half = Amount((low + high) / 2, low, high)
            places = min(decimals_for(half), decimals_for(group.gain) + 1)
            said.append(
                "Steps of one unit may depend on each other. As a test, the comparison was "
                "repeated with units drawn again, at mean probabilities and with practice held "
                f"fixed: the {self.gain} then varies from {number(low, places, 'down')} to "
                f"{number(high, places, 'up')} (95 %). What counts is whether that range is wider "
                "than the one above."
            )
        return tuple(said)

    def sensitivity(self, group: GroupDecision) -> str:
        """What the changed assumptions do, in one sentence."""
        all_of_them = group.sensitivities
        if not all_of_them:
            return "No assumption was varied."
        changed = [each for each in all_of_them if each.states_changed]
        worst = max(all_of_them, key=lambda each: _finite(self.loss(each.value, each.best)))
        loss = self.loss(worst.value, worst.best)
        head = (
            f"Of {plural(len(all_of_them), 'changed assumption')}, {len(changed)} would change the "
            "plan somewhere."
        )
        if not math.isfinite(loss) or loss <= 0:
            return f"{head} Keeping the recommended policy would lose nothing under any of them."
        return (
            f"{head} The largest loss from keeping the recommended policy is "
            f"{number(loss, common_decimals(worst.value, worst.best))} "
            f"({shorten(worst.assumption, 100)})."
        )

    def loss(self, value: float, best: float) -> float:
        """What a value lacks to the best one."""
        return max(value - best if self.costs else best - value, 0.0)

    def information(self, group: GroupDecision) -> str:
        """The value of perfect information."""
        value, interval = amount(group.perfect_information)
        if not math.isfinite(group.perfect_information.mean):
            return "The value of perfect information was not computed."
        relative = _relative(
            group.perfect_information.mean, group.policies[group.recommended].mean.mean
        )
        return (
            f"Perfect information would {'save' if self.costs else 'gain'} {value} on average"
            + (f" (95 % Monte Carlo interval {interval})" if interval else "")
            + (f", {relative} of the expected {self.word}" if relative else "")
            + ". No study, trial or longer log can be worth more than that."
        )

    def thin(self, group: GroupDecision) -> str:
        """Where the policy acts on pairs that were hardly seen."""
        if not group.thin:
            return "The recommended policy uses no state and action that were hardly seen."
        never = sum(pair.observations == 0 for pair in group.thin)
        time = percent(sum(pair.visits for pair in group.thin), "up")
        return (
            f"The recommended policy takes an action that was hardly seen in "
            f"{plural(len(group.thin), 'state')} that matter{'s' * (len(group.thin) == 1)} "
            f"({count(never)} never). It spends {time} of its discounted time there, where its "
            "worth rests on the prior more than on the log."
        )


def common_decimals(value: float, best: float) -> int:
    """Decimals that show a value to four digits, and two of its distance to the best one."""
    size = max(abs(value), abs(best))
    if not math.isfinite(size) or size == 0:
        return 0
    need = max(0, 3 - math.floor(math.log10(size)))
    distance = abs(value - best)
    if distance > size * 1e-6:
        need = max(need, 1 - math.floor(math.log10(distance)))
    return min(need, 8)


def _interval(name: str, interval: str) -> str:
    return f"{name} {interval}" if interval else "no interval was computed"


def _relative(part: float, whole: float) -> str:
    if not (math.isfinite(part) and math.isfinite(whole)) or whole == 0:
        return ""
    share = abs(part / whole)
    return "" if share > 1 else percent(share)


def _finite(value: float) -> float:
    return value if math.isfinite(value) else -math.inf


def discount_in_words(discount: float, word: str) -> str:
    """What a discount means for something that lies in the future."""
    if discount >= 1:
        return f"There is no discount: a {word} counts the same whenever it falls due."
    text = f"The discount is {discount:.12g} per step"
    if discount > 0.5:
        half = math.log(0.5) / math.log(discount)
        text += f": a {word} that lies {plural(round(half), 'step')} ahead counts half"
    return text + "."
