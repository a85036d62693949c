"""What all checks need: the plan, its value, and what a different belief would say of it.

The plan is the policy that is judged: the recommended one, or else the best at the mean of the
belief.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from brmdp._validation import FloatArray, IntArray
from brmdp.decisions.draws import Sampler
from brmdp.decisions.families import SHAPES, Family, family_of, locate
from brmdp.decisions.held_out import Evidence
from brmdp.decisions.uncertain_rewards import is_uncertain
from brmdp.errors import InvalidInputError
from brmdp.models.checks.splits import Observed, Split, blocks_of
from brmdp.models.checks.verdicts import MATERIAL, NEGLIGIBLE, ROUNDING, SHORTFALL
from brmdp.models.checks.worlds import World
from brmdp.models.results import Curve, Picture, Verdict
from brmdp.models.wording import figure
from brmdp.pattern import TransitionPattern

if TYPE_CHECKING:
    from brmdp.models.model import Model

__all__ = ["Bench", "Plan"]

GUARANTEE_DRAWS = 400
MOST_STRATA = 30
"""Up to this many groups are looked at one by one where they might hide something else."""

DRAWN_NUMBERS = 40_000_000
"""Probabilities that may be drawn for the guarantee of the plan."""


@dataclass(frozen=True, eq=False)
class Plan:
    """The policy that is judged, for one group.

    Attributes
    ----------
    group : str or None
    weight : float
        The group's share of all units.
    world : World
        The mean of the belief.
    policy : (S,) integers
    values : (S,) array
    practice : (S, A) array
        Mean probabilities of what was done so far.
    start : (S,) array
    visits : (S,) array
        Shares of the plan's discounted time, as far as not everything has ended.
    """

    group: str | None
    weight: float
    world: World
    policy: IntArray
    values: FloatArray
    practice: FloatArray
    start: FloatArray
    visits: FloatArray

    @property
    def value(self) -> float:
        """Value at the start, as a reward."""
        return float(self.start @ self.values)

    @cached_property
    def best(self) -> float:
        """What the best policy at the mean of the belief is worth at the start."""
        return float(self.start @ self.world.best(self.policy)[1])

    @cached_property
    def practice_value(self) -> float:
        """Value of practice at the start."""
        return float(self.start @ self.world.values(self.practice))

    @cached_property
    def scale(self) -> float:
        """What losses are compared with: the size of the value."""
        floor = 1e-6 * float(np.abs(self.values).max())
        return max(abs(self.value), floor, 1e-300)

    def loss(self, entries: FloatArray) -> float:
        """What the plan loses in a world with other probabilities, against the best plan there."""
        world = World(self.world.pattern, entries, self.world.rewards, self.world.discount)
        _, best = world.best(self.policy)
        return max(0.0, float(self.start @ (best - world.values(self.policy))))

    def value_in(self, entries: FloatArray) -> float:
        """What the plan is worth in a world with other probabilities."""
        world = World(self.world.pattern, entries, self.world.rewards, self.world.discount)
        return float(self.start @ world.values(self.policy))

    def material(self, loss: float) -> bool:
        """Whether a loss matters."""
        if loss >= MATERIAL * self.scale:
            return True
        gain = max(0.0, self.value - self.practice_value)
        return loss > gain and loss >= NEGLIGIBLE * self.scale


class Bench:
    """A model, with what several checks compute from it.

    Parameters
    ----------
    model : Model
    policies : mapping from group to (S,) actions, optional
        What is judged; by default the best policy at the mean of the belief.
    """

    def __init__(self, model: Model, policies: Mapping[str | None, IntArray] | None = None) -> None:
        self.model = model
        self.policies = policies
        if policies is not None and set(policies) != set(model.groups):
            raise InvalidInputError(
                f"policies must have one policy for each of {len(model.groups)} groups (None "
                f"without groups); got {', '.join(map(str, policies))[:60]}"
            )
        self.rows: IntArray = model.rows()
        self.free: IntArray = self.rows[
            model.pattern.widths[self._pair(self.rows)] > 1
        ]  # the others are known
        self.evidence: Evidence | None = None
        self._guarantees: dict[str | None, float | None] = {}

    def _pair(self, rows: IntArray) -> IntArray:
        log = self.model.log
        pair: IntArray = log.state[rows] * len(self.model.actions) + log.action[rows]
        return pair

    @cached_property
    def pattern(self) -> TransitionPattern:
        """The possible transitions."""
        return self.model.plan_belief(self.model.groups[0]).pattern

    @cached_property
    def rewards(self) -> FloatArray:
        """What is maximised, one number per possible transition, if it is known."""
        return np.asarray(self.pattern.gather(self.model.rewards), dtype=np.float64)

    @cached_property
    def learns(self) -> bool:
        """Whether rewards are learned from the log, too."""
        return is_uncertain(self.model.doubtful_rewards(self.model.groups[0]))

    def rewards_on(self, pattern: TransitionPattern, plan: Plan) -> FloatArray:
        """What a plan maximises, known or as its mean, on a pattern."""
        return np.asarray(pattern.gather(self._given(plan.group)), dtype=np.float64)

    def _given(self, group: str | None) -> Any:
        return self.model.plan_rewards(group) if self.learns else self.model.rewards

    @cached_property
    def plans(self) -> tuple[Plan, ...]:
        """The plan of each group; a single one without groups."""
        model = self.model
        n = np.array([max(model.units(group), 1) for group in model.groups], dtype=np.float64)
        weights = n / n.sum()
        found: list[Plan] = []
        for group, weight in zip(model.groups, weights, strict=True):
            if model.pooled and found and self.policies is None:
                world, policy, values = found[0].world, found[0].policy, found[0].values
            else:
                belief = model.plan_belief(group)
                rewards = (
                    self.rewards
                    if not self.learns
                    else np.asarray(self.pattern.gather(self._given(group)), dtype=np.float64)
                )
                world = World(self.pattern, belief.mean_entries(), rewards, model.discount)
                if self.policies is None:
                    policy, values = world.best(found[-1].policy if found else None)
                else:
                    policy = np.asarray(self.policies[group], dtype=np.int64)
                    values = world.values(policy)
            start = model.start(group)
            found.append(
                Plan(
                    group,
                    float(weight),
                    world,
                    policy,
                    values,
                    model.practice(group).mean,
                    start,
                    model.before_end(world.visits(policy, start)),
                )
            )
        return tuple(found)

    def strata(self) -> IntArray:
        """The group of every free row; zeros if there are none, or too many."""
        model = self.model
        if model.log.group is None or len(model.groups) > MOST_STRATA:
            return np.zeros(self.free.size, dtype=np.int64)
        return np.asarray(model.log.group[self.free], dtype=np.int64)

    @cached_property
    def family(self) -> Family | None:
        """How rows resemble each other: the learned shape, or the one that predicts best."""
        learned = self.model.learned
        if learned is not None:
            return learned.family
        if self.evidence is not None and self.evidence.chosen in SHAPES:
            name = str(self.evidence.chosen)
        else:
            best = (
                [c for c in self.evidence.candidates if c.name in SHAPES and not c.note]
                if (self.evidence)
                else []
            )
            name = min(best, key=lambda c: c.difference).name if best else "uniform"
        for shape in (name, "uniform"):
            try:
                return family_of(shape, self.pattern)
            except InvalidInputError:
                continue
        return None

    # --- transitions ------------------------------------------------------------------------------

    @cached_property
    def pairs(self) -> IntArray:
        """The pair of every free row."""
        return self._pair(self.free)

    @cached_property
    def entries(self) -> IntArray:
        """The entry of every free row."""
        return locate(self.pattern, self.pairs, self.model.log.next_state[self.free])

    @cached_property
    def blocks(self) -> IntArray:
        """What is held out together, for every free row."""
        return blocks_of(self.model.log.unit[self.free])

    @cached_property
    def plan_of_row(self) -> IntArray:
        """The number of the plan that every free row belongs to."""
        if len(self.plans) == 1 or self.model.log.group is None:
            return np.zeros(self.free.size, dtype=np.int64)
        return np.asarray(self.model.log.group[self.free], dtype=np.int64)

    @cached_property
    def moments(self) -> tuple[FloatArray, FloatArray]:
        """What every free row turned out to be worth beyond what was expected, and the variance.

        That is r + γV(s') less its mean under the belief, with the values V of the plan, in the
        file's own sign. If the model is right, these numbers have mean zero whatever was done.
        """
        surprise, variance = np.zeros(self.free.size), np.zeros(self.free.size)
        for k, plan in enumerate(self.plans):
            mine = self.plan_of_row == k
            beyond, spread = self.beyond(plan)
            surprise[mine] = beyond[self.entries[mine]]
            variance[mine] = spread[self.pairs[mine]]
        return surprise, variance

    def beyond(self, plan: Plan) -> tuple[FloatArray, FloatArray]:
        """The same for every possible transition, and the variance for every pair."""
        pattern = self.pattern
        worth = plan.world.rewards + self.model.discount * plan.values[pattern.next_states]
        owner, n = pattern.pair_of_transition, pattern.n_pairs
        found = worth - np.bincount(owner, plan.world.entries * worth, n)[owner]
        found[np.abs(found) <= ROUNDING * np.abs(worth).max(initial=0.0)] = 0.0
        variance = np.bincount(owner, plan.world.entries * found**2, n)
        return self.model.sign * found, np.asarray(variance, dtype=np.float64)

    def split(self, label: IntArray, strata: IntArray | None = None) -> Split | None:
        """The free rows in classes; rows with a negative label are left out."""
        if self.family is None:
            return None
        used = label >= 0
        chosen = None if strata is None else strata[used]
        observed = Observed.of(self.entries[used], self.blocks[used], label[used], chosen)
        return Split(self.family, observed)

    def mean_surprises(
        self, name: str, label: IntArray, names: tuple[str, ...], title: str, x: str
    ) -> Picture:
        """The mean surprise of every class, with 95 % intervals, as a picture."""
        surprise, _ = self.moments
        used = label >= 0
        n = np.bincount(label[used], minlength=len(names)).astype(np.float64)
        mean = np.bincount(label[used], surprise[used], len(names)) / np.maximum(n, 1.0)
        rest = np.where(used, surprise - mean[np.maximum(label, 0)], 0.0)
        # steps of a unit may depend on each other, so errors are sums over units
        units = self.model.log.unit[self.free]
        key = units[used] * len(names) + label[used]
        cells, place = np.unique(key, return_inverse=True)
        sums = np.bincount(place, rest[used], cells.size)
        error = np.sqrt(np.bincount(cells % len(names), sums**2, len(names))) / np.maximum(n, 1.0)
        kept = n > 0
        labels = tuple(one for one, keep in zip(names, kept, strict=True) if keep)
        curve = Curve(
            name,
            labels,
            tuple(mean[kept].tolist()),
            tuple((mean - 1.96 * error)[kept].tolist()),
            tuple((mean + 1.96 * error)[kept].tolist()),
        )
        y = f"{self.model.word} beyond expectation, per step"
        return Picture("points", title, x, y, (curve,))

    # --- values -----------------------------------------------------------------------------------

    def guarantee(self, plan: Plan) -> float | None:
        """The level of value that the belief promises for the plan, as a reward; from few draws.

        None if that would take too long.
        """
        if plan.group not in self._guarantees:
            self._guarantees[plan.group] = self._guarantee(plan)
        return self._guarantees[plan.group]

    def breaks(self, plan: Plan, value: float) -> bool:
        """Whether the guarantee of the plan is false if it is worth so much."""
        promised = self.guarantee(plan)
        return promised is not None and value < promised - SHORTFALL * plan.scale

    def _guarantee(self, plan: Plan) -> float | None:
        n = min(GUARANTEE_DRAWS, DRAWN_NUMBERS // max(self.pattern.n_transitions, 1))
        if n < 50:
            return None
        model = self.model
        sampler = Sampler(
            model.belief(plan.group),
            model.doubtful_rewards(plan.group),
            model.discount,
            [plan.policy],
            rng=model.stream("checks", 1),
        )
        drawn = np.concatenate([block.values[:, 0] @ plan.start for block in sampler.blocks(n)])
        return float(np.quantile(drawn, 1.0 - model.confidence))

    # --- words ------------------------------------------------------------------------------------

    @property
    def about(self) -> str:
        """Which policy is judged, in a sentence."""
        if self.policies is None:
            return "Here and below, the plan is the plan at the mean of the belief."
        return "Here and below, the plan is the recommended policy."

    def shown(self, value: float) -> str:
        """A value as a reward in the file's own sign."""
        return figure(self.model.sign * value)

    def own(self, value: float) -> float:
        """A value in the file's own sign."""
        return self.model.sign * value

    def average(self, numbers: Iterable[float]) -> float:
        """A mean over groups, weighted by their units."""
        return float(sum(p.weight * x for p, x in zip(self.plans, numbers, strict=True)))

    # --- groups -----------------------------------------------------------------------------------

    def worst(
        self, verdicts: Sequence[Verdict], badness: Iterable[float]
    ) -> tuple[Verdict, int | None]:
        """The worst verdict on a group, and the number of the worst group; None if all are fine."""
        rank = ("fine", "look", "stop")
        places = range(len(verdicts))
        number = max(zip(map(rank.index, verdicts), badness, places, strict=True))[2]
        several = len(verdicts) > 1 and verdicts[number] != "fine"
        return verdicts[number], number if several else None

    def of(self, numbers: Iterable[float], number: int | None) -> float:
        """The number of one group, or the average of all."""
        return self.average(numbers) if number is None else float(list(numbers)[number])

    def naming(self, verdicts: Sequence[Verdict], number: int | None) -> tuple[str | None, str]:
        """The group that is judged, and its plan in words."""
        if number is None:
            return None, "the plan"
        same = sum(verdict == verdicts[number] for verdict in verdicts)
        worst = "" if same == 1 else f" (the worst of {same} such groups)"
        group = self.plans[number].group
        return group, f"the plan for group {group}{worst}"
