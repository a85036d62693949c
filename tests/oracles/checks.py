"""Slow and obvious second versions of what the checks compute."""

from __future__ import annotations

from typing import Any

import numpy as np


def log_predictions(
    transitions: list[tuple[int, int]], scored: list[tuple[int, int]], prior: np.ndarray
) -> list[float]:
    """Ln p̂ of (row, next state) given other transitions and Dirichlet priors (rows, states)."""
    seen = np.array(prior)
    for row, following in transitions:
        seen[row, following] += 1.0
    return [float(np.log(seen[r, t] / seen[r].sum())) for r, t in scored]


def value_with_memory(
    kernel_of: Any,
    reward: Any,
    policy: Any,
    class_after: Any,
    *,
    n_states: int,
    n_actions: int,
    n_classes: int,
    discount: float,
) -> tuple[dict[tuple[int, int], float], dict[tuple[int, int], float]]:
    """Values of a policy without memory, and the best ones, by value iteration over dictionaries.

    ``kernel_of(c, s, a)`` gives the row, ``class_after(s, a, t)`` the class that follows.
    """
    nodes = [(s, c) for s in range(n_states) for c in range(n_classes)]
    mine = dict.fromkeys(nodes, 0.0)
    best = dict.fromkeys(nodes, 0.0)

    def backed_up(values: dict[tuple[int, int], float], s: int, c: int, a: int) -> float:
        row = kernel_of(c, s, a)
        return sum(
            row[t] * (reward(s, a) + discount * values[t, class_after(s, a, t)])
            for t in range(n_states)
            if row[t] > 0.0
        )

    for _ in range(int(np.log(1e-10) / np.log(discount))):
        mine = {(s, c): backed_up(mine, s, c, policy[s]) for s, c in nodes}
        best = {(s, c): max(backed_up(best, s, c, a) for a in range(n_actions)) for s, c in nodes}
    return mine, best


def classes_of_change(log: Any, known: dict[int, int]) -> list[int]:
    """Thirds of the change before each transition, row by row; −1 if nothing precedes it."""
    changes = [
        int(log.next_state[p] - log.state[p])
        for p in log.previous
        if p >= 0 and int(log.action[p]) not in known
    ]
    ordered = sorted(changes)
    n = len(ordered)
    ends = sorted({ordered[int((n - 1) / 3)], ordered[int((n - 1) * 2 / 3)]})
    ends = [end for end in ends if end < ordered[-1]]

    def place(change: float) -> int:
        return sum(change > end for end in ends)

    middle = place(float(np.median(changes)))
    return [
        -1
        if p < 0
        else middle
        if int(log.action[p]) in known
        else place(int(log.next_state[p] - log.state[p]))
        for p in log.previous
    ]


def ranks_of_states_before(log: Any) -> dict[tuple[int, int], int]:
    """How common each state is among those before another; at most 2."""
    times: dict[int, dict[int, int]] = {}
    for row, p in enumerate(log.previous):
        if p >= 0:
            seen = times.setdefault(int(log.state[row]), {})
            before = int(log.state[p])
            seen[before] = seen.get(before, 0) + 1
    return {
        (now, before): min(k, 2)
        for now, seen in times.items()
        for k, before in enumerate(sorted(seen, key=lambda s, seen=seen: (-seen[s], s)))  # type: ignore[misc]
    }


def surprises(model: Any, policy: Any) -> list[float]:
    """R + γV(s') less its mean for every transition, in the file's sign; one row at a time."""
    belief = model.plan_belief()
    kernel = belief.mean()
    n = model.states.n_states
    rows = np.array([kernel[s, policy[s]] for s in range(n)])
    paid = np.array([model.rewards[s, policy[s]] for s in range(n)])
    values = np.linalg.solve(np.eye(n) - model.discount * rows, paid)
    log = model.log
    return [
        model.sign * model.discount * float(values[t] - kernel[s, a] @ values)
        for s, a, t in zip(log.state, log.action, log.next_state, strict=True)
        if a not in model.known
    ]


def low_value(
    kernel: np.ndarray,
    paid: np.ndarray,
    discount: float,
    start: np.ndarray,
    thin: list[int],
    drawn: np.ndarray,
    quantile: float,
) -> float:
    """Quantile of the value if the rows of some states are replaced by draws (n, thin, S)."""
    values = []
    for rows in drawn:
        changed = np.array(kernel)
        for s, row in zip(thin, rows, strict=True):
            changed[s] = row
        values.append(start @ np.linalg.solve(np.eye(paid.size) - discount * changed, paid))
    return float(np.quantile(values, quantile))
