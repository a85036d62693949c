"""Problems and risk measures shared by several test modules.

There is one for every kind of belief, and the paper's worlds after some data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

import brmdp
from brmdp import agents


@dataclass(frozen=True, eq=False)
class Problem:
    """A belief, dense rewards r(s,a,s') (None if the belief learns them) and a discount."""

    belief: Any
    rewards: np.ndarray | None
    discount: float

    @property
    def shape(self) -> tuple[int, int]:
        return self.belief.pattern.n_states, self.belief.pattern.n_actions

    @property
    def n_states(self) -> int:
        return self.belief.pattern.n_states

    @property
    def admissible(self) -> np.ndarray:
        return self.belief.pattern.admissible

    def backup(self, risk: Any, values: np.ndarray) -> np.ndarray:
        return brmdp.backup(self.belief, self.rewards, self.discount, values, risk=risk).q_values

    def plan(self, risk: Any, **options: Any) -> brmdp.Solution:
        return brmdp.plan(self.belief, self.rewards, self.discount, risk=risk, **options)

    def evaluate(self, policy: Any, risk: Any, **options: Any) -> brmdp.Solution:
        return brmdp.evaluate_under_belief(
            self.belief, self.rewards, self.discount, policy, risk=risk, **options
        )


# --- beliefs --------------------------------------------------------------------------------------


def random_kernel(
    rng: np.random.Generator, n_states: int, n_actions: int, keep: float = 1.0
) -> np.ndarray:
    kernel = rng.dirichlet(np.ones(n_states), (n_states, n_actions))
    mask = rng.random(kernel.shape) < keep
    mask[..., 0] |= ~mask.any(axis=-1)
    kernel = kernel * mask
    return kernel / kernel.sum(axis=-1, keepdims=True)


def dense(seed: int, n_states: int = 4, n_actions: int = 3, discount: float = 0.8) -> Problem:
    rng = np.random.default_rng(seed)
    phi = rng.uniform(0.3, 6.0, (n_states, n_actions, n_states))
    return Problem(brmdp.DirichletBelief(phi), rng.normal(size=phi.shape), discount)


def sparse_rows(seed: int, n_states: int = 6, n_actions: int = 2, discount: float = 0.8) -> Problem:
    rng = np.random.default_rng(seed)
    phi = rng.uniform(0.3, 6.0, (n_states, n_actions, n_states)) * (
        rng.random((n_states, n_actions, n_states)) < 0.5
    )
    phi[..., 0] += 1.0
    phi[0, 0] = 0.0
    phi[0, 0, 2] = 3.0  # a row with a single successor is known
    return Problem(brmdp.DirichletBelief(phi), rng.normal(size=phi.shape), discount)


def inadmissible(
    seed: int, n_states: int = 5, n_actions: int = 3, discount: float = 0.8
) -> Problem:
    rng = np.random.default_rng(seed)
    mask = rng.random((n_states, n_actions)) < 0.6
    mask[np.arange(n_states), rng.integers(0, n_actions, n_states)] = True
    mask[0] = (False, True, False)
    phi = rng.uniform(0.3, 6.0, (n_states, n_actions, n_states))
    return Problem(
        brmdp.DirichletBelief(phi, admissible=mask), rng.normal(size=phi.shape), discount
    )


def disturbance(
    seed: int, n_states: int = 5, n_actions: int = 2, n_disturbances: int = 4
) -> Problem:
    rng = np.random.default_rng(seed)
    outcomes = rng.integers(0, n_states, (n_states, n_actions, n_disturbances))
    outcomes[1, 0] = -1
    belief = brmdp.DisturbanceBelief(outcomes, rng.uniform(0.4, 5.0, n_disturbances))
    return Problem(belief, rng.normal(size=(n_states, n_actions, n_states)), 0.8)


def censored(
    seed: int, n_states: int = 5, n_actions: int = 2, n_disturbances: int = 4, hidden: int = 6
) -> Problem:
    """A small stock whose demand was seen a few times, ``hidden`` times only as "at least"."""
    rng = np.random.default_rng(seed)
    s, a, d = np.ogrid[:n_states, :n_actions, :n_disturbances]
    outcomes = np.maximum(np.minimum(s + a, n_states - 1) - d, 0)
    outcomes[1, 0] = -1
    belief = brmdp.CensoredDisturbanceBelief(outcomes, rng.uniform(0.4, 5.0, n_disturbances))
    belief.observe_disturbance(rng.integers(0, n_disturbances, 5))
    belief.observe_at_least(rng.integers(1, n_disturbances - 1, hidden))
    return Problem(belief, rng.normal(size=(n_states, n_actions, n_states)), 0.8)


def scenarios(seed: int, n_states: int = 4, n_actions: int = 3, n_scenarios: int = 5) -> Problem:
    rng = np.random.default_rng(seed)
    kernels = np.stack([random_kernel(rng, n_states, n_actions, 0.8) for _ in range(n_scenarios)])
    belief = brmdp.ScenarioBelief(kernels, rng.dirichlet(np.ones(n_scenarios)))
    return Problem(belief, rng.normal(size=(n_states, n_actions, n_states)), 0.8)


def outcomes(seed: int, n_states: int = 3, n_actions: int = 2) -> Problem:
    """Unknown rewards from lists that differ from pair to pair, after some data."""
    rng = np.random.default_rng(seed)
    lists = {
        (s, a): np.round(rng.normal(size=1 + (s + a) % 3), 3)
        for s in range(n_states)
        for a in range(n_actions)
        if (s, a) != (1, 0)
    }
    admissible = np.array([[(s, a) in lists for a in range(n_actions)] for s in range(n_states)])
    belief = brmdp.OutcomeBelief.uniform(n_states, n_actions, lists, 0.6, admissible=admissible)
    for (s, a), rewards in lists.items():
        n = int(rng.integers(4))
        belief.observe(s, a, rng.integers(n_states, size=n), rng.choice(rewards, n))
    return Problem(belief, None, 0.8)


def bootstrap(seed: int, n_states: int = 3, n_actions: int = 2) -> Problem:
    """Unknown rewards within bounds, some of them merged, and known ones besides."""
    rng = np.random.default_rng(seed)
    belief = brmdp.OutcomeBelief.bootstrap(n_states, n_actions, -1.0, 2.0, 0.8, max_atoms=4)
    n = 60
    columns = [rng.integers(size, size=n) for size in (n_states, n_actions, n_states)]
    belief.observe(*columns, rng.uniform(-1.0, 2.0, n))
    return Problem(belief, rng.normal(size=(n_states, n_actions, n_states)), 0.8)


def known(seed: int, n_states: int = 5, n_actions: int = 3) -> Problem:
    rng = np.random.default_rng(seed)
    rewards = rng.normal(size=(n_states, n_actions, n_states))
    mdp = brmdp.TabularMDP(random_kernel(rng, n_states, n_actions, 0.7), rewards, 0.8)
    return Problem(mdp, rewards, 0.8)


def after_data(mdp: brmdp.TabularMDP, steps: int, seed: int) -> Problem:
    """The uniform prior over all successors after ``steps`` transitions under random actions."""
    rng = np.random.default_rng(seed)
    kernel = mdp.kernel()
    n_states, n_actions, _ = kernel.shape
    belief = brmdp.DirichletBelief.uniform(n_states, n_actions)
    state = 0
    for _ in range(steps):
        action = int(rng.integers(n_actions))
        successor = int(rng.choice(n_states, p=kernel[state, action]))
        belief.observe(state, action, successor)
        state = successor
    return Problem(belief, np.array(mdp.rewards), mdp.discount)


RANDOM: dict[str, Callable[[int], Problem]] = {
    "dense": dense,
    "sparse": sparse_rows,
    "inadmissible": inadmissible,
    "disturbance": disturbance,
    "scenarios": scenarios,
}

WORLDS: dict[str, Callable[[], Problem]] = {
    "riverswim": lambda: after_data(brmdp.envs.riverswim(6), 200, 1),
    "frozenlake": lambda: after_data(brmdp.envs.frozenlake(), 500, 2),
    "risky-frozenlake": lambda: after_data(brmdp.envs.frozenlake(0.9), 500, 3),
}


@cache
def problem(name: str) -> Problem:
    """A problem by name: one of the paper's worlds, or kind-seed, such as ``dense-3``."""
    if name in WORLDS:
        return WORLDS[name]()
    kind, seed = name.rsplit("-", 1)
    return RANDOM[kind](int(seed))


def drawn_policy(admissible: np.ndarray, seed: int = 0) -> np.ndarray:
    """(S, A) probabilities of admissible actions; some states take one action, some leave one out.

    The first state with several actions takes at least two of them.
    """
    rng = np.random.default_rng(seed)
    weights = np.zeros(admissible.shape)
    several = np.flatnonzero(admissible.sum(axis=1) > 1)
    for s, allowed in enumerate(admissible):
        actions = rng.permutation(np.flatnonzero(allowed))
        least = 2 if several.size and s == several[0] else 1
        taken = actions[: rng.integers(min(least, actions.size), actions.size + 1)]
        weights[s, taken] = rng.dirichlet(np.ones(taken.size))
    return weights


# --- measures -------------------------------------------------------------------------------------


def level_array(shape: tuple[int, int], low: float = 0.05, high: float = 0.95) -> np.ndarray:
    return np.random.default_rng(7).uniform(low, high, shape)


MEASURES: dict[str, Callable[[tuple[int, int]], Any]] = {
    "mean": lambda shape: brmdp.Mean(),
    "quantile-low": lambda shape: brmdp.Quantile(0.1),
    "quantile-array": lambda shape: brmdp.Quantile(level_array(shape)),
    "cvar": lambda shape: brmdp.CVaR(0.3),
    "cvar-array": lambda shape: brmdp.CVaR(level_array(shape)),
    "sampled-quantile": lambda shape: brmdp.Quantile(
        level_array(shape), brmdp.MonteCarlo(samples=30, rng=11)
    ),
    "posterior-sample": lambda shape: brmdp.PosteriorSample(rng=12),
}
"""Every measure with an error bound.

Each call makes a new object, so the sampled ones take the same draws again.
"""


def solved(name: str) -> str:
    """The status of a successful plan with the measure of that name."""
    return "sampled" if name in ("sampled-quantile", "posterior-sample") else "converged"


def measure(name: str, shape: tuple[int, int]) -> Any:
    return MEASURES[name](shape)


# --- presets --------------------------------------------------------------------------------------


OPTIMISTS: dict[str, Callable[..., brmdp.Agent]] = {
    "beb": partial(agents.beb, beta=1.0),
    "vbrb": partial(agents.vbrb, beta=1.0),
    "eubrl": partial(agents.eubrl, eta=1.0),
    "r-max": partial(agents.r_max, visits=2),
    "ucrl2": agents.ucrl2,
    "ucbvi-gamma": agents.ucbvi_gamma,
    "bayes-ucbvi": agents.bayes_ucbvi,
    "opsrl": agents.opsrl,
    "cvar-bonus": partial(agents.cvar_bonus, alpha=0.2, beta=0.5),
}
"""The methods that explore by optimism, with settings where they need some."""


def presets_with(methods: dict[str, Callable[[], Any]]) -> dict[str, Callable[..., brmdp.Agent]]:
    """Every preset of the library, with every method that is given by name."""

    def with_method(preset: Callable[..., brmdp.Agent], make: Callable[[], Any]) -> Any:
        return lambda *given, **more: preset(*given, method=make(), **more)

    return {
        **{f"aq-brmdp/{n}": with_method(agents.aq_brmdp, make) for n, make in methods.items()},
        **{f"brmdp/{n}": with_method(agents.fixed_quantile, make) for n, make in methods.items()},
        "continuing-psrl": agents.continuing_psrl,
        "posterior-mean": agents.posterior_mean,
    }


# --- references by plain value iteration with the package's own backup ----------------------------


def iterate_backup(
    case: Problem, name: str, policy: np.ndarray | None = None, accuracy: float = 1e-12
) -> np.ndarray:
    """Iterate V ← max_a q(s,a; V), or that of a policy, up to ``accuracy``.

    A policy has actions (S,) or probabilities (S, A). The iteration starts at the library's own
    solution, which saves most of the way; wherever it starts, the contraction bound on the last
    change guarantees the accuracy.
    """
    gamma = case.discount
    chosen = measure(name, case.shape)
    if policy is None:
        values = case.plan(chosen, tolerance=1e-9).values
    else:
        values = case.evaluate(policy, chosen, tolerance=1e-9).values
    risk = Frozen(measure(name, case.shape), case.belief)
    for _ in range(5000):
        q_values = case.backup(risk, values)
        following = q_values.max(axis=1) if policy is None else followed(policy, q_values)
        change = np.max(np.abs(following - values))
        values = following
        if gamma * change <= accuracy * (1 - gamma):
            return values
    raise AssertionError(f"value iteration did not reach {accuracy}: last change {change}")


def followed(policy: np.ndarray, q_values: np.ndarray) -> np.ndarray:
    """(S,) values of the actions that a policy takes, averaged over them if it draws."""
    if policy.ndim == 1:
        return q_values[np.arange(policy.size), policy]
    return np.array(
        [weights[weights > 0] @ q[weights > 0] for weights, q in zip(policy, q_values, strict=True)]
    )


class Frozen:
    """A risk measure bound only once, so a loop over ``brmdp.backup`` does not draw again."""

    def __init__(self, risk: Any, belief: Any) -> None:
        self.bound = risk.bind(belief)

    def bind(self, belief: Any) -> Any:
        return self.bound


def dense_draws(risk: Any, belief: Any) -> Callable[[int, int], np.ndarray]:
    """A function of (s, a) that gives the (draws, S) rows which a sampling measure has drawn."""
    draws, pattern = risk.bind(belief).draws, belief.pattern

    def drawn(s: int, a: int) -> np.ndarray:
        pair = s * pattern.n_actions + a
        out = np.zeros((len(draws[pair]), pattern.n_states))
        out[:, pattern.next_states[pattern.indptr[pair] : pattern.indptr[pair + 1]]] = draws[pair]
        return out

    return drawn
