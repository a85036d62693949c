"""Worlds behind simulated logs: three kinds of problems, right and wrong in known ways.

- *wear*: a machine wears by some steps of twelve; renewing it is known to make it new;
- *queue*: a queue of up to eleven goes up and down, faster with a second clerk;
- *clinic*: eight conditions without an order, and three treatments.

A truth is *drawn*: strength, law and rows come from the very prior that the model states; or it is
*fixed*: a world that somebody might have written down, and that no prior knows of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from brmdp._validation import FloatArray, IntArray
from brmdp.beliefs.gammas import dirichlet_rows
from brmdp.decisions.families import ShapeName, family_of
from brmdp.decisions.learned_prior import RANGE
from brmdp.decisions.partial import prior_entries
from brmdp.logs import Categories, Log, ReadingReport, StateSpace
from brmdp.pattern import full_pattern

__all__ = ["DISCOUNT", "KINDS", "Defect", "Kind", "World", "log_of", "world_of"]

DISCOUNT = 0.95

Defect = Literal["none", "groups", "drift", "memory"]


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of problem: its sizes, what it costs or pays, and what is known about it.

    Attributes
    ----------
    n_states, n_actions : int
    shape : str
        How the rows of a drawn truth resemble each other.
    word : "cost" or "reward"
    amounts : (S, A) array
    renewing : int or None
        The action that is known to lead to state 0.
    ordered : bool
    """

    n_states: int
    n_actions: int
    shape: ShapeName
    word: Literal["cost", "reward"]
    amounts: FloatArray
    renewing: int | None
    ordered: bool


_AGE, _QUEUE = np.arange(12.0), np.arange(12.0)

KINDS = {
    "wear": Kind(12, 2, "increments", "cost", np.stack([_AGE, 0 * _AGE + 12.0], 1), 1, True),
    "queue": Kind(12, 2, "increments", "cost", np.stack([_QUEUE, _QUEUE + 2.5], 1), None, True),
    "clinic": Kind(
        8,
        3,
        "destinations",
        "reward",
        np.linspace(0.0, 1.0, 8)[:, None] - np.array([0.0, 0.05, 0.1]),
        None,
        False,
    ),
}


@dataclass(frozen=True, eq=False)
class World:
    """The truth behind a log.

    Attributes
    ----------
    kernels : (groups, S, A, S) array
    later : (groups, S, A, S) array
        The kernels in the second half of the time.
    sticky : float
        Probability that a change is made once more instead of drawn anew, after a large one.
    """

    kernels: FloatArray
    later: FloatArray
    sticky: float = 0.0


def world_of(
    name: str, truth: Literal["drawn", "fixed"], defect: Defect, rng: np.random.Generator
) -> World:
    """The truth of a kind of problem, with or without a defect."""
    kind = KINDS[name]
    n_groups = 3 if defect == "groups" else 1
    if truth == "drawn":
        kernels = np.repeat(_drawn(kind, rng)[None], n_groups, axis=0)
    else:
        kernels = np.stack([_fixed(name, kind, speed) for speed in SPEEDS[:n_groups]])
    later = kernels
    if defect == "drift":
        later = np.stack([_fixed(name, kind, SPEEDS[1])])
    return World(kernels, later, 0.6 if defect == "memory" else 0.0)


SPEEDS = (1.0, 2.2, 0.45)
"""How fast things change: the usual way, and those of other groups or of later."""


def _drawn(kind: Kind, rng: np.random.Generator) -> FloatArray:
    """A kernel from the hierarchy of a learned prior."""
    family = family_of(kind.shape, full_pattern(kind.n_states, kind.n_actions))
    low, high = np.log(RANGE)
    log_strength = rng.uniform(low, high, size=family.n_strengths)
    law = dirichlet_rows(family.base, 1, rng, family.law_sizes)[0]
    concentration = prior_entries(family, log_strength, law)
    rows = dirichlet_rows(concentration, 1, rng, family.pattern.row_widths)[0]
    return _renewed(kind, rows.reshape(kind.n_states, kind.n_actions, kind.n_states))


def _renewed(kind: Kind, kernel: FloatArray) -> FloatArray:
    if kind.renewing is not None:
        kernel[:, kind.renewing] = np.eye(kind.n_states)[0]
    return kernel


def _fixed(name: str, kind: Kind, speed: float) -> FloatArray:
    """A kernel that somebody might have written down."""
    n, k = kind.n_states, kind.n_actions
    kernel = np.zeros((n, k, n))
    if kind.ordered:
        for s in range(n):
            for a in range(k):
                steps, chances = _steps(name, a, s / (n - 1), speed)
                np.add.at(kernel[s, a], np.clip(s + steps, 0, n - 1), chances)
        return _renewed(kind, kernel)
    better = np.arange(n)
    for s in range(n):
        for a in range(k):
            pull = 0.25 * speed * (a + 1)
            weight = np.exp(-0.5 * (better - s - pull) ** 2) + 0.02
            kernel[s, a] = weight / weight.sum()
    return kernel


def _steps(name: str, action: int, age: float, speed: float) -> tuple[IntArray, FloatArray]:
    """By how much a state changes, with which chances."""
    if name == "wear":
        move = np.clip(0.3 * speed * (1.0 + 0.4 * age), 0.0, 0.95)
        return np.array([0, 1, 2]), np.array([1.0 - move, 0.7 * move, 0.3 * move])
    up = np.clip(0.42 * speed, 0.0, 0.6)
    down = np.clip(0.30 + 0.18 * action, 0.0, 0.99 - up)
    return np.array([-1, 0, 1]), np.array([down, 1.0 - up - down, up])


def log_of(
    name: str, world: World, units: int, steps: int, rng: np.random.Generator
) -> tuple[Log, FloatArray]:
    """A log of ``units`` over ``steps`` lines each, and the behaviour (S, A) that made it."""
    kind = KINDS[name]
    n, k = kind.n_states, kind.n_actions
    behaviour = rng.dirichlet(np.full(k, 0.8), size=n)
    if kind.renewing is not None:
        # people renew more often the older the machine
        chance = rng.uniform(0.1, 0.5) * np.linspace(0.0, 1.0, n) ** 2
        behaviour = np.stack((1.0 - chance, chance), axis=1)
    n_groups = world.kernels.shape[0]
    group = np.arange(units) % n_groups
    state = np.zeros(units, dtype=np.int64) if kind.ordered else rng.integers(n, size=units)
    states, actions = (np.empty((units, steps), dtype=np.int64) for _ in range(2))
    change = np.zeros(units, dtype=np.int64)
    for t in range(steps):
        action = _choose(behaviour[state], rng)
        states[:, t], actions[:, t] = state, action
        kernels = world.kernels if 2 * t < steps else world.later
        following = _choose(kernels[group, state, action], rng)
        if world.sticky:
            again = (rng.random(units) < world.sticky) & (np.abs(change) >= 1)
            free = action != kind.renewing
            following = np.where(again & free, np.clip(state + change, 0, n - 1), following)
        change = np.where(action == kind.renewing, 0, following - state)
        state = following
    return _as_log(kind, states, actions, group if n_groups > 1 else None), behaviour


def _choose(chances: FloatArray, rng: np.random.Generator) -> IntArray:
    """One column per row, by its chances."""
    ladder = np.cumsum(chances, axis=1)
    found: IntArray = (rng.random((ladder.shape[0], 1)) * ladder[:, -1:] >= ladder).sum(axis=1)
    chosen: IntArray = np.minimum(found, chances.shape[1] - 1).astype(np.int64)
    return chosen


def _as_log(kind: Kind, states: IntArray, actions: IntArray, group: Any) -> Log:
    units, steps = states.shape
    rows = units * (steps - 1)
    unit = np.repeat(np.arange(units), steps - 1)
    previous = np.arange(rows) - 1
    previous[:: steps - 1] = -1
    width = len(str(kind.n_states - 1))
    labels = [f"{s}" if kind.ordered else f"condition {s:0{width}}" for s in range(kind.n_states)]
    return Log(
        source="simulated",
        digest="0" * 64,
        states=StateSpace((Categories("state", tuple(labels)),)),
        actions=tuple("abc"[: kind.n_actions]),
        unit_names=tuple(f"unit {u}" for u in range(units)),
        group_names=None if group is None else tuple(f"group {g}" for g in range(3)),
        state=states[:, :-1].ravel(),
        action=actions[:, :-1].ravel(),
        next_state=states[:, 1:].ravel(),
        unit=unit,
        group=None if group is None else group[unit],
        time=np.tile(np.arange(steps - 1.0), units),
        amount=None,
        previous=previous,
        line_state=states.ravel(),
        line_action=actions.ravel(),
        line_unit=np.repeat(np.arange(units), steps),
        line_group=None if group is None else np.repeat(group, steps),
        report=ReadingReport(states.size, states.size, units, rows),
    )
