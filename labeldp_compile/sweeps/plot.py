"""The page of a sweep: a picture of loss and margin of error against ε, and tables."""

import math
from collections.abc import Callable
from typing import Any

from labeldp_verify.printable import clipped
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from labeldp_compile.sweeps.measure import Point
from labeldp_compile.sweeps.sweep import Sweep
from labeldp_compile.sweeps.table import (
    FRONTIER_HEADER,
    by_epsilon,
    cells,
    error_column,
    frontier_cells,
    frontier_title,
    header,
    missing_by_reason,
    notes,
    remark,
    what_is_estimated,
)
from labeldp_compile.tools.page.document import page
from labeldp_compile.tools.page.numbers import plain
from labeldp_compile.tools.page.pictures import (
    INK,
    LOSSES,
    inline_svg,
    picture_settings,
    scale,
    tidy,
)

# Distinct in both schemes, also for people who confuse red and green; markers and dashes help.
COLOURS = (
    "#1f77b4",
    "#d95f02",
    "#2a9d55",
    "#c23b8f",
    "#8172d5",
    "#b58900",
    "#12a5b8",
    "#d6504a",
    "#7a8a99",
    "#a0643c",
    "#5b7f1f",
    "#3e56c4",
)
_MARKERS = "osD^vPX*<>hd"
_DASHES = ("-", "--", "-.", ":")
_NAME_COLUMNS = 60
_LEGEND_COLUMNS = 4


def _draw(axes: Any, sweep: Sweep, figure: Callable[[Point], float | None]) -> None:
    """A figure against ε with a line for each mechanism; degenerate points are hollow."""
    shown: list[float] = []
    for index, mechanism in enumerate(sweep.mechanisms()):
        line = [point for point in sweep.points if point.mechanism == mechanism]
        found = [(p, math.nan if (y := figure(p)) is None else y) for p in line]  # NaN: no line
        solid = [math.nan if p.is_degenerate(sweep.spec.goal) else y for p, y in found]
        epsilons, known = [p.epsilon for p in line], [y for _, y in found]
        axes.plot(epsilons, known, **_style(index) | {"markerfacecolor": "none"})
        axes.plot(epsilons, solid, **_style(index) | {"linestyle": ""})
        shown += [y for y in known if not math.isnan(y)]
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
        "color": COLOURS[index % len(COLOURS)],
        "marker": _MARKERS[index % len(_MARKERS)],
        "linestyle": _DASHES[index // 3 % len(_DASHES)],
        "markersize": 6,
        "linewidth": 1.6,
    }


def sweep_figure(sweep: Sweep) -> Figure:
    """The goal's figure against ε, and the other one beside it; one legend for both."""
    figure = Figure(figsize=(10.8, 5.6), layout="constrained")
    figure.suptitle(
        f"{clipped(sweep.spec.name, _NAME_COLUMNS)} (goal: {sweep.spec.goal}; "
        "hollow: degenerate for it)",
        color=INK,
    )
    drawn: list[tuple[str, str, Callable[[Point], float | None]]] = [
        (
            f"Noise in an estimated {what_is_estimated(sweep)}",
            f"{error_column(sweep)} rows, at most (95%)",
            lambda point: point.margin_under_prior,  # None draws no point
        ),
        # As in Figure 4(a) of the unbiased paper.
        ("Noisy label loss", LOSSES[sweep.spec.loss], lambda point: point.loss),
    ]
    if sweep.spec.goal == "labels":
        drawn.reverse()
    for axes, (title, what, of_point) in zip(figure.subplots(1, 2), drawn, strict=True):
        _draw(axes, sweep, of_point)
        axes.set_ylabel(what)
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


def sweep_page(sweep: Sweep) -> str:
    """The page: the picture, the tables, and the points that could not be compiled."""
    label = (
        f"{error_column(sweep)} rows and noisy label loss against ε for {sweep.spec.name}; "
        "the numbers are in the table"
    )
    with picture_settings():
        svg = inline_svg(sweep_figure(sweep), "sweep", label)

    def row(point: Point) -> tuple[list[str], str, bool, bool]:
        best = point is sweep.best(point.epsilon)
        shown = cells(sweep, point), remark(sweep, point)
        return *shown, best, point.is_degenerate(sweep.spec.goal)

    return page(
        "sweep/sweep.html",
        f"{sweep.spec.name}: mechanisms compared",
        sweep=sweep,
        svg=svg,
        header=header(sweep),
        notes=notes(sweep),
        by_epsilon=[(epsilon, map(row, points)) for epsilon, points in by_epsilon(sweep) if points],
        frontier_header=FRONTIER_HEADER,
        frontiers=[(frontier_title(line), map(frontier_cells, line)) for line in sweep.frontier],
        missing=missing_by_reason(sweep),
    )
