"""What the plan loses if classes of transitions differ in the way that the log suggests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from brmdp.models.checks.bench import Bench, Plan
from brmdp.models.checks.splits import How, Split
from brmdp.models.wording import figure

__all__ = ["Consequence", "Outcome", "consequence_of"]

CONCERNED = 0.1
"""A consequence is material if it concerns this share of the units."""

NOTHING = 1e-6
"""Losses below this share of the value are none."""

IMMATERIAL = 1e-3
"""Losses below this share of the value are no reason to look, if every guarantee is kept and the
value differs by less than ten times as much: with much data, any model can be told from the truth.
"""


class Outcome(NamedTuple):
    """A plan in a world that differs from the model's: its value there, and what it loses."""

    value: float
    loss: float


@dataclass(frozen=True)
class Consequence:
    """What the plan loses, averaged over the units of all groups.

    Attributes
    ----------
    loss, share : float
        In the problem's units, and as a share of the value.
    value : float
        What the plan would be worth, as a reward.
    promised : float or None
        What the belief promises, as a reward.
    broken : float
        Share of units for which the guarantee would be false.
    material : bool
        Whether a tenth of the units or more is concerned.
    off : float
        By what share of the value it would differ from what was planned.
    """

    loss: float
    share: float
    value: float
    promised: float | None
    broken: float
    material: bool
    off: float

    @property
    def negligible(self) -> bool:
        """Whether it is no reason to look, however clear the difference is."""
        harmless = self.share < IMMATERIAL and self.off < 10.0 * IMMATERIAL
        return harmless and not self.broken and not self.material

    def words(self, bench: Bench, if_so: str) -> str:
        """The consequence in a sentence."""
        word = bench.model.word
        where = " on average over the groups" if len(bench.plans) > 1 else ""
        if self.share <= NOTHING:
            text = f"{if_so}, the plan would still be the best one{where}"
        else:
            verb, less = ("cost", "more") if word == "cost" else ("earn", "less")
            text = (
                f"{if_so}, the plan would {verb} {figure(self.loss, 3)} {less} than one that takes "
                f"it into account{where} ({100.0 * self.share:.2g} % of its {word})"
            )
        planned = bench.average(p.value for p in bench.plans)
        if bench.shown(self.value) != bench.shown(planned):
            text += (
                f"; its {word} would be {bench.shown(self.value)} instead of {bench.shown(planned)}"
            )
        if self.broken and self.promised is not None:
            side = "most" if word == "cost" else "least"
            text += f", and the guarantee of at {side} {bench.shown(self.promised)} would be false"
            if len(bench.plans) > 1:
                text += f" for {100.0 * self.broken:.0f} % of the units"
        return f"{text}."


def consequence_of(
    bench: Bench, split: Split, how: How, outcome: Callable[[Plan, int, How], Outcome]
) -> Consequence:
    """What the richer hypothesis changes, beyond what the simpler one says already.

    ``outcome`` gives a plan's value and loss, given the number of its stratum and a hypothesis.
    """
    own = split.observed.strata == len(bench.plans) > 1
    losses, values, broken, promises = [], [], [], []
    for k, plan in enumerate(bench.plans):
        stratum = k if own else 0
        base, richer = outcome(plan, stratum, "pooled"), outcome(plan, stratum, how)
        losses.append(max(0.0, richer.loss - base.loss))
        values.append(plan.value + richer.value - base.value)
        broken.append(float(bench.breaks(plan, values[-1])))
        promises.append(bench.guarantee(plan))
    average = bench.average(losses)
    scale = bench.average(p.scale for p in bench.plans)
    hit = [
        float(p.material(x) or bad) for p, x, bad in zip(bench.plans, losses, broken, strict=True)
    ]
    known = [promised for promised in promises if promised is not None]
    return Consequence(
        average,
        average / scale,
        bench.average(values),
        bench.average(known) if len(known) == len(promises) else None,
        bench.average(broken),
        bench.average(hit) >= CONCERNED,
        abs(bench.average(values) - bench.average(p.value for p in bench.plans)) / scale,
    )
