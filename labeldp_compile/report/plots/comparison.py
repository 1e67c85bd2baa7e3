"""The noisy label loss of a file beside its lower bound and the other mechanisms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from labeldp_compile.page.axes import tidy
from labeldp_compile.page.palette import LIGHT
from labeldp_compile.report.numbers import plain
from labeldp_compile.report.standing import Standing

_MOST_TICKS = 5  # of the powers of ten: 100,000,000 needs room


def comparison_figure(standings: Sequence[Standing], bound: float | None, loss: str) -> Figure:
    """One line a mechanism."""
    figure = Figure(figsize=(8.6, 1.3 + 0.3 * len(standings)), layout="constrained")
    draw_comparison(figure.subplots(), standings, bound, loss)
    return figure


def draw_comparison(
    axes: Any, standings: Sequence[Standing], bound: float | None, loss: str
) -> None:
    """A dot for each loss, open if biased, and the certified lower bound as a line."""
    losses = [standing.loss for standing in standings]
    logarithmic = min(losses) > 0 and max(losses) > 4 * min(losses)
    axes.set_xscale("log" if logarithmic else "linear")
    for row, standing in enumerate(standings):
        colour = LIGHT["mark"] if standing.own else LIGHT["accent"]
        axes.plot(
            standing.loss,
            row,
            marker="D" if standing.own else "o",
            color=colour,
            markerfacecolor="none" if standing.biased else colour,
            markeredgewidth=1.6,
            markersize=8 if standing.own else 7,
            linestyle="",
        )
        axes.annotate(
            plain(standing.loss),
            (standing.loss, row),
            xytext=(11, 0),
            textcoords="offset points",
            va="center",
            color=colour,
            fontweight="bold" if standing.own else "normal",
            bbox={"facecolor": LIGHT["page"], "edgecolor": "none", "pad": 1.5},
        )
    if bound is not None:
        axes.axvline(bound, color=LIGHT["ink"], linewidth=1.2, linestyle=(0, (4, 3)), zorder=0)
    axes.set_yticks(range(len(standings)), [standing.title for standing in standings])
    axes.set_ylim(len(standings) - 0.4, -0.6)
    axes.margins(x=0.12)
    if logarithmic:
        near = max(losses) < 100 * min(losses)
        axes.xaxis.set_major_locator(
            LogLocator(10, subs=(1, 2, 5) if near else (1,), numticks=_MOST_TICKS)
        )
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.xaxis.set_major_formatter(lambda x, _: plain(x, 3))
    axes.set_xlabel(loss)
    tidy(axes, grid="x")
    for tick, standing in zip(axes.get_yticklabels(), standings, strict=True):
        if standing.own:
            tick.set(color=LIGHT["mark"], fontweight="bold")
