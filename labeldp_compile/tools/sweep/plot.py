"""The pictures of a sweep: the goal's figure and its companion against ε, and loss against bias."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from labeldp_verify.printable import clipped
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from labeldp_compile.tools.page.document import page
from labeldp_compile.tools.page.numbers import plain
from labeldp_compile.tools.page.pictures import (
    INK,
    LOSSES,
    inline_svg,
    picture_settings,
    scale,
    scale_logarithmically,
    tidy,
)
from labeldp_compile.tools.sweep.measure import Point
from labeldp_compile.tools.sweep.sweep import Sweep
from labeldp_compile.tools.sweep.table import (
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

# Distinct in both schemes, and to people who confuse red and green; markers and dashes help.
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
FRONTIER = "optimal, bias priced"
_NAME_COLUMNS = 60
_LEGEND_COLUMNS = 4
_VISIBLE = 1e-3  # of the loss


def _draw(axes: Any, sweep: Sweep, figure: Callable[[Point], float | None]) -> None:
    """A figure against ε, a line for each mechanism; degenerate points are hollow."""
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
    axes.yaxis.set_major_formatter(lambda y, _: plain(y))  # else 1e7 stands above the axis
    scale(axes, "y", shown)
    axes.set_xlabel("ε, for a label in both parts")


def draw_frontier(axes: Any, lines: Sequence[Sequence[tuple[float, float]]]) -> float:
    """Noisy label loss against root-mean-square bias, from unbiased to RR-on-Bins.

    Each line holds (rms bias, loss) pairs. Unbiased ends are drawn at the left edge, left of all
    that are biased; it is returned.
    """
    biases = [x for line in lines for x, _ in line]
    biased = [x for x in biases if x > 1e-9 * (max(biases) or 1.0)]
    edge = min(biased, default=1.0) / 3
    for line in lines:
        x, y = [max(x, edge) for x, _ in line], [y for _, y in line]
        axes.plot(x, y, "o-", color=INK, ms=4, label=FRONTIER if line is lines[0] else None)
    scale_logarithmically(axes, "x", [max(x, edge) for x in biases])
    scale(axes, "y", [y for line in lines for _, y in line])
    axes.set(xlabel="root-mean-square bias", ylabel="noisy label loss")
    return edge


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
    """The goal's figure, the other one beside it, and below them the frontier if there is one."""
    rows = 2 if sweep.frontier else 1
    figure = Figure(figsize=(10.8, 0.8 + 4.8 * rows), layout="constrained")
    figure.suptitle(
        f"{clipped(sweep.spec.name, _NAME_COLUMNS)} (goal: {sweep.spec.goal}; "
        "hollow: degenerate for it)",
        color=INK,
    )
    grid = figure.add_gridspec(rows, 2)
    drawn: list[tuple[str, str, Callable[[Point], float | None]]] = [
        (
            f"Noise in an estimated {what_is_estimated(sweep)}",
            f"{error_column(sweep)} rows, at most (95%)",
            lambda point: point.margin_under_prior,  # of others there is no point
        ),
        # As in Figure 4(a) of the unbiased paper.
        ("Noisy label loss", LOSSES[sweep.spec.loss], lambda point: point.loss),
    ]
    if sweep.spec.goal == "labels":
        drawn.reverse()
    panels = []
    for column, (title, what, of_point) in enumerate(drawn):
        panels.append(figure.add_subplot(grid[0, column]))
        _draw(panels[-1], sweep, of_point)
        panels[-1].set_ylabel(what)
        panels[-1].set_title(title, loc="left", color=INK)
    if sweep.frontier:
        panels.append(figure.add_subplot(grid[1, :]))
        _draw_frontier_panel(panels[-1], sweep)
    for axes in panels:
        tidy(axes, alpha=0.6)
    figure.legend(
        handles=_legend(sweep),
        loc="outside lower center",
        ncols=_LEGEND_COLUMNS,
        frameon=False,
        labelcolor=INK,
    )
    return figure


def _legend(sweep: Sweep) -> list[Line2D]:
    """One for all panels: a mechanism looks the same in each."""
    lines = [Line2D([], [], label=name, **_style(i)) for i, name in enumerate(sweep.mechanisms())]
    if sweep.frontier:
        lines.append(Line2D([], [], color=INK, marker="o", ms=4, label=FRONTIER))
    return lines


def _draw_frontier_panel(axes: Any, sweep: Sweep) -> None:
    """The frontier of each ε as a line, and the mechanisms of the sweep at the same ε as points."""
    lines = [_visible([_place(point) for point in line]) for line in sweep.frontier]
    edge = draw_frontier(axes, lines)
    epsilons = [line[0].epsilon for line in sweep.frontier]
    for epsilon, ((bias, loss), *_) in zip(epsilons, lines, strict=True):
        at, offset = (max(bias, edge), loss), {"xytext": (6, 6), "textcoords": "offset points"}
        axes.annotate(f"ε = {epsilon:g}", at, color=INK, **offset)
    losses = [y for line in lines for _, y in line]
    for index, mechanism in enumerate(sweep.mechanisms()):
        here = [p for p in sweep.points if p.mechanism == mechanism and p.epsilon in epsilons]
        x, y = [max(_place(p)[0], edge) for p in here], [p.loss for p in here]
        axes.plot(x, y, label=mechanism, **_style(index) | {"linestyle": ""})
        losses += y
    scale(axes, "y", losses)
    axes.set_title("The price of unbiasedness (left edge: unbiased)", loc="left", color=INK)


def _place(point: Point) -> tuple[float, float]:
    """Root-mean-square bias and loss."""
    return point.rms_bias or 0.0, point.loss


def _visible(line: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The line without the biased points that save next to nothing: they only widen the axis."""
    unbiased = line[0][1]
    return [line[0], *(point for point in line[1:] if point[1] < (1 - _VISIBLE) * unbiased)]


def sweep_page(sweep: Sweep) -> str:
    """The page: the picture, the table, and what could not be compiled."""
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
