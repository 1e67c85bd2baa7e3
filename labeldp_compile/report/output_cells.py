"""The cells of a real axis of outputs: one for every output, or as many as a picture can show."""

from __future__ import annotations

import math

import numpy as np

from labeldp_compile.probabilities import Floats

BINS, LATTICE_BINS = 64, 120
_OWN = 160  # outputs with cells of their own, at most
_THINNEST = 1 / 400  # of the axis, that can be seen
_EVEN = 1e-6  # outputs are on a lattice if their distances agree so far, relatively


def cell_edges(values: Floats, labels: tuple[float, float], step: float) -> tuple[Floats, bool]:
    """Edges [cells + 1] of cells that hold all outputs and span all labels.

    Evenly spaced outputs are in the middle of their cells, whatever their number. Other outputs
    have cells of their own that end half-way to the next, or leave a gap, if there are few
    enough and none are too near to each other; else all cells are equally high.

    Args:
        values: [m] outputs, increasing.
        labels: the least and the greatest label.
        step: between neighbouring labels.

    Returns:
        The edges, and whether no cell holds two outputs.
    """
    low, high = min(values[0], labels[0]), max(values[-1], labels[1])
    gaps = np.diff(values)
    spacing = float(gaps.mean()) if len(gaps) else math.inf
    even = len(gaps) > 0 and float(np.ptp(gaps)) <= _EVEN * spacing
    if even and spacing <= max(step * (1 + _EVEN), (high - low) / BINS):
        inside = round((high - low) / spacing) + 1
        group = -(-inside // LATTICE_BINS)
        width = spacing * group
        low = values[0] - spacing * math.ceil((values[0] - low) / spacing - _EVEN) - spacing / 2
        return low + width * np.arange(math.ceil((high - low) / width - _EVEN) + 1), group == 1
    width = (high - low) / (BINS - 1)
    if len(values) <= _OWN and (not len(gaps) or float(gaps.min()) >= (high - low) * _THINNEST):
        reach = np.minimum(np.concatenate([[math.inf], gaps, [math.inf]]), width) / 2
        below, above = values - reach[:-1], values + reach[1:]
        touching = gaps <= width
        below[1:][touching] = above[:-1][touching]
        ends = (min(low - width / 2, below[0]), max(high + width / 2, above[-1]))
        return np.unique(np.concatenate([ends, below, above])), True
    return low - width / 2 + width * np.arange(BINS + 1), False
