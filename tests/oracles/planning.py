"""Planning oracles: plain loops over dense arrays, nothing imported from the package.

A risk functional is any function ``risk(state, action, targets) -> float``; ``targets`` is the
vector w(s') = r(s,a,s') + γ V(s') over all successors. Rewards are dense, (S, A, S).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from scipy import stats

from oracles.dirichlet_functional import lower_cvar

Risk = Callable[[int, int, np.ndarray], float]


# --- fixed points by plain value iteration --------------------------------------------------------


def backup(risk: Risk, rewards: np.ndarray, discount: float, values: np.ndarray) -> np.ndarray:
    """Q(s,a) = risk of w(s') = r(s,a,s') + γ V(s'), one pair at a time."""
    n_states, n_actions, _ = rewards.shape
    q_values = np.empty((n_states, n_actions))
    for s in range(n_states):
        for a in range(n_actions):
            q_values[s, a] = risk(s, a, rewards[s, a] + discount * values)
    return q_values


def fixed_point(
    operator: Callable[[np.ndarray], np.ndarray], n_states: int, discount: float, tolerance: float
) -> np.ndarray:
    """Fixed point of a γ-contraction to ``tolerance`` in the maximum norm, from V = 0.

    After m sweeps the distance is at most γ^m ‖V_1 − V_0‖ / (1 − γ). That number of sweeps is known
    after the first one, so rounding in the operator can never keep the loop from ending.
    """
    before = np.zeros(n_states)
    values = operator(before)
    first_change = np.max(np.abs(values - before))
    sweeps = 1
    while discount**sweeps * first_change > tolerance * (1 - discount):
        before, values = values, operator(values)
        sweeps += 1
        if discount * np.max(np.abs(values - before)) <= tolerance * (1 - discount):
            break
    return values


def value_iteration(
    risk: Risk,
    rewards: np.ndarray,
    discount: float,
    tolerance: float = 1e-13,
    admissible: np.ndarray | None = None,
) -> np.ndarray:
    """Optimal values V = max_a risk(s, a, r + γV).

    ``admissible`` is an optional boolean (S, A) mask.
    """
    n_states, n_actions, _ = rewards.shape
    if admissible is None:
        admissible = np.ones((n_states, n_actions), dtype=bool)

    def operator(values: np.ndarray) -> np.ndarray:
        improved = np.empty(n_states)
        for s in range(n_states):
            best = -math.inf
            for a in range(n_actions):
                if admissible[s, a]:
                    best = max(best, risk(s, a, rewards[s, a] + discount * values))
            improved[s] = best
        return improved

    return fixed_point(operator, n_states, discount, tolerance)


def evaluate_under_belief(
    risk: Risk, rewards: np.ndarray, discount: float, policy: np.ndarray, tolerance: float = 1e-13
) -> np.ndarray:
    """Values of a deterministic policy, the fixed point of T^π, by iteration."""
    n_states = rewards.shape[0]

    def operator(values: np.ndarray) -> np.ndarray:
        updated = np.empty(n_states)
        for s in range(n_states):
            a = int(policy[s])
            updated[s] = risk(s, a, rewards[s, a] + discount * values)
        return updated

    return fixed_point(operator, n_states, discount, tolerance)


def evaluate_mixture(
    risk: Risk, rewards: np.ndarray, discount: float, weights: np.ndarray, tolerance: float = 1e-13
) -> np.ndarray:
    """Values of a policy with probabilities (S, A): the fixed point of Σ_a π(a|s) risk(s, a)."""
    n_states, n_actions, _ = rewards.shape

    def operator(values: np.ndarray) -> np.ndarray:
        updated = np.zeros(n_states)
        for s in range(n_states):
            for a in range(n_actions):
                if weights[s, a] > 0.0:
                    own = risk(s, a, rewards[s, a] + discount * values)
                    updated[s] += weights[s, a] * own
        return updated

    return fixed_point(operator, n_states, discount, tolerance)


def mean_risk(kernel: np.ndarray) -> Risk:
    """Risk-neutral functional under a known kernel (S, A, S)."""
    return lambda s, a, targets: float(kernel[s, a] @ targets)


def nested_value(
    risk: Risk, rewards: np.ndarray, discount: float, policy: np.ndarray, state: int, depth: int
) -> float:
    """The paper's nested representation (eq. nested V), unrolled ``depth`` stages from ``state``.

    Every stage has its own independent draw, so the risk of stage t sees only the values of the
    histories below it: S^depth leaves, no memory. The distance to the value is at most γ^depth
    max|r| / (1 − γ).
    """
    if depth == 0:
        return 0.0
    a = int(policy[state])
    targets = np.array(
        [
            rewards[state, a, successor]
            + discount * nested_value(risk, rewards, discount, policy, successor, depth - 1)
            for successor in range(rewards.shape[0])
        ]
    )
    return risk(state, a, targets)


# --- the paper's worlds ---------------------------------------------------------------------------


def riverswim_kernel(n: int) -> np.ndarray:
    """RiverSwim-n; left = 0, right = 1."""
    left, right = 0, 1
    kernel = np.zeros((n, 2, n))
    for s in range(n):
        kernel[s, left, max(s - 1, 0)] = 1.0
        if s == 0:
            kernel[s, right, 1] = 0.60
            kernel[s, right, 0] = 0.40
        elif s == n - 1:
            kernel[s, right, n - 1] = 0.60
            kernel[s, right, n - 2] = 0.40
        else:
            kernel[s, right, s + 1] = 0.35
            kernel[s, right, s] = 0.60
            kernel[s, right, s - 1] = 0.05
    return kernel


def riverswim_rewards(n: int) -> np.ndarray:
    """0.005 for left at the left end, 1 on the transition (n, right, n), else 0."""
    rewards = np.zeros((n, 2, n))
    rewards[0, 0, :] = 0.005
    rewards[n - 1, 1, n - 1] = 1.0
    return rewards


def frozenlake_kernel(shortcut_risk: float | None = None) -> np.ndarray:
    """The kernel of the paper's FrozenLake; None leaves the shortcut out.

    The actions are left = 0, right = 1, up = 2, down = 3.
    """
    left, right, up, down = range(4)
    goal, holes = 15, {5, 7, 11, 12}
    ordinary = [s for s in range(16) if s != goal and s not in holes]
    assert len(ordinary) == 11
    perpendicular = {left: (up, down), right: (up, down), up: (left, right), down: (left, right)}

    def move(s: int, direction: int) -> int:
        row, column = s // 4, s % 4
        if direction == left and column > 0:
            return s - 1
        if direction == right and column < 3:
            return s + 1
        if direction == up and row > 0:
            return s - 4
        if direction == down and row < 3:
            return s + 4
        return s

    kernel = np.zeros((16, 4, 16))
    for s in range(16):
        for a in range(4):
            if s == goal:
                for restart in ordinary:
                    kernel[s, a, restart] += 1 / 11
            elif s in holes:
                kernel[s, a, move(s, a)] += 0.2
                kernel[s, a, s] += 0.8
            elif s == 2 and a == down and shortcut_risk is not None:
                kernel[s, a, 10] += 1 - shortcut_risk
                kernel[s, a, 5] += shortcut_risk
            else:
                kernel[s, a, move(s, a)] += 0.5
                for side in perpendicular[a]:
                    kernel[s, a, move(s, side)] += 0.25
    return kernel


def frozenlake_rewards() -> np.ndarray:
    """1 for every transition into the goal, from every state."""
    rewards = np.zeros((16, 4, 16))
    rewards[:, :, 15] = 1.0
    return rewards


# --- finitely many scenarios ----------------------------------------------------------------------


def weighted_left_quantile(
    values: np.ndarray, weights: np.ndarray, alpha: float, tolerance: float = 1e-12
) -> float:
    """inf{z : Pr(X ≤ z) ≥ α}.

    A cumulative weight within ``tolerance`` below α counts as reaching it.
    """
    for z in sorted(float(v) for v in values):
        at_most_z = math.fsum(weight for v, weight in zip(values, weights, strict=True) if v <= z)
        if at_most_z >= alpha - tolerance:
            return z
    raise ValueError("the weights do not reach alpha")


def weighted_lower_cvar(values: np.ndarray, weights: np.ndarray, alpha: float) -> float:
    """Mean of the worst α share of the weight; the scenario on the border counts in part."""
    missing, total = float(alpha), 0.0
    for value, weight in sorted(zip(values, weights, strict=True)):
        taken = min(float(weight), missing)
        total += taken * value
        missing -= taken
    return total / alpha


# --- the paper's Monte Carlo estimators -----------------------------------------------------------


def budget(alpha: float, coefficient: float, cap: int = 2048) -> int:
    """Number of posterior draws for a level (eq. app-nsa)."""
    density = stats.norm.pdf(stats.norm.ppf(alpha))
    return min(cap, math.ceil(coefficient * alpha * (1 - alpha) / density**2))


def order_statistic(sample: np.ndarray, alpha: float) -> float:
    """The ⌈nα⌉-th smallest, counted from 1, by a full sort; α is the decimal number as written.

    In binary, 100 · 0.07 is a little more than 7, and its ceiling would be 8.
    """
    rank = math.ceil(len(sample) * Fraction(repr(float(alpha))))
    return sorted(float(x) for x in sample)[rank - 1]


def monte_carlo_quantile(draws: np.ndarray, targets: np.ndarray, alpha: float) -> float:
    """Order statistic ⌈nα⌉ of Z_j = Σ_s' P^j(s') w(s') over draws (n, S)."""
    return order_statistic(np.array([float(draw @ targets) for draw in draws]), alpha)


def sample_kernels(concentration: np.ndarray, n_draws: int, rng: np.random.Generator) -> np.ndarray:
    """Independent Dirichlet rows, (n_draws, S, A, S); zero concentrations stay zero."""
    n_states, n_actions, _ = concentration.shape
    kernels = np.zeros((n_draws, *concentration.shape))
    for m in range(n_draws):
        for s in range(n_states):
            for a in range(n_actions):
                possible = concentration[s, a] > 0
                kernels[m, s, a, possible] = rng.dirichlet(concentration[s, a, possible])
    return kernels


def posterior_quantile_value(
    kernels: np.ndarray, rewards: np.ndarray, discount: float, policy: np.ndarray, alpha: float
) -> np.ndarray:
    """Posterior α-quantile value of a policy, for every state, from M drawn kernels (M, S, A, S).

    The paper's estimator (eq. app-posterior-lb-estimator): exact evaluation under every draw, then
    the order statistic ⌈αM⌉ per state. The paper uses M = 147 and α = 0.1.
    """
    n_states = rewards.shape[0]
    values = np.empty((len(kernels), n_states))
    for m, kernel in enumerate(kernels):
        transition = np.array([kernel[s, policy[s]] for s in range(n_states)])
        reward = np.array([kernel[s, policy[s]] @ rewards[s, policy[s]] for s in range(n_states)])
        values[m] = np.linalg.solve(np.eye(n_states) - discount * transition, reward)
    return np.array([order_statistic(values[:, s], alpha) for s in range(n_states)])


# --- measures of Dirichlet rows, from a CDF that is not the package's -----------------------------


def bisected_quantile(
    tails: Callable[[float], tuple], low: float, high: float, alpha: float
) -> float:
    """inf{z : F(z) ≥ α} on [low, high] by plain bisection, down to neighbouring numbers.

    ``tails(z)`` begins with (F, 1 − F), each accurate when it is small; the smaller one decides.
    """
    while True:
        middle = low + (high - low) / 2
        if not low < middle < high:
            return high
        below, above = tails(middle)[:2]
        if (below >= alpha) if alpha <= 0.5 else (above <= 1 - alpha):
            high = middle
        else:
            low = middle


def dirichlet_quantile_risk(
    tails: Callable, concentration: np.ndarray, levels: np.ndarray | float
) -> Risk:
    """Quantile of w·P, P ~ Dir(φ(s,a)), from any ``tails(φ, w, z)`` that begins with (F, 1 − F)."""
    levels = np.broadcast_to(levels, concentration.shape[:2])

    def risk(s: int, a: int, targets: np.ndarray) -> float:
        phi = concentration[s, a]
        possible = targets[phi > 0]
        low, high = float(possible.min()), float(possible.max())
        return bisected_quantile(lambda z: tails(phi, targets, z), low, high, float(levels[s, a]))

    return risk


def dirichlet_cvar_risk(
    tails: Callable, concentration: np.ndarray, levels: np.ndarray | float
) -> Risk:
    """Lower CVaR of w·P: the maximum of z − E[(z − w·P)⁺]/α, which is flat near the quantile."""
    levels = np.broadcast_to(levels, concentration.shape[:2])
    quantile = dirichlet_quantile_risk(tails, concentration, levels)

    def risk(s: int, a: int, targets: np.ndarray) -> float:
        phi, alpha = concentration[s, a], float(levels[s, a])
        return float(lower_cvar(tails, phi, targets, alpha, quantile(s, a, targets)))

    return risk


def scenario_risk(
    kernels: np.ndarray, weights: np.ndarray, levels: np.ndarray | float, *, lower_tail: bool
) -> Risk:
    """Weighted left quantile, or lower CVaR, over kernels (K, S, A, S)."""
    levels = np.broadcast_to(levels, kernels.shape[1:3])

    def risk(s: int, a: int, targets: np.ndarray) -> float:
        values = np.array([float(kernel[s, a] @ targets) for kernel in kernels])
        measure = weighted_lower_cvar if lower_tail else weighted_left_quantile
        return measure(values, weights, float(levels[s, a]))

    return risk


def sampled_quantile_risk(draws: Callable[[int, int], np.ndarray], levels: np.ndarray) -> Risk:
    """Order statistic of fixed draws; ``draws(s, a)`` is (n, S)."""
    return lambda s, a, targets: monte_carlo_quantile(draws(s, a), targets, float(levels[s, a]))


# --- where a policy spends its time ---------------------------------------------------------------


def discounted_time(
    kernel: np.ndarray, policy: np.ndarray, discount: float, start: np.ndarray
) -> np.ndarray:
    """(1 − γ) Σ_t γ^t Pr(s_t = s) for a dense (S, A, S) kernel: the series, term by term."""
    here = np.array(start, dtype=float)
    rows = kernel[np.arange(here.size), policy]
    total, weight = np.zeros(here.size), 1.0 - discount
    while weight > 1e-16:
        total += weight * here
        here = here @ rows
        weight *= discount
    return total
