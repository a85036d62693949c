"""The report of ``examples``.

Both worlds, the exposures of Proposition 2, and the trap of Proposition 3 with ways out of it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle

from brmdp.report.content import Content
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
from brmdp.runs.programs import parameters_of
from brmdp.studies.examples.analysis import (
    agents_of,
    escape_steps,
    examples_claims,
    examples_summary,
    examples_table,
)
from brmdp.report.drawing import RADIUS, SMALL, arrow, canvas
from brmdp.theory import Example, probing_example, robustness_example

__all__ = ["example_schematic", "exposure_figure", "regret_figure", "reporter"]

POSITIONS = {
    "robustness": {"s0": (0.0, 0.0), "g": (2.6, 0.9), "b": (2.6, -0.9)},
    "probing": {
        "s0": (0.0, 0.0),
        "y_G": (2.3, 0.9),
        "y_B": (2.3, -0.9),
        "g": (4.8, 0.9),
        "b": (4.8, -0.9),
    },
}
"""Of the states."""

AGENTS = {
    "brmdp-0.2": CurveStyle("", VERMILION, (0, (5, 2)), "s", 1.8),
    "every-step": CurveStyle("", GREEN, (0, (1, 1.4)), "v", 1.8),
}
"""Looks of agents that have none elsewhere."""

_GOOD = {"color": BLUE, "linestyle": "-"}
_BAD = {"color": VERMILION, "linestyle": (0, (4, 2))}
_BOTH = {"color": BLACK, "linestyle": "-"}


def reporter(experiment: Experiment, records: Mapping[str, Replications]) -> Content:
    """What is said of ``examples``."""
    figures = {}
    if "exposure" in records:
        shown = records["exposure"]
        figures["examples-schematic-robustness"] = example_schematic(_first_example(shown))
        figures["examples-exposure"] = exposure_figure(shown)
    good = {
        name: found
        for name, found in agents_of(records).items()
        if parameters_of(found.case)["truth"] == "good"
    }
    if good:
        figures["examples-schematic-probing"] = example_schematic(
            _second_example(next(iter(good.values())))
        )
        figures["examples-regret"] = regret_figure(good)
    return Content(
        summary=examples_summary(experiment, records),
        table=examples_table(records),
        claims=examples_claims(experiment, records),
        figures=figures,
    )


def _first_example(found: Replications) -> Example:
    names = ("good_probability", "safe_reward", "loss", "discount")
    return robustness_example(*(found.case.parameters[name] for name in names))


def _second_example(found: Replications) -> Example:
    return probing_example(
        *(found.case.parameters[name] for name in ("good_probability", "safe_reward", "discount"))
    )


def example_schematic(example: Example) -> Figure:
    """States, actions and rewards; where the two kernels differ, both arrows.

    Parameters
    ----------
    example : Example
        From :func:`brmdp.theory.robustness_example` or :func:`brmdp.theory.probing_example`.
    """
    names = example.good.state_names
    assert names is not None
    positions = [POSITIONS[example.name][name] for name in names]
    width = max(x for x, _ in positions)
    with styled():
        figure, axes = canvas(COLUMN, 3.0)
        for name, position in zip(names, positions, strict=True):
            axes.add_patch(
                Circle(
                    position,
                    RADIUS,
                    facecolor="#eef3f7",
                    edgecolor="black",
                    linewidth=0.9,
                    zorder=3,
                )
            )
            axes.text(
                *position, name.replace("0", "₀"), ha="center", va="center", fontsize=9, zorder=4
            )
        for s, action in np.argwhere(example.good.admissible).tolist():
            _draw_action(axes, example, positions, s, action)
        axes.set_xlim(-1.0, width + 1.0)
        axes.set_ylim(-1.95, 1.95)
        mu = example.good_probability
        figure.legend(
            [Line2D([], [], linewidth=1.2, **style) for style in (_GOOD, _BAD, _BOTH)],
            [f"under P^G (μ = {mu:g})", f"under P^B (1 − μ = {1.0 - mu:g})", "under both"],
            loc="outside lower center",
            ncols=3,
            columnspacing=1.2,
            handlelength=2.4,
        )
    return figure


def _draw_action(
    axes: Axes, example: Example, positions: list[tuple[float, float]], s: int, action: int
) -> None:
    """The moves of one pair and its label."""
    x, y = positions[s]
    side = 1.0 if y >= 0.0 else -1.0
    good, bad = (int(kernel.kernel()[s, action].argmax()) for kernel in (example.good, example.bad))
    names = example.good.action_names
    assert names is not None
    alone = example.good.admissible[s].sum() == 1
    label = f"pays {float(example.rewards[s, action]):g}"
    label = label if alone else f"{names[action]}, {label}"
    if good == bad == s:
        arrow(
            axes,
            (x - 0.13, y + 0.9 * RADIUS * side),
            (x + 0.13, y + 0.9 * RADIUS * side),
            -2.6 * side,
            _BOTH,
        )
        axes.text(
            x,
            y + 0.72 * side,
            label,
            ha="center",
            va="bottom" if side > 0 else "top",
            fontsize=SMALL + 1,
        )
        return
    for target, style in ((good, _GOOD), (bad, _BAD)):
        begin, end = np.array(positions[s]), np.array(positions[target])
        step = (end - begin) / np.hypot(*(end - begin))
        arrow(axes, tuple(begin + RADIUS * step), tuple(end - RADIUS * step), 0.0, style)
    if y == 0.0:
        # between the two arrows, where they are apart
        axes.text(x + 0.95, y, label, ha="left", va="center", fontsize=SMALL + 1)
    else:
        end_x = positions[good][0]
        axes.text(
            0.5 * (x + end_x),
            y + 0.1 * side,
            label,
            ha="center",
            va="bottom" if side > 0 else "top",
            fontsize=SMALL + 1,
        )


def exposure_figure(found: Replications) -> Figure:
    """Posterior downside exposure of both policies of the first example against the threshold."""
    threshold, mean, quantile = (
        found.columns[name][0] for name in ("threshold", "mean_exposure", "quantile_exposure")
    )
    example = _first_example(found)
    assert example.thresholds is not None
    alpha = found.case.parameters["alpha"]
    with styled():
        figure = new_figure(COLUMN, 2.9)
        axes = figure.add_subplot()
        axes.axvspan(*example.thresholds, facecolor="#e8e8e8", label="thresholds of Proposition 2")
        axes.step(
            threshold,
            mean,
            color=VERMILION,
            linestyle=(0, (5, 2)),
            linewidth=1.8,
            label="posterior-mean policy",
        )
        axes.step(
            threshold, quantile, color=BLUE, linewidth=1.8, label=f"{alpha:g}-quantile policy"
        )
        axes.axhline(
            1.0 - example.good_probability, color=BLACK, linewidth=0.7, linestyle=(0, (1, 1.4))
        )
        axes.text(0.1, 1.015 - example.good_probability, "1 − μ", fontsize=8, va="bottom")
        axes.set_xlim(0.0, float(threshold[-1]))
        axes.set_ylim(-0.02, 1.02)
        axes.set_xlabel("threshold Λ on the regret")
        axes.set_ylabel("posterior probability")
        axes.set_title("Posterior downside exposure at s₀")
        figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure


def regret_figure(records: Mapping[str, Replications]) -> Figure:
    """Cumulative regret in the trap, and when agents leave it."""
    styles = styles_of(records) | AGENTS
    with styled():
        figure = new_figure(COLUMN, 5.4)
        upper, lower = figure.subplots(2)
        for name, found in records.items():
            _draw_regret(upper, found, styles[name])
            _draw_escapes(lower, found, styles[name])
        steps = max(found.columns["regret"].shape[1] for found in records.values())
        upper.set_title("Cumulative regret under the good kernel")
        upper.set_ylabel("regret (discounted value)")
        upper.set_ylim(bottom=0.0)
        lower.set_title("Share of runs that have left the safe action")
        lower.set_ylabel("share of runs")
        lower.set_ylim(-0.03, 1.03)
        for axes in (upper, lower):
            axes.set_xlim(0, steps)
            axes.set_xlabel("time step")
        figure.legend(*upper.get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure


def _draw_regret(axes: Axes, found: Replications, style: CurveStyle) -> None:
    band = estimate(np.cumsum(found.columns["regret"], axis=1))
    step = np.arange(1, band.mean.size + 1)
    axes.plot(
        step,
        band.mean,
        color=style.colour,
        linestyle=style.line,
        linewidth=style.width,
        label=_label(found),
    )
    if band.has_interval:
        axes.fill_between(step, band.low, band.high, facecolor=(style.colour, 0.15), linewidth=0.0)


def _draw_escapes(axes: Axes, found: Replications, style: CurveStyle) -> None:
    horizon = found.columns["state"].shape[1]
    share = (escape_steps(found)[:, None] <= np.arange(horizon)).mean(axis=0)
    axes.step(
        np.arange(horizon),
        share,
        where="post",
        color=style.colour,
        linestyle=style.line,
        linewidth=style.width,
    )


def _label(found: Replications) -> str:
    parameters = parameters_of(found.case)
    if parameters["alpha"] is not None:
        return f"fixed level {parameters['alpha']:g}: T(γ² − c)/(1 − γ)"
    every = ", plans every step" if parameters["restart"] == "every-step" else ""
    return f"adaptive, δ = {parameters['delta']:g}{every}"
