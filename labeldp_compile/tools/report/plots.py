"""The pictures of a report: the prior, moments, one posterior; the axes that they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from labeldp_verify.analysis import Floats
from labeldp_verify.artifact import Table
from labeldp_verify.forms import CategoricalDomain
from labeldp_verify.printable import clipped, width
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from labeldp_compile.tools.inspection.facts import LabelFacts
from labeldp_compile.tools.page.numbers import plain
from labeldp_compile.tools.page.palette import LIGHT
from labeldp_compile.tools.page.pictures import INK, tidy
from labeldp_compile.tools.report.posterior import Posteriors

BELIEF = "belief-after"
WIDTH = 5.2  # inches of a figure in a page: its text is 9 px high on a telephone,
SMALL = 8.7  # or 8 px: points, of legends
_MAX_NAMES = 24
_NAME_COLUMNS = 16
_LEVEL_COLUMNS = 72  # beyond, names are turned
_MARKED = 60  # labels that are shown as points, too


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


def prior_figure(decoded: Table, starts: list[int], prior: Floats) -> Figure:
    """The mean share of a label in bins of neighbours."""
    figure = Figure(figsize=(WIDTH, 2.3), layout="constrained")
    axes: Any = figure.subplots()
    edges = bin_edges(decoded, starts)
    axes.stairs(prior, edges, fill=True, color=LIGHT["accent"], alpha=0.85, linewidth=0)
    name_label_axis(axes, decoded)
    each = starts[1] - starts[0]
    axes.set_ylabel("share" if each == 1 else "mean share of a label")
    axes.yaxis.set_major_formatter(_percentages)
    axes.margins(x=0.01)
    tidy(axes, grid="y")
    return figure


def moments_figure(decoded: Table, facts: Sequence[LabelFacts], *, with_bias: bool) -> Figure:
    """Mean ± sd, and below it the bias if there is one to see."""
    figure = Figure(figsize=(WIDTH, 4.4 if with_bias else 2.9), layout="constrained")
    ratios = [5, 3] if with_bias else [1]
    axes = figure.subplots(len(ratios), 1, squeeze=False, height_ratios=ratios)[:, 0]
    _draw_moments(axes[0], decoded, facts)
    if with_bias:
        _draw_bias(axes[1], decoded, facts)
    return figure


def _draw_moments(axes: Any, decoded: Table, facts: Sequence[LabelFacts]) -> None:
    """The mean of the output against the label, with a band of one standard deviation."""
    labels = [float(row.label) for row in facts]
    means = [row.mean or 0.0 for row in facts]
    spreads = [row.deviation or 0.0 for row in facts]
    low = [mean - spread for mean, spread in zip(means, spreads, strict=True)]
    high = [mean + spread for mean, spread in zip(means, spreads, strict=True)]
    axes.fill_between(
        labels, low, high, color=LIGHT["accent"], alpha=0.22, linewidth=0, label="mean ± sd"
    )
    axes.plot(
        labels, labels, color=LIGHT["soft"], linewidth=1.2, linestyle="--", label="output = label"
    )
    axes.plot(
        labels, means, color=LIGHT["accent"], linewidth=2, **_marks(facts), label="mean output"
    )
    name_label_axis(axes, decoded)
    axes.set_ylabel("output")
    name_numbers(axes.yaxis, 8)
    axes.margins(x=0.01)
    tidy(axes)
    axes.legend(loc="upper left", frameon=False, labelcolor=INK, fontsize=SMALL, ncols=3)
    bottom, top = axes.get_ylim()
    axes.set_ylim(bottom, top + 0.14 * (top - bottom))  # room for the legend


def _draw_bias(axes: Any, decoded: Table, facts: Sequence[LabelFacts]) -> None:
    """E[output | label] − label."""
    labels = [float(row.label) for row in facts]
    axes.axhline(0, color=LIGHT["soft"], linewidth=1.2, linestyle="--")
    biases = [row.bias or 0.0 for row in facts]
    axes.plot(labels, biases, color=LIGHT["mark"], linewidth=2, **_marks(facts))
    name_label_axis(axes, decoded)
    axes.set_ylabel("bias: mean output − label")
    name_numbers(axes.yaxis, 5)
    axes.margins(x=0.01)
    tidy(axes)


def _marks(facts: Sequence[LabelFacts]) -> dict[str, Any]:
    return {"marker": "o", "markersize": 3.2} if len(facts) <= _MARKED else {}


def posterior_figure(decoded: Table, posteriors: Posteriors, shown: int) -> tuple[Figure, Geometry]:
    """The prior, and the posterior of the output ``shown``, on the scale that all outputs need."""
    figure = Figure(figsize=(WIDTH, 2.7), layout="constrained", dpi=72)
    axes: Any = figure.subplots()
    most = max(float(seen.belief.max()) for seen in posteriors.seen)
    edges = bin_edges(decoded, posteriors.starts)
    axes.stairs(
        posteriors.seen[shown].belief,
        edges,
        fill=True,
        facecolor=LIGHT["accent"],
        alpha=0.55,
        linewidth=0,
        gid=BELIEF,
        label="after the output was seen",
    )
    axes.stairs(posteriors.prior, edges, color=INK, linewidth=1.4, label="before: the prior")
    axes.set_ylim(0, 1.22 * max(most, float(posteriors.prior.max())))
    axes.margins(x=0.01)
    name_label_axis(axes, decoded)
    each = posteriors.starts[1] - posteriors.starts[0]
    axes.set_ylabel("probability" if each == 1 else "mean probability of a label")
    axes.yaxis.set_major_formatter(_percentages)
    tidy(axes, grid="y")
    axes.legend(loc="upper right", frameon=False, labelcolor=INK, fontsize=SMALL, ncols=2)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    height = figure.bbox.height
    across = axes.transData.transform(np.column_stack([edges, np.zeros(len(edges))]))[:, 0]
    zero, one = (height - axes.transData.transform((0, share))[1] for share in (0, 1))
    return figure, Geometry([round(x, 2) for x in across.tolist()], float(zero), float(one))


def _round_steps(most: int, *, integer: bool = False) -> MaxNLocator:
    """At most so many ticks, at steps that people count in."""
    return MaxNLocator(most, integer=integer, steps=[1, 2, 2.5, 5, 10])


def name_numbers(axis: Any, most: int, *, integer: bool = False) -> None:
    """Ticks at round numbers, written as everywhere on the page."""
    axis.set_major_locator(_round_steps(most, integer=integer))
    axis.set_major_formatter(lambda number, _: plain(number, 7))


def label_positions(decoded: Table, labels: list[int]) -> list[float]:
    """Where the labels of these indices stand: at their values, categories at their places."""
    domain = decoded.domain
    if isinstance(domain, CategoricalDomain):
        return [float(index) for index in labels]
    step = (domain.max - domain.min) / (domain.size - 1)
    return [domain.min + index * step for index in labels]


def bin_edges(decoded: Table, starts: list[int]) -> list[float]:
    """The edges of bins that begin at these label indices, half a step to the left of them."""
    first, second = label_positions(decoded, [0, 1])
    half = (second - first) / 2
    return [first + (2 * start - 1) * half for start in starts]


def name_label_axis(axes: Any, decoded: Table) -> None:
    """The ticks and the title of the horizontal axis."""
    column = clipped(", ".join(decoded.certificate.label_columns), 40)
    domain = decoded.domain
    if isinstance(domain, CategoricalDomain):
        place = "" if domain.size <= _MAX_NAMES else ", by place in the spec"
        axes.set_xlabel(f"true label: {column}{place}")
        name_categories(axes.xaxis, [str(value) for value in domain.values])
        return
    axes.set_xlabel(f"true label: {column}")
    wide = max(abs(domain.min), abs(domain.max)) >= 10_000
    name_numbers(axes.xaxis, 7 if wide else 12, integer=domain.kind == "integer")


def _percentages(share: float, _: float = 0) -> str:
    """A tick of an axis of probabilities."""
    return f"{100 * share:.4g} %"


def name_categories(axis: Any, names: list[str]) -> None:
    """Each category by its name, or places in their order where there are too many."""
    if len(names) > _MAX_NAMES:
        axis.set_major_locator(_round_steps(8, integer=True))
        return
    shown = [clipped(name, _NAME_COLUMNS) for name in names]
    turned = axis.axis_name == "x" and sum(width(name) + 2 for name in shown) > _LEVEL_COLUMNS
    axis.set_ticks(range(len(names)), shown)
    for tick in axis.get_ticklabels() if turned else ():
        tick.set(rotation=40, ha="right", rotation_mode="anchor")
