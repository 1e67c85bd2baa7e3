"""The pictures of a report: the prior, the moments, a posterior, and the axes that they share."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from labeldp_verify.analysis import Floats
from labeldp_verify.artifact import Table
from labeldp_verify.forms import CategoricalDomain, GridDomain
from labeldp_verify.printable import clipped, width
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from labeldp_compile.tools.inspection.facts import LabelFacts
from labeldp_compile.tools.page.numbers import plain
from labeldp_compile.tools.page.palette import LIGHT
from labeldp_compile.tools.page.pictures import INK, tidy
from labeldp_compile.tools.report.posterior import Posteriors

WIDTH = 5.2  # inches, of a figure in a page: its text is 9 px high on a phone
SMALL = 8.7  # points, of legends: 8 px high on a phone
_MAX_NAMES = 24
_NAME_COLUMNS = 16
_LEVEL_COLUMNS = 72  # longer rows of names are rotated
_MARKED = 60  # up to this many labels are also drawn as points


def prior_figure(decoded: Table, starts: list[int], prior: Floats) -> Figure:
    """The mean share of a label in bins of neighbouring labels."""
    figure = Figure(figsize=(WIDTH, 2.3), layout="constrained")
    axes: Any = figure.subplots()
    edges = bin_edges(decoded, starts)
    axes.stairs(prior, edges, fill=True, color=LIGHT["accent"], alpha=0.85, linewidth=0)
    _name_share_axes(axes, decoded, starts, "share")
    return figure


def moments_figure(decoded: Table, facts: Sequence[LabelFacts], *, with_bias: bool) -> Figure:
    """The mean of the output ± sd, and below it the bias, if there is any."""
    figure = Figure(figsize=(WIDTH, 4.4 if with_bias else 2.9), layout="constrained")
    ratios = [5, 3] if with_bias else [1]
    axes = figure.subplots(len(ratios), 1, squeeze=False, height_ratios=ratios)[:, 0]
    labels = [float(row.label) for row in facts]
    means = np.array([row.mean or 0.0 for row in facts])
    spreads = np.array([row.deviation or 0.0 for row in facts])
    accent, dashed = LIGHT["accent"], {"color": LIGHT["soft"], "linewidth": 1.2, "linestyle": "--"}
    band = {"color": accent, "alpha": 0.22, "linewidth": 0, "label": "mean ± sd"}
    axes[0].fill_between(labels, means - spreads, means + spreads, **band)
    axes[0].plot(labels, labels, label="output = label", **dashed)
    axes[0].plot(labels, means, color=accent, linewidth=2, label="mean output", **_marks(facts))
    _name_number_axes(axes[0], decoded, "output", 8)
    axes[0].legend(loc="upper left", frameon=False, labelcolor=INK, fontsize=SMALL, ncols=3)
    bottom, top = axes[0].get_ylim()
    axes[0].set_ylim(bottom, top + 0.14 * (top - bottom))  # room for the legend
    if with_bias:
        biases = [row.bias or 0.0 for row in facts]
        axes[1].axhline(0, **dashed)
        axes[1].plot(labels, biases, color=LIGHT["mark"], linewidth=2, **_marks(facts))
        _name_number_axes(axes[1], decoded, "bias: mean output − label", 5)
    return figure


def _marks(facts: Sequence[LabelFacts]) -> dict[str, Any]:
    return {"marker": "o", "markersize": 3.2} if len(facts) <= _MARKED else {}


def posterior_figure(decoded: Table, posteriors: Posteriors, shown: int) -> Figure:
    """The prior, and the posterior of the output ``shown``."""
    figure = Figure(figsize=(WIDTH, 2.7), layout="constrained")
    axes: Any = figure.subplots()
    belief, edges = posteriors.seen[shown].belief, bin_edges(decoded, posteriors.starts)
    after = {"color": LIGHT["accent"], "alpha": 0.55, "linewidth": 0}
    axes.stairs(belief, edges, fill=True, label="after the output was seen", **after)
    axes.stairs(posteriors.prior, edges, color=INK, linewidth=1.4, label="before: the prior")
    axes.set_ylim(0, 1.22 * max(float(belief.max()), float(posteriors.prior.max())))
    _name_share_axes(axes, decoded, posteriors.starts, "probability")
    axes.legend(loc="upper right", frameon=False, labelcolor=INK, fontsize=SMALL, ncols=2)
    return figure


def _round_steps(most: int, *, integer: bool = False) -> MaxNLocator:
    """At most ``most`` ticks, at round steps."""
    return MaxNLocator(most, integer=integer, steps=[1, 2, 2.5, 5, 10])


def name_numbers(axis: Any, most: int, *, integer: bool = False) -> None:
    """Ticks at round numbers, written as in the rest of the page."""
    axis.set_major_locator(_round_steps(most, integer=integer))
    axis.set_major_formatter(lambda number, _: plain(number, 7))


def bin_edges(decoded: Table, starts: list[int]) -> list[float]:
    """The edges of bins that begin at these label indices, half a step to the left of them.

    Labels are placed at their values, categories at their indices.
    """
    domain, first, step = decoded.domain, 0.0, 1.0
    if isinstance(domain, GridDomain):  # halfway to the neighbours
        at, last = np.array(domain.values), domain.size
        whole = [2 * at[0] - at[1], *at, 2 * at[-1] - at[-2]]
        return [float(whole[min(i, last)] + whole[min(i, last) + 1]) / 2 for i in starts]
    if not isinstance(domain, CategoricalDomain):
        first, step = domain.min, (domain.max - domain.min) / (domain.size - 1)
    return [first + (2 * start - 1) * step / 2 for start in starts]


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


def _name_share_axes(axes: Any, decoded: Table, starts: list[int], what: str) -> None:
    """Labels on the horizontal axis, the mean probability of a label on the vertical one."""
    name_label_axis(axes, decoded)
    axes.set_ylabel(what if starts[1] - starts[0] == 1 else f"mean {what} of a label")
    axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.4g}%")
    axes.margins(x=0.01)
    tidy(axes, grid="y")


def _name_number_axes(axes: Any, decoded: Table, what: str, most: int) -> None:
    """Labels on the horizontal axis, a number with at most ``most`` ticks on the vertical one."""
    name_label_axis(axes, decoded)
    axes.set_ylabel(what)
    name_numbers(axes.yaxis, most)
    axes.margins(x=0.01)
    tidy(axes)


def name_categories(axis: Any, names: list[str]) -> None:
    """Each category by its name, or by its index if there are too many."""
    if len(names) > _MAX_NAMES:
        axis.set_major_locator(_round_steps(8, integer=True))
        return
    shown = [clipped(name, _NAME_COLUMNS) for name in names]
    turned = axis.axis_name == "x" and sum(width(name) + 2 for name in shown) > _LEVEL_COLUMNS
    axis.set_ticks(range(len(names)), shown)
    for tick in axis.get_ticklabels() if turned else ():
        tick.set(rotation=40, ha="right", rotation_mode="anchor")
