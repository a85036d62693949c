"""The continuous lake on one thread.

Measured are targets against plain Monte Carlo, where the time goes, AQ-BRMDP against PSRL, and how
time grows with the sizes.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from time import perf_counter, process_time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.timing import Case, Ratio, interleave, milliseconds, print_table, verdict
from brmdp.agents import FixedLength
from brmdp.continuous import (
    ContinuousAgent,
    FittedQ,
    LakeModel,
    LakeParameters,
    policy_values,
    simulate_lake,
)
from brmdp.continuous.fitted_q import Learner, Ranks, fit, initial_learner, targets, uncertainty
from brmdp.continuous.lake import DIRECTIONS, MODES, ORDINARY, SHORTEST, SIDE
from brmdp.continuous.lake_model import NODES
from brmdp.continuous.model import Value
from brmdp.risk import MonteCarlo
from brmdp.risk.monte_carlo import order_statistic_rank
from brmdp.runs import EXPERIMENTS
from brmdp.runs.lake import lake_agent

AGENTS = {"AQ-BRMDP": "aq-brmdp", "Continuing PSRL": "continuing-psrl"}
CASES = {name: EXPERIMENTS["continuous"].case(case) for name, case in AGENTS.items()}
DISCOUNT = CASES["AQ-BRMDP"].discount
LENGTH = round(1 / (1 - DISCOUNT))
"""Mean number of steps of a pseudo-episode."""

FITTING, LAKE, FINE_LAKE = FittedQ(), LakeModel(), LakeModel(panels=16)
LONGEST_RATIO, PAPERS_RATIO, LONGEST_RUN = 3.0, 21.2 / 5.5, 120.0


def run(quick: bool) -> dict:
    """Run all parts; whole runs come first, because the other parts use their agents."""
    runs, followed = _runs(150 if quick else 600, rounds=1 if quick else 2)
    if not quick:
        runs["long"] = _long_runs()
    adaptive = followed["AQ-BRMDP"]
    return {
        "runs": runs,
        "targets": _targets(adaptive, quick),
        "growth": _growth(adaptive, rounds=2 if quick else 5),
        # last, because the agents continue to learn here
        "shares": _shares(followed, rounds=2 if quick else 7),
    }


# --- whole runs -----------------------------------------------------------------------------------


class _Followed(NamedTuple):
    """An agent after a run, and where it has been."""

    agent: ContinuousAgent
    visited: np.ndarray


def _runs(steps: int, rounds: int) -> tuple[dict, dict[str, _Followed]]:
    """Runs of both agents with the same seeds, and so with the same pseudo-episodes."""
    followed: dict[str, _Followed] = {}
    for name in AGENTS:
        _run(name, 60, seed=0)  # compiles
    seconds: dict[str, list[float]] = {name: [] for name in AGENTS}
    processor: dict[str, list[float]] = {name: [] for name in AGENTS}
    for number in range(1, rounds + 1):
        for name in AGENTS:
            followed[name], elapsed, used = _run(name, steps, seed=number)
            seconds[name].append(elapsed)
            processor[name].append(used)
    return _run_report(steps, seconds, processor), followed


def _long_runs() -> dict:
    """One run of each agent at the length of the experiment."""
    steps = CASES["AQ-BRMDP"].steps
    timed = {name: _run(name, steps, seed=1)[1:] for name in AGENTS}
    report = _run_report(
        steps, *({name: [pair[i]] for name, pair in timed.items()} for i in (0, 1))
    )
    elapsed, _ = timed["AQ-BRMDP"]
    print(
        f"AQ-BRMDP, {steps} steps: {elapsed:.1f} s, asked {verdict(elapsed, at_most=LONGEST_RUN)}"
    )
    return report | {"longest_run": LONGEST_RUN}


def _run(name: str, steps: int, seed: int) -> tuple[_Followed, float, float]:
    """Run a new agent; returns elapsed seconds and processor seconds.

    The two agree on an otherwise idle machine.
    """
    agent = lake_agent(CASES[name], seed)
    begin, begin_used = perf_counter(), process_time()
    history = simulate_lake(agent, steps, seed=seed)
    elapsed, used = perf_counter() - begin, process_time() - begin_used
    return _Followed(agent, history.position), elapsed, used


def _run_report(
    steps: int, seconds: dict[str, list[float]], processor: dict[str, list[float]]
) -> dict:
    """Compare processor times, which other work on the machine disturbs less in long runs."""
    longer, elapsed_longer = (
        Ratio.of(*(times[name] for name in AGENTS)) for times in (processor, seconds)
    )
    print_table(
        f"One run of {steps} steps in the continuous lake, true regret included, one thread, "
        f"alternating rounds: {len(seconds['AQ-BRMDP'])}",
        ("agent", "s", "processor s"),
        [
            (name, *(f"{statistics.median(times[name]):.3g}" for times in (seconds, processor)))
            for name in AGENTS
        ],
    )
    print(
        f"AQ-BRMDP takes {longer} times the processor time of Continuing PSRL, asked "
        f"{verdict(longer.median, at_most=LONGEST_RATIO)}, {PAPERS_RATIO:.1f} in the paper; "
        f"elapsed time: {elapsed_longer}"
    )
    return {
        "steps": steps,
        "seconds": seconds,
        "processor_seconds": processor,
        "times_as_long_as_psrl": asdict(elapsed_longer),
        "times_as_long_as_psrl_in_processor_time": asdict(longer),
        "target": LONGEST_RATIO,
    }


# --- one pseudo-episode of an agent, as a function of arrays --------------------------------------


@dataclass(frozen=True, eq=False)
class _Episode:
    """The input of a pseudo-episode; ranks are given for quantile agents."""

    learner: Learner
    states: np.ndarray
    draws: Any
    ranks: Ranks | None

    @classmethod
    def of(cls, followed: _Followed, fitting: FittedQ = FITTING) -> _Episode:
        """New draws and training states for the agent in its current state."""
        agent, visited = followed
        rng = np.random.default_rng(20250)
        states = agent.model.sample_states(fitting.iterations * fitting.states, rng=rng)
        states = states.reshape(fitting.iterations, fitting.states, 2)
        replayed = round(fitting.replay_share * fitting.states)
        states[:, :replayed] = rng.choice(visited, (fitting.iterations, replayed))
        states = states.astype(np.float32)
        levels, ranks = agent.levels(states.reshape(-1, 2)), None
        if levels is not None:
            counts = MonteCarlo(agent.risk.method.coefficient, cap=fitting.draws).budget(levels)
            order = order_statistic_rank(counts, levels), counts
            ranks = Ranks(*(part.reshape(*states.shape[:2], -1).astype(np.int32) for part in order))
        draws = agent.belief.sample(1 if ranks is None else fitting.draws, rng=rng)
        single = jax.tree.map(lambda part: part.astype(np.float32), draws)
        return cls(
            initial_learner(fitting, agent.policy_preferences().network), states, single, ranks
        )

    def plan(self, model: Any, fitting: FittedQ = FITTING) -> None:
        """u_k of the training states, and the fit."""
        self.uncertainty(model, self.states.reshape(-1, 2))
        self.fit(model, fitting)

    def uncertainty(self, model: Any, states: np.ndarray) -> None:
        """u_k of any states."""
        jax.block_until_ready(
            uncertainty(model, self.learner.network, states, self.draws, DISCOUNT)
        )

    def fit(self, model: Any, fitting: FittedQ = FITTING) -> None:
        """All fitted Q iterations."""
        jax.block_until_ready(
            fit(model, fitting, self.learner, self.states, self.draws, self.ranks, DISCOUNT)
        )

    def quantiles(self, model: Any, stride: int = 1) -> np.ndarray:
        """(n, A) targets of every ``stride``-th state of the first iteration, by sorting."""
        chosen = (0, slice(None, None, stride))
        sampled = np.asarray(
            targets(model, self.learner.network, self.states[chosen], self.draws, DISCOUNT)
        )
        assert self.ranks is not None
        rank, count = (part[chosen][..., None] for part in self.ranks)
        used = np.where(np.arange(sampled.shape[-1]) < count, sampled, np.inf)
        return np.take_along_axis(np.sort(used, axis=-1), rank - 1, axis=-1)[..., 0]


@dataclass(frozen=True)
class _OtherTargets:
    """The lake with other targets."""

    targets: Callable[[Value, jax.Array, Any, float], jax.Array]

    def bounds(self, discount: float) -> tuple[float, float]:
        return LAKE.bounds(discount)

    def features(self, states: jax.Array) -> jax.Array:
        return LAKE.features(states)


# --- plain Monte Carlo ----------------------------------------------------------------------------


class _Simulation(NamedTuple):
    """Number of posterior draws, number M of next states for each, and the source of randomness."""

    parameters: LakeParameters
    samples: Any
    key: jax.Array


def _simulated_targets(
    value: Value, states: jax.Array, draws: _Simulation, discount: float
) -> jax.Array:
    """(n, 4, B) means of R + γ max Q over M next states.

    The next states are drawn afresh for every state, action and posterior draw. The loop over
    pairs and samples handles B of them at a time, so that the network computes in the processor's
    cache. This is faster than longer arrays, and than NumPy.
    """
    (slip, mobility, spread), samples, key = draws
    up_to_mode = jnp.cumsum(slip, axis=1)[:, :-1]

    def mean(pair: tuple[jax.Array, jax.Array]) -> jax.Array:
        state, action = pair
        own = jax.random.fold_in(
            jax.random.fold_in(key, lax.bitcast_convert_type(state, jnp.int32).sum()), action
        )
        in_hole, in_goal = LAKE.features(state[None])[0, -2:] > 0

        def add(sample: Any, total: jax.Array) -> jax.Array:
            first, second, third = jax.random.uniform(
                jax.random.fold_in(own, sample), (3, len(mobility))
            )
            mode = jnp.where(in_hole, 0, (first[:, None] >= up_to_mode).sum(axis=1))
            length = SHORTEST + spread * second
            candidate = (
                state
                + length[:, None]
                * jnp.asarray(DIRECTIONS, jnp.float32)[jnp.asarray(MODES)[action, mode]]
            )
            inside = ((candidate >= 0.0) & (candidate <= SIDE)).all(axis=1)
            moves = inside & (~in_hole | (first < mobility))
            cell = jnp.asarray(ORDINARY)[(third * len(ORDINARY)).astype(jnp.int32)]
            restart = jnp.stack([cell % SIDE + first, cell // SIDE + second], axis=1)
            following = jnp.where(in_goal, restart, jnp.where(moves[:, None], candidate, state))
            # the goal is the last cell
            return total + (following >= SIDE - 1).all(axis=1) + discount * value(following)

        return lax.fori_loop(0, samples, add, jnp.zeros(len(mobility))) / samples

    actions = jnp.tile(jnp.arange(len(MODES)), len(states))
    means: jax.Array = lax.map(mean, (jnp.repeat(states, len(MODES), axis=0), actions))
    return means.reshape(len(states), len(MODES), -1)


SIMULATED = _OtherTargets(_simulated_targets)


# --- targets --------------------------------------------------------------------------------------


def _targets(followed: _Followed, quick: bool) -> dict:
    """Time and error of a pseudo-episode's targets, integrated and simulated.

    Simulation handles one training state after the other, so its time is proportional to their
    number. An iteration with a quarter of them is timed (their u_k, targets and quantiles; the
    gradient steps hardly matter) and multiplied by four. Errors are those of the quantile targets
    of one iteration; for simulation, at every ``stride``-th state.
    """
    timed, judged, stride = ((3, 10), (3, 10, 30), 8) if quick else ((30, 100), (30, 100, 300), 4)
    iteration = replace(FITTING, iterations=1)
    quarter = replace(iteration, states=FITTING.states // 4)
    whole, one, part = (_Episode.of(followed, fitting) for fitting in (FITTING, iteration, quarter))

    def simulation(episode: _Episode, samples: int, seed: int) -> _Episode:
        return replace(episode, draws=_Simulation(episode.draws, samples, jax.random.key(seed)))

    cases = {"integrals": Case(lambda _: whole.plan(LAKE), seconds=0.5)}
    for samples in timed:
        cases[str(samples)] = Case(
            run=lambda simulated: simulated.plan(SIMULATED, quarter),
            # one function is compiled for any number of samples, so that one sample is enough to
            # warm up
            prepare=lambda number, samples=samples: simulation(
                part, samples if number else 1, number
            ),
            seconds=0.0,
        )
    seconds = interleave(cases, rounds=1 if quick else 3)
    pieces = 4 * FITTING.iterations
    simulated = {samples: [pieces * piece for piece in seconds[str(samples)]] for samples in timed}
    longer = {
        samples: Ratio.of(found, seconds["integrals"]) for samples, found in simulated.items()
    }
    ours, few, many = map(statistics.median, (seconds["integrals"], *simulated.values()))

    def extrapolated(samples: float) -> float:
        return many + (many - few) / (timed[1] - timed[0]) * (samples - timed[1])

    exact = one.quantiles(FINE_LAKE)
    our_error = _root_mean_square(one.quantiles(LAKE) - exact)
    errors = {
        samples: _root_mean_square(
            simulation(one, samples, samples).quantiles(SIMULATED, stride) - exact[::stride]
        )
        for samples in judged
    }
    order = float(np.log(errors[judged[0]] / errors[judged[-1]]) / np.log(judged[-1] / judged[0]))
    # the better of the measured order and that of the law of large numbers, to favour simulation
    enough = judged[-1] * (errors[judged[-1]] / our_error) ** (1 / max(order, 0.5))
    assert whole.ranks is not None
    used = float(np.mean(whole.ranks.count)) / FITTING.draws

    def row(samples: float, error: float) -> tuple[object, ...]:
        # a line through the two measured times, which it reproduces
        cells = f"simulation, M = {samples:.3g}", f"{extrapolated(samples):.3g}"
        if samples in timed:
            return *cells, longer[int(samples)], "measured", f"{error:.2g}"
        return *cells, f"{extrapolated(samples) / ours:.3g}", "extrapolated", f"{error:.2g}"

    print_table(
        f"Planning one pseudo-episode of AQ-BRMDP after {followed.agent.progress.steps} steps, "
        f"{FITTING.draws} posterior draws; quantile targets range over {np.ptp(exact):.2g}",
        ("targets", "s", "times as long (range)", "time is", "rms error"),
        [
            ("integrals (brmdp)", f"{ours:.3g}", 1, "measured", f"{our_error:.2g}"),
            *(row(samples, error) for samples, error in errors.items()),
            row(enough, our_error),
        ],
    )
    print(
        f"Extrapolated linearly in M; the error of simulation falls like M^-{order:.2f}. Targets "
        f"are computed for all draws, as u_k needs them; the quantiles use {100 * used:.0f} % of "
        "them, by the budget rule"
    )
    return {
        "seconds": {"integrals": seconds["integrals"]}
        | {str(samples): found for samples, found in simulated.items()},
        "times_as_long": {str(samples): asdict(ratio) for samples, ratio in longer.items()},
        "rms_error": {"integrals": our_error}
        | {str(samples): error for samples, error in errors.items()},
        "order_of_simulation": order,
        "part_of_draws_in_quantiles": used,
        "equal_accuracy_extrapolated": {
            "samples": enough,
            "seconds": extrapolated(enough),
            "times_as_long": extrapolated(enough) / ours,
        },
    }


def _root_mean_square(difference: np.ndarray) -> float:
    return float(np.sqrt(np.mean(difference.astype(np.float64) ** 2)))


# --- growth ---------------------------------------------------------------------------------------

DRAWS, STATES, NODES_PER_SIDE = "posterior draws", "training states", "nodes per cell side"
SIZES = {DRAWS: (400, 800, 3200), STATES: (32, 128, 512), NODES_PER_SIDE: (4, 8, 16)}


def _growth(followed: _Followed, rounds: int) -> dict:
    """Time of planning a pseudo-episode when one size changes, and what finer nodes gain."""
    episode = _Episode.of(followed, replace(FITTING, iterations=1))
    exact = episode.quantiles(FINE_LAKE)
    cases, usual, errors = {}, {}, {}
    for name, sizes in SIZES.items():
        for size in sizes:
            label = f"{name}: {size}"
            fitting, model = _sized(name, size)
            planned = _Episode.of(followed, fitting)
            cases[label] = Case(lambda _, p=planned, m=model, f=fitting: p.plan(m, f), seconds=0.1)
            usual[label] = f"{name}: {sizes[1]}"
            if name == NODES_PER_SIDE:
                errors[label] = _root_mean_square(episode.quantiles(model) - exact)
    seconds = interleave(cases, rounds)
    longer = {label: Ratio.of(times, seconds[usual[label]]) for label, times in seconds.items()}
    print_table(
        "Planning a pseudo-episode of AQ-BRMDP when one size changes (the second of each is the "
        "usual one)",
        ("size", "ms (range)", "times as long (range)", "rms error of quantile targets"),
        [
            (
                label,
                milliseconds(times),
                longer[label],
                f"{errors[label]:.2g}" if label in errors else "",
            )
            for label, times in seconds.items()
        ],
    )
    return {
        label: {
            "seconds": times,
            "times_as_long_as_usual": asdict(longer[label]),
            "rms_error": errors.get(label),
        }
        for label, times in seconds.items()
    }


def _sized(name: str, size: int) -> tuple[FittedQ, LakeModel]:
    """Settings and model with one size changed."""
    if name == DRAWS:
        return replace(FITTING, draws=size), LAKE
    if name == STATES:
        return replace(FITTING, states=size), LAKE
    return FITTING, LakeModel(panels=size // NODES)


# --- where the time goes --------------------------------------------------------------------------

FREE = _OtherTargets(lambda value, states, draws, discount: jnp.zeros((len(states), len(MODES), 1)))
"""Targets that cost nothing."""

BLOCK = 10
"""Pseudo-episodes that are timed together."""


def _shares(followed: dict[str, _Followed], rounds: int) -> dict:
    """Parts of the time of a pseudo-episode of mean length; the remainder is called the rest."""
    parts = {name: _parts(one, rounds) for name, one in followed.items()}
    rows = []
    for part in parts["AQ-BRMDP"]:
        cells = (
            (1e3 * found[part], 100 * found[part] / found["whole"]) for found in parts.values()
        )
        rows.append(
            (part, *(cell for ms, share in cells for cell in (f"{ms:.3g}", f"{share:.0f} %")))
        )
    print_table(
        f"Where the time of a pseudo-episode of {LENGTH} steps goes late in a run, medians of "
        f"{rounds} alternating rounds",
        ("part", *(header for name in parts for header in (f"{name}: ms", "share"))),
        rows,
    )
    acting, sampling = (found["whole"] - found["true regret"] for found in parts.values())
    print(
        "Without the measurement of true regret, a pseudo-episode of AQ-BRMDP takes "
        f"{acting / sampling:.2f} times one of Continuing PSRL, asked "
        f"{verdict(acting / sampling, at_most=LONGEST_RATIO)}"
    )
    shares: dict = {
        name: {
            part: {"seconds": time, "share": time / found["whole"]} for part, time in found.items()
        }
        for name, found in parts.items()
    }
    return shares | {"times_as_long_as_psrl_without_regret": acting / sampling}


def _parts(followed: _Followed, rounds: int) -> dict[str, float]:
    """Median seconds of each part.

    Fits of three kinds are timed: with targets that cost nothing, with their mean over the draws,
    and with their quantiles; the differences are the cost of targets and of quantiles inside the
    compiled loop.
    """
    agent, visited = followed
    agent.restart = FixedLength(LENGTH)
    episode = _Episode.of(followed)
    averaged = replace(episode, ranks=None)
    adaptive = episode.ranks is not None
    centres = agent.model.centres.astype(np.float32)

    def unsure(_: int) -> None:
        episode.uncertainty(LAKE, centres)
        episode.uncertainty(LAKE, episode.states.reshape(-1, 2))

    cases = {
        "whole": Case(lambda _: simulate_lake(agent, BLOCK * LENGTH, seed=3), seconds=0.0),
        "regret": Case(
            run=lambda policy: policy_values(policy, DISCOUNT).at(visited[-LENGTH:]),
            prepare=lambda _: agent.policy_preferences(),
            seconds=0.1,
        ),
        "gradients": Case(lambda _: averaged.fit(FREE), seconds=0.1),
        "averages": Case(lambda _: averaged.fit(LAKE), seconds=0.1),
    }
    if adaptive:
        cases |= {
            "quantiles": Case(lambda _: episode.fit(LAKE), seconds=0.1),
            "uncertainty": Case(unsure, seconds=0.1),
        }
    median = {name: statistics.median(times) for name, times in interleave(cases, rounds).items()}
    found = {
        "gradient steps": median["gradients"],
        "targets": median["averages"] - median["gradients"],
        "quantiles": median["quantiles"] - median["averages"] if adaptive else 0.0,
        "uncertainty u_k": median["uncertainty"] if adaptive else 0.0,
        "true regret": median["regret"],
    }
    whole = median["whole"] / BLOCK
    return found | {
        "rest (draws, levels, acting, environment)": whole - sum(found.values()),
        "whole": whole,
    }
