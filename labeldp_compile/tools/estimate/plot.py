"""The picture of an estimation: the histogram with its intervals, and the groups' means."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from labeldp_verify.printable import clipped, printable
from matplotlib.figure import Figure

from labeldp_compile.page.document import LIGHT
from labeldp_compile.page.pictures import INK, picture_settings, svg_text, tidy
from labeldp_compile.tools.estimate.cells import ALL_ROWS, texts_of
from labeldp_compile.tools.estimate.estimate import Estimation, GroupEstimates
from labeldp_compile.tools.estimate.intervals import Estimates

_MOST_TICKS, _MOST_GROUPS = 24, 40
_NAME_COLUMNS = 24


def estimates_svg(estimation: Estimation, found: list[GroupEstimates], title: str) -> str:
    """The picture as the text of an SVG file."""
    with picture_settings():
        return svg_text(_figure(estimation, found, title))


def _figure(estimation: Estimation, found: list[GroupEstimates], title: str) -> Figure:
    total, groups = found[0], [g for g in found[1:] if g.mean is not None][:_MOST_GROUPS]
    panels = int(total.histogram is not None) + int(bool(groups) or total.histogram is None)
    figure = Figure(figsize=(9.2, 4.6 * panels), layout="constrained")
    axes = figure.subplots(panels, 1, squeeze=False)[:, 0]
    if total.histogram is not None and total.projected is not None:
        _histogram(axes[0], estimation, total.histogram, total.projected)
    if groups or total.histogram is None:
        _means(axes[-1], groups or [total])
    axes[0].set_title(printable(title), loc="left", color=INK)
    for part in axes:
        tidy(part, grid="y")
    return figure


def _histogram(axes: Any, estimation: Estimation, shares: Estimates, projected: Any) -> None:
    count = estimation.classes.count
    places = np.arange(count)
    axes.bar(places, projected, color=LIGHT["accent"], alpha=0.35, label="projected")
    _draw(axes, places, shares, "unprojected, 95% interval")
    shown = np.unique(np.linspace(0, count - 1, min(count, _MOST_TICKS)).round().astype(int))
    every = estimation.class_names()
    names = [every[i] for i in shown]
    _name(axes, shown.tolist(), names)
    axes.set(xlabel="label", ylabel="share of rows")
    axes.legend(frameon=False)


def _means(axes: Any, groups: list[GroupEstimates]) -> None:
    for place, group in enumerate(groups):
        assert group.mean is not None
        _draw(axes, np.array([place]), group.mean, None)
    names = [", ".join(texts_of(group.cell)) or ALL_ROWS for group in groups]
    _name(axes, range(len(groups)), names)
    axes.set(xlabel="group", ylabel="mean label, 95% interval")


def _name(axes: Any, places: Sequence[int], names: list[str]) -> None:
    """The ticks of the horizontal axis; long names are rotated."""
    shown = [clipped(name, _NAME_COLUMNS) for name in names]
    axes.set_xticks(places, shown)
    if max(map(len, shown)) * len(shown) > 80:
        axes.tick_params(axis="x", rotation=60)


def _draw(axes: Any, places: Any, shares: Estimates, label: str | None) -> None:
    reach = np.nan_to_num(np.array([shares.value - shares.low, shares.high - shares.value]))
    style = {"fmt": "o", "color": INK, "ms": 3.5, "lw": 1, "capsize": 2}
    axes.errorbar(places, shares.value, yerr=reach, label=label, **style)
