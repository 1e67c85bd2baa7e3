"""The heat map of Pr[output | label]."""

import math
from typing import Any

import numpy as np
from labeldp_verify.artifact import Table
from labeldp_verify.forms import are_numbers, sets_of
from labeldp_verify.printable import clipped
from matplotlib.colors import LinearSegmentedColormap, PowerNorm
from matplotlib.figure import Figure

from labeldp_compile.tools.inspection.heat_map import HeatMap
from labeldp_compile.tools.page.numbers import plain
from labeldp_compile.tools.page.palette import LIGHT
from labeldp_compile.tools.page.pictures import INK, tidy
from labeldp_compile.tools.report.plots import (
    SMALL,
    WIDTH,
    bin_edges,
    name_categories,
    name_label_axis,
    name_numbers,
)

# From rare to common. A page hides the one that does not belong to the colour scheme.
SCHEMES = {
    "light": ("#dce8f5", "#6da3dc", "#1f5fa8", "#0a1f45"),
    "dark": ("#21374f", "#2f6fb0", "#6fb3f7", "#f2f8ff"),
}
_POWER = 0.5  # colours follow the square root, so that small probabilities differ from zero
_APART = 0.11  # of the scale, between two ticks


def matrix_figure(decoded: Table, heat: HeatMap) -> Figure:
    """The heat map as a figure of its own, in both colour schemes at once."""
    figure = Figure(figsize=(WIDTH, 3.7), layout="constrained")
    axes, scale = figure.subplots(1, 2, width_ratios=[32, 1])
    most = float(heat.shares.max())
    # Cells without outputs are transparent.
    shares = np.ma.masked_less_equal(heat.shares, 0.0)
    label_axis = bin_edges(decoded, [0, decoded.domain.size])
    extent = (*label_axis, *heat.output_axis)
    ramp = np.linspace(0, 1, 128)[:, None]
    for name, ramp_colours in SCHEMES.items():
        colours = LinearSegmentedColormap.from_list(name, ramp_colours)
        norm = PowerNorm(_POWER, 0, most)
        style = {"origin": "lower", "aspect": "auto", "interpolation": "none", "cmap": colours}
        axes.imshow(shares, extent=extent, norm=norm, gid=f"matrix-in-{name}", **style)
        scale.imshow(ramp, extent=(0, 1, 0, 1), gid=f"scale-in-{name}", **style)
    name_label_axis(axes, decoded)
    _name_outputs(axes, decoded)
    tidy(axes, grid=None)
    tidy(scale, grid=None)
    scale.yaxis.tick_right()
    scale.spines[:].set_visible(False)
    ticks = _round_numbers(most)
    scale.set_xticks([])
    scale.set_yticks([(p / most) ** _POWER for p in ticks], [plain(p, 2) for p in ticks])
    what = "probability of the output" if heat.cell_height is None else "probability in a cell"
    scale.set_title(what, loc="right", fontsize=SMALL, color=INK)
    if are_numbers(decoded.domain, decoded.randomizer):
        ends = (max(label_axis[0], heat.output_axis[0]), min(label_axis[1], heat.output_axis[1]))
        axes.plot(ends, ends, color=LIGHT["soft"], linewidth=1, linestyle=(0, (4, 4)))
        axes.set(xlim=label_axis, ylim=heat.output_axis)
    return figure


def _round_numbers(most: float) -> list[float]:
    """0 and a few of 1, 2 and 5 times powers of ten, not too close to each other on the scale."""
    highest, chosen = math.floor(math.log10(most)), [0.0]
    for power in range(highest - 3, highest + 1):
        for number in (digit * 10.0**power for digit in (1, 2, 5)):
            apart = (number / most) ** _POWER - (chosen[-1] / most) ** _POWER
            if number <= most * 1.0001 and apart >= _APART:
                chosen.append(number)
    return chosen


def _name_outputs(axes: Any, decoded: Table) -> None:
    if not are_numbers(decoded.domain, decoded.randomizer):
        values = getattr(decoded.randomizer, "values", ())
        sets = sets_of(decoded.randomizer)
        axes.set_ylabel("output" if sets is None else "output: the number of a set of labels")
        name_categories(axes.yaxis, [clipped(str(value), 40) for value in values])
        return
    axes.set_ylabel("output (replaces the label)")
    name_numbers(axes.yaxis, 10)
