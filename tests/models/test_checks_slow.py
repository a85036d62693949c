"""How often checks raise an alarm where the model is right, and where it is wrong.

``python tests/models/test_checks_slow.py 200`` prints the rates of that many logs per case.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from brmdp.models import Dynamics, Model
from brmdp.models.checks import check_model
from brmdp.planning.guarantees import clopper_pearson
from models.simulated import clinic, fleet, fork, machines

Maker = Callable[[np.random.Generator], Model]

SLOW, MIDDLE, FAST = [0.6, 0.3, 0.1, 0.0], [0.3, 0.4, 0.2, 0.1], [0.05, 0.15, 0.3, 0.5]
POOLED = Dynamics(pooling="pooled", draws=100)
SIZES = {"8 units × 12 steps": (8, 12), "30 × 12": (30, 12), "30 × 40": (30, 40)}


def right() -> dict[str, Maker]:
    """Truths from the hierarchy that the model assumes."""
    return {
        "machines": machines,
        "machines, short log": functools.partial(machines, units=8, steps=12),
        "machines, 3 long units": functools.partial(machines, units=3, steps=300),
        "machines, 3 groups": functools.partial(machines, groups=3),
        "machines, 3 like groups, pooled": functools.partial(
            machines, groups=3, pooling="pooled", alike=True
        ),
        "clinic": clinic,
    }


def wrong(units: int, steps: int) -> dict[str, tuple[str, Maker]]:
    """Truths that break an assumption, and the check that should see it."""
    made = functools.partial(fleet, n=12, units=units, steps=steps)
    plain = Dynamics(draws=100)

    def groups(rng: np.random.Generator) -> Model:
        return made([SLOW, MIDDLE, FAST], rng=rng, dynamics=POOLED)

    def slight(rng: np.random.Generator) -> Model:
        return made([[0.4, 0.35, 0.15, 0.1], MIDDLE, [0.2, 0.4, 0.25, 0.15]], rng=rng,
                    dynamics=POOLED)  # fmt: skip

    def drift(rng: np.random.Generator) -> Model:
        return made([SLOW], drift=FAST, rng=rng, dynamics=plain)

    def slight_drift(rng: np.random.Generator) -> Model:
        return made([MIDDLE], drift=[0.2, 0.35, 0.25, 0.2], rng=rng, dynamics=plain)

    def memory(rng: np.random.Generator) -> Model:
        return made([MIDDLE], memory=0.6, rng=rng, dynamics=plain)

    def forks(rng: np.random.Generator) -> Model:
        return fork(rng, units=units, steps=steps)

    def hidden(rng: np.random.Generator) -> Model:
        return _without_groups(made([SLOW, FAST], rng=rng, dynamics=Dynamics(prior="uniform")))

    def uniform(rng: np.random.Generator) -> Model:
        return made([MIDDLE], n=40, rng=rng, dynamics=Dynamics(prior="uniform"))

    return {
        "groups pooled": ("groups", groups),
        "groups that differ slightly, pooled": ("groups", slight),
        "drift": ("drift", drift),
        "slight drift": ("drift", slight_drift),
        "order 2": ("memory", forks),
        "order 2 that costs little": ("memory", memory),
        "hidden types": ("units", hidden),
        "uniform prior on 40 ordered bins": ("prior", uniform),
    }


def _without_groups(model: Model) -> Model:
    log = dataclasses.replace(model.log, group=None, line_group=None, group_names=None)
    return Model(
        log,
        costs=model.costs,
        discount=model.discount,
        reset={"b": "0"},
        dynamics=Dynamics(draws=100),
    )


@dataclass
class Tally:
    """Verdicts over many logs."""

    logs: int = 0
    stopped: int = 0
    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)
    seconds: float = 0.0

    def rate(self, name: str, *verdicts: str) -> float:
        return sum(self.verdicts[name, verdict] for verdict in verdicts) / self.logs


def tally(make: Maker, logs: int, seed: int) -> Tally:
    """The verdicts of so many simulated logs."""
    found = Tally()
    for number in range(logs):
        model = make(np.random.default_rng([seed, number]))
        begin = time.process_time()
        checks = check_model(model)
        found.seconds += time.process_time() - begin
        found.logs += 1
        found.stopped += any(check.verdict == "stop" for check in checks)
        found.verdicts.update((check.name, check.verdict) for check in checks)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("case", right())
def test_right_models_are_rarely_stopped(case: str) -> None:
    found = tally(right()[case], 40, seed=7)
    low, _ = clopper_pearson(found.stopped, found.logs)
    assert low <= 0.05, found.verdicts


@pytest.mark.slow
@pytest.mark.parametrize("case", wrong(30, 40))
def test_wrong_models_are_seen(case: str) -> None:
    """With 1,200 lines; what differs slightly need not be stopped."""
    name, make = wrong(30, 40)[case]
    found = tally(make, 12, seed=8)
    if "slight" in case:
        assert found.rate(name, "stop", "look") >= 0.3
    elif case == "order 2 that costs little":
        assert found.rate(name, "stop", "look") >= 0.8
    else:
        assert found.rate(name, "stop") >= 0.7


def report(logs: int) -> None:
    """Print the rates of all cases."""
    print("Right models: any stop, 95 % interval, looks by check, seconds of checks per log")
    total = stopped = 0
    for case, make in right().items():
        found = tally(make, logs, seed=1)
        low, high = clopper_pearson(found.stopped, found.logs)
        total, stopped = total + found.logs, stopped + found.stopped
        raised = {f"{n}: {v}": k for (n, v), k in sorted(found.verdicts.items()) if v != "fine"}
        print(
            f"{case}: {found.stopped}/{found.logs} ({low:.3f} to {high:.3f}); {raised}; "
            f"{found.seconds / logs:.2f} s",
            flush=True,
        )
    low, high = clopper_pearson(stopped, total)
    print(f"all: {stopped}/{total} = {stopped / total:.4f} ({low:.4f} to {high:.4f})")
    print("Wrong models: share stopped / at least looked at, by the check named")
    for size, (units, steps) in SIZES.items():
        for case, (name, make) in wrong(units, steps).items():
            found = tally(make, max(20, logs // 4), seed=2)
            print(
                f"{size}, {case} ({name}): stop {found.rate(name, 'stop'):.2f}, "
                f"stop or look {found.rate(name, 'stop', 'look'):.2f}; any check stops "
                f"{found.stopped / found.logs:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    report(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
