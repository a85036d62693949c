"""How time and memory grow: dense beliefs in one process, sparse ones each in its own.

``python -m benchmarks.growth S GRAPH`` plans one sparse problem and prints a line of JSON.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import warnings
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import numpy as np
from scipy import sparse

import brmdp
from benchmarks.timing import median_time, print_table, verdict
from brmdp.decisions import values_in_draws
from brmdp.planning.planner import solution_of

ACTIONS = 4
SUCCESSORS = 8


def successors(n_states: int, graph: str, rng: np.random.Generator) -> np.ndarray:
    """(S·A, 8) distinct successors of pairs: anywhere ("random") or near the state ("local")."""
    reach = n_states // SUCCESSORS if graph == "random" else 4
    gaps = rng.integers(1, reach + 1, size=(n_states * ACTIONS, SUCCESSORS))
    origin = np.repeat(np.arange(n_states), ACTIONS) - reach * SUCCESSORS // 2
    return np.sort((origin[:, None] + np.cumsum(gaps, axis=1)) % n_states, axis=1)


def visit_counts(n_rows: int, rng: np.random.Generator) -> np.ndarray:
    """(rows, 8) observed transitions per pair: 20 visits on average, spread unevenly."""
    visits = rng.geometric(1 / 20, size=n_rows) - 1
    return rng.multinomial(visits, rng.dirichlet(np.full(SUCCESSORS, 0.5), size=n_rows))


def random_levels(n_states: int, rng: np.random.Generator) -> np.ndarray:
    """A level for every pair, between the paper's floor and 0.95."""
    return rng.uniform(0.2, 0.95, size=(n_states, ACTIONS))


# --- dense: prior Dir(1, ..., 1) over all successors, as in the paper -----------------------------


def run_dense(quick: bool) -> dict:
    """Exact and saddlepoint plans for S = 16, 32, ..., 1024 with full support."""
    rows, report = [], {}
    for n_states in (2**power for power in range(4, 8 if quick else 11)):
        rng = np.random.default_rng(n_states)
        concentration = np.ones((n_states * ACTIONS, n_states))
        np.put_along_axis(
            concentration,
            successors(n_states, "random", rng),
            1.0 + visit_counts(n_states * ACTIONS, rng),
            axis=1,
        )
        belief = brmdp.DirichletBelief(concentration.reshape(n_states, ACTIONS, n_states))
        rewards, levels = rng.random((n_states, ACTIONS)), random_levels(n_states, rng)
        for method in ("exact", "saddlepoint"):
            risk = brmdp.Quantile(levels, method=method)

            def plan(belief=belief, rewards=rewards, risk=risk):
                return brmdp.plan(belief, rewards, 0.9, risk=risk)

            seconds, iterations = median_time(plan, 3 if n_states <= 256 else 1), plan().iterations
            per_row = seconds / (n_states * ACTIONS)
            report[f"{n_states} {method}"] = {
                "seconds": seconds,
                "iterations": iterations,
                "seconds_per_row": per_row,
            }
            rows.append((n_states, method, f"{seconds:.4f}", iterations, f"{1e6 * per_row:.1f}"))
    print_table(
        f"Dense beliefs, {ACTIONS} actions, discount 0.9",
        ("states", "method", "seconds", "sweeps", "µs per row"),
        rows,
    )
    return report


# --- sparse: 8 possible successors per pair -------------------------------------------------------


def run_sparse(quick: bool) -> dict:
    """Exact plans for up to 10⁵ states on two threads.

    Each size runs in its own process, so that its peak memory can be measured.
    """
    rows, report = [], {}
    environment = os.environ | {"NUMBA_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
    for graph in ("random", "local"):
        for n_states in (1_000, 10_000) if quick else (1_000, 10_000, 100_000):
            command = [sys.executable, "-m", "benchmarks.growth", str(n_states), graph]
            output = subprocess.run(
                command, check=True, capture_output=True, text=True, env=environment
            )
            result = json.loads(output.stdout)
            report[f"{n_states} {graph}"] = result
            largest = n_states == 100_000
            rows.append(
                (
                    n_states,
                    graph,
                    f"{result['seconds']:.2f}",
                    verdict(result["seconds"], at_most=60 if largest else None),
                    f"{result['peak_gigabytes']:.2f}",
                    verdict(result["peak_gigabytes"], at_most=2 if largest else None),
                    result["iterations"],
                    f"{result['error_bound']:.0e}",
                    f"{1e6 * result['seconds'] / (n_states * ACTIONS):.1f}",
                )
            )
    print_table(
        f"Sparse beliefs, {SUCCESSORS} successors, {ACTIONS} actions, discount 0.95, exact to "
        "1e-6, two threads",
        (
            "states",
            "graph",
            "seconds",
            "target",
            "peak GB",
            "target",
            "sweeps",
            "error bound",
            "µs per row",
        ),
        rows,
    )
    return report


def plan_sparse(n_states: int, graph: str) -> dict:
    """Plan one random sparse problem; time, iterations and the peak memory of this process."""
    rng = np.random.default_rng(n_states)
    n_rows = n_states * ACTIONS
    shape, pointers = (n_rows, n_states), np.arange(0, n_rows * SUCCESSORS + 1, SUCCESSORS)
    columns = successors(n_states, graph, rng).ravel()
    counts = 0.5 + visit_counts(n_rows, rng)
    belief = brmdp.DirichletBelief(
        sparse.csr_array((counts.ravel(), columns, pointers), shape=shape)
    )
    rewards = sparse.csr_array((rng.random(columns.size), columns, pointers), shape=shape)
    risk = brmdp.Quantile(random_levels(n_states, rng))
    begin = perf_counter()
    solution = brmdp.plan(belief, rewards, 0.95, risk=risk, tolerance=1e-6)
    seconds = perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # kilobytes, but bytes on macOS
    return {
        "seconds": seconds,
        "iterations": solution.iterations,
        "error_bound": solution.error_bound,
        "status": str(solution.status),
        "peak_gigabytes": peak / (1e9 if sys.platform == "darwin" else 1e6),
    }


# --- chains: news has to travel from one end to the other -----------------------------------------


def chain(n_states: int, visits: float = 20.0) -> tuple[sparse.csr_array, sparse.csr_array]:
    """RiverSwim of any length without a dense array: concentrations 1 + visits · p, and rewards."""
    states = np.arange(n_states)
    steps = np.stack(
        [states - 1, states - 1, states, states + 1], axis=1
    )  # left; right: falls back, stays, moves on
    shares = np.tile([1.0, 0.05, 0.6, 0.35], (n_states, 1))
    shares[0, 1:], shares[-1, 1:] = (0.0, 0.4, 0.6), (0.4, 0.6, 0.0)
    rows = 2 * states[:, None] + [0, 1, 1, 1]
    used = shares > 0
    columns = np.clip(steps, 0, n_states - 1)[used]
    paid = np.zeros_like(shares)
    paid[0, 0], paid[-1, 2] = 0.005, 1.0
    place, shape = (rows[used], columns), (2 * n_states, n_states)
    return (
        sparse.csr_array((1.0 + visits * shares[used], place), shape=shape),
        sparse.csr_array((paid[used], place), shape=shape),
    )


def run_chains(quick: bool) -> dict:
    """Cautious plans of chains.

    Sweeps and time per state should not grow with the length or the discount.
    """
    rows, report = [], {}
    brmdp.plan(
        brmdp.DirichletBelief(chain(6)[0]), chain(6)[1], 0.9, risk=brmdp.Quantile(0.1)
    )  # compile
    for n_states in (100, 500, 2_000) if quick else (100, 500, 2_000, 10_000):
        for discount in (0.99, 0.999, 0.9999):
            concentration, rewards = chain(n_states)
            belief = brmdp.DirichletBelief(concentration)
            begin = perf_counter()
            solution = brmdp.plan(
                belief,
                rewards,
                discount,
                risk=brmdp.Quantile(0.1),
                tolerance=1e-9 / (1.0 - discount),
            )
            seconds = perf_counter() - begin
            per_state = seconds / n_states
            report[f"{n_states} {discount}"] = {
                "seconds": seconds,
                "iterations": solution.iterations,
            }
            rows.append(
                (
                    n_states,
                    discount,
                    f"{seconds:.2f}",
                    solution.iterations,
                    f"{1e6 * per_state:.0f}",
                )
            )
    print_table(
        "Chains (RiverSwim), Quantile(0.1), relative accuracy 1e-9",
        ("states", "discount", "seconds", "sweeps", "µs per state"),
        rows,
    )
    return report


# --- how every cost grows -------------------------------------------------------------------------


def _sparse_problem(
    n_states: int, n_actions: int, width: int, prior: float = 1.0
) -> tuple[brmdp.DirichletBelief, np.ndarray]:
    """Random successors, and 20 observations of every pair on average."""
    rng = np.random.default_rng(n_states + n_actions + width)
    n_rows = n_states * n_actions
    order = rng.random((n_rows, n_states)).argsort(axis=1)[:, :width]
    columns = np.sort(order, axis=1).ravel()
    visits = rng.geometric(1 / 20, size=n_rows) - 1
    counts = rng.multinomial(visits, rng.dirichlet(np.full(width, 0.5), size=n_rows))
    pointers = np.arange(0, n_rows * width + 1, width)
    belief = brmdp.DirichletBelief(
        sparse.csr_array((prior + counts.ravel(), columns, pointers), shape=(n_rows, n_states))
    )
    return belief, rng.random((n_states, n_actions))


def run_costs(quick: bool) -> dict:
    """Processor time against states, actions, successors, levels and draws, and time by threads.

    Everything else stays as it is: 64 states, 4 actions, 8 successors, Quantile(0.3), one thread.
    """
    rounds = 3 if quick else 9
    report: dict[str, Any] = {}

    def price(task: Callable[[], object], clock: Callable[[], float] = process_time) -> float:
        task()
        found = []
        for _ in range(rounds):
            begin, calls = clock(), 0
            while not calls or clock() - begin < 0.02:
                task()
                calls += 1
            found.append((clock() - begin) / calls)
        return statistics.median(found)

    def planned(*shape: Any, risk: Any = None) -> float:
        belief, rewards = _sparse_problem(*shape)
        measure = brmdp.Quantile(0.3) if risk is None else risk
        return price(lambda: solution_of(belief, rewards, 0.9, measure))

    small = _sparse_problem(64, 4, 8)

    def levels(count: int) -> float:
        risks = [brmdp.Quantile(level) for level in np.linspace(0.05, 0.95, count)]
        return price(lambda: brmdp.plan_many(*small, 0.9, risk=risks))

    def draws(count: int) -> float:
        policy = np.zeros(64, dtype=int)
        return price(lambda: values_in_draws(*small, 0.9, policy, start=0, draws=count, rng=0))

    def threads(count: int) -> float:
        os.environ["BRMDP_NUM_THREADS"] = str(count)
        belief, rewards = large
        return price(lambda: solution_of(belief, rewards, 0.9, brmdp.Quantile(0.3)), perf_counter)

    before = os.environ.get("BRMDP_NUM_THREADS")
    large = _sparse_problem(4_000, 4, 8)
    try:
        os.environ["BRMDP_NUM_THREADS"] = "1"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", brmdp.PriorWarning)
            for name, sizes, cost in (
                ("states", (16, 64, 256, 1024), lambda n: planned(n, 4, 8)),
                ("actions", (2, 8, 32), lambda n: planned(64, n, 8)),
                ("successors", (2, 8, 32), lambda n: planned(64, 4, n)),
                ("levels", (1, 10, 40, 160), levels),
                ("draws", (1_000, 10_000), draws),
                ("threads", (1, os.cpu_count() or 1), threads),
            ):
                report[name] = {str(n): cost(n) for n in dict.fromkeys(sizes)}
            report["fraction"] = {
                "integer": planned(16, 4, 16, 1.0),
                "fractional": planned(16, 4, 16, 0.7),
            }
    finally:
        if before is None:
            del os.environ["BRMDP_NUM_THREADS"]
        else:
            os.environ["BRMDP_NUM_THREADS"] = before
    rows = []
    for name, costs in report.items():
        times = list(costs.values())
        sizes = [float(n) for n in costs] if name != "fraction" else []
        power = (
            np.log(times[-1] / times[0]) / np.log(sizes[-1] / sizes[0]) if len(sizes) > 1 else None
        )
        shown = ", ".join(f"{size}: {1e3 * time:.3g}" for size, time in costs.items())
        rows.append((name, shown, "" if power is None else f"{power:.2f}"))
    print_table(
        "How costs grow (ms of processor time; of the clock for threads)",
        ("with", "ms", "power"),
        rows,
    )
    report["fractional_as_long_as_integer"] = (
        report["fraction"]["fractional"] / report["fraction"]["integer"]
    )
    return report


if __name__ == "__main__":
    plan_sparse(2_000, sys.argv[2])  # compile every path that the large problem takes
    print(json.dumps(plan_sparse(int(sys.argv[1]), sys.argv[2])))
