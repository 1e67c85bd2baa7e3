"""Mean, standard deviation and bias of the output, label by label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from labeldp_compile.inspection import Decoded, LabelFacts
from labeldp_compile.page.axes import INK, tidy
from labeldp_compile.page.palette import LIGHT
from labeldp_compile.report.plots.label_axis import name_label_axis, name_numbers

_MARKED = 60  # labels that are shown as points, too


def moments_figure(decoded: Decoded, facts: Sequence[LabelFacts], *, with_bias: bool) -> Figure:
    """Mean ± sd, and below it the bias if there is one to see."""
    figure = Figure(figsize=(8.6, 5.6 if with_bias else 3.8), layout="constrained")
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
    axes.legend(loc="upper left", frameon=False, labelcolor=INK, fontsize="small", ncols=3)
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
