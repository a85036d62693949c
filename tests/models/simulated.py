"""Models of simulated logs with a known truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from brmdp.logs import Categories, Log, ReadingReport, StateSpace
from brmdp.models import Dynamics, Model


def log_of(
    unit: Any,
    state: Any,
    action: Any,
    *,
    n_states: int,
    n_actions: int,
    group: Any = None,
    time: Any = None,
    ordered: bool = True,
    report: ReadingReport | None = None,
    names: tuple[str, ...] | None = None,
) -> Log:
    """A log from the lines of its units, in order; every unit's last line begins no transition."""
    unit, state, action = (np.asarray(column, dtype=np.int64) for column in (unit, state, action))
    begins = np.flatnonzero(unit[1:] == unit[:-1])
    previous = np.full(begins.size, -1)
    follows = np.flatnonzero(np.diff(begins) == 1) + 1
    follows = follows[unit[begins[follows]] == unit[begins[follows - 1]]]
    previous[follows] = follows - 1
    groups = None if group is None else np.asarray(group, dtype=np.int64)
    labels = tuple(str(s) if ordered else f"s{s:03}" for s in range(n_states))
    if groups is not None and names is None:
        names = tuple(f"g{k}" for k in range(int(groups.max()) + 1))
    return Log(
        source="simulated",
        digest="0" * 64,
        states=StateSpace((Categories("state", labels),)),
        actions=tuple("abcdefghij"[:n_actions]),
        unit_names=tuple(f"u{u}" for u in range(int(unit.max()) + 1)),
        group_names=names,
        state=state[begins],
        action=action[begins],
        next_state=state[begins + 1],
        unit=unit[begins],
        group=None if groups is None else groups[begins],
        time=None if time is None else np.asarray(time, dtype=np.float64)[begins],
        amount=None,
        previous=previous,
        line_state=state,
        line_action=action,
        line_unit=unit,
        line_group=groups,
        report=report
        or ReadingReport(unit.size, unit.size, int(np.unique(unit).size), int(begins.size), (), ()),
    )


@dataclass(frozen=True, eq=False)
class Lines:
    """Lines of simulated units."""

    unit: np.ndarray
    state: np.ndarray
    action: np.ndarray
    time: np.ndarray


def simulate(
    kernel_at: Any,
    behaviour: np.ndarray,
    *,
    units: int,
    steps: int,
    rng: np.random.Generator,
    start: np.ndarray | None = None,
) -> Lines:
    """All units at once; ``kernel_at(step, unit, previous_change)`` gives rows (units, A, S).

    It is called with the present states and the states before (−1 at first).
    """
    n = behaviour.shape[0]
    state = rng.integers(n, size=units) if start is None else start.copy()
    before = np.full(units, -1)
    states, actions = np.empty((units, steps), np.int64), np.empty((units, steps), np.int64)
    ladder = np.cumsum(behaviour, axis=1)
    for t in range(steps):
        action = (rng.random(units)[:, None] > ladder[state]).sum(axis=1)
        states[:, t], actions[:, t] = state, action
        rows = kernel_at(t, state, action, before)
        before = state
        state = (rng.random(units)[:, None] > np.cumsum(rows, axis=1)).sum(axis=1)
        state = np.minimum(state, n - 1)
    unit = np.repeat(np.arange(units), steps)
    return Lines(unit, states.ravel(), actions.ravel(), np.tile(np.arange(steps), units))


def increments(n: int, law: np.ndarray) -> np.ndarray:
    """(S, S) rows of s' = min(s + d, S − 1), with d = 0, 1, … by the law."""
    rows = np.zeros((n, n))
    for d, p in enumerate(law):
        np.add.at(rows, (np.arange(n), np.minimum(np.arange(n) + d, n - 1)), p)
    return rows


def fleet(
    laws: Any,
    *,
    n: int = 15,
    units: int = 30,
    steps: int = 30,
    strength: float = 100.0,
    rng: np.random.Generator,
    drift: Any = None,
    memory: float = 0.0,
    renewals: float = 0.3,
    dynamics: Dynamics | None = None,
    discount: float = 0.95,
    **settings: Any,
) -> Model:
    """Machines that wear and are renewed, with one law of wear per group.

    Parameters
    ----------
    laws : sequence of laws
        One per group of equally many units.
    strength : float
        Rows are drawn from Dir(strength · law's row): the learned prior's own hierarchy.
    drift : law, optional
        The law of the second half of the time, for all groups.
    memory : float
        Weight with which a machine that has just worn by more than usual does so again.
    """
    laws = [np.asarray(law, dtype=float) for law in laws]

    def drawn(law: np.ndarray) -> np.ndarray:
        base = increments(n, law)
        rows = np.where(base > 0, rng.standard_gamma(np.maximum(strength * base, 1e-12)), 0.0)
        return rows / rows.sum(axis=1, keepdims=True)

    kernels = [drawn(law) for law in laws]
    later = kernels if drift is None else [drawn(np.asarray(drift, float))] * len(laws)
    group = np.arange(units) % len(laws)
    stack, stack_later = np.array(kernels), np.array(later)
    lazy = increments(n, np.array([1.0]))
    quick = increments(n, np.r_[np.zeros(len(laws[0]) - 1), 1.0])

    def kernel_at(t: int, state: Any, action: Any, before: Any) -> np.ndarray:
        rows = (stack if 2 * t < steps else stack_later)[group, state]
        if memory:
            change = state - before
            known = (before >= 0) & (change >= 0)
            fast = np.where((change >= 2)[:, None], quick[state], lazy[state])
            rows = np.where(known[:, None], (1 - memory) * rows + memory * fast, rows)
        renewed = np.zeros_like(rows)
        renewed[:, 0] = 1.0
        return np.where((action == 1)[:, None], renewed, rows)

    chance = renewals * np.linspace(0, 1, n) ** 2
    behaviour = np.stack((1 - chance, chance), axis=1)
    lines = simulate(
        kernel_at, behaviour, units=units, steps=steps, rng=rng, start=np.zeros(units, np.int64)
    )
    log = log_of(
        lines.unit,
        lines.state,
        lines.action,
        n_states=n,
        n_actions=2,
        group=None if len(laws) == 1 else group[lines.unit],
        time=lines.time,
    )
    costs = {"a": {"base": 0.0, "per": 1.0}, "b": 12.0}
    chosen = Dynamics(draws=200) if dynamics is None else dynamics
    return Model(log, costs=costs, discount=discount, reset={"b": "0"}, dynamics=chosen, **settings)


def machines(
    rng: np.random.Generator,
    *,
    n: int = 12,
    units: int = 30,
    steps: int = 25,
    groups: int = 1,
    pooling: str | None = None,
    alike: bool = False,
) -> Model:
    """Wear and renewal, with everything drawn from the hierarchy that a learned prior assumes.

    Parameters
    ----------
    groups : int
        With several, their rows vary about common ones, unless they are ``alike``.
    """
    law = rng.dirichlet(np.full(4, 0.8))
    base = increments(n, law)
    rows = _dirichlet(np.exp(rng.uniform(np.log(5.0), np.log(2000.0))) * base, rng)
    kernels = [rows] * groups
    if groups > 1 and not alike:
        strengths = np.exp(rng.uniform(np.log(5.0), np.log(2000.0), size=groups))
        kernels = [_dirichlet(strength * rows, rng) for strength in strengths]
    stack, group = np.array(kernels), np.arange(units) % groups

    def kernel_at(t: int, state: Any, action: Any, before: Any) -> np.ndarray:
        renewed = np.zeros((units, n))
        renewed[:, 0] = 1.0
        return np.where((action == 1)[:, None], renewed, stack[group, state])

    chance = rng.uniform(0.1, 0.5) * np.linspace(0, 1, n) ** rng.uniform(0.5, 2.0)
    behaviour = np.stack((1 - chance, chance), axis=1)
    start = rng.integers(n // 2, size=units)
    lines = simulate(kernel_at, behaviour, units=units, steps=steps, rng=rng, start=start)
    log = log_of(
        lines.unit,
        lines.state,
        lines.action,
        n_states=n,
        n_actions=2,
        group=group[lines.unit] if groups > 1 else None,
        time=lines.time,
    )
    return Model(
        log,
        costs={"a": {"base": 0.0, "per": 1.0}, "b": float(rng.uniform(4.0, 20.0))},
        discount=0.95,
        reset={"b": "0"},
        dynamics=Dynamics(draws=200, pooling=pooling),
        seed=int(rng.integers(2**31)),
    )


def clinic(
    rng: np.random.Generator, *, n: int = 8, k: int = 3, units: int = 60, steps: int = 12
) -> Model:
    """Unordered states, actions with laws of their own, rewards by state and action."""
    law = rng.dirichlet(np.full(n, 0.5), size=k)
    strength = np.exp(rng.uniform(np.log(5.0), np.log(500.0), size=k))
    rows = _dirichlet(np.broadcast_to(strength[:, None] * law, (n, k, n)).reshape(n * k, n), rng)
    rows = rows.reshape(n, k, n)

    def kernel_at(t: int, state: Any, action: Any, before: Any) -> np.ndarray:
        found: np.ndarray = rows[state, action]
        return found

    behaviour = rng.dirichlet(np.ones(k), size=n)
    lines = simulate(kernel_at, behaviour, units=units, steps=steps, rng=rng)
    log = log_of(lines.unit, lines.state, lines.action, n_states=n, n_actions=k, ordered=False)
    return Model(
        log,
        rewards=rng.uniform(0.0, 1.0, (n, 1)) + rng.uniform(-0.1, 0.1, (n, k)),
        discount=0.9,
        dynamics=Dynamics(draws=200),
        seed=int(rng.integers(2**31)),
    )


def fork(rng: np.random.Generator, *, units: int = 40, steps: int = 30, told: float = 0.9) -> Model:
    """Which action is right at a fork depends on where one came from.

    States 0 and 1 lead to the fork, 2; from there to 3, which pays, or 4; and from these to 0 or 1.
    """
    rows = np.zeros((5, 2, 5))
    rows[[0, 1], :, 2] = 1.0
    rows[[3, 4], :, 0] = rows[[3, 4], :, 1] = 0.5

    def kernel_at(t: int, state: Any, action: Any, before: Any) -> np.ndarray:
        found: np.ndarray = rows[state, action]
        here = state == 2
        right = np.where(np.where(before < 0, 0, before) == action, told, 1.0 - told)
        found[here, 3], found[here, 4] = right[here], 1.0 - right[here]
        return found

    lines = simulate(kernel_at, np.full((5, 2), 0.5), units=units, steps=steps, rng=rng,
                     start=rng.integers(2, size=units))  # fmt: skip
    log = log_of(lines.unit, lines.state, lines.action, n_states=5, n_actions=2, ordered=False)
    rewards = np.zeros((5, 2))
    rewards[3] = 1.0
    return Model(log, rewards=rewards, discount=0.9, dynamics=Dynamics(draws=100))


def _dirichlet(concentration: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One row of probabilities per row of concentrations; impossible where these are zero."""
    rows = np.where(concentration > 0, rng.standard_gamma(np.maximum(concentration, 1e-3)), 0.0)
    rows = np.maximum(rows, np.where(concentration > 0, 1e-12, 0.0))
    found: np.ndarray = rows / rows.sum(axis=1, keepdims=True)
    return found
