"""Pr[output | label] on a real axis of outputs, as Figure 3 of the unbiased paper shows it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labeldp_compile.inspection import Decoded
from labeldp_compile.randomizer import AdditiveRandomizer, CategoricalDomain
from labeldp_compile.randomizer.probabilities import Floats, likely_outputs, range_sums, value
from labeldp_compile.randomizer.window import Output

COLUMNS, BINS, LATTICE_BINS = 160, 64, 120
SHOWN_NOISE = 0.999
_EVEN = 1e-6  # outputs are on a lattice if their distances agree so far, relatively


@dataclass(frozen=True)
class HeatMap:
    """Shares of each label that fall into each bin of outputs.

    Attributes:
        shares: [bins, columns]; a column is a label, and sums to 1 where no tail is left out.
        labels: [columns] the indices of the labels.
        label_axis, output_axis: the ends of the two axes. Of categories, places in their order.
        outputs: the first and the last that is shown.
        bin_width: in units of the label; None for categories.
        tails: whether the far tails of additive noise are left out.
    """

    shares: Floats
    labels: list[int]
    label_axis: tuple[float, float]
    output_axis: tuple[float, float]
    outputs: tuple[Output, Output]
    bin_width: float | None
    tails: bool


def heat_map(decoded: Decoded) -> HeatMap:
    """At most ``COLUMNS`` labels, evenly spaced, and at most ``LATTICE_BINS`` bins of outputs."""
    domain, r = decoded.domain, decoded.randomizer
    columns = min(domain.size, COLUMNS)
    labels = [(2 * j + 1) * domain.size // (2 * columns) for j in range(columns)]
    first, last = likely_outputs(r, SHOWN_NOISE)
    if isinstance(domain, CategoricalDomain):
        group = -(-r.outputs // LATTICE_BINS)
        starts, low, width = _groups(0, r.outputs, group), -0.5, float(group)
        label_axis = (-0.5, domain.size - 0.5)
    else:
        step = (domain.max - domain.min) / (domain.size - 1)
        label_axis = (domain.min - step / 2, domain.max + step / 2)
        if isinstance(r, AdditiveRandomizer):
            group = -(-(last - first + 1) // LATTICE_BINS)
            starts, width = _groups(first, last + 1, group), group * r.unit
            low = float(value(r, first)) - r.unit / 2
        else:
            values = np.array(r.values, dtype=np.float64)
            low, width, count = _bins(values, (domain.min, domain.max), step)
            starts = np.searchsorted(values, low + width * np.arange(count + 1))
    return HeatMap(
        shares=range_sums(r, labels, starts).T,
        labels=labels,
        label_axis=label_axis,
        output_axis=(low, low + width * (len(starts) - 1)),
        outputs=(value(r, first), value(r, last)),
        bin_width=None if isinstance(domain, CategoricalDomain) else width,
        tails=(first, last) != (0, r.outputs - 1),
    )


def _groups(first: int, end: int, group: int) -> NDArray[np.int64]:
    """Boundaries of groups of neighbours; the last group may be smaller."""
    return np.minimum(first + group * np.arange(-(-(end - first) // group) + 1), end)


def _bins(values: Floats, labels: tuple[float, float], step: float) -> tuple[float, float, int]:
    """Lower end, width and number of bins that hold all outputs and span all labels.

    Evenly spaced outputs are in the middle of their bins, whatever their number.
    """
    low, high = min(values[0], labels[0]), max(values[-1], labels[1])
    gaps = np.diff(values)
    spacing = float(gaps.mean()) if len(gaps) else math.inf
    even = len(gaps) > 0 and float(np.ptp(gaps)) <= _EVEN * spacing
    if even and spacing <= max(step * (1 + _EVEN), (high - low) / BINS):
        inside = round((high - low) / spacing) + 1
        width = spacing * -(-inside // LATTICE_BINS)
        low = values[0] - spacing * math.ceil((values[0] - low) / spacing - _EVEN) - spacing / 2
        return float(low), width, math.ceil((high - low) / width - _EVEN)
    width = (high - low) / (BINS - 1)
    return float(low - width / 2), float(width), BINS
