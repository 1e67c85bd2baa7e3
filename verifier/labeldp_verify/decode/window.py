"""The window randomizers, one or one for each group, from the integers that the kernel read.

The graph is run on both sides of every segment boundary: at the words just below and at each cut,
for every label (or, where that would be more than ``MAX_PAIRS`` pairs, for the first and last word
of every label's window and each boundary with one label).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_verify import kernel
from labeldp_verify.decode.alias_layout import full_words
from labeldp_verify.decode.file import (
    MAX_PAIRS,
    DecodeError,
    FileForm,
    Rows,
    Words,
    demand,
    read_outputs,
)
from labeldp_verify.forms import Domain, GroupedWindows, Groups, WindowRandomizer
from labeldp_verify.forms.joint import output_array
from labeldp_verify.forms.window import Segment
from labeldp_verify.graph import BucketGrid, write_model


@dataclass
class WindowFile(FileForm):
    """Window randomizers and the layout of their lookup grid."""

    randomizer: WindowRandomizer | GroupedWindows
    grid: BucketGrid
    tables: Sequence[WindowRandomizer]
    groups: Groups | None

    @classmethod
    def read(cls, read: kernel.Integers, domain: Domain, groups: Groups) -> WindowFile:
        """A randomizer for each table of the file; DecodeError if there is none."""
        if read.lookup is None or len(read.tables) != groups.tables:
            raise DecodeError("not a valid artifact: the number of tables is wrong")
        windows = tuple(_window(t, domain) for t in read.tables if isinstance(t, kernel.Window))
        widths = [width for _, _, width, _ in read.lookup.stretches]
        grid = BucketGrid(widths[0], widths[min(1, len(widths) - 1)])
        if len(widths) > 2:
            grid = replace(grid, far_shift=widths[2], far_start=read.lookup.stretches[2][0])
        if groups.columns:
            return cls(GroupedWindows(groups, windows), grid, windows, groups)
        return cls(windows[0], grid, windows, None)

    def critical_words(self) -> tuple[Rows, Words]:
        """Rows [n] and words [n, 1] on both sides of the boundaries of every table."""
        share, k = max(MAX_PAIRS // len(self.tables), 1), len(self.tables[0].offsets)
        pairs = [boundary_pairs(window, share) for window in self.tables]
        rows = [at + i * k for i, (at, _) in enumerate(pairs)]
        bits = [window.word_bits for window in self.tables]
        words = [full_words(u.astype(np.uint64), b) for (_, u), b in zip(pairs, bits, strict=True)]
        return np.concatenate(rows), np.concatenate(words)[:, None]

    def outputs_of(self, rows: Rows, words: Words) -> NDArray[Any]:
        """[n] what the integers give for rows [n] of all tables and words [n, 1]."""
        tables, own = np.divmod(rows, len(self.tables[0].offsets))
        order = np.argsort(tables, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(tables[order])) + 1)
        found = [_outputs_of(self.tables[tables[p[0]]], own[p], words[p, 0]) for p in parts]
        outputs = np.concatenate(found)
        outputs[order] = outputs.copy()
        return outputs

    def rebuild(self, domain: Domain, certificate: dict[str, Any]) -> bytes:
        """The file that these integers and this grid define."""
        return write_model(domain, self.randomizer, certificate, self.grid)


def _window(read: kernel.Window, domain: Domain) -> WindowRandomizer:
    demand(len(read.offsets) == domain.size, "there is not one offset for each label")
    answers = [answer for _, answer in read.base]
    place = {answer: i for i, answer in enumerate(answers)}
    return WindowRandomizer(
        read.bits,
        tuple(length for length, _ in read.base),
        tuple(Segment(length, place[answer]) for length, answer in read.extra),
        tuple(read.offsets),
        read_outputs(answers, domain),
    )


def _outputs_of(r: WindowRandomizer, rows: Rows, words: NDArray[np.uint64]) -> NDArray[Any]:
    """What the integers give for row indices [n] and words [n]."""
    u = (words >> np.uint64(64 - r.word_bits)).astype(np.int64)
    offsets = np.array(r.offsets, dtype=np.int64)
    t = np.where(u >= r.base_total, u + offsets[rows], u)
    boundaries = np.array(r.boundaries(), dtype=np.int64)
    segments = np.searchsorted(boundaries, t, side="right") - 1
    owners = np.array(r.segment_outputs(), dtype=np.int64)[segments]
    return output_array(r.values)[owners]


def boundary_pairs(
    randomizer: WindowRandomizer, most: int = MAX_PAIRS
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row indices and words u on both sides of every cut, or of fewer where that is above ``most``.

    One of many tables has few pairs to itself: of those they are ``most``, evenly spread.
    """
    T, X, last = randomizer.base_total, randomizer.window, randomizer.words - 1
    boundaries = np.array(randomizer.boundaries(), dtype=np.int64)
    base_cuts = boundaries[: len(randomizer.base) + 1]
    extra_cuts = boundaries[len(randomizer.base) :]
    offsets = np.array(randomizer.offsets, dtype=np.int64)
    k = len(offsets)
    if k * 2 * len(boundaries) <= most:
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
    keep = np.flatnonzero((cuts >= 0) & (cuts <= last))
    if most < MAX_PAIRS and len(keep) > most:
        keep = keep[np.linspace(0, len(keep) - 1, most).astype(np.int64)]
    return rows[keep].astype(np.int64), cuts[keep]
