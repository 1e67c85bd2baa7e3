"""Beliefs about the label before and after one output was seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from labeldp_compile.inspection import Decoded
from labeldp_compile.page.axes import INK, tidy
from labeldp_compile.page.palette import LIGHT
from labeldp_compile.report.plots.label_axis import bin_edges, name_label_axis, percentages
from labeldp_compile.report.posterior import Posteriors

BELIEF = "belief-after"


@dataclass(frozen=True)
class Geometry:
    """Where the bins and the scale lie in the SVG, so that a script can redraw one curve.

    Attributes:
        edges: [bins + 1] horizontal places.
        zero, one: vertical places of the probabilities 0 and 1.
    """

    edges: list[float]
    zero: float
    one: float


def posterior_figure(
    decoded: Decoded, posteriors: Posteriors, shown: int
) -> tuple[Figure, Geometry]:
    """The prior, and the posterior of the output ``shown``, on the scale that all outputs need."""
    figure = Figure(figsize=(8.6, 3.6), layout="constrained", dpi=72)
    axes = figure.subplots()
    edges = bin_edges(decoded, posteriors.starts)
    belief = posteriors.seen[shown].belief
    axes.stairs(
        belief,
        edges,
        fill=True,
        facecolor=LIGHT["accent"],
        alpha=0.55,
        linewidth=0,
        gid=BELIEF,
        label="after the output was seen",
    )
    axes.stairs(posteriors.prior, edges, color=INK, linewidth=1.4, label="before: the prior")
    top = max(
        float(posteriors.prior.max()), *(float(seen.belief.max()) for seen in posteriors.seen)
    )
    axes.set_ylim(0, 1.22 * top)
    axes.margins(x=0.01)
    name_label_axis(axes, decoded)
    each = posteriors.starts[1] - posteriors.starts[0]
    axes.set_ylabel("probability" if each == 1 else "mean probability of a label")
    axes.yaxis.set_major_formatter(percentages)
    tidy(axes, grid="y")
    axes.legend(loc="upper right", frameon=False, labelcolor=INK, fontsize="small", ncols=2)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    height = figure.bbox.height
    across = axes.transData.transform(np.column_stack([edges, np.zeros(len(edges))]))[:, 0]
    zero, one = (height - axes.transData.transform((0, share))[1] for share in (0, 1))
    return figure, Geometry([round(x, 2) for x in across.tolist()], float(zero), float(one))
