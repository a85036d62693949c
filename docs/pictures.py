"""The picture at the top of README and of the start page, and the style of the gallery.

``python docs/pictures.py`` writes ``docs/figures/dial.png``: what caution does to a plan, and what
the plan is truly worth, for logs of four lengths. It takes about twenty seconds.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from cycler import cycler
from matplotlib.figure import Figure

import brmdp
from brmdp._validation import FloatArray
from brmdp.report.style import (
    BLACK,
    BLUE,
    COLUMN,
    GREEN,
    ORANGE,
    PURPLE,
    STYLE,
    VERMILION,
    new_figure,
    picture,
    styled,
)

FIGURES = Path(__file__).parent / "figures"

SMALL_SCREENS: dict[str, Any] = {
    "font.size": 10.5,
    "axes.titlesize": 11.0,
    "axes.labelsize": 10.5,
    "legend.fontsize": 10.0,
    "xtick.labelsize": 9.5,
    "ytick.labelsize": 9.5,
}
"""Type that can be read when a text column is as narrow as a telephone."""

# neighbours differ in colour, line and marker, so that they can be told apart in grey
CURVES = (
    cycler(color=[BLUE, VERMILION, BLACK, GREEN, ORANGE, PURPLE])
    + cycler(linestyle=["-", "--", ":", "-.", "-", "--"])
    + cycler(marker=["o", "s", "v", "^", "D", "x"])
)


def gallery_style(gallery_conf: object = None, name: object = None) -> None:
    """Let pyplot draw in the common style; sphinx-gallery calls this before every example."""
    matplotlib.rcParams.update(
        STYLE
        | SMALL_SCREENS
        | {
            "figure.figsize": (COLUMN, 3.4),
            "figure.constrained_layout.use": True,
            "savefig.dpi": 160,
            "lines.markersize": 4.5,
            "text.parse_math": True,  # powers on logarithmic axes
            "axes.prop_cycle": CURVES,
        }
    )


def page_style() -> None:
    """Let pyplot draw in the common style on pages with code; their kernels call this first."""
    matplotlib.rcParams.update(
        STYLE
        | {
            "figure.figsize": (4.6, 2.9),
            "figure.constrained_layout.use": True,
            "text.parse_math": True,
        }
    )


# --- the dial -------------------------------------------------------------------------------------

WEAR, DISCOUNT, LOGS = 10, 0.95, 200
DAYS = (50, 200, 1000, 5000)
LEVELS = np.array([0.02, 0.05, *np.arange(0.1, 0.95, 0.1), 0.95, 0.98])


def machine() -> brmdp.TabularMDP:
    """Ten states of wear, then broken; every day it is run or renewed.

    It earns 1 a day and wears by 0 to 2. The more it is worn, the likelier it breaks. To renew it
    costs 3. Once it is broken, it has to be renewed, which costs 15.
    """
    broken = WEAR
    kernel = np.zeros((WEAR + 1, 2, WEAR + 1))
    for wear in range(WEAR):
        breaks = 0.005 + 0.012 * wear**1.2
        kernel[wear, 0, broken] = breaks
        for more, probability in enumerate((0.45, 0.4, 0.15)):
            kernel[wear, 0, min(wear + more, WEAR - 1)] += probability * (1.0 - breaks)
    kernel[broken, 0, 0] = 1.0
    kernel[:, 1, 0] = 1.0
    rewards = np.array([[1.0, -3.0]] * WEAR + [[-15.0, -15.0]])
    return brmdp.TabularMDP(kernel, rewards, DISCOUNT)


def logs_of(world: brmdp.TabularMDP, number: int) -> Iterator[brmdp.DirichletBelief]:
    """The belief after so many days of a log, for each length."""
    rng = np.random.default_rng([7, number])
    cumulated = world.kernel().cumsum(axis=2)
    belief = brmdp.DirichletBelief.uniform(WEAR + 1, 2, 0.5, possible=world)
    state = 0
    for day in range(DAYS[-1]):
        # so far: renewed when broken, and otherwise by feeling
        renew = state == WEAR or rng.random() < 0.03 + 0.03 * state
        following = int((cumulated[state, int(renew)] <= rng.random()).sum())
        belief.observe(state, int(renew), following)
        state = following
        if day + 1 in DAYS:
            yield belief


def turned(world: brmdp.TabularMDP, logs: int) -> tuple[FloatArray, FloatArray]:
    """Limits and true values by log, length and level.

    The limit is the wear from which the machine is renewed; ten means only when broken.
    """
    limits = np.empty((logs, len(DAYS), LEVELS.size))
    values = np.empty_like(limits)
    known: dict[bytes, float] = {}
    for number in range(logs):
        for length, belief in enumerate(logs_of(world, number)):
            plan = None
            for k, level in enumerate(LEVELS.tolist()):
                risk = brmdp.Quantile(level)
                plan = brmdp.plan(belief, world.rewards, DISCOUNT, risk=risk, initial=plan)
                policy = plan.policy
                if policy.tobytes() not in known:
                    known[policy.tobytes()] = float(brmdp.evaluate_in_mdp(world, policy)[0])
                limits[number, length, k] = np.append(policy[:WEAR], 1).argmax()
                values[number, length, k] = known[policy.tobytes()]
    return limits, values


def dial(logs: int = LOGS) -> Figure:
    """What caution does, and what it is worth."""
    world = machine()
    best = brmdp.solve(world)
    limits, values = turned(world, logs)
    with styled(), matplotlib.rc_context(SMALL_SCREENS):
        figure = new_figure(COLUMN, 5.6)
        above, below = figure.subplots(2, 1, sharex=True)
        looks = [
            (VERMILION, ":", "v"),
            (ORANGE, "-.", "D"),
            (GREEN, "--", "s"),
            (BLUE, "-", "o"),
        ]
        for length, (days, look) in enumerate(zip(DAYS, looks, strict=True)):
            colour, line, marker = look
            style = {"color": colour, "linestyle": line, "marker": marker, "markersize": 4.5}
            label = f"{days:,} days of log"
            above.plot(LEVELS, np.median(limits[:, length], axis=0), label=label, **style)
            mean = values[:, length].mean(axis=0)
            error = 1.96 * values[:, length].std(axis=0, ddof=1) / np.sqrt(logs)
            below.fill_between(LEVELS, mean - error, mean + error, color=colour, alpha=0.15, lw=0)
            below.plot(LEVELS, mean, **style)
        above.axhline(np.append(best.policy[:WEAR], 1).argmax(), color=BLACK, linewidth=0.9)
        below.axhline(best.values[0], color=BLACK, linewidth=0.9)
        above.set_title("When is the machine renewed? (median plan)")
        above.set_ylabel("from this wear on")
        above.set_yticks([2, 4, 6, 8, 10], ["2", "4", "6", "8", "broken"])
        below.set_title("What is that truly worth? (mean, 95 % intervals)")
        below.set_ylabel("discounted profit")
        below.set_xlabel("cautious  ←  quantile level of the plan  →  curious")
        below.set_xlim(0.0, 1.0)
        below.annotate(
            "best, if the truth were known",
            (0.98, best.values[0]),
            xytext=(0, 3),
            textcoords="offset points",
            ha="right",
            va="bottom",
        )
        below.set_ylim(top=best.values[0] + 1.6)
        above.legend(loc="upper left")
    return figure


def main() -> None:
    """Write the picture."""
    warnings.simplefilter("ignore", brmdp.PriorWarning)
    (FIGURES / "dial.png").write_bytes(picture(dial(), "png"))


if __name__ == "__main__":
    main()
