"""Plans whose rows once took far longer than others.

These are rows with the two successors of a grid, and rows with hundreds of very light ones.
"""

from __future__ import annotations

import statistics
from dataclasses import asdict

import numpy as np

import brmdp
from benchmarks.timing import Case, Ratio, interleave, milliseconds, print_table, verdict

SIDE = 5
MOVES = ((0, -1), (0, 1), (-1, 0), (1, 0))
LIGHT = 0.01


def grid() -> tuple[np.ndarray, np.ndarray]:
    """Concentrations and rewards of a 5 × 5 grid.

    Every move may fail, and the far corner pays 10 and leads back to the start.
    """
    n_states = SIDE * SIDE
    concentration = np.zeros((n_states, len(MOVES), n_states))
    rewards = np.zeros_like(concentration)
    for state in range(n_states - 1):
        row, column = divmod(state, SIDE)
        for action, (down, right) in enumerate(MOVES):
            to = (min(max(row + down, 0), SIDE - 1), min(max(column + right, 0), SIDE - 1))
            concentration[state, action, [state, to[0] * SIDE + to[1]]] = 1.0
    concentration[-1, :, 0] = 1.0
    rewards[-1, :, 0] = 10.0
    return concentration, rewards


def run(quick: bool) -> dict:
    """Exact against saddlepoint plans of the grid, very light against ordinary priors."""
    return {
        "grid": _grid(rounds=5 if quick else 25),
        "light": _light(200 if quick else 716, rounds=1 if quick else 3),
    }


def _planning(belief: brmdp.DirichletBelief, rewards: np.ndarray, risk: brmdp.Quantile) -> Case:
    return Case(lambda _: brmdp.plan(belief, rewards, 0.95, risk=risk))


def _grid(rounds: int) -> dict:
    concentration, rewards = grid()
    rng = np.random.default_rng(25)
    beliefs = {
        "prior": concentration,
        "20 visits per pair": concentration
        + (concentration > 0) * rng.integers(0, 20, concentration.shape),
    }
    rows, report = [], {}
    for name, counts in beliefs.items():
        belief = brmdp.DirichletBelief(counts)
        cases = {
            method: _planning(belief, rewards, brmdp.Quantile(0.1, method=method))
            for method in ("exact", "saddlepoint")
        }
        seconds = interleave(cases, rounds)
        slower = Ratio.of(seconds["exact"], seconds["saddlepoint"])
        report[name] = {
            "median_seconds": {
                method: statistics.median(times) for method, times in seconds.items()
            },
            "exact_as_long_as_saddlepoint": asdict(slower),
            "target": 3,
        }
        times = (milliseconds(seconds[method]) for method in cases)
        rows.append((name, *times, slower, verdict(slower.median, at_most=3)))
    print_table(
        f"A {SIDE} × {SIDE} grid, two successors per pair, Quantile(0.1), discount 0.95, {rounds} "
        "alternating rounds",
        (
            "belief",
            "exact, ms (range)",
            "saddlepoint, ms (range)",
            "times as long (range)",
            "target",
        ),
        rows,
    )
    return report


def _light(n_states: int, rounds: int) -> dict:
    rng = np.random.default_rng(n_states)
    rewards = rng.random((n_states, 2))
    visits = rng.poisson(0.02, size=(n_states, 2, n_states))
    cases = {
        f"concentration {each:g}": _planning(
            brmdp.DirichletBelief(visits + each), rewards, brmdp.Quantile(0.1)
        )
        for each in (1.0, LIGHT)
    }
    seconds = interleave(cases, rounds)
    ordinary, light = seconds.values()
    print_table(
        f"{n_states} states, 2 actions, every state a possible successor, Quantile(0.1), discount "
        f"0.95, {rounds} rounds",
        ("prior", "ms (range)", "times as long (range)"),
        [(name, milliseconds(times), Ratio.of(times, ordinary)) for name, times in seconds.items()],
    )
    return {
        "states": n_states,
        "median_seconds": {name: statistics.median(times) for name, times in seconds.items()},
        "light_as_long_as_ordinary": asdict(Ratio.of(light, ordinary)),
    }
