"""The pictures of a report: the prior, moments, one posterior, losses; the axes that they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from labeldp_verify.analysis.probabilities import Floats
from labeldp_verify.forms import CategoricalDomain
from labeldp_verify.printable import clipped, width
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from labeldp_compile.tools.inspection import Decoded, LabelFacts
from labeldp_compile.tools.page.numbers import plain
from labeldp_compile.tools.page.palette import LIGHT
from labeldp_compile.tools.page.pictures import INK, scale, tidy
from labeldp_compile.tools.report.posterior import Posteriors

if TYPE_CHECKING:
    from labeldp_compile.tools.report.comparison import Standing

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


def prior_figure(decoded: Decoded, starts: list[int], prior: Floats) -> Figure:
    """The prior as a figure of its own."""
    figure = Figure(figsize=(WIDTH, 2.3), layout="constrained")
    draw_prior(figure.subplots(), decoded, starts, prior)
    return figure


def draw_prior(axes: Any, decoded: Decoded, starts: list[int], prior: Floats) -> None:
    """The mean share of a label in bins of neighbours."""
    edges = bin_edges(decoded, starts)
    axes.stairs(prior, edges, fill=True, color=LIGHT["accent"], alpha=0.85, linewidth=0)
    name_label_axis(axes, decoded)
    each = starts[1] - starts[0]
    axes.set_ylabel("share" if each == 1 else "mean share of a label")
    axes.yaxis.set_major_formatter(_percentages)
    axes.margins(x=0.01)
    tidy(axes, grid="y")


def moments_figure(decoded: Decoded, facts: Sequence[LabelFacts], *, with_bias: bool) -> Figure:
    """Mean ± sd, and below it the bias if there is one to see."""
    figure = Figure(figsize=(WIDTH, 4.4 if with_bias else 2.9), layout="constrained")
    ratios = [5, 3] if with_bias else [1]
    axes = figure.subplots(len(ratios), 1, squeeze=False, height_ratios=ratios)[:, 0]
    draw_moments(axes[0], decoded, facts)
    if with_bias:
        draw_bias(axes[1], decoded, facts)
    return figure


def draw_moments(axes: Any, decoded: Decoded, facts: Sequence[LabelFacts]) -> None:
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


def draw_bias(axes: Any, decoded: Decoded, facts: Sequence[LabelFacts]) -> None:
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


def posterior_figure(
    decoded: Decoded, posteriors: Posteriors, shown: int
) -> tuple[Figure, Geometry]:
    """The prior, and the posterior of the output ``shown``, on the scale that all outputs need."""
    figure = Figure(figsize=(WIDTH, 2.7), layout="constrained", dpi=72)
    axes = figure.subplots()
    most = max(float(seen.belief.max()) for seen in posteriors.seen)
    edges = draw_posterior(axes, decoded, posteriors, shown, most)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    height = figure.bbox.height
    across = axes.transData.transform(np.column_stack([edges, np.zeros(len(edges))]))[:, 0]
    zero, one = (height - axes.transData.transform((0, share))[1] for share in (0, 1))
    return figure, Geometry([round(x, 2) for x in across.tolist()], float(zero), float(one))


def draw_posterior(
    axes: Any, decoded: Decoded, posteriors: Posteriors, shown: int, most: float
) -> list[float]:
    """The prior, and the posterior of one output; the edges of the bins.

    ``most`` is the largest belief that the axis has room for.
    """
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
    return edges


def comparison_figure(standings: Sequence[Standing], bound: float | None, loss: str) -> Figure:
    """One line a mechanism."""
    figure = Figure(figsize=(WIDTH, 1.1 + 0.27 * len(standings)), layout="constrained")
    draw_comparison(figure.subplots(), standings, bound, loss)
    return figure


def draw_comparison(
    axes: Any, standings: Sequence[Standing], bound: float | None, loss: str
) -> None:
    """A dot for each loss, open if biased, and the certified lower bound as a line."""
    losses = [standing.loss for standing in standings]
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
    scale(axes, "x", losses)
    axes.set_xlabel(loss)
    tidy(axes, grid="x")
    for tick, standing in zip(axes.get_yticklabels(), standings, strict=True):
        if standing.own:
            tick.set(color=LIGHT["mark"], fontweight="bold")


def _round_steps(most: int, *, integer: bool = False) -> MaxNLocator:
    """At most so many ticks, at steps that people count in."""
    return MaxNLocator(most, integer=integer, steps=[1, 2, 2.5, 5, 10])


def name_numbers(axis: Any, most: int, *, integer: bool = False) -> None:
    """Ticks at round numbers, written as everywhere on the page."""
    axis.set_major_locator(_round_steps(most, integer=integer))
    axis.set_major_formatter(lambda number, _: plain(number, 7))


def label_positions(decoded: Decoded, labels: list[int]) -> list[float]:
    """Where the labels of these indices stand: at their values, categories at their places."""
    domain = decoded.domain
    if isinstance(domain, CategoricalDomain):
        return [float(index) for index in labels]
    step = (domain.max - domain.min) / (domain.size - 1)
    return [domain.min + index * step for index in labels]


def bin_edges(decoded: Decoded, starts: list[int]) -> list[float]:
    """The edges of bins that begin at these label indices, half a step to the left of them."""
    first, second = label_positions(decoded, [0, 1])
    half = (second - first) / 2
    return [first + (2 * start - 1) * half for start in starts]


def name_label_axis(axes: Any, decoded: Decoded) -> None:
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
