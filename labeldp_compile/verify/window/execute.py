"""Where a window randomizer's graph could go wrong, and what its integers answer there.

Every segment boundary is approached from both sides: the words just below and at each cut, for
every label (or, where that would be more than ``MAX_PAIRS`` pairs, for the first and last word of
every label's window and each boundary with one label).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_compile.randomizer import WindowRandomizer
from labeldp_compile.verify.form import MAX_PAIRS


def outputs_of(
    randomizer: WindowRandomizer, rows: NDArray[np.int64], u: NDArray[np.int64]
) -> NDArray[Any]:
    """What the integers demand for row indices [n] and B-bit words u [n]."""
    offsets = np.array(randomizer.offsets, dtype=np.int64)
    t = np.where(u >= randomizer.base_total, u + offsets[rows], u)
    boundaries = np.array(randomizer.boundaries(), dtype=np.int64)
    segments = np.searchsorted(boundaries, t, side="right") - 1
    owners = np.array(randomizer.segment_outputs(), dtype=np.int64)[segments]
    numeric = isinstance(randomizer.values[0], float | int)
    return np.array(randomizer.values, dtype=None if numeric else object)[owners]


def boundary_pairs(randomizer: WindowRandomizer) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row indices and words u on both sides of every cut."""
    T, X, last = randomizer.base_total, randomizer.window, randomizer.words - 1
    boundaries = np.array(randomizer.boundaries(), dtype=np.int64)
    base_cuts = boundaries[: len(randomizer.base) + 1]
    extra_cuts = boundaries[len(randomizer.base) :]
    offsets = np.array(randomizer.offsets, dtype=np.int64)
    k = len(offsets)
    if k * 2 * len(boundaries) <= MAX_PAIRS:
        pairs = [(np.full(len(base_cuts), y), base_cuts) for y in range(k)]
        for y, s in enumerate(offsets):
            inside = extra_cuts[(extra_cuts >= T + s) & (extra_cuts <= T + s + X)]
            pairs.append((np.full(len(inside) + 2, y), np.append(inside - s, [T, last + 1])))
    else:
        everyone = np.arange(k)
        pairs = [
            (np.arange(len(base_cuts)) % k, base_cuts),
            (everyone, np.full(k, T)),
            (everyone, np.full(k, last + 1)),
        ]
        order = np.argsort(offsets, kind="stable")
        reach = np.searchsorted(offsets[order], extra_cuts - T, side="right") - 1
        rows = order[np.maximum(reach, 0)]  # the label whose window starts last before the cut
        pairs.append((rows, extra_cuts - offsets[rows]))
    rows = np.concatenate([r for r, _ in pairs for _ in range(2)])
    cuts = np.concatenate([c - d for _, c in pairs for d in (1, 0)])
    keep = (cuts >= 0) & (cuts <= last)
    return rows[keep].astype(np.int64), cuts[keep]
