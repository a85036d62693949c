"""Figures of ``examples``: both worlds, exposures (Proposition 2), and the trap (Proposition 3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle

from brmdp.mdp import TabularMDP
from brmdp.report.drawing import RADIUS, SMALL, arrow, canvas
from brmdp.report.estimates import estimate
from brmdp.report.style import (
    BLACK,
    BLUE,
    COLUMN,
    GREEN,
    VERMILION,
    CurveStyle,
    new_figure,
    styled,
    styles_of,
)
from brmdp.runs import Experiment, Replications
from brmdp.runs.program import parameters_of
from brmdp.studies.examples.analysis import Probing, agents_of, escape_steps
from brmdp.studies.examples.experiment import ExposureColumns
from brmdp.theory import Example, probing_example, robustness_example
from brmdp.theory.examples import START

__all__ = ["draw"]

Point: TypeAlias = tuple[float, float]

POSITIONS: dict[str, dict[str, Point]] = {
    "robustness": {"s0": (0.0, 0.0), "g": (2.6, 0.9), "b": (2.6, -0.9)},
    "probing": {
        "s0": (0.0, 0.0),
        "y_G": (2.3, 0.9),
        "y_B": (2.3, -0.9),
        "g": (4.8, 0.9),
        "b": (4.8, -0.9),
    },
}
"""Where each example's states are drawn."""

TITLES = {
    "robustness": "Robustness example: the risky action leads to g or to b, for ever",
    "probing": "Probing example: exploring costs one reward and reveals the true kernel",
}

STYLES = {
    "brmdp-0.2": CurveStyle("", VERMILION, (0, (5, 2)), "s", 1.8),
    "every-step": CurveStyle("", GREEN, (0, (1, 1.4)), "v", 1.8),
}
"""Styles of agents that have none in other figures."""

SPREAD = 0.6
"""Height over which the marks of a row are spread; rows are 1 apart."""

GOLDEN = 0.618
"""Its multiples, modulo 1, are spread evenly but look unordered."""

_GOOD: dict[str, Any] = {"color": BLUE, "linestyle": "-"}
_BAD: dict[str, Any] = {"color": VERMILION, "linestyle": (0, (4, 2))}
_BOTH: dict[str, Any] = {"color": BLACK, "linestyle": "-"}
_FAINT = {"alpha": 0.35}


def draw(experiment: Experiment, records: Mapping[str, Replications[Any]]) -> dict[str, Figure]:
    """Both worlds as schematics, exposures against the threshold, and regrets in the trap."""
    figures = {}
    if "exposure" in records:
        shown = records["exposure"]
        figures["examples-schematic-robustness"] = _schematic(_first_example(shown))
        figures["examples-exposure"] = _exposures(shown)
    good = {
        name: found
        for name, found in agents_of(records).items()
        if parameters_of(found.case)["truth"] == "good"
    }
    if good:
        example = _second_example(next(iter(good.values())))
        figures["examples-schematic-probing"] = _schematic(example)
        figures["examples-regret"] = _trap(example, good)
    return figures


def _first_example(found: Replications[Any]) -> Example:
    names = ("good_probability", "safe_reward", "loss", "discount")
    return robustness_example(*(found.case.parameters[name] for name in names))


def _second_example(found: Replications[Any]) -> Example:
    names = ("good_probability", "safe_reward", "discount")
    return probing_example(*(found.case.parameters[name] for name in names))


# --- schematics -----------------------------------------------------------------------------------


def _schematic(example: Example) -> Figure:
    """Draw states, actions and rewards, with two arrows where the two kernels differ."""
    names = example.good.state_names
    assert names is not None
    positions = [POSITIONS[example.name][name] for name in names]
    width = max(x for x, _ in positions)
    mu = example.good_probability
    key: dict[str, dict[str, Any]] = {
        f"if the good kernel $P^G$ is true (believed with probability μ = {mu:g})": _GOOD,
        f"if the bad kernel $P^B$ is true (believed with probability 1 − μ = {1.0 - mu:g})": _BAD,
        "in either case": _BOTH,
    }
    with styled():
        figure, axes = canvas(COLUMN, 3.7)
        for name, position in zip(names, positions, strict=True):
            _draw_state(axes, name, position)
        for s, action in np.argwhere(example.good.admissible).tolist():
            if _draw_action(axes, example, positions, s, action):
                key["pale: impossible, since this state is only reached under the other kernel"] = {
                    "color": BLACK,
                    "linestyle": "-",
                    **_FAINT,
                }
        axes.set_xlim(-1.0, width + 1.0)
        axes.set_ylim(-1.95, 1.95)
        figure.suptitle(TITLES[example.name], fontsize=9.5)
        legend = figure.legend(
            [Line2D([], [], linewidth=1.2, **style) for style in key.values()],
            list(key),
            loc="outside lower center",
            handlelength=2.4,
        )
        for text in legend.get_texts():
            text.set_parse_math(True)
    return figure


def _draw_state(axes: Axes, name: str, position: Point) -> None:
    axes.add_patch(
        Circle(position, RADIUS, facecolor="#eef3f7", edgecolor="black", linewidth=0.9, zorder=3)
    )
    letter, _, index = name.replace("s0", "s_0").partition("_")
    axes.text(
        *position,
        f"${letter}_{index}$" if index else f"${letter}$",
        parse_math=True,
        ha="center",
        va="center",
        fontsize=10,
        zorder=4,
    )


def _draw_action(axes: Axes, example: Example, positions: list[Point], s: int, action: int) -> bool:
    """Draw the moves of one pair and its label; returns whether a move is impossible and pale."""
    x, y = positions[s]
    side = 1.0 if y >= 0.0 else -1.0
    good, bad = (int(kernel.kernel()[s, action].argmax()) for kernel in (example.good, example.bad))
    label = _label_of(example, s, action)
    if good == bad == s:
        begin, end = ((x + shift, y + 0.9 * RADIUS * side) for shift in (-0.13, 0.13))
        arrow(axes, begin, end, -2.6 * side, _BOTH)
        axes.text(
            x,
            y + 0.72 * side,
            label,
            ha="center",
            va="bottom" if side > 0 else "top",
            fontsize=SMALL + 1,
        )
        return False
    pale = False
    for target, style, kernel in ((good, _GOOD, example.good), (bad, _BAD, example.bad)):
        faint = s not in _reachable(kernel)
        pale |= faint
        begin_at, end_at = np.array(positions[s]), np.array(positions[target])
        step = (end_at - begin_at) / np.hypot(*(end_at - begin_at))
        arrow(
            axes,
            tuple(begin_at + RADIUS * step),
            tuple(end_at - RADIUS * step),
            0.0,
            {**style, **_FAINT} if faint else style,
        )
    if y == 0.0:
        # between the two arrows, where they are apart
        axes.text(x + 0.95, y, label, ha="left", va="center", fontsize=SMALL + 1)
    else:
        axes.text(
            0.5 * (x + positions[good][0]),
            y + 0.1 * side,
            label,
            ha="center",
            va="bottom" if side > 0 else "top",
            fontsize=SMALL + 1,
        )
    return pale


def _label_of(example: Example, s: int, action: int) -> str:
    """What an action is called and pays; where there is no choice, what the state pays for ever."""
    names = example.good.action_names
    assert names is not None
    paid = f"pays {float(example.rewards[s, action]):g}".replace("-", "−")
    alone = example.good.admissible[s].sum() == 1
    return f"{paid} for ever" if alone else f"{names[action]}: {paid}"


def _reachable(mdp: TabularMDP) -> set[int]:
    """States that can be reached from the first one."""
    leads = ((mdp.kernel() > 0.0) & np.asarray(mdp.admissible)[:, :, None]).any(axis=1)
    found, waiting = {START}, [START]
    while waiting:
        new = set(np.flatnonzero(leads[waiting.pop()]).tolist()) - found
        found |= new
        waiting += sorted(new)
    return found


# --- exposures ------------------------------------------------------------------------------------


def _exposures(found: Replications[ExposureColumns]) -> Figure:
    """Posterior downside exposure of both policies of the first example against the threshold."""
    threshold, mean, quantile = (
        column[0]
        for column in (
            found.columns.threshold,
            found.columns.mean_exposure,
            found.columns.quantile_exposure,
        )
    )
    example = _first_example(found)
    assert example.thresholds is not None
    alpha, mu = found.case.parameters["alpha"], example.good_probability
    with styled():
        figure = new_figure(COLUMN, 3.3)
        axes = figure.add_subplot()
        axes.axvspan(
            *example.thresholds,
            facecolor="#e4e4e4",
            label="thresholds Λ of Proposition 2: exposures 1 − μ and 0",
        )
        axes.step(
            threshold,
            mean,
            color=VERMILION,
            linestyle=(0, (5, 2)),
            linewidth=1.8,
            label="posterior-mean policy (risky)",
        )
        axes.step(
            threshold,
            quantile,
            color=BLUE,
            linewidth=1.8,
            label=f"{alpha:g}-quantile policy (safe)",
        )
        left = float(threshold[0])
        for height, text in (
            (mu, f"safe: misses g with probability μ = {mu:g}"),
            (1.0 - mu, f"risky: ends in b with probability 1 − μ = {1.0 - mu:g}"),
        ):
            axes.text(left + 0.15, height + 0.015, text, fontsize=8, va="bottom")
        axes.set_xlim(left, float(threshold[-1]))
        axes.set_ylim(-0.02, 1.02)
        axes.set_xlabel("threshold Λ on the regret (discounted value)")
        axes.set_ylabel("posterior probability\nof a regret of at least Λ")
        axes.set_title(
            "Robustness example: only the risky policy risks a regret above "
            f"{example.thresholds[0]:.3g}"
        )
        figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=1)
    return figure


# --- the trap -------------------------------------------------------------------------------------


def _trap(example: Example, records: Mapping[str, Probing]) -> Figure:
    """Cumulative regret in the trap, and when each run leaves it."""
    styles = styles_of(records) | STYLES
    steps = max(found.columns.regret.shape[1] for found in records.values())
    mu, c, gamma = example.good_probability, example.safe_reward, example.discount
    with styled():
        figure = new_figure(COLUMN, 5.6)
        upper, lower = figure.subplots(2, sharex=True)
        for row, (name, found) in enumerate(records.items()):
            _draw_regret(upper, row / len(records), found, styles[name])
            _draw_escapes(lower, row, found, styles[name])
        upper.plot(
            [0, steps],
            [0.0, steps * (gamma**2 - c) / (1.0 - gamma)],
            color=BLACK,
            linewidth=0.7,
        )
        upper.text(
            0.03,
            0.95,
            "thin line: regret T(γ² − c)/(1 − γ)\nof staying for ever (Proposition 3)",
            transform=upper.transAxes,
            va="top",
            fontsize=8,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
        )
        upper.set_title("Regret grows as long as the agent stays at s₀")
        upper.set_ylabel("cumulative regret\n(discounted value)")
        upper.set_ylim(bottom=0.0)
        lower.set_title("When the agent leaves s₀ (one mark per run)")
        lower.set_yticks(range(len(records)), [_label(found) for found in records.values()])
        lower.set_ylim(len(records) - 0.4, -0.6)
        lower.set_xlim(0, steps)
        lower.set_xlabel("time step")
        legend = figure.legend(
            *upper.get_legend_handles_labels(),
            loc="outside upper center",
            ncols=2,
            title=f"Probing example, good kernel true (μ = {mu:g}, c = {c:g}, γ = {gamma:g})\n"
            "means of all runs with 95 % intervals",
        )
        legend.get_title().set_multialignment("center")
    return figure


def _draw_regret(axes: Axes, shift: float, found: Probing, style: CurveStyle) -> None:
    """Mean and 95 % band; markers of different agents stand at different steps."""
    band = estimate(np.cumsum(found.columns.regret, axis=1))
    step = np.arange(1, band.mean.size + 1)
    every = max(1, step.size // 6)
    axes.plot(
        step,
        band.mean,
        color=style.colour,
        linestyle=style.line,
        linewidth=style.width,
        marker=style.marker,
        markersize=4.0,
        markevery=(int(shift * every), every),
        label=_label(found),
    )
    if band.has_interval:
        axes.fill_between(step, band.low, band.high, facecolor=(style.colour, 0.15), linewidth=0.0)


def _draw_escapes(axes: Axes, row: int, found: Probing, style: CurveStyle) -> None:
    """A mark for each run at the step at which it left, and a word on those that never did."""
    horizon = found.columns.state.shape[1]
    left = np.sort(escape_steps(found))
    left = left[left < horizon]
    # spread over the height of the row, so that marks of equal steps do not hide one another
    heights = row + SPREAD * ((np.arange(left.size) * GOLDEN + 0.5) % 1.0 - 0.5)
    axes.plot(
        left,
        heights,
        color=style.colour,
        linestyle="",
        marker=style.marker,
        markersize=4.0,
        markerfacecolor="none",
    )
    if left.size < found.run.size:
        stayed = found.run.size - left.size
        axes.text(
            0.98,
            row,
            "never leaves" if left.size == 0 else f"{stayed} of {found.run.size} never leave",
            transform=axes.get_yaxis_transform(),
            ha="right",
            va="center",
            fontsize=8,
            color=style.colour,
        )


def _label(found: Probing) -> str:
    parameters = parameters_of(found.case)
    if parameters["alpha"] is not None:
        return f"fixed level {parameters['alpha']:g}"
    every = ",\nnew plan every step" if parameters["restart"] == "every-step" else ""
    return f"adaptive level, δ = {parameters['delta']:g}{every}"
