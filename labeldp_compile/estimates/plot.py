"""The pictures of an estimation and of an evaluation: estimates with their intervals, as SVG."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from labeldp_learn.toolkit import ALL_ROWS, Bin, Estimates, Estimation, GroupEstimates
from labeldp_verify.printable import clipped, printable
from matplotlib.figure import Figure

from labeldp_compile.estimates.counts import texts_of
from labeldp_compile.page.document import LIGHT
from labeldp_compile.page.pictures import INK, picture_settings, svg_text, tidy

MOST_MODELS = 5  # each has a colour and a shape of its own
_STYLES = (("accent", "o"), ("mark", "s"), ("good", "^"), ("bad", "D"), ("soft", "v"))
_APART = 0.006  # of the axis, so that intervals of models do not hide one another
_MOST_TICKS, _MOST_GROUPS = 24, 40
_TICK, _MODEL, _TITLE = 24, 40, 60  # characters of names


def estimates_svg(estimation: Estimation, groups: Sequence[GroupEstimates], title: str) -> str:
    """The histogram of all rows and the groups' means, as the text of an SVG file."""
    total, means = groups[0], [g for g in groups[1:] if g.mean is not None][:_MOST_GROUPS]
    if total.histogram is None:
        means = means or [total]
    panels = int(total.histogram is not None) + int(bool(means))
    with picture_settings():
        figure = Figure(figsize=(9.2, 4.6 * panels), layout="constrained")
        axes = figure.subplots(panels, 1, squeeze=False)[:, 0]
        if total.histogram is not None:
            _histogram(axes[0], estimation.class_names(), total.histogram, total.projected)
        if means:
            _means(axes[-1], means)
        axes[0].set_title(printable(title), loc="left", color=INK)
        for part in axes:
            tidy(part, grid="y")
        return svg_text(figure)


def _histogram(axes: Any, names: Sequence[str], shares: Estimates, projected: Any) -> None:
    positions = np.arange(len(names))
    axes.bar(positions, projected, color=LIGHT["accent"], alpha=0.35, label="projected")
    _draw(axes, positions, shares, "unprojected, 95% interval")
    ticks = min(len(names), _MOST_TICKS)
    shown = np.unique(np.linspace(0, len(names) - 1, ticks).round().astype(int)).tolist()
    _name(axes, shown, [names[i] for i in shown])
    axes.set(xlabel="label", ylabel="share of rows")
    axes.legend(frameon=False)


def _means(axes: Any, groups: Sequence[GroupEstimates]) -> None:
    for position, group in enumerate(groups):
        assert group.mean is not None
        _draw(axes, np.array([position]), group.mean, None)
    names = [", ".join(texts_of(group.cell)) or ALL_ROWS for group in groups]
    _name(axes, range(len(groups)), names)
    axes.set(xlabel="group", ylabel="mean label, 95% interval")


def _name(axes: Any, positions: Sequence[int], names: list[str]) -> None:
    """The ticks of the horizontal axis; long names are rotated."""
    shown = [clipped(name, _TICK) for name in names]
    axes.set_xticks(positions, shown)
    if max(map(len, shown)) * len(shown) > 80:
        axes.tick_params(axis="x", rotation=60)


def _draw(axes: Any, positions: Any, shares: Estimates, label: str | None) -> None:
    reach = np.nan_to_num(np.array([shares.value - shares.low, shares.high - shares.value]))
    style = {"fmt": "o", "color": INK, "ms": 3.5, "lw": 1, "capsize": 2}
    axes.errorbar(positions, shares.value, yerr=reach, label=label, **style)


def calibration_svg(name: str, rows: int, curves: Mapping[str, Sequence[Bin]]) -> str:
    """Predicted against observed means of the first models, as the text of an SVG file."""
    shown = list(curves.items())[:MOST_MODELS]
    predicted = [one.predicted for _, bins in shown for one in bins]
    ends = min(predicted), max(predicted)
    with picture_settings():
        figure = Figure(figsize=(7.2, 5.6), layout="constrained")
        axes = figure.subplots()
        axes.plot(ends, ends, color=INK, lw=1, ls="--", label="perfectly calibrated")
        apart = _APART * (ends[1] - ends[0])
        for number, (model, bins) in enumerate(shown):
            colour, marker = _STYLES[number]
            x = [one.predicted + apart * (number - (len(shown) - 1) / 2) for one in bins]
            observed, low, high = np.array([(b.observed, b.low, b.high) for b in bins]).T
            style: dict[str, Any] = {"color": LIGHT[colour], "ms": 4, "lw": 1, "capsize": 2}
            reach = [observed - low, high - observed]
            label = clipped(model, _MODEL)
            axes.errorbar(x, observed, yerr=reach, fmt=f"{marker}-", label=label, **style)
        if len(shown) < len(curves):
            axes.plot([], [], " ", label=f"{len(curves) - len(shown):,} more models are not drawn")
        axes.set(
            xlabel="mean prediction of a bin", ylabel="estimated mean of true labels, 95% interval"
        )
        title = f"{clipped(name, _TITLE)}: calibration on {rows:,} private labels"
        axes.set_title(printable(title), loc="left", color=INK)
        axes.legend(frameon=False)
        tidy(axes)
        return svg_text(figure)
