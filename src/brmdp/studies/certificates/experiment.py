"""Certificates side by side: what each promises, whether it holds, and what it gives away.

A case is a world and the size of a log. Each row of its table is one certificate for the belief
after one log:

- *nested*: Proposition 1 at ᾱ = 1 − (1 − α)^{1/S} (α/S where rows depend on each other), for the
  policy that is best for it;
- *union of states*, *union of pairs*: the same planner at the levels α/S and α/(SA);
- *one start*: the sampled certificate for the start of the world;
- *all states*: the sampled certificate for all states at once.

The sampled ones choose among candidate policies. All bounds are judged in draws of their own, which
no certificate has seen.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from brmdp import envs
from brmdp._streams import independent_streams
from brmdp._validation import BoolArray, FloatArray, IntArray
from brmdp.beliefs import Belief, DirichletBelief, DisturbanceBelief, DisturbanceRewards
from brmdp.decisions import candidate_policies, certify, values_in_draws
from brmdp.mdp import TabularMDP
from brmdp.planning import evaluate_in_mdp, solve
from brmdp.planning.guarantees import certificate_of
from brmdp.risk.monte_carlo import order_statistic_rank
from brmdp.runs import REQUIRED, Columns, Computation, Experiment, Program, column
from brmdp.theory import draw_mdp

__all__ = ["CERTIFICATES", "EXPERIMENT", "HOSPITAL", "METHODS", "SEPSIS", "CertificateColumns"]

METHODS = ("nested", "union of states", "union of pairs", "one start", "all states")
"""The certificates, in the order of their rows."""

CONFIDENCE = 0.9


@dataclass(frozen=True, eq=False)
class CertificateColumns(Columns):
    """One row per log and certificate; bounds and values are those at the start of the world."""

    method: NDArray[np.str_] = column("which certificate")
    log: IntArray = column("number of the log within the run")
    bound: FloatArray = column("certified bound at the start")
    quantile: FloatArray = column(
        "posterior α-quantile of the policy's value at the start, sampled"
    )
    coverage: FloatArray = column(
        "share of posterior draws in which the bound holds: at the start for 'one start', in all "
        "states for the others"
    )
    judging_draws: IntArray = column("number of those draws")
    true_value: FloatArray = column("true value of the policy at the start")
    held_in_truth: BoolArray = column("whether the bound holds in the true world, likewise")
    optimum: FloatArray = column("optimal value at the start in the true world")
    draws: IntArray = column("number of draws behind the bound; 0 for nested bounds")
    seconds: FloatArray = column("processor time of the certificate")


class _Problem(NamedTuple):
    """A true world, its rewards as a belief takes them, and the belief after a log."""

    world: TabularMDP
    rewards: Any
    belief: Belief


def _random_mdp(size: int, rng: np.random.Generator) -> _Problem:
    """A world drawn from the prior; ``size`` transitions of random pairs."""
    world = draw_mdp(6, 3, 0.9, rng=rng)
    belief = DirichletBelief.uniform(6, 3)
    pairs = rng.integers(18, size=size)
    _observe(belief, world, pairs // 3, pairs % 3, rng)
    return _Problem(world, world.rewards, belief)


def _riverswim(size: int, rng: np.random.Generator) -> _Problem:
    world = envs.riverswim(6)
    belief = DirichletBelief.uniform(6, 2, possible=world)
    return _walked(world, belief, size, rng)


def _frozenlake(size: int, rng: np.random.Generator) -> _Problem:
    world = envs.frozenlake()
    belief = DirichletBelief.uniform(world.n_states, world.n_actions, possible=world)
    return _walked(world, belief, size, rng)


def _inventory(size: int, rng: np.random.Generator) -> _Problem:
    """``size`` days of demand."""
    shop = envs.inventory()
    belief = DisturbanceBelief(shop.outcomes)
    belief.observe_disturbance(rng.choice(shop.demand.size, size=size, p=shop.demand))
    return _Problem(shop.mdp, DisturbanceRewards(shop.disturbance_rewards), belief)


def _sepsis(size: int, rng: np.random.Generator) -> _Problem:
    """``size`` patients treated by clinicians; the possible successors of a pair are known."""
    hospital = envs.icu_sepsis()
    world = hospital.mdp
    belief = DirichletBelief.uniform(world.n_states, world.n_actions, 0.1, possible=world)
    patients = rng.choice(world.n_states, size=size, p=world.start)
    end = world.n_states - 1
    cumulative = np.cumsum(hospital.clinicians, axis=1)
    while patients.size:
        chances = rng.random(patients.size)[:, None] * cumulative[patients, -1:]
        actions = (cumulative[patients] <= chances).sum(axis=1)
        patients = _observe(belief, world, patients, actions, rng)
        patients = patients[patients != end]
    return _Problem(world, world.rewards, belief)


def _walked(
    world: TabularMDP, belief: DirichletBelief, size: int, rng: np.random.Generator
) -> _Problem:
    """A walk of ``size`` steps with random actions, from the start of the world."""
    kernel = world.kernel()
    start = np.asarray(world.start)
    state = int(start) if start.ndim == 0 else int(rng.choice(world.n_states, p=start))
    for _ in range(size):
        action = int(rng.choice(np.flatnonzero(world.admissible[state])))
        following = int(rng.choice(world.n_states, p=kernel[state, action]))
        belief.observe(state, action, following)
        state = following
    return _Problem(world, world.rewards, belief)


def _observe(
    belief: DirichletBelief,
    world: TabularMDP,
    states: IntArray,
    actions: IntArray,
    rng: np.random.Generator,
) -> IntArray:
    """Draw a successor of each pair, and observe it."""
    pattern = world.pattern
    pairs = states * world.n_actions + actions
    cumulative = np.cumsum(world.probabilities)
    begins, ends = pattern.indptr[pairs], pattern.indptr[pairs + 1]
    before = np.where(begins > 0, cumulative[begins - 1], 0.0)
    wanted = before + rng.random(pairs.size) * (cumulative[ends - 1] - before)
    entries = np.clip(np.searchsorted(cumulative, wanted, side="right"), begins, ends - 1)
    following: IntArray = pattern.next_states[entries]
    belief.observe(states, actions, following)
    return following


WORLDS: dict[str, Callable[[int, np.random.Generator], _Problem]] = {
    "random": _random_mdp,
    "riverswim": _riverswim,
    "frozenlake": _frozenlake,
    "inventory": _inventory,
    "icu-sepsis": _sepsis,
}


def _replicate(
    seed: np.random.SeedSequence,
    *,
    world: str,
    size: int,
    logs: int,
    judging_draws: int,
    draws: int,
) -> CertificateColumns:
    """Certificates for the beliefs after several logs."""
    return CertificateColumns.concatenated(
        [
            _certificates(number, WORLDS[world](size, data), judging_draws, draws, streams)
            for number, stream in enumerate(independent_streams(seed, logs))
            for data, *streams in [independent_streams(stream, 5)]
        ]
    )


class _Made(NamedTuple):
    """A certificate: its policy, its bounds in all states or its bound at the start, its cost."""

    policy: IntArray | FloatArray
    bounds: FloatArray | None
    bound: float
    draws: int
    seconds: float


def _nested(problem: _Problem, begin: FloatArray, events: int | None) -> _Made:
    """The nested certificate; for a union level, the number of events that α is divided by."""
    world, rewards, belief = problem
    sure, n_states = CONFIDENCE, world.n_states
    if events is not None:
        # the confidence whose level, by the certificate's own rule, is α/events
        level = (1.0 - CONFIDENCE) / events
        sure = (1.0 - level) ** n_states if belief.rows_independent else 1.0 - level * n_states
    clock = time.process_time()
    made = certificate_of(belief, rewards, world.discount, sure, coverage_samples=0)
    seconds = time.process_time() - clock
    return _Made(made.policy, made.values, float(made.values @ begin), 0, seconds)


class _Candidates(NamedTuple):
    """Policies to choose from, and the processor time that it took to plan them."""

    policies: dict[str, IntArray]
    seconds: float


def _candidates(problem: _Problem, rng: np.random.Generator) -> _Candidates:
    world, rewards, belief = problem
    clock = time.process_time()
    found = candidate_policies(belief, rewards, world.discount, CONFIDENCE, rng=rng)
    return _Candidates(found, time.process_time() - clock)


def _sampled(
    problem: _Problem,
    candidates: _Candidates,
    begin: FloatArray | None,
    at: FloatArray,
    draws: int,
    rng: np.random.Generator,
) -> _Made:
    """The sampled certificate for ``begin``, or for all states."""
    world, rewards, belief = problem
    clock = time.process_time()
    made = certify(
        belief,
        rewards,
        world.discount,
        CONFIDENCE,
        method="sampled",
        candidates=candidates.policies,
        start=begin,
        draws=draws or None,
        nested=False,
        rng=rng,
    )
    seconds = time.process_time() - clock + candidates.seconds
    bound = made.value if made.values is None else float(made.values @ at)
    assert bound is not None
    return _Made(made.policy, made.values, bound, made.draws, seconds)


def _certificates(
    number: int,
    problem: _Problem,
    judging_draws: int,
    draws: int,
    streams: list[np.random.Generator],
) -> CertificateColumns:
    """All certificates after one log, judged in draws of their own."""
    world, rewards, belief = problem
    begin = _start_weights(world)
    candidates = _candidates(problem, streams[0])
    certificates = (
        _nested(problem, begin, None),
        _nested(problem, begin, world.n_states),
        _nested(problem, begin, int(world.admissible.sum())),
        _sampled(problem, candidates, begin, begin, draws, streams[1]),
        _sampled(problem, candidates, None, begin, draws, streams[2]),
    )
    policies, which = np.unique([made.policy for made in certificates], axis=0, return_inverse=True)
    judged = values_in_draws(
        belief, rewards, world.discount, list(policies), draws=judging_draws, rng=streams[3]
    ).values[:, which]
    rank = int(order_statistic_rank(judging_draws, 1.0 - CONFIDENCE)) - 1
    optimum = float(solve(world).values @ begin)
    rows = []
    for k, made in enumerate(certificates):
        true = evaluate_in_mdp(world, made.policy)
        at_start = judged[:, k] @ begin
        if made.bounds is None:
            coverage, held = (at_start >= made.bound).mean(), bool(true @ begin >= made.bound)
        else:
            coverage = (judged[:, k] >= made.bounds).all(axis=1).mean()
            held = bool((true >= made.bounds).all())
        rows.append(
            {
                "method": METHODS[k],
                "log": number,
                "bound": made.bound,
                "quantile": float(np.sort(at_start)[rank]),
                "coverage": float(coverage),
                "judging_draws": judging_draws,
                "true_value": float(true @ begin),
                "held_in_truth": held,
                "optimum": optimum,
                "draws": made.draws,
                "seconds": made.seconds,
            }
        )
    return CertificateColumns.of_rows(rows)


def _start_weights(world: TabularMDP) -> FloatArray:
    start = np.asarray(world.start)
    if start.ndim:
        return np.asarray(start, dtype=np.float64)
    weights = np.zeros(world.n_states)
    weights[int(start)] = 1.0
    return weights


_PARAMETERS = {
    "world": REQUIRED,
    "size": REQUIRED,
    "logs": 5,
    "judging_draws": 50_000,
    "draws": 0,  # by default the certificate's own budget
}

CERTIFICATES = Program(_replicate, CertificateColumns, _PARAMETERS, parts=("decisions",))

SEPSIS = Program(_replicate, CertificateColumns, _PARAMETERS, "icu", ("decisions",))
"""The same for the world that needs the extra ``icu``."""

SIZES: dict[str, tuple[int, ...]] = {
    "random": (90, 360, 1800),
    "riverswim": (100, 1000, 10_000),
    "frozenlake": (100, 1000, 10_000),
    "inventory": (10, 30, 300),
}
"""Sizes of the logs: transitions, or days."""

LOGS = {"random": 40}
"""More logs where the promise is tested in the true world."""


def _case(world: str, size: int, **settings: Any) -> Computation:
    program = "SEPSIS" if world == "icu-sepsis" else "CERTIFICATES"
    parameters = {"world": world, "size": size, **settings}
    return Computation(f"{world}-{size}", f"{__name__}:{program}", parameters)


EXPERIMENT = Experiment(
    "certificates",
    "Certificates side by side",
    tuple(
        _case(world, size, logs=LOGS.get(world, 5))
        for world, sizes in SIZES.items()
        for size in sizes
    ),
    runs=20,
)

HOSPITAL = Experiment(
    "certificates-icu",
    "Certificates for ICU-Sepsis",
    tuple(
        _case("icu-sepsis", size, logs=1, judging_draws=1_000, draws=draws)
        for size, draws in ((200, 4_000), (2_000, 1_000), (20_000, 1_000))
    ),
    runs=5,
)
