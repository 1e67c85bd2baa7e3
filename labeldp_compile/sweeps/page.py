"""The page of a sweep: pictures of loss and margin against ε and against rows, and tables."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from labeldp_verify.printable import clipped
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from labeldp_compile.page.document import page, plain
from labeldp_compile.page.pictures import INK, inline_svg, picture_settings, scale, tidy
from labeldp_compile.solve.losses import LOSSES
from labeldp_compile.sweeps.points import Point
from labeldp_compile.sweeps.sweep import FRONTIER_HEADER, Sweep, frontier_table

# Distinct in both schemes, also for people who confuse red and green; markers and dashes help.
_COLOURS = (
    "#1f77b4", "#d95f02", "#2a9d55", "#c23b8f", "#8172d5", "#b58900",
    "#12a5b8", "#d6504a", "#7a8a99", "#a0643c", "#5b7f1f", "#3e56c4",
)  # fmt: skip
_MARKERS = "osD^vPX*<>hd"
_DASHES = ("-", "--", "-.", ":")
_NAME_COLUMNS = 60
_LEGEND_COLUMNS = 2


def _draw(axes: Any, sweep: Sweep, figure: Callable[[Point], float | None]) -> None:
    """A figure against ε with a line for each mechanism; degenerate points are hollow."""
    shown: list[float] = []
    for index, mechanism in enumerate(sweep.mechanisms()):
        line = [point for point in sweep.points if point.mechanism == mechanism]
        heights = [math.nan if (y := figure(p)) is None else y for p in line]  # NaN: no line
        is_solid = [not p.is_degenerate(sweep.spec.goal) for p in line]
        solid = [y if usable else math.nan for y, usable in zip(heights, is_solid, strict=True)]
        epsilons = [p.epsilon for p in line]
        axes.plot(epsilons, heights, **_style(index) | {"markerfacecolor": "none"})
        axes.plot(epsilons, solid, **_style(index) | {"linestyle": ""})
        shown += [y for y in heights if not math.isnan(y)]
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(sweep.epsilons()))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.yaxis.set_major_formatter(lambda y, _: plain(y))  # otherwise 1e7 is put above the axis
    scale(axes, "y", shown)
    axes.set_xlabel("ε in total, of prior and label")


def _style(index: int) -> dict[str, Any]:
    """Colour, marker and dashes of the line of this index."""
    return {
        "color": _COLOURS[index % len(_COLOURS)],
        "marker": _MARKERS[index % len(_MARKERS)],
        "linestyle": _DASHES[index // 3 % len(_DASHES)],
        "markersize": 6,
        "linewidth": 1.6,
    }


def sweep_figure(sweep: Sweep) -> Figure:
    """The goal's figure against ε, and the other one below it; one legend for both."""
    figure = Figure(figsize=(5.2, 8.6), layout="constrained")
    figure.suptitle(
        f"{clipped(sweep.spec.name, _NAME_COLUMNS)} (goal: {sweep.spec.goal}; "
        "hollow: degenerate for it)",
        color=INK,
    )
    loss = f"noisy label loss: {LOSSES[sweep.spec.loss].mean}"
    panels: list[tuple[str, Callable[[Point], float | None]]] = [
        # None draws no point.
        (f"{sweep.error_column} rows, at most (95%)", lambda point: point.margin_under_prior),
        (loss, lambda point: point.loss),  # as in Figure 4(a) of the unbiased paper
    ]
    if sweep.spec.goal == "labels":
        panels.reverse()
    for axes, (title, of_point) in zip(figure.subplots(2, 1), panels, strict=True):
        _draw(axes, sweep, of_point)
        axes.set_title(title, loc="left", color=INK)
        tidy(axes, alpha=0.6)
    names = enumerate(sweep.mechanisms())
    figure.legend(
        handles=[Line2D([], [], label=name, **_style(i)) for i, name in names],
        loc="outside lower center",
        ncols=_LEGEND_COLUMNS,
        frameon=False,
        labelcolor=INK,
    )
    return figure


def rows_figure(sweep: Sweep) -> Figure | None:
    """The margin of error of the best mechanism against the number of rows, a line for each ε.

    None if no mechanism is best, or none allows an estimate.
    """
    best = [point for e in sweep.epsilons() if (point := sweep.best(e)) and point.margins]
    if not best:
        return None
    figure = Figure(figsize=(5.2, 4.2), layout="constrained")
    axes = figure.subplots()
    for index, point in enumerate(best):
        rows, margins = zip(*point.margins, strict=True)
        axes.plot(rows, margins, **_style(index), label=f"ε = {point.epsilon:g}")
    scale(axes, "x", [rows for point in best for rows, _ in point.margins])
    scale(axes, "y", [margin for point in best for _, margin in point.margins])
    axes.set(xlabel="rows", ylabel=f"± of a {sweep.estimated}, at most (95%)")
    tidy(axes, alpha=0.6)
    figure.legend(loc="outside lower center", ncols=_LEGEND_COLUMNS, frameon=False, labelcolor=INK)
    return figure


def sweep_page(sweep: Sweep) -> str:
    """The page: the picture, the tables, and the points that could not be compiled."""
    label = f"{sweep.error_column} rows and noisy label loss of {sweep.spec.name} against ε"
    with picture_settings():
        svg = inline_svg(sweep_figure(sweep), "sweep", label)
        margins = rows_figure(sweep)
        rows = margins and inline_svg(margins, "rows", "margin of error against number of rows")
    return page(
        "sweep.html",
        f"{sweep.spec.name}: mechanisms compared",
        Path(__file__).parent,
        sweep=sweep,
        svg=svg,
        rows=rows,
        frontier_header=FRONTIER_HEADER,
        frontiers=map(frontier_table, sweep.frontier),
    )
