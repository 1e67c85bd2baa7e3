"""Pr[output | label] on a real axis of outputs, as Figure 3 of the unbiased paper shows it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from labeldp_verify.forms import AdditiveRandomizer, CategoricalDomain
from labeldp_verify.forms.window import Output
from numpy.typing import NDArray

from labeldp_compile.inspection import Decoded
from labeldp_compile.probabilities import Floats, likely_outputs, range_sums, value
from labeldp_compile.report.output_cells import LATTICE_BINS, cell_edges

COLUMNS = 160
SHOWN_NOISE = 0.999
_FINE_ROWS = 640


@dataclass(frozen=True)
class HeatMap:
    """Shares of each label that fall into each cell of outputs.

    Attributes:
        shares: [cells, columns]; a column is a label, and sums to 1 where no tail is left out.
        labels: [columns] the indices of the labels.
        label_axis: the ends of the axis. Of categories, places in their order.
        edges: [cells + 1] on the axis of outputs.
        outputs: the first and the last that is shown.
        cell_height: in units of the label; None where every output has a cell of its own.
        tails: whether the far tails of additive noise are left out.
    """

    shares: Floats
    labels: list[int]
    label_axis: tuple[float, float]
    edges: Floats
    outputs: tuple[Output, Output]
    cell_height: float | None
    tails: bool

    @property
    def output_axis(self) -> tuple[float, float]:
        """The ends of the axis."""
        return float(self.edges[0]), float(self.edges[-1])

    def picture(self) -> Floats:
        """[rows, columns] the shares in rows of equal height; a cell may have several."""
        heights = np.diff(self.edges)
        if np.allclose(heights, heights[0]):
            return self.shares
        low, high = self.output_axis
        rows = low + (high - low) * (np.arange(_FINE_ROWS) + 0.5) / _FINE_ROWS
        result: Floats = self.shares[np.searchsorted(self.edges, rows) - 1]
        return result


def heat_map(decoded: Decoded) -> HeatMap:
    """At most ``COLUMNS`` labels, evenly spaced, and at most some 300 cells of outputs."""
    domain, r = decoded.domain, decoded.randomizer
    columns = min(domain.size, COLUMNS)
    labels = [(2 * j + 1) * domain.size // (2 * columns) for j in range(columns)]
    first, last = likely_outputs(r, SHOWN_NOISE)
    height: float | None = None
    if isinstance(domain, CategoricalDomain):
        group = -(-r.outputs // LATTICE_BINS)
        starts = _groups(0, r.outputs, group)
        edges = group * np.arange(len(starts)) - 0.5
        label_axis = (-0.5, domain.size - 0.5)
    else:
        step = (domain.max - domain.min) / (domain.size - 1)
        label_axis = (domain.min - step / 2, domain.max + step / 2)
        if isinstance(r, AdditiveRandomizer):
            group = -(-(last - first + 1) // LATTICE_BINS)
            starts = _groups(first, last + 1, group)
            low = float(value(r, first)) - r.unit / 2
            edges, own = low + group * r.unit * np.arange(len(starts)), group == 1
        else:
            values = np.array(r.values, dtype=np.float64)
            edges, own = cell_edges(values, (domain.min, domain.max), step)
            starts = np.searchsorted(values, edges)
        height = None if own else float(edges[1] - edges[0])
    return HeatMap(
        shares=range_sums(r, labels, starts).T,
        labels=labels,
        label_axis=label_axis,
        edges=edges.astype(np.float64),
        outputs=(value(r, first), value(r, last)),
        cell_height=height,
        tails=(first, last) != (0, r.outputs - 1),
    )


def _groups(first: int, end: int, group: int) -> NDArray[np.int64]:
    """Boundaries of groups of neighbours; the last group may be smaller."""
    return np.minimum(first + group * np.arange(-(-(end - first) // group) + 1), end)
