"""Values of policies in posterior draws, against a plain NumPy loop over the draws; learned priors.

A learned prior has no counterpart to compare with, so its times are seconds of this process.
"""

from __future__ import annotations

import os
import statistics
import tracemalloc
import warnings
from dataclasses import asdict
from time import perf_counter, process_time

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

import brmdp
from benchmarks.timing import Case, Ratio, interleave, milliseconds, print_table
from brmdp.decisions import certify, learn_prior, values_in_draws

LIBRARY, LOOP = "values_in_draws", "NumPy loop"


def run(quick: bool) -> dict:
    """Time both on a small and a large problem, then the certificate of the small one."""
    report = {
        "16 states": _measure(_dense(16, 4), 0.95, draws=10_000, looped=1_000, rounds=5),
        "716 states": _measure(
            _sparse(716, 25, 100), 0.99, draws=100 if quick else 1_000, looped=20, rounds=1
        ),
    }
    belief, rewards = _dense(16, 4)
    policy = np.random.default_rng(0).integers(4, size=16)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", brmdp.PriorWarning)
        begin = perf_counter()
        found = certify(
            belief, rewards, 0.95, policy=policy, start=0, draws=10_000, gap=1e-9, rng=0
        )
        seconds = perf_counter() - begin
    print(f"\n{found.draws} draws of a 16-state policy certified in {seconds:.3g} s (target 0.5 s)")
    large = report["716 states"]["one action per state"]
    print(
        f"{large['draws']} draws at 716 states in {large['median_seconds']:.3g} s (target: 1,000 "
        f"draws in 20 s on two cores; this process has {len(os.sched_getaffinity(0))})"
    )
    return report | {
        "certificate": {"draws": found.draws, "seconds": seconds},
        "memory": _memory((20_000, 100_000)),
        "learned prior": _learned(quick),
    }


def _memory(numbers: tuple[int, int]) -> dict:
    """The most that is held while so many draws are evaluated; it should not grow with them."""
    belief, rewards = _dense(16, 4)
    policy = np.random.default_rng(0).integers(4, size=16)
    held = {}
    for draws in numbers:
        tracemalloc.start()
        values_in_draws(belief, rewards, 0.95, [policy], start=0, draws=draws, rng=0)
        # the values themselves are asked for: one number per draw, and its error
        held[draws] = tracemalloc.get_traced_memory()[1] - 16 * draws
        tracemalloc.stop()
    few, many = held.values()
    shown = ", ".join(f"{draws:,}: {1e-6 * size:.2f} MB" for draws, size in held.items())
    print(f"memory beside the values, by number of draws: {shown}; ratio {many / few:.3g}")
    return {"bytes": held, "ratio": many / few}


def _learned(quick: bool) -> dict:
    """Many rows that drift alike, and many actions per state."""
    n_rows = 10_000 if quick else 100_000
    states, actions = (100, 5) if quick else (716, 25)
    tasks = {
        f"{n_rows:,} rows, increments within 5, ten transitions each": lambda: learn_prior(
            _drifting(n_rows), shape="increments", reach=5, rng=0
        ),
        f"{n_rows:,} rows, the shape chosen": lambda: learn_prior(
            _drifting(n_rows), reach=5, rng=0
        ),
        f"{states} × {actions}, actions alike, 200,000 transitions": lambda: learn_prior(
            _alike(states, actions), shape="actions", rng=0
        ),
    }
    report = {}
    for name, task in tasks.items():
        begin = process_time()
        learned = task()
        seconds = process_time() - begin
        print(f"learn_prior: {name}: {seconds:.3g} s, worth {learned.mixing.effective:.0f} draws")
        report[name] = {"seconds": seconds, "effective": learned.mixing.effective}
    return report


def _drifting(n_states: int) -> sparse.csr_array:
    rng = np.random.default_rng(3)
    begin = np.repeat(np.arange(n_states), 10)
    steps = rng.choice([-1, 0, 1, 2, 3], size=begin.size, p=[0.1, 0.3, 0.3, 0.2, 0.1])
    end = np.clip(begin + steps, 0, n_states - 1)
    return sparse.csr_array((np.ones(begin.size), (begin, end)), shape=(n_states, n_states))


def _alike(n_states: int, n_actions: int) -> sparse.csr_array:
    """Rows that vary about twelve successors of their state, κ = 20, visited unevenly."""
    rng = np.random.default_rng(4)
    share = np.outer(rng.dirichlet(np.full(n_states, 0.5)), rng.dirichlet(np.ones(n_actions)))
    visits = rng.multinomial(200_000, share.ravel() / share.sum())
    rows, columns = [], []
    for state in range(n_states):
        successors = rng.choice(n_states, 12, replace=False)
        law = rng.dirichlet(np.full(12, 2.0))
        for pair in range(state * n_actions, (state + 1) * n_actions):
            seen = rng.choice(successors, visits[pair], p=rng.dirichlet(20.0 * law))
            rows.append(np.full(seen.size, pair))
            columns.append(seen)
    row, column = np.concatenate(rows), np.concatenate(columns)
    shape = (n_states * n_actions, n_states)
    return sparse.csr_array((np.ones(row.size), (row, column)), shape=shape)


def _measure(
    problem: tuple[brmdp.DirichletBelief, np.ndarray],
    discount: float,
    draws: int,
    looped: int,
    rounds: int,
) -> dict:
    belief, rewards = problem
    rng = np.random.default_rng(0)
    n_states, n_actions = belief.n_states, belief.n_actions
    fixed = rng.integers(n_actions, size=n_states)
    report = {}
    policies = {"one action per state": fixed}
    if n_states <= 100:
        policies["probabilities of actions"] = rng.dirichlet(np.ones(n_actions), n_states)
    rows = []
    for name, policy in policies.items():
        cases = {
            LIBRARY: Case(
                lambda _, p=policy: values_in_draws(
                    belief, rewards, discount, [p], start=0, draws=draws, rng=0
                ),
                seconds=0.0,
            ),
            LOOP: Case(
                lambda _, p=policy: _loop(belief, rewards, discount, p, looped), seconds=0.0
            ),
        }
        # several threads for one small system would only wait for each other
        with threadpool_limits(1):
            seconds = interleave(cases, rounds)
        seconds[LOOP] = [draws / looped * time for time in seconds[LOOP]]
        faster = Ratio.of(seconds[LOOP], seconds[LIBRARY])
        report[name] = {
            "draws": draws,
            "median_seconds": statistics.median(seconds[LIBRARY]),
            "times_faster_than_loop": asdict(faster),
        }
        rows.append((name, milliseconds(seconds[LIBRARY]), milliseconds(seconds[LOOP]), faster))
    print_table(
        f"{draws} draws, {n_states} states (the loop: {looped} draws, scaled)",
        ("policy", "ms (range)", "loop, ms (range)", "times faster (range)"),
        rows,
    )
    return report


def _loop(
    belief: brmdp.DirichletBelief, rewards: np.ndarray, discount: float, policy: np.ndarray, n: int
) -> list[float]:
    """What one would write first: NumPy's Dirichlet sampler row by row, one system per draw."""
    rng = np.random.default_rng(0)
    n_states, n_actions = rewards.shape
    weights = policy if policy.ndim == 2 else np.eye(n_actions)[policy]
    pattern, phi = belief.pattern, belief.concentration_entries
    values = []
    for _ in range(n):
        kernel, paid = np.zeros((n_states, n_states)), np.zeros(n_states)
        for s, a in np.argwhere(weights > 0):
            row = slice(pattern.indptr[s * n_actions + a], pattern.indptr[s * n_actions + a + 1])
            kernel[s, pattern.next_states[row]] += weights[s, a] * rng.dirichlet(phi[row])
            paid[s] += weights[s, a] * rewards[s, a]
        values.append(np.linalg.solve(np.eye(n_states) - discount * kernel, paid)[0])
    return values


def _dense(n_states: int, n_actions: int) -> tuple[brmdp.DirichletBelief, np.ndarray]:
    rng = np.random.default_rng(1)
    belief = brmdp.DirichletBelief.uniform(n_states, n_actions)
    belief.observe(
        rng.integers(n_states, size=500),
        rng.integers(n_actions, size=500),
        rng.integers(n_states, size=500),
    )
    return belief, rng.normal(size=(n_states, n_actions))


def _sparse(n_states: int, n_actions: int, width: int) -> tuple[brmdp.DirichletBelief, np.ndarray]:
    """Random successors, a weak prior, and about ten observations of every pair."""
    rng = np.random.default_rng(2)
    possible = np.zeros((n_states * n_actions, n_states), dtype=bool)
    for row in possible:
        row[rng.choice(n_states, width, replace=False)] = True
    belief = brmdp.DirichletBelief.uniform(
        n_states, n_actions, 0.1, possible=possible.reshape(n_states, n_actions, n_states)
    )
    n = 10 * n_states * n_actions
    states, actions = rng.integers(n_states, size=n), rng.integers(n_actions, size=n)
    pattern = belief.pattern
    begins = pattern.indptr[states * n_actions + actions]
    following = pattern.next_states[begins + (width * rng.random(n) ** 3).astype(int)]
    belief.observe(states, actions, following)
    return belief, rng.normal(size=(n_states, n_actions))
