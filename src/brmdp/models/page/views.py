"""What the page's template shows: everything computed, worded and drawn, nothing left to decide."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from brmdp.models.page.numbers import (
    amount,
    count,
    decimals_for,
    exact_percent,
    level,
    number,
    percent,
    plural,
    probability,
)
from brmdp.models.page.policies import (
    LOOKS,
    Layout,
    PolicyPictures,
    lay_out,
    runs,
)
from brmdp.models.page.profile import profile, stop_ticks
from brmdp.models.page.sentences import (
    Figure,
    Language,
    common_decimals,
    discount_in_words,
)
from brmdp.models.page.svg import Charts, Drawing, join, tag
from brmdp.models.page.text import clean, shorten
from brmdp.models.results import Check, Curve, GroupDecision, Picture, PolicyValue

if TYPE_CHECKING:
    from brmdp.models.decision import Decision

__all__ = ["Detail", "PageView", "view"]

VERDICTS = ("stop", "look", "fine")
FEW_STATES_WORTH = 12


@dataclass(frozen=True)
class Detail:
    """How much the page shows.

    Attributes
    ----------
    cells : int
        Most cells of a policy's picture.
    policies : int
        Most characters for the policies of the dial, over all groups.
    rows : int
        Most rows of tables over states, over all groups.
    sections : int
        Most groups that get a section of their own.
    words : int
        Most characters of the words for a policy of the dial.
    """

    cells: int = 1440
    policies: int = 400_000
    rows: int = 2_200
    sections: int = 24
    words: int = 700


@dataclass(frozen=True)
class Row:
    """A line of a table; the first cell is its heading."""

    cells: tuple[str | Drawing, ...]
    marked: bool = False


@dataclass(frozen=True)
class Table:
    """A table with its caption; ``note`` says what was left out."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    numeric: tuple[int, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class CheckView:
    """A check as it is shown."""

    anchor: str
    check: Check
    picture: Drawing | None
    figures: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Dial:
    """The dial of one group."""

    anchor: str
    stops: int
    start: int
    best: tuple[int, ...]
    first: str
    last: str
    values: Drawing
    along: Drawing | None
    ticks: Drawing
    moving: Drawing
    text: str


@dataclass(frozen=True)
class GroupView:
    """The decision for a group as it is shown."""

    anchor: str
    name: str | None
    size: str
    answer: tuple[str, ...]
    opinion: str
    promise: str
    figures: tuple[Figure, ...]
    stops: int
    picture: Drawing
    legend: tuple[tuple[Drawing, str, str], ...]
    lanes: tuple[tuple[str, Drawing], ...]
    dial: Dial | None
    no_dial: str
    candidates: Table
    comparison: tuple[str, ...]
    values: Drawing | None
    worths: Table | None
    worth: Drawing | None
    sensitivity: str
    sensitivities: Table | None
    information: str
    more_data: Table | None
    thin: str
    thin_pairs: Table | None
    states: Table
    start: str
    guarantee: tuple[str, ...]
    nested: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class PageView:
    """The whole page."""

    title: str
    file: str
    word: str
    confidence: float
    question: tuple[str, ...]
    stops: tuple[CheckView, ...]
    looks: tuple[CheckView, ...]
    checks: tuple[CheckView, ...]
    counts: dict[str, int]
    groups: tuple[GroupView, ...]
    grouped: bool
    left_out: str
    summary: Table | None
    strips: tuple[tuple[str, str, Drawing | None], ...]
    legend: tuple[tuple[Drawing, str], ...]
    jointly: str
    patterns: Drawing
    caption: str
    first_state: str
    last_state: str
    reading: tuple[str, ...]
    dropped: Table | None
    reading_notes: tuple[str, ...]
    assumptions: tuple[str, ...]
    fingerprint: tuple[tuple[str, str], ...]
    made: str
    data: dict[str, Any]


def view(decision: Decision, detail: Detail) -> PageView:
    """Prepare the page of a decision at some level of detail."""
    return _Builder(decision, detail).page()


class _Builder:
    def __init__(self, decision: Decision, detail: Detail) -> None:
        self.decision, self.detail = decision, detail
        self.language = Language.of(decision.word, decision.groups)
        self.charts = Charts()
        self.grouped = any(group.name is not None for group in decision.groups)
        shown = sorted(decision.groups, key=lambda group: -group.transitions)[: detail.sections]
        self.shown = [group for group in decision.groups if any(group is each for each in shown)]
        self.layout = self._layout()
        self.pictures = PolicyPictures(self.charts, decision.states, decision.actions, self.layout)

    def _layout(self) -> Layout:
        """Cells few enough for the policies of all dials."""
        policies = sum(len(group.policies) for group in self.shown)
        cells = self.detail.cells
        while True:
            layout = lay_out(self.decision.states, cells)
            written = sum(
                len(layout.encode(policy.actions))
                for group in self.shown
                for policy in group.policies
            )
            if written <= self.detail.policies or cells <= 60 or not policies:
                return layout
            cells //= 2

    def page(self) -> PageView:
        decision = self.decision
        checks = self._checks()
        by_verdict = {
            verdict: tuple(each for each in checks if each.check.verdict == verdict)
            for verdict in VERDICTS
        }
        views = tuple(self._group(i, group) for i, group in enumerate(self.shown, 1))
        dials = [
            self._data(group, shown)
            for group, shown in zip(self.shown, views, strict=True)
            if shown.dial is not None
        ]
        hidden = len(decision.groups) - len(views)
        return PageView(
            title=decision.title or decision.file or "A decision from a log",
            file=decision.file,
            word=decision.word,
            confidence=decision.confidence,
            question=self._question(),
            stops=by_verdict["stop"],
            looks=by_verdict["look"],
            checks=tuple(each for verdict in VERDICTS for each in by_verdict[verdict]),
            counts={verdict: len(by_verdict[verdict]) for verdict in VERDICTS},
            groups=views,
            grouped=self.grouped,
            left_out=(
                f"The page has sections for the {len(views)} groups with most transitions; "
                f"{plural(hidden, 'more group')} can be found in decision.json."
                if hidden
                else ""
            ),
            summary=self._summary(views) if self.grouped else None,
            strips=tuple(self._strips()) if self.grouped else (),
            legend=self._used(*self.shown) if self.grouped else (),
            jointly=self._jointly(),
            patterns=self.pictures.patterns(),
            caption=self.pictures.caption,
            first_state=shorten(decision.states.labels[self.layout.order[0]], 40),
            last_state=shorten(decision.states.labels[self.layout.order[-1]], 40),
            reading=self._reading(),
            dropped=self._dropped(),
            reading_notes=decision.report.notes,
            assumptions=decision.assumptions,
            fingerprint=self._fingerprint(),
            made=decision.fingerprint.made,
            data={
                "actions": [shorten(label, 80) for label in decision.actions],
                "looks": LOOKS,
                "layout": {
                    "kind": self.layout.kind,
                    "columns": self.layout.columns,
                    "rows": self.layout.rows,
                    "left": self.layout.left,
                    "top": self.layout.top,
                    "height": self.layout.height,
                },
                "boundaries": self.pictures.boundaries,
                "end": self.pictures.end if self.layout.kind == "strip" else "",
                "dials": dials,
            },
        )

    # the first screen

    def _question(self) -> tuple[str, ...]:
        decision, language = self.decision, self.language
        actions = plural(len(decision.actions), "action")
        if len(decision.actions) <= 6:
            actions += " (" + ", ".join(shorten(label, 40) for label in decision.actions) + ")"
        columns = " and ".join(shorten(axis.column, 40) for axis in decision.states.axes)
        states = plural(decision.states.n_states, "state")
        units = sum(group.units for group in decision.groups)
        transitions = sum(group.transitions for group in decision.groups)
        evidence = (
            f"The answer comes from {plural(units, 'unit')} and {plural(transitions, 'transition')}"
        )
        if self.grouped:
            evidence += f" in {plural(len(decision.groups), 'group')}"
        return (
            f"Which of {actions} should be taken in each of {states} of {columns}?",
            f"{evidence}. Values are {language.word}s; {language.better}. "
            + discount_in_words(decision.discount, language.word),
        )

    def _summary(self, views: Sequence[GroupView]) -> Table:
        language = self.language
        anchors = {view.name: view.anchor for view in views}
        stops = _stops_of(self.decision)
        rows = []
        for group in self.decision.groups:
            places = language.value_decimals(group)
            mean, _ = amount(group.policies[group.recommended].mean, places)
            gain, gained = amount(group.gain)
            name = shorten(str(group.name), 80)
            rows.append(
                Row(
                    (
                        _link(name, anchors.get(group.name), stops.get(group.name, 0) > 0),
                        mean,
                        f"{gain} ({gained})" if gained else gain,
                        probability(*group.probability_better),
                        language.guaranteed(group.guarantee.value, places),
                        count(group.units),
                    ),
                    marked=stops.get(group.name, 0) > 0,
                )
            )
        confidence = exact_percent(self.decision.confidence)
        return Table(
            f"The recommendation for each group. With {confidence} posterior probability, the "
            f"discounted {language.word} of a group from its start is what stands under "
            f"“Guaranteed”. What is {language.gained} has a 95 % credible interval.",
            (
                "Group",
                f"Expected {language.word}",
                f"{language.gained.capitalize()} against practice",
                "Better with probability",
                "Guaranteed",
                "Units",
            ),
            tuple(rows),
            (1, 2, 3, 4, 5),
        )

    def _strips(self) -> Iterator[tuple[str, str, Drawing | None]]:
        """Name, policy in words and, for ordered states, its picture, for every group shown."""
        for group in self.shown:
            name, strip = shorten(str(group.name), 80), None
            words = self._words(group.policies[group.recommended], 300)
            if self.layout.kind == "strip":
                strip = self.pictures.thin(group.policy, f"Recommended policy, group {name}", words)
            yield name, words, strip

    def _words(self, policy: PolicyValue, longest: int) -> str:
        return shorten(" ".join(self.language.in_words(policy, self.decision.actions)), longest)

    def _jointly(self) -> str:
        groups = len(self.decision.groups)
        if groups < 2:
            return ""
        together = 1 - groups * (1 - self.decision.confidence)
        text = "Each guarantee is for its own group."
        if together > 0.5:
            text += (
                f" That all {groups} hold at once has a posterior probability of at least "
                f"{percent(together, 'down')}."
            )
        else:
            text += f" That all {groups} hold at once is not promised."
        return text

    # checks

    def _checks(self) -> tuple[CheckView, ...]:
        return tuple(
            CheckView(
                self.charts.new_id("check"),
                check,
                None if check.picture is None else self.charts.picture(check.picture),
                tuple(_figures(check)),
            )
            for check in self.decision.checks
        )

    # one group

    def _group(self, position: int, group: GroupDecision) -> GroupView:
        language, decision = self.language, self.decision
        anchor = f"group-{position}"
        recommended = group.policies[group.recommended]
        words = self._words(recommended, 600)
        stops = sum(
            check.verdict == "stop" and check.group in (None, group.name)
            for check in decision.checks
        )
        of_group = f", group {shorten(str(group.name), 60)}" if group.name is not None else ""
        dial = self._dial(anchor, group)
        return GroupView(
            anchor=anchor,
            name=group.name,
            size=f"{plural(group.units, 'unit')}, {plural(group.transitions, 'transition')}",
            answer=language.in_words(recommended, decision.actions),
            opinion=language.opinion(group, stops > 0),
            promise=language.promise(group),
            figures=language.figures(group, stops > 0),
            stops=stops,
            picture=self.pictures.picture(
                recommended.actions, f"Recommended policy{of_group}", words
            ),
            legend=self._legend(group),
            lanes=self._lanes(group),
            dial=dial,
            no_dial=_no_dial(group),
            candidates=self._candidates(group),
            comparison=language.comparison(group),
            values=self._values(group),
            worths=self._worths(group),
            worth=self._worth_picture(group),
            sensitivity=language.sensitivity(group),
            sensitivities=self._sensitivities(group),
            information=language.information(group),
            more_data=self._more_data(group),
            thin=language.thin(group),
            thin_pairs=self._thin_pairs(group),
            states=self._states(group),
            start=language.start(group, decision.states.labels),
            guarantee=group.guarantee.words,
            nested=group.guarantee.nested_words,
            notes=group.notes,
        )

    def _rows(self) -> int:
        return max(self.detail.rows // max(len(self.shown), 1), 10)

    def _state(self, state: int) -> str:
        return self.decision.states.labels[state]

    def _action(self, action: int) -> str:
        return self.decision.actions[action]

    @property
    def _column(self) -> str:
        columns = [shorten(axis.column, 40) for axis in self.decision.states.axes]
        return f"State ({', '.join(columns)})"

    def _used(self, *groups: GroupDecision) -> tuple[tuple[Drawing, str], ...]:
        """The actions that recommendations use."""
        used = sorted({int(a) for group in groups for a in np.unique(group.policy)})
        return tuple(
            (self.pictures.swatch(action), shorten(self._action(action), 80)) for action in used
        )

    def _legend(self, group: GroupDecision) -> tuple[tuple[Drawing, str, str], ...]:
        """Every action that a candidate uses, with its share of states under the recommendation."""
        used = sorted({int(a) for policy in group.policies for a in np.unique(policy.actions)})
        counts = np.bincount(group.policy, minlength=len(self.decision.actions))
        return tuple(
            (
                self.pictures.swatch(action),
                shorten(self._action(action), 80),
                plural(int(counts[action]), "state"),
            )
            for action in used
        )

    def _lanes(self, group: GroupDecision) -> tuple[tuple[str, Drawing], ...]:
        if self.layout.kind != "strip":
            return ()
        seen = np.asarray(group.observations).sum(axis=1)
        visits = np.asarray(group.visits, dtype=float)
        place, most = int(visits.argmax()), int(seen.argmax())
        return (
            (
                "Where the recommended policy spends its discounted time",
                self.pictures.lane(
                    visits,
                    "Share of discounted time by state",
                    f"Most in {self._state(place)}: {percent(float(visits[place]))}.",
                ),
            ),
            (
                "Where the log has observations",
                self.pictures.lane(
                    seen,
                    "Observed transitions by state",
                    f"Most in {self._state(most)}: {count(seen[most])}; none in "
                    f"{plural(int((seen == 0).sum()), 'state')}.",
                ),
            ),
        )

    def _dial(self, anchor: str, group: GroupDecision) -> Dial | None:
        if len({stop.policy for stop in group.dial}) < 2:
            return None
        policies = group.policies
        best = tuple(i for i, stop in enumerate(group.dial) if stop.policy == group.recommended)
        if best:
            start = best[len(best) // 2]
        else:
            differing = [
                int((np.asarray(policies[stop.policy].actions) != group.policy).sum())
                for stop in group.dial
            ]
            start = int(np.argmin(differing))
        values = profile(self.charts, self.language, group, best)
        along = self.pictures.along(
            [policies[stop.policy].actions for stop in group.dial],
            "The policy at every stop of the dial",
            f"From left to right the stops, from cautious to curious; upwards the states. "
            f"There are {len({stop.policy for stop in group.dial})} different policies.",
        )
        if best:
            text = f"The recommended policy is planned at {self._levels(group, group.recommended)}."
        else:
            text = (
                f"The recommended policy (“{shorten(policies[group.recommended].name, 60)}”) is "
                "not a stop of the dial, which begins at the stop that is most like it."
            )
        return Dial(
            f"{anchor}-dial",
            len(group.dial),
            start,
            best,
            level(group.dial[0].level),
            level(group.dial[-1].level),
            values,
            along,
            stop_ticks(len(group.dial), best),
            self.pictures.picture(policies[group.dial[start].policy].actions, "Policy", ""),
            text,
        )

    def _data(self, group: GroupDecision, shown: GroupView) -> dict[str, Any]:
        """What the script needs to move the dial: numbers for pictures, and finished words."""
        language = self.language
        places = language.value_decimals(group)
        used = list(dict.fromkeys([stop.policy for stop in group.dial] + [group.recommended]))
        place = {policy: i for i, policy in enumerate(used)}
        legend = sorted({int(a) for policy in group.policies for a in np.unique(policy.actions)})
        policies = []
        for number_ in used:
            policy = group.policies[number_]
            mean, interval = amount(policy.mean, places)
            counts = np.bincount(policy.actions, minlength=len(self.decision.actions))
            policies.append(
                {
                    "cells": self.layout.encode(policy.actions),
                    "mean": mean,
                    "interval": interval,
                    "bound": language.guaranteed(policy.guaranteed, places),
                    "words": self._words(policy, self.detail.words),
                    "differs": int((np.asarray(policy.actions) != group.policy).sum()),
                    "counts": [plural(int(counts[a]), "state") for a in legend],
                }
            )
        return {
            "id": None if shown.dial is None else shown.dial.anchor,
            "stops": [[level(stop.level), place[stop.policy]] for stop in group.dial],
            "recommended": place[group.recommended],
            "policies": policies,
        }

    def _levels(self, group: GroupDecision, policy: int) -> str:
        """The levels at which a policy is planned, as ranges of neighbouring stops."""
        chosen = [i for i, stop in enumerate(group.dial) if stop.policy == policy]
        parts: list[str] = []
        for first, last in _stretches(chosen):
            low, high = level(group.dial[first].level), level(group.dial[last].level)
            parts.append(low if first == last else f"{low} to {high}")
        if not parts:
            return "–"
        return (
            "level " if parts == [parts[0]] and " to " not in parts[0] else "levels "
        ) + ", ".join(parts)

    def _candidates(self, group: GroupDecision) -> Table:
        language = self.language
        places = language.value_decimals(group)
        first = {
            policy: i for i, policy in reversed([(i, s.policy) for i, s in enumerate(group.dial)])
        }
        order = sorted(range(len(group.policies)), key=lambda k: (first.get(k, len(group.dial)), k))
        rows = []
        for k in order:
            policy: PolicyValue = group.policies[k]
            mean, interval = amount(policy.mean, places)
            where = self._levels(group, k)
            name = where.removeprefix("levels ").removeprefix("level ")
            rows.append(
                Row(
                    (
                        (name if where != "–" else shorten(policy.name, 60))
                        + (" – recommended" if k == group.recommended else ""),
                        mean,
                        interval or "–",
                        language.guaranteed(policy.guaranteed, places),
                        count((np.asarray(policy.actions) != group.policy).sum()),
                        self._words(policy, 160),
                    ),
                    marked=k == group.recommended,
                )
            )
        return Table(
            "Every policy that was compared, from cautious to curious. Guaranteed values are "
            "estimates from the draws that compared the policies; the certificate of the "
            "recommended policy alone has draws of its own.",
            (
                "Level or name",
                f"Expected {language.word}",
                "95 % interval",
                f"Guaranteed (estimate, {exact_percent(self.decision.confidence)})",
                "States that differ",
                "In words",
            ),
            tuple(rows),
            (1, 2, 3, 4),
        )

    def _values(self, group: GroupDecision) -> Drawing | None:
        if not math.isfinite(group.practice.mean):
            return None
        pairs = (
            ("Recommended policy", group.policies[group.recommended].mean),
            ("Practice", group.practice),
        )
        curve = Curve(
            self.language.word,
            tuple(name for name, _ in pairs),
            tuple(each.mean for _, each in pairs),
            tuple(each.low for _, each in pairs),
            tuple(each.high for _, each in pairs),
        )
        return self.charts.picture(
            Picture(
                "points",
                f"Discounted {self.language.word} from the start, with 95 % credible intervals",
                "policy",
                f"discounted {self.language.word} ({self.language.better})",
                (curve,),
            )
        )

    def _worths(self, group: GroupDecision) -> Table | None:
        if not group.worths:
            return None
        most = self._rows()
        decimals = decimals_for(*(worth.gain for worth in group.worths[:FEW_STATES_WORTH]))
        rows = []
        for worth in group.worths[:most]:
            gain, interval = amount(worth.gain, decimals)
            rows.append(
                Row(
                    (
                        self._state(worth.state),
                        self._action(int(group.policy[worth.state])),
                        gain,
                        interval or "–",
                        percent(worth.visits),
                    )
                )
            )
        return Table(
            "States in which recommendation and practice differ and the change is worth most: what "
            "changing only that state would be worth. These values need not add up.",
            (
                self._column,
                "Recommended",
                self.language.gained.capitalize(),
                "95 % interval",
                "Share of practice’s time",
            ),
            tuple(rows),
            (2, 3, 4),
            _cut(len(group.worths), most, "states"),
        )

    def _worth_picture(self, group: GroupDecision) -> Drawing | None:
        worths = [each for each in group.worths[:8] if math.isfinite(each.gain.mean)]
        if len(worths) < 2:
            return None
        curve = Curve(
            self.language.gain,
            tuple(self._state(each.state) for each in worths),
            tuple(each.gain.mean for each in worths),
            tuple(each.gain.low for each in worths),
            tuple(each.gain.high for each in worths),
        )
        return self.charts.picture(
            Picture(
                "points",
                f"What the change is worth in the {len(worths)} states where it matters most",
                " and ".join(axis.column for axis in self.decision.states.axes),
                f"{self.language.gained} by the change there alone",
                (curve,),
            )
        )

    def _sensitivities(self, group: GroupDecision) -> Table | None:
        if not group.sensitivities:
            return None
        rows = []
        for each in group.sensitivities:
            loss = self.language.loss(each.value, each.best)
            size = common_decimals(each.value, each.best)
            rows.append(
                Row(
                    (
                        each.assumption,
                        count(each.states_changed),
                        number(each.value, size),
                        number(each.best, size),
                        number(loss, size) if math.isfinite(loss) else "unknown",
                        each.words,
                    )
                )
            )
        return Table(
            f"Other assumptions, one at a time: the {self.language.word} of the recommended "
            "policy, and of the policy that would be planned then.",
            (
                "Assumption",
                "States changed",
                "Recommended policy",
                "Policy planned then",
                "Loss",
                "In words",
            ),
            tuple(rows),
            (1, 2, 3, 4),
        )

    def _more_data(self, group: GroupDecision) -> Table | None:
        if not group.more_data:
            return None
        most = self._rows()
        decimals = decimals_for(*(each.gain for each in group.more_data))
        rows = []
        for each in group.more_data[:most]:
            gain, interval = amount(each.gain, decimals)
            rows.append(
                Row(
                    (
                        self._state(each.state),
                        self._action(each.action),
                        count(each.transitions),
                        gain,
                        interval or "–",
                        percent(each.changed),
                    )
                )
            )
        return Table(
            "What more observations of a pair would be worth on average, the best first, with the "
            "error of the simulation; and how often they would change the plan.",
            (
                self._column,
                "Action",
                "More transitions",
                self.language.gained.capitalize(),
                "Monte Carlo interval",
                "Plan changes",
            ),
            tuple(rows),
            (2, 3, 4, 5),
            _cut(len(group.more_data), most, "pairs"),
        )

    def _thin_pairs(self, group: GroupDecision) -> Table | None:
        if not group.thin:
            return None
        most = self._rows()
        order = sorted(group.thin, key=lambda pair: -pair.visits)
        rows = [
            Row(
                (
                    self._state(pair.state),
                    self._action(pair.action),
                    count(pair.observations),
                    percent(pair.visits),
                )
            )
            for pair in order[:most]
        ]
        return Table(
            "Where the recommended policy takes an action that was hardly seen in that state, the "
            "most visited first.",
            (self._column, "Action", "Observations", "Share of discounted time"),
            tuple(rows),
            (2, 3),
            _cut(len(order), most, "states"),
        )

    def _states(self, group: GroupDecision) -> Table:
        """The recommended policy: by ranges of ordered states, otherwise state by state."""
        states, policy, order = self.decision.states, group.policy, self.layout.order
        seen, visits = np.asarray(group.observations), np.asarray(group.visits, dtype=float)
        stretches = (
            list(runs(policy[order]))
            if states.ordered
            else [(s, s + 1, int(policy[s])) for s in range(states.n_states)]
        )
        most = self._rows()
        rows = []
        for first, last, action in stretches[:most]:
            members = order[first:last]
            rows.append(
                Row(
                    (
                        self.pictures.range(first, last),
                        self._action(action),
                        count(last - first),
                        count(seen[members, action].sum()),
                        percent(float(visits[members].sum())),
                    )
                )
            )
        ranges = states.ordered and len(stretches) < states.n_states
        return Table(
            "The recommended policy"
            + (", neighbouring states with the same action taken together" if ranges else "")
            + ".",
            (
                self._column,
                "Action",
                "States",
                "Observations of it there",
                "Share of discounted time",
            ),
            tuple(rows),
            (2, 3, 4),
            _cut(
                len(stretches),
                most,
                "ranges" if ranges else "states",
                " The policy as a CSV file (brmdp decide, or decision.write) has all of them.",
            ),
        )

    # the end

    def _reading(self) -> tuple[str, ...]:
        report = self.decision.report
        share = f" ({percent(report.kept_lines / report.lines)})" if report.lines else ""
        return (
            f"{plural(report.lines, 'line')} were read and {count(report.kept_lines)} kept{share}. "
            f"{count(report.transitions)} of them begin a transition, of "
            f"{plural(report.units, 'unit')} in all.",
            *(() if report.dropped else ("Nothing was dropped.",)),
        )

    def _dropped(self) -> Table | None:
        report = self.decision.report
        if not report.dropped:
            return None
        rows = tuple(
            Row(
                (
                    each.reason,
                    "begin no transition" if each.line_kept else "dropped",
                    count(each.lines),
                    percent(each.lines / report.lines) if report.lines else "–",
                    each.words,
                    "; ".join(shorten(example, 160) for example in each.examples) or "–",
                )
            )
            for each in report.dropped
        )
        return Table(
            "Lines that did not become transitions, and why. Lines that only begin no transition "
            "still count for practice.",
            ("Reason", "What became of them", "Lines", "Share", "In words", "Examples"),
            rows,
            (2, 3),
        )

    def _fingerprint(self) -> tuple[tuple[str, str], ...]:
        made = self.decision.fingerprint
        versions = ", ".join(f"{name} {version}" for name, version in made.versions.items())
        return (
            ("Made", made.made),
            ("Command", made.command),
            ("Model file", self.decision.file),
            ("SHA-256 of the log", made.data),
            ("SHA-256 of the model file", made.model),
            ("Versions", versions),
            ("Seed", str(made.seed)),
        )


def _no_dial(group: GroupDecision) -> str:
    """Why there is nothing to turn, for a group without a dial."""
    if len(group.dial) < 2:
        return "There is one plan only, so there is nothing to turn."
    low, high = level(group.dial[0].level), level(group.dial[-1].level)
    return (
        f"The plan is the same at all {len(group.dial)} levels from {low} to {high}: the log "
        "leaves so little open that caution does not change what to do."
    )


def _stops_of(decision: Decision) -> dict[str | None, int]:
    found: dict[str | None, int] = {}
    for check in decision.checks:
        if check.verdict == "stop":
            found[check.group] = found.get(check.group, 0) + 1
    return found


def _link(text: str, anchor: str | None, stopped: bool) -> Drawing:
    name = tag("bdi", text)
    if anchor is not None:
        name = tag("a", name, href=f"#{anchor}")
    return (
        join([name, tag("strong", " a check says stop", class_="said stop")]) if stopped else name
    )


def _figures(check: Check) -> Iterator[tuple[str, str]]:
    for name, value in check.figures.items():
        if value is None:
            yield name, "–"
        elif isinstance(value, str):
            yield name, clean(value)
        else:
            yield name, number(float(value))


def _stretches(values: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Neighbouring numbers as (first, last)."""
    first = last = None
    for value in values:
        if last is not None and value == last + 1:
            last = value
            continue
        if first is not None and last is not None:
            yield first, last
        first = last = value
    if first is not None and last is not None:
        yield first, last


def _cut(all_of_them: int, shown: int, what: str, where: str = "") -> str:
    if all_of_them <= shown:
        return ""
    return f"{shown:,} of {all_of_them:,} {what} are shown.{where}"
