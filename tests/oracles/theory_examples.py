"""The paper's two examples by hand: successor tables, fractions, and all policies one by one.

Each kernel is deterministic, so a stationary policy walks along a path that ends in a loop, and its
value is a finite sum plus a geometric series: exact in fractions. Posterior downside exposure is
computed by enumerating every policy in every kernel.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np

Table = dict[str, dict[str, tuple[Fraction, str]]]
"""For every state: action -> (reward, successor)."""


def robustness_tables(c: Fraction, loss: Fraction) -> dict[str, Table]:
    """Example with the risky action, under "G" and "B"."""
    return {
        kernel: {
            "s0": {"safe": (c, "s0"), "risky": (Fraction(0), reached)},
            "g": {"safe": (Fraction(1), "g")},
            "b": {"safe": (-loss, "b")},
        }
        for kernel, reached in (("G", "g"), ("B", "b"))
    }


def probing_tables(c: Fraction) -> dict[str, Table]:
    """Example with the informative action, under "G" and "B"."""
    zero = Fraction(0)
    return {
        kernel: {
            "s0": {"safe": (c, "s0"), "explore": (zero, shown)},
            "y_G": {"safe": (c, "y_G"), "exploit": (zero, reached)},
            "y_B": {"safe": (c, "y_B"), "exploit": (zero, reached)},
            "g": {"safe": (Fraction(1), "g")},
            "b": {"safe": (zero, "b")},
        }
        for kernel, shown, reached in (("G", "y_G", "g"), ("B", "y_B", "b"))
    }


def path_value(table: Table, policy: dict[str, str], gamma: Fraction, state: str) -> Fraction:
    """Discounted rewards along a policy's path; the loop at its end is a geometric series."""
    seen: dict[str, int] = {}
    rewards: list[Fraction] = []
    while state not in seen:
        seen[state] = len(rewards)
        reward, state = table[state][policy[state]]
        rewards.append(reward)
    begin = seen[state]
    before = sum((gamma**i * reward for i, reward in enumerate(rewards[:begin])), Fraction(0))
    loop = sum((gamma**i * reward for i, reward in enumerate(rewards[begin:])), Fraction(0))
    return before + gamma**begin * loop / (1 - gamma ** (len(rewards) - begin))


def all_policies(table: Table) -> list[dict[str, str]]:
    """Every stationary deterministic policy."""
    return [dict(zip(table, choice, strict=True)) for choice in product(*table.values())]


def best_value(table: Table, gamma: Fraction, state: str) -> Fraction:
    """V*(state), by trying every policy."""
    return max(path_value(table, policy, gamma, state) for policy in all_policies(table))


def regret(table: Table, policy: dict[str, str], gamma: Fraction, state: str = "s0") -> Fraction:
    """Regret V* − V^π at ``state``."""
    return best_value(table, gamma, state) - path_value(table, policy, gamma, state)


def dense(
    tables: dict[str, Table], actions: tuple[str, ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Kernels (2, S, A, S), rewards (S, A, S) and admissible actions (S, A), in table order."""
    states = list(tables["G"])
    shape = (len(states), len(actions))
    kernels, rewards, admissible = (
        np.zeros((2, *shape, len(states))),
        np.zeros(shape),
        np.zeros(shape, dtype=bool),
    )
    for k, table in enumerate(tables.values()):
        for s, state in enumerate(states):
            for action, (reward, successor) in table[state].items():
                a = actions.index(action)
                kernels[k, s, a, states.index(successor)] = 1.0
                rewards[s, a] = float(reward)
                admissible[s, a] = True
    return kernels, np.repeat(rewards[:, :, None], len(states), axis=2), admissible


def enumerated_regret(
    kernel: np.ndarray,
    rewards: np.ndarray,
    discount: float,
    policy: np.ndarray,
    state: int,
    admissible: np.ndarray | None = None,
) -> float:
    """V* − V^π at ``state`` in one kernel, by a linear system for every policy.

    Kernel and rewards are (S, A, S).
    """
    n_states, n_actions, _ = kernel.shape
    allowed = [
        [a for a in range(n_actions) if admissible is None or admissible[s, a]]
        for s in range(n_states)
    ]

    def value(actions: tuple[int, ...] | np.ndarray) -> float:
        rows = np.array([kernel[s, actions[s]] for s in range(n_states)])
        paid = np.array([kernel[s, actions[s]] @ rewards[s, actions[s]] for s in range(n_states)])
        return float(np.linalg.solve(np.eye(n_states) - discount * rows, paid)[state])

    return max(value(actions) for actions in product(*allowed)) - value(policy)
