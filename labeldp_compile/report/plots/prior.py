"""The prior of the certificate."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from labeldp_compile.inspection import Decoded
from labeldp_compile.page.axes import tidy
from labeldp_compile.page.palette import LIGHT
from labeldp_compile.probabilities import Floats
from labeldp_compile.report.plots.label_axis import bin_edges, name_label_axis, percentages


def prior_figure(decoded: Decoded, starts: list[int], prior: Floats) -> Figure:
    """The prior as a figure of its own."""
    figure = Figure(figsize=(8.6, 3.0), layout="constrained")
    draw_prior(figure.subplots(), decoded, starts, prior)
    return figure


def draw_prior(axes: Any, decoded: Decoded, starts: list[int], prior: Floats) -> None:
    """The mean share of a label in bins of neighbours."""
    edges = bin_edges(decoded, starts)
    axes.stairs(prior, edges, fill=True, color=LIGHT["accent"], alpha=0.85, linewidth=0)
    name_label_axis(axes, decoded)
    each = starts[1] - starts[0]
    axes.set_ylabel("share" if each == 1 else "mean share of a label")
    axes.yaxis.set_major_formatter(percentages)
    axes.margins(x=0.01)
    tidy(axes, grid="y")
