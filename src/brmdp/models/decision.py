"""The decision: a policy, what is guaranteed about it, and what would change it.

**Plan with what is fast, prove with draws of everything that is uncertain.** Candidates are planned
at some forty quantile levels with the belief at point hyperparameters, by the saddlepoint
approximation. They are then compared in common posterior draws of the whole model, and the one with
the best value at the stated confidence is recommended (or the one at a level that the user chose).
Its certificate comes from draws of its own, so the choice costs it nothing.

**Signs.** The engine maximises rewards. Where the model has costs, everything here is turned back
into costs: a guarantee is then an upper bound. Gains are positive where the recommendation is
better.
"""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np

from brmdp._extras import optional
from brmdp._files import digest, write_bytes
from brmdp._validation import FloatArray, IntArray, as_level, as_positive_int
from brmdp._version import installed_version
from brmdp.beliefs.dirichlet import DirichletBelief
from brmdp.decisions import Sampler, UnitLog, compare, value_of_information
from brmdp.decisions.certificate import (
    FAILURE,
    SampledCertificate,
    draws_needed,
    order_statistic,
    sampled_certificate_of,
)
from brmdp.decisions.certificate import REUSE as MOST_REUSE
from brmdp.decisions.comparison import (
    FEW_UNITS,
    WIDE,
    Comparison,
    Estimate,
    credible_interval,
)
from brmdp.decisions.draws import independent_draws, worth_of
from brmdp.errors import ConvergenceError, InvalidInputError
from brmdp.logs import ReadingReport, StateSpace
from brmdp.models.amounts import LearnedAmounts
from brmdp.models.file import Word
from brmdp.models.model import Model
from brmdp.models.results import (
    RARE,
    Amount,
    Caution,
    Check,
    Fingerprint,
    GroupDecision,
    Guarantee,
    MoreData,
    PolicyValue,
    Sensitivity,
    StateWorth,
    ThinPair,
)
from brmdp.models.stock import StockModel
from brmdp.models.wording import bound_figure, figure
from brmdp.planning.guarantees import certificate_of, clopper_pearson
from brmdp.planning.many import Task, solve_all
from brmdp.planning.planner import Problem
from brmdp.planning.solution import NOT_CONVERGED
from brmdp.planning.text import percent, wrapped
from brmdp.risk.measures import Mean, Quantile, has_exact_quantiles
from brmdp.risk.monte_carlo import order_statistic_rank

__all__ = ["Decision", "decide"]

NO_GAIN = 1e-12
"""Gains below this share of the value are rounding."""

ROUNDING = 1e-9
"""Differences between draws below this share of the value are rounding."""

RESAMPLES, TIES = 100, 1_000_000
"""Resamples that tell policies with equal guarantees, and where their random numbers begin."""

LEVELS = (0.01, *(round(0.025 * k, 3) for k in range(1, 40)), 0.99)
"""Levels of the dial."""

DRAWS, VALUES = 1_000, 2_000_000
"""Largest number of draws in which candidates are compared, and of values in them."""

FEWEST_DRAWS = 200

SKETCHED, SKETCH, SKETCH_SWEEPS = 50_000, 1e-3, 60
"""Beyond this many transitions, plans are only so accurate: they propose, and prove nothing."""

REUSE = 4
"""Kernels per independent draw of the hyperparameters, in a certificate that can do with them."""

DRAWS_OF_AMOUNTS = 20_000
"""Largest number of draws in a certificate with learned amounts and a given prior."""

NESTED_TRANSITIONS = 300_000
"""Beyond this many transitions, Proposition 1's bound is left out."""

RESAMPLED_TRANSITIONS, RESAMPLED_ENTRIES = 3_000_000, 500_000
"""Beyond these sizes, units are not resampled."""

THIN, THIN_VISITS, MOST_THIN = 5, 1e-4, 12
"""A pair with fewer observations is hardly seen; it matters from this share of the time."""

MORE, FUTURES, MOST_PAIRS = 50, 256, 3
"""What more data would be worth: transitions of a pair, futures that rank the pairs, and pairs
that are then looked at closely."""

INFORMATION_DRAWS, INFORMATION_TRANSITIONS = 150, 50_000

RELATIVE = 0.1
"""Change of a cost that is given without a range, in the sensitivities."""

MOST_ACTIONS = 6
"""Up to this many actions, the cost of each is varied."""

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, eq=False, repr=False)
class Decision:
    """A recommendation with what supports it; see :meth:`brmdp.Model.decide`.

    Printing it gives the answer in words; :meth:`write` makes the page.

    Attributes
    ----------
    title, file : str
    word : "cost" or "reward"
        What the values are.
    discount, confidence : float
    level : float or None
        The quantile level, if one was chosen.
    states : StateSpace
    actions : tuple of str
    groups : tuple of GroupDecision
        One without a name if there are no groups.
    checks : tuple of Check
    assumptions : tuple of str
    report : ReadingReport
    fingerprint : Fingerprint
    ends : tuple of int
        States in which everything ends; nothing is decided there.

    Examples
    --------
    >>> import brmdp, pandas
    >>> table = {"day": range(60), "stock": ["full", "low", "low"] * 20}
    >>> table["order"] = ["no", "no", "yes"] * 20
    >>> log = brmdp.read_log(pandas.DataFrame(table), time="day", state="stock", action="order")
    >>> model = brmdp.Model(log, costs={"no": 0.0, "yes": 1.0}, discount=0.9)
    >>> decision = model.decide(checks=False)
    >>> decision.groups[0].policies[decision.groups[0].recommended].words
    ('Always no.',)
    """

    title: str
    file: str
    word: Word
    discount: float
    confidence: float
    level: float | None
    states: StateSpace
    actions: tuple[str, ...]
    groups: tuple[GroupDecision, ...]
    checks: tuple[Check, ...]
    assumptions: tuple[str, ...]
    report: ReadingReport
    fingerprint: Fingerprint
    ends: tuple[int, ...] = ()

    @property
    def stops(self) -> tuple[Check, ...]:
        """The checks that say *stop*."""
        return tuple(check for check in self.checks if check.verdict == "stop")

    # --- out --------------------------------------------------------------------------------------

    def as_json(self) -> dict[str, Any]:
        """All numbers, as the file ``decision.json`` has them."""
        parts: dict[str, Any] = {"title": self.title, "word": self.word}
        if self.groups[0].name is None:
            parts |= self._group_json(self.groups[0])
        else:
            parts["groups"] = {str(group.name): self._group_json(group) for group in self.groups}
        parts["checks"] = [
            {
                "name": check.name,
                "group": check.group,
                "verdict": check.verdict,
                "finding": check.finding,
                "consequence": check.consequence,
                "remedy": check.remedy,
                "figures": {key: _plain(value) for key, value in check.figures.items()},
            }
            for check in self.checks
        ]
        parts["discount"], parts["assumptions"] = self.discount, list(self.assumptions)
        parts["reading"] = {
            "lines": self.report.lines,
            "transitions": self.report.transitions,
            "units": self.report.units,
            "dropped": [
                {"reason": one.reason, "lines": one.lines, "words": one.words}
                for one in self.report.dropped
            ],
            "notes": list(self.report.notes),
        }
        made = self.fingerprint
        parts["fingerprint"] = {
            "data": made.data,
            "model": made.model,
            "versions": made.versions,
            "command": made.command,
            "seed": made.seed,
            "made": made.made,
        }
        return parts

    def _group_json(self, group: GroupDecision) -> dict[str, Any]:
        chosen = group.policies[group.recommended]
        better, low, high = group.probability_better
        return {
            "policy": {
                label: self.actions[a]
                for s, (label, a) in enumerate(
                    zip(self.states.labels, group.policy.tolist(), strict=True)
                )
                if s not in self.ends
            },
            "words": list(chosen.words),
            "value": _amount(chosen.mean),
            "certificate": {
                "confidence": group.guarantee.confidence,
                "value": group.guarantee.value,
                "worst_value": group.guarantee.worst_value,
                "nested_value": group.guarantee.nested_value,
                "gap": group.guarantee.gap,
                "stopped": self.stopped(group),
            },
            "practice": {
                "value": group.practice.mean,
                "ci95": _ends(group.practice),
                "inferred": group.practice_inferred,
            },
            "comparison": {
                "gain": {"mean": group.gain.mean, "ci95": _ends(group.gain)},
                "probability_better": better,
                "probability_better_ci95": [low, high],
                "gain_resampled_units_ci95": (
                    None if group.units_interval is None else list(group.units_interval)
                ),
            },
            "value_of_information": {
                "perfect": group.perfect_information.mean,
                "pairs": [
                    {
                        "state": self.states.labels[one.state],
                        "action": self.actions[one.action],
                        "transitions": one.transitions,
                        "gain": one.gain.mean,
                        "ci95": _ends(one.gain),
                    }
                    for one in group.more_data
                ],
            },
            "dial": [
                {
                    "level": stop.level,
                    "value": group.policies[stop.policy].mean.mean,
                    "guaranteed": group.policies[stop.policy].guaranteed,
                    "words": list(group.policies[stop.policy].words),
                }
                for stop in group.dial
            ],
            "sensitivity": [
                {
                    "assumption": one.assumption,
                    "states_changed": one.states_changed,
                    "value": one.value,
                    "best": one.best,
                }
                for one in group.sensitivities
            ],
            "hardly_seen": [
                {
                    "state": self.states.labels[one.state],
                    "action": self.actions[one.action],
                    "observations": one.observations,
                    "visits": one.visits,
                }
                for one in group.thin
            ],
            "notes": list(group.notes),
        }

    def to_frame(self) -> Any:
        """The recommended policy as a data frame (pandas), one line per group and state."""
        return optional("pandas", "decide").DataFrame(self._table())

    def _table(self) -> dict[str, list[Any]]:
        table: dict[str, list[Any]] = {"state": [], "action": [], "observations": [], "visits": []}
        if self.groups[0].name is not None:
            table = {"group": [], **table}
        for group in self.groups:
            policy = group.policy
            for s, label in enumerate(self.states.labels):
                if s in self.ends:
                    continue
                if group.name is not None:
                    table["group"].append(group.name)
                table["state"].append(label)
                table["action"].append(self.actions[policy[s]])
                table["observations"].append(int(group.observations[s, policy[s]]))
                table["visits"].append(float(group.visits[s]))
        return table

    def write(
        self,
        report: str | Path | None = None,
        *,
        numbers: str | Path | None = None,
        policy: str | Path | None = None,
    ) -> None:
        """Write the page (HTML), all numbers (JSON) or the policy (CSV), where a path is given.

        Every file is complete or absent.
        """
        if report is not None:
            from brmdp.models.page import write_page

            write_page(self, report)
        if numbers is not None:
            text = json.dumps(self.as_json(), indent=1, ensure_ascii=False, allow_nan=False)
            write_bytes(numbers, text.encode())
        if policy is not None:
            from brmdp.models.policies import write_policy

            write_policy(self, policy)

    # --- words ------------------------------------------------------------------------------------

    def __str__(self) -> str:
        lines = []
        for check in self.stops:
            where = f" ({check.group})" if check.group else ""
            lines.append(wrapped(f"STOP, {check.name}{where}: {check.finding} {check.consequence}"))
        for group in self.groups:
            if group.name is not None:
                lines.append(f"\n{group.name}")
            lines += map(wrapped, self.answer(group))
        looks = [check.name for check in self.checks if check.verdict == "look"]
        if looks:
            lines.append(wrapped(f"Look at these checks, too: {', '.join(dict.fromkeys(looks))}."))
        return "\n".join(lines).strip("\n")

    def answer(self, group: GroupDecision) -> tuple[str, ...]:
        """The recommendation for a group, its value and its guarantee, in sentences."""
        chosen = group.policies[group.recommended]
        gain = group.gain
        value = (
            f"Expected {self.word}: {figure(chosen.mean.mean)} (95 % credible interval "
            f"{figure(chosen.mean.low)} to {figure(chosen.mean.high)})"
        )
        against: tuple[str, ...]
        if group.followed:
            against = (
                f"{value}. This is what was done so far, wherever anything was logged.",
                *([group.practice_caveat] if group.practice_caveat else []),
            )
        else:
            against = (
                f"{value}; what was done so far: {figure(group.practice.mean)} "
                f"({figure(group.practice.low)} to {figure(group.practice.high)}).",
                f"The gain over it is {figure(gain.mean)} ({figure(gain.low)} to "
                f"{figure(gain.high)}); the probability of a gain is "
                f"{_probability(group.probability_better[0])}.",
                *([group.practice_caveat] if group.practice_caveat else []),
            )
        promise = group.guarantee.words[0]
        if self.stopped(group):
            promise = f"If the model were right, which a check denies: {_uncapitalised(promise)}"
        return (*chosen.words, *against, promise)

    def stopped(self, group: GroupDecision) -> bool:
        """Whether a check of this group, or of all, says *stop*."""
        return any(check.group in (None, group.name) for check in self.stops)

    def __repr__(self) -> str:
        stops = len(self.stops)
        return (
            f"Decision({self.title!r}, {len(self.groups)} "
            f"group{'s' * (len(self.groups) != 1)}, {self.states.n_states} states, "
            f"{len(self.checks)} checks, {stops} stop{'s' * (stops != 1)})"
        )


def decide(
    model: Model,
    *,
    level: float | None = None,
    levels: Sequence[float] = LEVELS,
    draws: int = DRAWS,
    checks: bool | tuple[Check, ...] = True,
    command: str = "",
    on_progress: Progress | None = None,
) -> Decision:
    """Recommend a policy for every group, with its guarantee and what would change it.

    Parameters
    ----------
    model : Model
    level : float, optional
        Recommend the plan at this quantile level (low: cautious); by default that of the model, or,
        if it has none, the candidate with the best value at the model's confidence.
    levels : sequence of float
        Levels of the dial.
    draws : int
        Number of posterior draws for comparisons; fewer for large problems.
    checks : bool or tuple of Check
        Check the model first; or the checks, if they were made already.
    command : str
        For the fingerprint: what was called.
    on_progress : callable, optional
        Called with a description, the number of steps done and their total.

    Returns
    -------
    Decision

    Examples
    --------
    >>> import brmdp, pandas
    >>> table = {"day": range(60), "stock": ["full", "low", "low"] * 20}
    >>> table["order"] = ["no", "no", "yes"] * 20
    >>> log = brmdp.read_log(pandas.DataFrame(table), time="day", state="stock", action="order")
    >>> model = brmdp.Model(log, costs={"no": 0.5, "yes": 1.0}, discount=0.9)
    >>> brmdp.models.decide(model, level=0.3, levels=[0.5], checks=False).level
    0.3
    """
    wanted = model.level if level is None else as_level(level, "level")
    dial = sorted({as_level(one, "levels") for one in levels} | ({wanted} if wanted else set()))
    n = as_positive_int(draws, "draws")
    if n < FEWEST_DRAWS:
        raise InvalidInputError(f"draws must be at least {FEWEST_DRAWS}; got {n}")
    tell = on_progress or (lambda what, done, total: None)
    total = len(model.groups) + 2
    tell("learning from the log", 0, total)
    _ = model.plan_belief(model.groups[0])
    groups = []
    for k, name in enumerate(model.groups):
        tell("deciding" if name is None else f"deciding for {name}", 1 + k, total)
        try:
            groups.append(_Group(model, name, k, wanted, dial, n).decision())
        except ConvergenceError as error:
            raise ConvergenceError(_out_of_range(model)) from error
    tell("checking the model", total - 1, total)
    chosen = {group.name: group.policy for group in groups}
    found = model.check(chosen) if checks is True else (checks or ())
    tell("done", total, total)
    return Decision(
        title=model.title,
        file=model.file,
        word=model.word,
        discount=model.discount,
        confidence=model.confidence,
        level=wanted,
        states=model.states,
        actions=model.actions,
        groups=tuple(groups),
        checks=found,
        assumptions=assumptions(model),
        report=model.log.report,
        fingerprint=fingerprint(model, command),
        ends=tuple(model.ends.tolist()),
    )


class _Group:
    """The decision for one group."""

    def __init__(
        self,
        model: Model,
        name: str | None,
        number: int,
        wanted: float | None,
        dial: list[float],
        draws: int,
    ) -> None:
        self.model, self.name, self.number = model, name, number
        self.wanted, self.dial, self.draws = wanted, dial, draws
        self.sign = model.sign
        self.begin = model.start(name)
        self.done = model.practice(name)
        self.point = model.plan_belief(name)
        self.belief = model.belief(name)
        self.matched = model.matched_belief(name)
        self.paid = model.plan_rewards(name)
        self.rewards = model.doubtful_rewards(name)
        self.amounts = model.learned_amounts(name)
        self.problem = Problem.of(self.point, self.paid, model.discount)

    def decision(self) -> GroupDecision:
        """Plan, choose, prove, compare."""
        model, name = self.model, self.name
        candidates, stops = self._candidates()
        values, visits = self._values(candidates)
        recommended = self._recommended(values[:, :-1], stops)
        policy = candidates[recommended][1]
        practice = self._as_practice(policy)
        if practice is policy:
            values[:, -1] = values[:, recommended]
        policies = self._worths(candidates, values, visits)
        comparison = self._comparison(policy, practice)
        gains = values[:, recommended] - values[:, -1]
        worth = worth_of(gains.size, independent_draws(self.belief))
        better = float((gains > NO_GAIN * np.abs(values[:, -1])).mean())
        low, high = clopper_pearson(round(better * worth), worth)
        guarantee, notes = self._guarantee(policy)
        return GroupDecision(
            name=name,
            units=model.units(name),
            transitions=int(model.rows(name).size),
            policies=tuple(policies),
            recommended=recommended,
            dial=stops,
            guarantee=guarantee,
            practice=self._amount(values[:, -1]),
            gain=self._of_rewards(gains),
            probability_better=(better, low, high),
            units_interval=None if comparison.units is None else comparison.units.interval,
            worths=tuple(
                StateWorth(
                    one.state,
                    Amount(one.worth.mean, *one.interval, one.worth.error),
                    one.baseline_visits,
                )
                for one in comparison.differences
            ),
            perfect_information=self._perfect(comparison, values[:, :-1], recommended),
            more_data=self._more_data(policy),
            sensitivities=self._sensitivities(policy, self._level_of(recommended, stops)),
            thin=self._thin(policy, visits[recommended]),
            observations=model.evidence(name),
            visits=visits[recommended],
            start=self.begin,
            practice_inferred=self._inferred(visits[-1]),
            followed=practice is policy,
            notes=(*notes, *self._unit_notes(comparison)),
        )

    # --- plans ------------------------------------------------------------------------------------

    def _plans(self, wanted: Sequence[tuple[Problem, Any, float]]) -> list[IntArray]:
        """The policies of plans for problems, beliefs and levels."""
        if isinstance(self.model, StockModel):
            tasks = [
                Task(problem, belief, self.model.quantile(belief, level))
                for problem, belief, level in wanted
            ]
            return [np.array(plan.policy) for plan in solve_all(tasks)]
        sketches: dict[int, Problem] = {}
        tasks = []
        for problem, belief, level in wanted:
            asked = problem
            if problem.pattern.n_transitions > SKETCHED:
                asked = sketches.setdefault(
                    id(problem),
                    Problem(
                        problem.pattern,
                        problem.rewards,
                        problem.discount,
                        max_iterations=SKETCH_SWEEPS,
                        relative=SKETCH,
                    ),
                )
            tasks.append(Task(asked, belief, Quantile(level, method="saddlepoint"), False))
        found = []
        for plan, task, (problem, belief, level) in zip(
            solve_all(tasks), tasks, wanted, strict=True
        ):
            if plan.status == NOT_CONVERGED and task.problem is problem:
                plan = problem.solve(belief, Quantile(level))
            found.append(np.array(plan.policy))
        return found

    def _candidates(self) -> tuple[list[tuple[str, IntArray]], tuple[Caution, ...]]:
        """Distinct policies with their names, and the stops of the dial."""
        found: list[tuple[str, IntArray]] = []
        stops = []
        mean = np.array(self.problem.solve(self.matched, Mean()).policy)
        planned = self._plans([(self.problem, self.matched, level) for level in self.dial])
        for level, policy in zip(self.dial, planned, strict=True):
            number = _number_of(found, policy)
            if number is None:
                number = len(found)
                found.append((f"level {level:g}", policy))
            stops.append(Caution(level, number))
        if _number_of(found, mean) is None:
            found.append(("mean", mean))
        counts = self.done.counts
        usual = np.where(counts.any(axis=1), counts.argmax(axis=1), mean)
        if _number_of(found, usual) is None:
            found.append(("as usual", usual))
        return found, tuple(stops)

    def _values(self, candidates: list[tuple[str, IntArray]]) -> tuple[FloatArray, FloatArray]:
        """Values (n, candidates and practice) in common draws, and shares of time in states."""
        model = self.model
        numbered = {str(k): policy for k, (_, policy) in enumerate(candidates)}
        sampler = Sampler(
            self.belief,
            self.rewards,
            model.discount,
            {**numbered, "practice": self.done},
            rng=model.stream("policies", self.number),
        )
        affordable = VALUES // (self.begin.size * (len(candidates) + 1))
        n = max(min(self.draws, affordable), FEWEST_DRAWS)
        values = np.concatenate([block.values @ self.begin for block in sampler.blocks(n)])
        return values, model.before_end(sampler.visits(self.begin))

    def _worths(
        self, candidates: list[tuple[str, IntArray]], values: FloatArray, visits: FloatArray
    ) -> list[PolicyValue]:
        quantiles = self._quantiles(values)
        return [
            PolicyValue(
                name,
                policy,
                self.model.words(policy, visits[k]),
                self._amount(values[:, k]),
                self.sign * float(quantiles[k]),
            )
            for k, (name, policy) in enumerate(candidates)
        ]

    def _quantiles(self, values: FloatArray, level: float | None = None) -> FloatArray:
        """Quantiles of all values, by default at the model's confidence."""
        share = 1.0 - self.model.confidence if level is None else level
        rank = int(order_statistic_rank(len(values), share)) - 1
        held: FloatArray = np.partition(values, rank, axis=0)[rank]
        return held

    def _promised_share(self) -> float:
        """The level of the quantile that the certificate will promise: its draws are limited."""
        alpha, independent = 1.0 - self.model.confidence, independent_draws(self.belief)
        draws = self._certificate_draws(independent)
        if draws is None:
            return alpha
        worth = worth_of(draws, independent)
        return max(order_statistic(worth, alpha, FAILURE / math.e), 1) / worth

    def _as_practice(self, policy: IntArray) -> Any:
        """Practice; the policy itself if it was followed wherever anything was logged."""
        counts = self.done.counts
        followed = counts[np.arange(policy.size), policy] == counts.sum(axis=1)
        return policy if followed.all() and counts.any() else self.done

    def _inferred(self, visits: FloatArray) -> float:
        """Share of practice's time in states where hardly any decision was logged."""
        rare = self.done.counts.sum(axis=1) < RARE
        rare[self.model.ends] = False
        return float(visits[rare].sum())

    def _amount(self, values: FloatArray) -> Amount:
        """Values of the engine as an amount of the model."""
        return self._of_rewards(self.sign * values)

    def _of_rewards(self, values: FloatArray) -> Amount:
        """The same for what has the sign it is to have."""
        error = Estimate.of(values, independent_draws(self.belief)).error
        if np.ptp(values) <= ROUNDING * np.abs(values).max():
            # what is the same in all draws must not look as if it were known to twelve digits
            same = float(f"{values.mean():.10g}")
            return Amount(same, same, same, 0.0)
        return Amount(float(values.mean()), *credible_interval(values), error)

    def _recommended(self, values: FloatArray, stops: tuple[Caution, ...]) -> int:
        """The policy at the level that was chosen, or the one with the best guarantee.

        The guarantee is that of the certificate, which promises a little less than the quantile
        that it stands for. Policies whose guarantees cannot be told apart in these draws are tied;
        the one with the best mean is taken.
        """
        if self.wanted is not None:
            return next(stop.policy for stop in stops if stop.level == self.wanted)
        share = self._promised_share()
        best = int(np.argmax(self._quantiles(values, share)))
        stream = self.model.stream("policies", self.number + TIES)
        behind = np.empty((RESAMPLES, values.shape[1]))
        for k in range(RESAMPLES):
            drawn = values[stream.integers(len(values), size=len(values))]
            held = self._quantiles(drawn, share)
            behind[k] = held[best] - held
        tied = np.quantile(behind, 0.05, axis=0) <= 0.0
        return int(np.argmax(np.where(tied, values.mean(axis=0), -np.inf)))

    def _perfect(self, comparison: Comparison, values: FloatArray, recommended: int) -> Amount:
        """What knowing the kernel would be worth, beyond the best that can be done without."""
        regret = _of_mean(comparison.regret)
        without = float(values.mean(axis=0).max() - values[:, recommended].mean())
        # what is worth no more than rounding is worth nothing
        least = ROUNDING * float(np.abs(values).max())
        mean, low, high = (
            one - without if one - without > least else 0.0
            for one in (regret.mean, regret.low, regret.high)
        )
        return Amount(mean, low, high, regret.error)

    @staticmethod
    def _level_of(recommended: int, stops: tuple[Caution, ...]) -> float:
        """A level at which the recommended policy is planned: the middle one of those."""
        levels = [stop.level for stop in stops if stop.policy == recommended]
        return levels[len(levels) // 2] if levels else 0.5

    # --- proofs -----------------------------------------------------------------------------------

    def _guarantee(self, policy: IntArray) -> tuple[Guarantee, tuple[str, ...]]:
        model = self.model
        independent = independent_draws(self.belief)
        made, bound = self._certified(policy, self.rewards)
        worst = None
        if model.costs.worst is not None:
            _, worst = self._certified(policy, model.rewards_of(model.costs.worst))
            # it may have taken more draws; a bound that is no better stays one
            worst = self.sign * min(self.sign * worst, self.sign * bound)
        nested = self._nested()
        side: Literal["most", "least"] = "most" if self.sign < 0 else "least"
        promise = (
            f"With {100 * model.confidence:.4g} % posterior probability, the expected discounted "
            f"{model.word} of this policy from the start is at {side} {bound_figure(bound, side)}"
        )
        if worst is None:
            promise += "."
        else:
            promise += (
                f", with {model.word}s at their stated values. With the same probability, it is at "
                f"{side} {bound_figure(worst, side)} wherever they lie in their ranges."
            )
        words = [
            promise,
            "The bound comes from posterior draws of the whole model, made after the policy was "
            f"chosen: it is number {made.rank:,} of {made.draws:,} values, in the order of their "
            f"{model.word}, worst first, and gives away {_share(made.gap)} of the quantile that "
            "it stands for.",
            "It assumes that the prior is right, that what happens next depends on state and "
            "action alone, and that nothing changes over time. Chance in the simulation breaks it "
            f"with probability at most {made.failure:.2g}.",
        ]
        if math.isfinite(independent):
            words.append(
                "What was learned about the prior is kept as draws that are worth about "
                f"{independent:.0f} independent ones; no more are counted."
            )
        if self.amounts is not None:
            words.append(f"{self.amounts.caveat} The bound allows for their doubt.")
        if self.amounts is not None:
            other = f"There is none where the {model.word} is learned from the log."
        elif nested is None and not has_exact_quantiles(self.point):
            other = "There is none where demand was hidden by an empty shelf."
        elif nested is None:
            other = "It was not computed for a problem of this size."
        else:
            other = (
                f"Quantiles of single rows, nested, guarantee at {side} "
                f"{bound_figure(nested, side)} with the policy that is "
                "best for them (Proposition 1 of the paper)"
                + (
                    ", if the prior that was learned from the log is taken for known."
                    if model.learned is not None
                    else "."
                )
            )
        notes = () if made.prior is None or not made.prior.outweighs else (str(made.prior),)
        guarantee = Guarantee(
            model.confidence, bound, nested, made.gap, tuple(words), other, worst_value=worst
        )
        return guarantee, tuple(" ".join(note.split()) for note in notes)

    def _certified(self, policy: IntArray, rewards: Any) -> tuple[SampledCertificate, float]:
        """The certificate with these rewards, and its bound in the model's sign."""
        model = self.model
        made = sampled_certificate_of(
            self.belief,
            rewards,
            model.discount,
            model.confidence,
            policy=policy,
            start=self.begin,
            draws=self._certificate_draws(independent_draws(self.belief)),
            nested=False,
            rng=model.stream("certificate", self.number),
        )
        assert made.value is not None
        return made, self.sign * made.value

    def _certificate_draws(self, independent: float) -> int | None:
        """Largest number of draws; drawn amounts cost more than the kernel of a small problem."""
        if math.isfinite(independent):
            few = math.ceil(REUSE * independent)
            needed = draws_needed(1.0 - self.model.confidence, FAILURE / math.e)
            enough = worth_of(few, independent) >= needed
            return few if enough else math.ceil(MOST_REUSE * independent)
        return None if self.amounts is None else DRAWS_OF_AMOUNTS

    def _nested(self) -> float | None:
        """Proposition 1's bound, with a learned prior taken for known."""
        model = self.model
        if model.pattern.n_transitions > NESTED_TRANSITIONS or not has_exact_quantiles(self.point):
            return None
        if self.amounts is not None:
            return None
        belief = self.point.copy()
        belief.caveat = ""
        try:
            made = certificate_of(
                belief,
                self.paid,
                model.discount,
                model.confidence,
                coverage_samples=0,
                start=self.begin,
            )
        except ConvergenceError:
            return None
        assert made.value is not None
        return self.sign * made.value

    def _comparison(self, policy: IntArray, practice: Any) -> Comparison:
        model, log = self.model, self.model.log
        # all units that the belief has learned from
        rows = model.rows(None if model.pooled else self.name)
        several = np.unique(log.unit[rows]).size > 1
        small = (
            rows.size <= RESAMPLED_TRANSITIONS and model.pattern.n_transitions <= RESAMPLED_ENTRIES
        )
        units = None
        if several and small:
            units = UnitLog(
                model.unit_prior(self.name),
                log.unit[rows],
                log.state[rows],
                log.action[rows],
                log.next_state[rows],
                learn_rewards=self._relearned(rows),
            )
        n = max(min(self.draws, VALUES // (4 * self.begin.size)), FEWEST_DRAWS)
        return compare(
            self.belief,
            self.rewards,
            model.discount,
            policy,
            practice,
            start=self.begin,
            draws=n,
            regret_draws=max(100, n // 3),
            differences=8,
            units=units,
            rng=model.stream("comparison", self.number),
        )

    def _relearned(self, rows: IntArray) -> Callable[[IntArray], FloatArray] | None:
        """Mean rewards learned from resampled units; the draws' law of all groups is left out."""
        model, log = self.model, self.model.log
        if self.amounts is None or log.amount is None:
            return None
        learn = self.amounts.relearned(log.state[rows], log.action[rows], log.amount[rows])
        return lambda times: model.sign * model.ended(learn(times))

    def _unit_notes(self, comparison: Comparison) -> tuple[str, ...]:
        units = comparison.units
        # a few units vary by more than that by chance
        if units is None or units.ratio <= WIDE or units.n_units < FEW_UNITS:
            return ()
        return (
            f"With the {units.n_units} units resampled, the gain varies {units.ratio:.2g} times as "
            "much as the belief says: steps of a unit depend on each other, or units differ, and "
            "the belief is too sure.",
        )

    # --- what would change it ---------------------------------------------------------------------

    def _thin(self, policy: IntArray, visits: FloatArray) -> tuple[ThinPair, ...]:
        model = self.model
        counts = model.evidence(self.name)[np.arange(policy.size), policy]
        free = ~np.isin(policy, list(model.known))
        free[model.ends] = False
        where = np.flatnonzero((counts < THIN) & (visits > THIN_VISITS) & free)
        where = where[np.argsort(-visits[where], kind="stable")[:MOST_THIN]]
        return tuple(
            ThinPair(int(s), int(policy[s]), int(counts[s]), float(visits[s])) for s in where
        )

    def _more_data(self, policy: IntArray) -> tuple[MoreData, ...]:
        """What more observations of the most promising pairs would be worth."""
        model = self.model
        if model.pattern.n_transitions > INFORMATION_TRANSITIONS:
            return ()
        stream = model.stream("information", self.number)
        found = []
        for s, a in (
            model.informative(policy) if isinstance(model, StockModel) else self._promising(stream)
        ):
            value = value_of_information(
                self.matched,
                self.rewards,
                model.discount,
                pairs=[(s, a)],
                transitions=MORE,
                candidates=[policy],
                start=self.begin,
                draws=INFORMATION_DRAWS,
                rng=stream,
            )
            assert value.sample is not None
            assert value.changed is not None
            found.append(MoreData(s, a, MORE, _of_mean(value.sample), value.changed))
        return tuple(sorted(found, key=lambda one: -one.gain.mean))

    def _promising(self, rng: np.random.Generator) -> list[tuple[int, int]]:
        """Pairs whose next observations would change the plan most, to first order.

        For every pair, futures of its row are drawn: predictive means after more transitions. What
        is gained by acting on them for one step, weighted by the visits, ranks the pairs.
        """
        model, point = self.model, self.matched
        plan = self.problem.solve(point, Mean())
        pattern, gamma = point.pattern, model.discount
        phi = point.concentration_entries
        rewards = self.problem.rewards
        target = rewards + gamma * plan.values[pattern.next_states]
        sampler = Sampler(point, self.paid, gamma, [np.array(plan.policy)], rng=0)
        visits = sampler.visits(self.begin)[0] / (1.0 - gamma)
        q = np.array(plan.q_values)
        q[~pattern.admissible] = -np.inf
        scores = []
        k = pattern.n_actions
        for pair in pattern.pairs[(pattern.widths > 1)[pattern.pairs]].tolist():
            s, a = divmod(pair, k)
            if visits[s] <= THIN_VISITS:
                continue
            row = slice(pattern.indptr[pair], pattern.indptr[pair + 1])
            weight = phi[row]
            mean, size = weight / weight.sum(), float(weight.sum())
            spread = math.sqrt(max(float(mean @ target[row] ** 2 - (mean @ target[row]) ** 2), 0.0))
            # variance of the predictive mean after more transitions
            step = spread * math.sqrt(MORE / ((size + 1.0) * (size + MORE)))
            others = np.delete(q[s], a)
            if others.size == 0 or not np.isfinite(others.max()):
                continue
            distance = abs(float(q[s, a] - others.max())) / max(step, 1e-300)
            gain = step * (_density(distance) - distance * _tail(distance))
            scores.append((visits[s] * gain, s, a))
        best = sorted(scores, reverse=True)[:MOST_PAIRS]
        return [(s, a) for gain, s, a in best if gain > 0.0]

    def _sensitivities(self, policy: IntArray, level: float) -> tuple[Sensitivity, ...]:
        """The plan under other assumptions, at the mean kernel."""
        model = self.model
        gamma = model.discount
        assumed: list[tuple[str, Any, Any, float]] = []
        for other in (1.0 - 2.0 * (1.0 - gamma), 1.0 - 0.5 * (1.0 - gamma)):
            if 0.0 < other < 1.0:
                words = f"discount {other:.6g} instead of {gamma:.6g}"
                assumed.append((words, self.point, self.paid, other))
        alternatives = [(one.words, one.amounts) for one in model.costs.alternatives()]
        if self.amounts is not None:
            alternatives = self._ends_of_amounts(self.amounts)
        elif not alternatives and len(model.actions) <= MOST_ACTIONS:
            for a, action in enumerate(model.actions):
                for factor in (1.0 - RELATIVE, 1.0 + RELATIVE):
                    if not model.amounts[:, a].any():
                        continue
                    amounts = np.array(model.amounts)
                    amounts[:, a] *= factor
                    more = "more" if factor > 1.0 else "less"
                    words = f"{model.word} of {action} {100 * RELATIVE:.0f} % {more}"
                    alternatives.append((words, amounts))
        for words, amounts in alternatives:
            assumed.append((words, self.point, model.rewards_of(amounts), gamma))
        if isinstance(model, StockModel):
            for words, other_belief in model.other_beliefs(self.name):
                assumed.append((words, other_belief, self.paid, gamma))
        if model.dynamics.prior == "learned":
            pattern = model.pattern
            even = DirichletBelief.uniform(
                pattern.n_states,
                pattern.n_actions,
                possible=model.possible,
                admissible=model.admissible,
            )
            log, rows = model.log, model.rows(None if model.pooled else self.name)
            even.observe(log.state[rows], log.action[rows], log.next_state[rows])
            words = "a uniform prior instead of the learned one"
            assumed.append((words, even, self.paid, gamma))
        planned = self._plans(
            [(Problem.of(held, paid, other), held, level) for _, held, paid, other in assumed]
        )
        return tuple(
            self._changed(*one, policy, other) for one, other in zip(assumed, planned, strict=True)
        )

    def _ends_of_amounts(self, learned: LearnedAmounts) -> list[tuple[str, FloatArray]]:
        """Learned amounts at the ends of what the log leaves open, action by action."""
        model, found = self.model, []
        if len(model.actions) > MOST_ACTIONS:
            return []
        low, high = learned.interval(0.95, rng=model.stream("amounts", self.number))
        for a, action in enumerate(model.actions):
            for which, ends in (("low", low), ("high", high)):
                amounts = np.array(learned.mean)
                amounts[:, a] = ends[:, a]
                words = f"{model.word} of {action} at the {which} ends of its 95 % intervals"
                found.append((words, amounts))
        return found

    def _changed(
        self,
        words: str,
        held: Any,
        paid: Any,
        gamma: float,
        policy: IntArray,
        planned: IntArray,
    ) -> Sensitivity:
        """How another belief, other rewards or another discount change the plan."""
        model = self.model
        sampler = Sampler(held, paid, gamma, [policy, planned], rng=0)
        visits = model.before_end(sampler.visits(self.begin))
        values = sampler.evaluate(held.mean_entries()[None]).values[0] @ self.begin
        differ = (planned != policy) & (visits.max(axis=0) > THIN_VISITS)
        differ[model.ends] = False
        changed = int(differ.sum())
        mine, best = (self.sign * float(value) for value in values)
        if changed == 0:
            text = f"With {words}, the plan is the same wherever it matters."
        else:
            text = (
                f"With {words}, another action would be planned in {changed} "
                f"state{'s' * (changed > 1)}: {model.word} {figure(best)} instead of "
                f"{figure(mine)}."
            )
        return Sensitivity(words, changed, mine, best, text)


# --- parts ----------------------------------------------------------------------------------------


def _number_of(found: list[tuple[str, IntArray]], policy: IntArray) -> int | None:
    return next((k for k, (_, one) in enumerate(found) if np.array_equal(one, policy)), None)


def _of_mean(estimate: Estimate | None) -> Amount:
    """A mean with the interval of its Monte Carlo error."""
    if estimate is None:
        return Amount(math.nan, math.nan, math.nan)
    low, high = estimate.interval
    return Amount(estimate.mean, low, high, estimate.error)


def _density(x: float) -> float:
    return math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)


def _tail(x: float) -> float:
    return 0.5 * math.erfc(x / math.sqrt(2.0))


def _probability(share: float) -> str:
    if share in (0.0, 1.0):
        return "below 0.01 (no draw)" if share == 0.0 else "above 0.99 (all draws)"
    if not 0.001 <= share <= 0.999:
        return "below 0.001" if share < 0.5 else "above 0.999"
    return f"{share:.3g}"


def _share(share: float) -> str:
    return percent(share if share > ROUNDING else 0.0)


def _out_of_range(model: Model) -> str:
    """What to change where the arithmetic of floating-point numbers does not suffice."""
    sizes = np.abs(model.amounts)
    sizes = sizes[sizes > 0.0]
    return (
        f"no plan is accurate enough: {model.word}s must not be too far apart, and the discount "
        f"not too close to 1. Sizes of the {model.word}s: {min(sizes, default=0.0):.3g} to "
        f"{max(sizes, default=0.0):.3g}; discount {model.discount:.12g}"
    )


def _uncapitalised(text: str) -> str:
    return text[:1].lower() + text[1:]


def _amount(amount: Amount) -> dict[str, Any]:
    return {"mean": _plain(amount.mean), "ci95": _ends(amount)}


def _ends(amount: Amount) -> list[float | None]:
    return [_plain(amount.low), _plain(amount.high)]


def _plain(value: Any) -> Any:
    """A number that JSON knows."""
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def assumptions(model: Model) -> tuple[str, ...]:
    """What the decision takes for granted, in sentences."""
    if isinstance(model, StockModel):
        return model.assumptions()
    dynamics, found = model.dynamics, []
    if model.learned is not None:
        learned = model.learned
        how = "by held-out prediction" if learned.evidence is not None else "as the model file says"
        found.append(
            "The prior is learned from the log; its rows share their "
            f"{learned.shape} (chosen {how})."
            if learned.shape != "uniform"
            else "The prior is learned from the log; its rows share only its strength."
        )
        if model.groups != (None,):
            pooled = {
                "partial": "The groups are partially pooled: their rows vary about common ones.",
                "separate": "Every group is learned on its own.",
                "pooled": "All groups are taken to be alike.",
            }
            found.append(pooled[learned.pooling])
    else:
        strength = (
            "one observation per possible successor"
            if dynamics.strength is None
            else f"{dynamics.strength:g} observations per row"
        )
        found.append(f"The prior is uniform over the possible successors and worth {strength}.")
        if model.groups != (None,):
            found.append(
                "All groups are taken to be alike."
                if model.pooled
                else "Every group is learned on its own."
            )
    if model.observed_only:
        found.append(
            "Successors that were never seen to follow a state are taken to be impossible."
        )
    elif dynamics.reach is not None:
        found.append(f"A state changes by at most {dynamics.reach} in one step.")
    for action, state in model.known.items():
        found.append(f"{model.actions[action]} always leads to {model.states.labels[state]}.")
    if model.ends.size:
        labels = ", ".join(model.states.labels[s] for s in model.ends[:6])
        found.append(f"Everything ends in these states: {labels}.")
    found += model.costs.words
    learned_amounts = model.learned_amounts()
    if learned_amounts is not None:
        found += learned_amounts.words(model.word, model.actions, model.admissible)
    found.append(
        "The next state depends on the present state and the action alone, and tomorrow's "
        "probabilities are yesterday's."
    )
    return tuple(found)


def fingerprint(model: Model, command: str) -> Fingerprint:
    """What made the decision."""
    import numba
    import scipy

    versions = {
        "brmdp": installed_version(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "numba": numba.__version__,
    }
    return Fingerprint(
        data=model.log.digest,
        model=model.digest or digest([repr(model), *assumptions(model)]),
        command=command,
        versions=versions,
        seed=model.seed,
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )
