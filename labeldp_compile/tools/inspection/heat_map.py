"""Pr[output | label] on a real axis of outputs, as Figure 3 of the unbiased paper shows it.

Terminals and pages draw the same cells. How many there are depends on the room.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from labeldp_verify.analysis import Floats, likely_outputs, range_sums, value
from labeldp_verify.artifact import Table
from labeldp_verify.forms import AdditiveRandomizer, Output, are_numbers
from numpy.typing import NDArray

COLUMNS = 160
CELLS = 80
SHOWN_NOISE = 0.999
_EVEN = 1e-6  # outputs are on a lattice if their distances differ by less than this, relatively


@dataclass(frozen=True)
class HeatMap:
    """Shares of each label that fall into each of the equally high cells of outputs.

    Attributes:
        shares: [cells, labels]; a column is a label, and sums to 1 if no tail is left out.
        labels: [labels] their indices.
        output_axis: the ends of the axis of outputs; of categories, places in their order.
        outputs: the first and the last output that is shown.
        cell_height: in units of the label (categories: in places); None if no cell holds two
            outputs.
        tails: whether the far tails of additive noise are left out.
    """

    shares: Floats
    labels: Sequence[int]
    output_axis: tuple[float, float]
    outputs: tuple[Output, Output]
    cell_height: float | None
    tails: bool


def heat_map(decoded: Table, labels: Sequence[int] | None = None, most: int = CELLS) -> HeatMap:
    """At most ``most`` cells, of these labels or of at most ``COLUMNS`` evenly spaced ones.

    Outputs on a lattice may have one cell more.
    """
    domain, r = decoded.domain, decoded.randomizer
    if labels is None:
        columns = min(domain.size, COLUMNS)
        labels = [(2 * j + 1) * domain.size // (2 * columns) for j in range(columns)]
    first, last = likely_outputs(r, SHOWN_NOISE)
    if isinstance(r, AdditiveRandomizer):
        low = float(value(r, first)) - r.unit / 2
        starts, edges = _neighbours(first, last + 1, low, r.unit, most)
    elif not are_numbers(domain, r):
        starts, edges = _neighbours(0, r.outputs, -0.5, 1.0, most)
    else:
        values = np.array(r.values, dtype=np.float64)
        step = (domain.max - domain.min) / (domain.size - 1)
        edges = cell_edges(values, (domain.min, domain.max), step, most)
        starts = np.searchsorted(values, edges)
    return HeatMap(
        shares=range_sums(r, labels, starts).T,
        labels=labels,
        output_axis=(float(edges[0]), float(edges[-1])),
        outputs=(value(r, first), value(r, last)),
        cell_height=float(edges[1] - edges[0]) if int(np.diff(starts).max()) > 1 else None,
        tails=(first, last) != (0, r.outputs - 1),
    )


def _neighbours(
    first: int, end: int, low: float, unit: float, most: int
) -> tuple[NDArray[np.int64], Floats]:
    """Boundaries and edges of runs of neighbouring outputs.

    The last run may have fewer outputs; its cell is as high as the others.
    """
    together = -(-(end - first) // most)
    boundaries = first + together * np.arange(-(-(end - first) // together) + 1)
    edges: Floats = low + together * unit * np.arange(len(boundaries), dtype=np.float64)
    return np.minimum(boundaries, end), edges


def cell_edges(
    values: Floats, labels: tuple[float, float], step: float, most: int = CELLS
) -> Floats:
    """Edges [cells + 1] of equally high cells that hold all outputs and span all labels.

    Evenly spaced outputs are in the middle of their cells.

    Args:
        values: [m] outputs, increasing.
        labels: the smallest and the largest label.
        step: between neighbouring labels.
        most: cells at most; outputs on a lattice may have one more.
    """
    low, high = min(values[0], labels[0]), max(values[-1], labels[1])
    gaps = np.diff(values)
    spacing = float(gaps.mean()) if len(gaps) else math.inf
    even = len(gaps) > 0 and float(np.ptp(gaps)) <= _EVEN * spacing
    if even and spacing <= max(step * (1 + _EVEN), (high - low) / most):
        together = -(-(round((high - low) / spacing) + 1) // most)
        width = spacing * together
        low = values[0] - spacing * math.ceil((values[0] - low) / spacing - _EVEN) - spacing / 2
        return np.asarray(low + width * np.arange(math.ceil((high - low) / width - _EVEN) + 1))
    width = (high - low) / (most - 1)
    return np.asarray(low - width / 2 + width * np.arange(most + 1))
