"""Pr[output | label] on a real axis of outputs, as Figure 3 of the unbiased paper shows it.

Terminals and pages draw the same cells; how many there are depends on the room that they have.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from labeldp_verify.analysis import Floats, likely_outputs, range_sums, value
from labeldp_verify.artifact import Table
from labeldp_verify.forms import AdditiveRandomizer, Output, are_numbers
from numpy.typing import NDArray

COLUMNS = 160
SHOWN_NOISE = 0.999
_EVEN = 1e-6  # outputs are on a lattice if their distances agree so far, relatively


@dataclass(frozen=True)
class Room:
    """How many cells can be told from each other.

    Attributes:
        lattice: cells of outputs that lie on a lattice, and of categories.
        equal: equally high cells of other outputs.
        own: cells that each hold one output.
        thinnest: the least distance of two outputs with cells of their own, as a share of the axis.
    """

    lattice: int = 120
    equal: int = 64
    own: int = 160
    thinnest: float = 1 / 400


PAGE = Room()


@dataclass(frozen=True)
class HeatMap:
    """Shares of each label that fall into each cell of outputs.

    Attributes:
        shares: [cells, labels]; a column is a label, and sums to 1 where no tail is left out.
        labels: [labels] their indices.
        edges: [cells + 1] on the axis of outputs; of categories, places in their order.
        outputs: the first and the last that is shown.
        cell_height: in units of the label, of categories in places; None where every output has a
            cell of its own.
        tails: whether the far tails of additive noise are left out.
    """

    shares: Floats
    labels: Sequence[int]
    edges: Floats
    outputs: tuple[Output, Output]
    cell_height: float | None
    tails: bool

    @property
    def output_axis(self) -> tuple[float, float]:
        """The ends of the axis of outputs."""
        return float(self.edges[0]), float(self.edges[-1])

    def rows(self, most: int) -> Floats:
        """[rows, labels] the shares in rows of equal height; a cell may have several, or none.

        As many rows as cells where these are equally high, else ``most``.
        """
        heights = np.diff(self.edges)
        if np.allclose(heights, heights[0]):
            return self.shares
        low, high = self.output_axis
        places = low + (high - low) * (np.arange(most) + 0.5) / most
        result: Floats = self.shares[np.searchsorted(self.edges, places) - 1]
        return result


def heat_map(decoded: Table, labels: Sequence[int] | None = None, room: Room = PAGE) -> HeatMap:
    """The cells of the labels of these indices, or of at most ``COLUMNS`` evenly spaced ones."""
    domain, r = decoded.domain, decoded.randomizer
    if labels is None:
        columns = min(domain.size, COLUMNS)
        labels = [(2 * j + 1) * domain.size // (2 * columns) for j in range(columns)]
    first, last = likely_outputs(r, SHOWN_NOISE)
    if isinstance(r, AdditiveRandomizer):
        low = float(value(r, first)) - r.unit / 2
        starts, edges, own = _neighbours(first, last + 1, low, r.unit, room)
    elif not are_numbers(domain, r):
        starts, edges, own = _neighbours(0, r.outputs, -0.5, 1.0, room)
    else:
        values = np.array(r.values, dtype=np.float64)
        step = (domain.max - domain.min) / (domain.size - 1)
        edges, own = cell_edges(values, (domain.min, domain.max), step, room)
        starts = np.searchsorted(values, edges)
    return HeatMap(
        shares=range_sums(r, labels, starts).T,
        labels=labels,
        edges=edges.astype(np.float64),
        outputs=(value(r, first), value(r, last)),
        cell_height=None if own else float(edges[1] - edges[0]),
        tails=(first, last) != (0, r.outputs - 1),
    )


def _neighbours(
    first: int, end: int, low: float, unit: float, room: Room
) -> tuple[NDArray[np.int64], Floats, bool]:
    """Runs of neighbours: their boundaries, their edges, whether each holds one output alone.

    The last of them may be fewer; their cell is as high as the others.
    """
    together = -(-(end - first) // room.lattice)
    boundaries = first + together * np.arange(-(-(end - first) // together) + 1)
    edges: Floats = low + together * unit * np.arange(len(boundaries), dtype=np.float64)
    return np.minimum(boundaries, end), edges, together == 1


def cell_edges(
    values: Floats, labels: tuple[float, float], step: float, room: Room = PAGE
) -> tuple[Floats, bool]:
    """Edges [cells + 1] of cells that hold all outputs and span all labels.

    Evenly spaced outputs are in the middle of their cells, whatever their number. Other outputs
    have cells of their own that end half-way to the next, or leave a gap, if there are few
    enough and none are too near to each other; else all cells are equally high.

    Args:
        values: [m] outputs, increasing.
        labels: the least and the greatest label.
        step: between neighbouring labels.
        room: how many cells there may be.

    Returns:
        The edges, and whether no cell holds two outputs.
    """
    low, high = min(values[0], labels[0]), max(values[-1], labels[1])
    gaps = np.diff(values)
    spacing = float(gaps.mean()) if len(gaps) else math.inf
    even = len(gaps) > 0 and float(np.ptp(gaps)) <= _EVEN * spacing
    if even and spacing <= max(step * (1 + _EVEN), (high - low) / room.equal):
        inside = round((high - low) / spacing) + 1
        together = -(-inside // room.lattice)
        width = spacing * together
        low = values[0] - spacing * math.ceil((values[0] - low) / spacing - _EVEN) - spacing / 2
        return low + width * np.arange(math.ceil((high - low) / width - _EVEN) + 1), together == 1
    width = (high - low) / (room.equal - 1)
    apart = not len(gaps) or float(gaps.min()) >= (high - low) * room.thinnest
    if len(values) <= room.own and apart:
        reach = np.minimum(np.concatenate([[math.inf], gaps, [math.inf]]), width) / 2
        below, above = values - reach[:-1], values + reach[1:]
        touching = gaps <= width
        below[1:][touching] = above[:-1][touching]
        ends = (min(low - width / 2, below[0]), max(high + width / 2, above[-1]))
        return np.unique(np.concatenate([ends, below, above])), True
    return low - width / 2 + width * np.arange(room.equal + 1), False
