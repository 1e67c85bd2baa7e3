"""A randomizer as decoded from the constants of a graph, and the window randomizer."""

from __future__ import annotations

import math
import struct
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_verify import kernel
from labeldp_verify.errors import CheckFailedError, demand
from labeldp_verify.forms import (
    CategoricalDomain,
    ClassSets,
    Domain,
    GroupedWindows,
    Groups,
    JointDomain,
    Randomizer,
    WindowRandomizer,
)
from labeldp_verify.forms.joint import output_array
from labeldp_verify.forms.randomizers import Output, Segment
from labeldp_verify.graph import BucketGrid, write_model
from labeldp_verify.graph.nodes import DOUBLE, INT64, STRING, ModelProto, vanishes

# ---- What the forms of files share: the certificate, the domain, and outputs.
#
# The kernel reads the integers from the constants that the graph gathers from, and proves what the
# graph does with them; ``forms`` are made of these. Nothing is trusted: anything without the
# expected form raises CheckFailedError, and the verifier later checks that the whole file equals
# the one rebuilt from what was decoded here.


def refuse_vanishing_nodes(model: ModelProto) -> None:
    """Raise CheckFailedError if onnxruntime would leave out a node that is needed.

    ``graph/nodes.py`` says why.
    """
    doubles = {
        tensor.name: struct.unpack("<d", tensor.raw_data)[0]
        for tensor in model.graph.initializer
        if tensor.data_type == DOUBLE and len(tensor.raw_data) == 8
    }
    for node in model.graph.node:
        demand(
            not any(
                name in doubles and vanishes(node.op_type, doubles[name]) for name in node.input
            ),
            "a constant that onnxruntime takes for 0 or 1, although it is neither. onnxruntime "
            "would leave the node out and compute a different function; compile the spec again",
        )


def read_number(model: ModelProto, name: str) -> float | None:
    """A constant of one float64, which must be finite and not −0; None if there is none."""
    for tensor in model.graph.initializer:
        if tensor.name == name:
            demand(
                tensor.data_type == DOUBLE and len(tensor.raw_data) == 8,
                f"the constant {name} is malformed",
            )
            number: float = struct.unpack("<d", tensor.raw_data)[0]
            demand(
                math.isfinite(number) and str(number) != "-0.0", f"the constant {name} is malformed"
            )
            return number
    return None


def require_output_type(model: ModelProto, domain: Domain, sets: ClassSets | None) -> None:
    """Demand that outputs are float64 for numbers, and otherwise of the type of the categories."""
    listed = ("values", "segment_values")
    kinds = {tensor.data_type for tensor in model.graph.initializer if tensor.name in listed}
    expected = DOUBLE if sets is None else INT64
    if sets is None and isinstance(domain, CategoricalDomain):
        expected = STRING if domain.is_text else INT64
    demand(kinds <= {expected}, "the outputs have the wrong type")


def read_outputs(
    answers: Sequence[int | bytes], domain: Domain, sets: ClassSets | None = None
) -> tuple[Output, ...]:
    """Outputs as the kernel reads them: text as bytes, and float64 as the bits of an integer."""
    values: list[Any] = list(answers)
    if isinstance(values[0], bytes):
        try:
            values = [value.decode() for value in values]
        except UnicodeDecodeError:
            raise CheckFailedError("an output is not valid UTF-8") from None
    elif sets is None and not isinstance(domain, CategoricalDomain):
        values = np.array(values, dtype=np.int64).view(np.float64).tolist()
    check_outputs(values, domain, sets)
    return tuple(values)


def check_outputs(values: list[Any], domain: Domain, sets: ClassSets | None = None) -> None:
    """Check that outputs are distinct and of the labels' kind; numbers finite, increasing, not −0.
    With ``sets``, outputs must be the numbers of the sets.
    """
    if sets is not None:
        demand(
            values == list(range(len(sets.blocks))), "the outputs are not the numbers of the sets"
        )
        demand(all(type(v) is int for v in values), "the outputs are not whole numbers")
        return
    demand(len(set(values)) == len(values), "an output occurs twice")
    if isinstance(domain, CategoricalDomain):
        kinds = {type(v) for v in values}
        demand(
            kinds == {type(domain.default)},
            "the outputs are not categories of the type of the labels",
        )
        if isinstance(domain, JointDomain):
            inside = all(0 <= v < domain.size for v in values)
            demand(inside, "an output is not a combination of labels")
        return
    floats = all(isinstance(v, float) and math.isfinite(v) for v in values)
    demand(floats, "the outputs are not finite float64 numbers, as labels that are numbers need")
    demand(all(v != 0 or math.copysign(1, v) > 0 for v in values), "an output is −0")
    demand(values == sorted(values), "the outputs are not in increasing order")


Rows = NDArray[np.int64]
Words = NDArray[np.uint64]
MAX_PAIRS = 1 << 18


def full_words(words: Words, word_bits: int) -> Words:
    """B-bit words [n] as 64-bit words; in every other one the bits below are set."""
    if word_bits == 64:
        return words
    shift = np.uint64(64 - word_bits)
    full = words << shift
    full[1::2] |= (np.uint64(1) << shift) - np.uint64(1)  # bits below u must not matter
    return full


class FileForm(ABC):
    """A randomizer as decoded from the constants of a graph."""

    randomizer: Randomizer | GroupedWindows
    groups: Groups | None = None  # that have tables of their own, whose rows are table · k + row
    proved: Fraction  # the largest ratio, as the kernel proves it from the bytes

    @abstractmethod
    def critical_words(self) -> tuple[Rows, Words]:
        """Row indices [n] and words [n, w] on both sides of every threshold, or of many."""

    @abstractmethod
    def outputs_of(self, rows: Rows, words: Words) -> NDArray[Any]:
        """[n] what the integers give for row indices [n] and words [n, w]."""

    def rebuild(self, domain: Domain, certificate: dict[str, Any]) -> bytes:
        """The file that these integers define."""
        return write_model(domain, self.randomizer, certificate)


# ---- The window randomizers, one or one for each group, from the integers that the kernel read.
#
# The graph is run on both sides of every segment boundary: at the words just below and at each cut,
# for every label (or, where that would be more than ``MAX_PAIRS`` pairs, for the first and last
# word of every label's window and each boundary with one label).


@dataclass
class WindowFile(FileForm):
    """Window randomizers and the layout of their lookup grid."""

    randomizer: WindowRandomizer | GroupedWindows
    grid: BucketGrid
    tables: Sequence[WindowRandomizer]
    groups: Groups | None

    @classmethod
    def read(cls, read: kernel.Integers, domain: Domain, groups: Groups) -> WindowFile:
        """A randomizer for each table of the file; CheckFailedError if there is none."""
        if read.lookup is None or len(read.tables) != groups.tables:
            raise CheckFailedError("the number of tables is wrong")
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
    """The outputs of the integers for row indices [n] and words [n]."""
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
