"""Second, obvious implementations of the online learner.

Plain loops over dense arrays, nothing imported from the package:

* the adaptive schedule (the paper's eq. alphak) and the restart rule of doubled visits;
* Algorithm AQ-BRMDP (and BRMDP-α, Continuing PSRL) replayed along a recorded trajectory;
* true and robust regret;
* the posterior quantile value by M drawn kernels (eq. app-posterior-lb-estimator).

The quantile of w·P, P ~ Dir(φ), comes from Gil-Pelaez's inversion on the imaginary axis by the
trapezoidal rule in log y, which shares nothing with a contour through the saddlepoint. It is
vectorised over rows, so plain value iteration from zero is affordable.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

# --- the quantile of a Dirichlet row, for many rows at once ---------------------------------------

FIRST = -11.0  # log y of the first node; below, Im M(iy) = y E[Σ c_j G_j] up to y³
BLOCK = 64
DEAD = -38.0  # log|M| at which the integral ends


def gil_pelaez(phi: np.ndarray, values: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pr(w·P ≤ z) and its derivative in z for rows of φ and w, (rows, S) each, and z, (rows,).

    With G_j ~ Gamma(φ_j), c_j = w_j − z and M(iy) = Π (1 − i c_j y)^−φ_j, the event is
    Σ c_j G_j ≤ 0, and

        Pr = 1/2 − (1/π) ∫ Im M(iy) dy/y,   derivative = (1/π) ∫ Re[M(iy) Σ φ_j/(1 − i c_j y)] dy.

    As functions of log y the integrands are analytic in a strip about the real axis, so the
    trapezoidal rule converges exponentially.
    """
    c = values - z[:, None]
    scale = np.sqrt((phi * c**2).sum(axis=1))
    c = c / scale[:, None]
    step = 0.1 if phi.max() < 40 else 0.05
    earlier = (
        step * math.exp(FIRST) / math.expm1(step)
    )  # all nodes before the first, a geometric series
    integral, density = (phi * c).sum(axis=1) * earlier, phi.sum(axis=1) * earlier
    weights = phi[:, None, :]
    begin = 0
    while True:
        y = np.exp(FIRST + step * np.arange(begin, begin + BLOCK))
        argument = c[:, :, None] * y
        size = 1.0 + argument * argument
        log_size = -0.5 * (weights @ np.log(size))[:, 0]
        angle = (weights @ np.arctan(argument))[:, 0]
        modulus = np.exp(log_size)
        real, imaginary = modulus * np.cos(angle), modulus * np.sin(angle)
        integral += step * imaginary.sum(axis=1)
        pull = (weights @ (1.0 / size))[:, 0]
        twist = (weights @ (argument / size))[:, 0]
        density += step * ((real * pull - imaginary * twist) @ y)
        begin += BLOCK
        if log_size[:, -1].max() < DEAD:
            return 0.5 - integral / math.pi, density / (math.pi * scale)
        assert begin < 200 * BLOCK, "the integrand does not die"


def dirichlet_quantiles(
    phi: np.ndarray, values: np.ndarray, alpha: np.ndarray, start: np.ndarray | None = None
) -> np.ndarray:
    """inf{z : Pr(w·P ≤ z) ≥ α} for each row.

    Newton's method, kept inside a shrinking bracket by bisection. A Newton step below 1e-8 of the
    spread is the last one: it leaves an error of the order of its square.
    """
    possible = phi > 0
    low = np.where(possible, values, np.inf).min(axis=1)
    high = np.where(possible, values, -np.inf).max(axis=1)
    result = low.copy()
    rows = np.flatnonzero(high > low)  # a row with a single value is that value
    phi, values, alpha = phi[rows], np.where(possible, values, 0.0)[rows], alpha[rows]
    low, high = low[rows], high[rows]
    spread = high - low
    z = (phi * values).sum(axis=1) / phi.sum(axis=1) if start is None else start[rows]
    z = np.where((low < z) & (z < high), z, 0.5 * (low + high))
    moving = np.arange(rows.size)
    for _ in range(200):
        if moving.size == 0:
            result[rows] = z
            return result
        below, density = gil_pelaez(phi[moving], values[moving], z[moving])
        excess = below - alpha[moving]
        high[moving] = np.where(excess >= 0, z[moving], high[moving])
        low[moving] = np.where(excess < 0, z[moving], low[moving])
        step = np.where(density > 0, -excess / np.where(density > 0, density, 1.0), np.inf)
        following = z[moving] + step
        newton = (low[moving] <= following) & (following <= high[moving])
        z[moving] = np.where(newton, following, 0.5 * (low[moving] + high[moving]))
        done = (newton & (np.abs(step) < 1e-8 * spread[moving])) | (high - low <= 1e-15 * spread)[
            moving
        ]
        moving = moving[~done]
    raise AssertionError("the quantile did not converge")


# --- fixed points ---------------------------------------------------------------------------------


def quantile_value_iteration(
    phi: np.ndarray,
    rewards: np.ndarray,
    discount: float,
    levels: np.ndarray | float,
    accuracy: float = 1e-9,
    start: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """(V, Q) of B quantile problems at once, by plain value iteration from ``start`` (or zero).

    V is (B, S) and Q is (B, S, A). φ is (B, S, A, S), rewards are (S, A, S) or (B, S, A, S), and
    levels are (B, S, A) or a number. The loop ends when the contraction guarantees ``accuracy`` in
    the maximum norm.
    """
    batch, n_states, n_actions, _ = phi.shape
    rewards = np.broadcast_to(rewards, phi.shape)
    levels = np.broadcast_to(levels, phi.shape[:3])
    values = np.zeros((batch, n_states)) if start is None else start
    q_values = None
    while True:
        targets = rewards + discount * values[:, None, None, :]
        q_values = dirichlet_quantiles(
            phi.reshape(-1, n_states),
            targets.reshape(-1, n_states),
            levels.reshape(-1),
            None if q_values is None else q_values.reshape(-1),
        ).reshape(batch, n_states, n_actions)
        following = q_values.max(axis=2)
        change = np.abs(following - values).max()
        values = following
        if discount * change <= accuracy * (1 - discount):
            return values, q_values


def quantile_policy_values(
    phi: np.ndarray,
    rewards: np.ndarray,
    discount: float,
    policies: np.ndarray,
    level: float,
    accuracy: float = 1e-9,
    start: np.ndarray | None = None,
) -> np.ndarray:
    """V^π, (B, S), of one policy in each of B quantile problems, by value iteration."""
    batch, n_states, _, _ = phi.shape
    b, s = np.arange(batch)[:, None], np.arange(n_states)
    followed = phi[b, s, policies][:, :, None], rewards[s, policies][:, :, None]
    return quantile_value_iteration(*followed, discount, level, accuracy, start)[0]


def policy_iteration(
    kernel: np.ndarray, rewards: np.ndarray, discount: float
) -> tuple[np.ndarray, np.ndarray]:
    """(V*, Q*) of a known kernel (S, A, S), by Howard's policy iteration."""
    n_states, n_actions, _ = kernel.shape
    policy = [0] * n_states
    while True:
        values = policy_values(kernel, rewards, discount, policy)
        q_values = np.empty((n_states, n_actions))
        for s in range(n_states):
            for a in range(n_actions):
                q_values[s, a] = kernel[s, a] @ (rewards[s, a] + discount * values)
        improved = list(policy)
        for s in range(n_states):
            best = int(np.argmax(q_values[s]))
            if q_values[s, best] > q_values[s, policy[s]] + 1e-13:
                improved[s] = best
        if improved == policy:
            return values, q_values
        policy = improved


def policy_values(
    kernel: np.ndarray, rewards: np.ndarray, discount: float, policy: Sequence[int]
) -> np.ndarray:
    """V^π = (I − γP_π)^-1 r_π with r_π(s) = Σ_s' P(s'|s,π(s)) r(s,π(s),s')."""
    n_states = kernel.shape[0]
    followed = np.array([kernel[s, policy[s]] for s in range(n_states)])
    paid = np.array([kernel[s, policy[s]] @ rewards[s, policy[s]] for s in range(n_states)])
    return np.linalg.solve(np.eye(n_states) - discount * followed, paid)


# --- schedule and restarts ------------------------------------------------------------------------


def adaptive_levels(
    visits: np.ndarray,
    episode: int,
    delta: float,
    floor: float,
    admissible: np.ndarray | None = None,
) -> np.ndarray:
    """α_k(s,a) = max{1 − δ r_k(s,a) g_k, α̲}, pair by pair.

    r_k divides a pair's visits by their average over admissible pairs.
    """
    n_states, n_actions = visits.shape
    adjusted, n_pairs = 0, 0
    for s in range(n_states):
        for a in range(n_actions):
            if admissible is None or admissible[s, a]:
                adjusted += max(int(visits[s, a]), 1)
                n_pairs += 1
    average = adjusted / n_pairs
    g = math.log(2 * episode) / math.sqrt(episode)
    levels = np.empty(visits.shape)
    for s in range(n_states):
        for a in range(n_actions):
            r = max(int(visits[s, a]), 1) / average
            levels[s, a] = max(1 - delta * r * g, floor)
    return levels


def some_visits_doubled(before: np.ndarray, now: np.ndarray) -> bool:
    """Whether some pair has at least as many new visits as old ones, and at least one."""
    n_states, n_actions = before.shape
    for s in range(n_states):
        for a in range(n_actions):
            if now[s, a] - before[s, a] >= max(before[s, a], 1):
                return True
    return False


# --- Algorithm AQ-BRMDP ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Walk:
    """An interaction of T steps as seen from outside.

    s_1, …, s_{T+1}; a_1, …, a_T; and the indicators X_1, …, X_T, where X_t = 0 begins a
    pseudo-episode at time t.
    """

    states: list[int]
    actions: list[int]
    continues: list[bool]


@dataclass(frozen=True, eq=False)
class Episode:
    """Pseudo-episode k: its first step (0-based), N_k(s,a), φ_k and α_k."""

    number: int
    first_step: int
    visits: np.ndarray
    phi: np.ndarray
    levels: np.ndarray


def replay(
    walk: Walk, prior: np.ndarray, schedule: Callable[[np.ndarray, int], np.ndarray]
) -> list[Episode]:
    """The pseudo-episodes of the algorithm along a walk.

    Everything is counted again from the history at every restart.
    """
    episodes: list[Episode] = []
    for t in range(len(walk.actions)):
        if walk.continues[t]:
            continue
        phi, visits = np.array(prior, dtype=float), np.zeros(prior.shape[:2], dtype=int)
        for earlier in range(t):
            s, a, following = walk.states[earlier], walk.actions[earlier], walk.states[earlier + 1]
            phi[s, a, following] += 1
            visits[s, a] += 1
        number = len(episodes) + 1
        episodes.append(Episode(number, t, visits, phi, schedule(visits, number)))
    return episodes


def episode_of_step(walk: Walk) -> list[int]:
    """Number of the pseudo-episode of each step, from 1."""
    numbers, number = [], 0
    for continues in walk.continues:
        number += not continues
        numbers.append(number)
    return numbers


# --- the posterior quantile value -----------------------------------------------------------------


def posterior_quantile_value(
    kernels: np.ndarray,
    rewards: np.ndarray,
    discount: float,
    policy: Sequence[int],
    state: int,
    alpha: float,
) -> float:
    """Y_(⌈αM⌉) of the policy's values at ``state`` in M kernels.

    The kernels are given by their rows P(·|s,π(s)), (M, S, S).
    """
    n_states = rewards.shape[0]
    found = []
    for kernel in kernels:
        paid = np.array([kernel[s] @ rewards[s, policy[s]] for s in range(n_states)])
        found.append(np.linalg.solve(np.eye(n_states) - discount * kernel, paid)[state])
    return float(np.sort(found)[math.ceil(alpha * len(found)) - 1])
