"""The additive randomizer in the constants of a graph.

Its weights come from the alias tables that the graph gathers from. This
module checks what the claims rely on: where the tails are folded, and that float64 and int64 are
exact.

The graph is run on three kinds of word pairs: around the thresholds of the blocks, around those
of both shapes, and such that labels at both ends and in between reach the points around ``low``,
``high`` and zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_verify import kernel
from labeldp_verify.decode.alias_layout import (
    Entries,
    column_sums,
    full_words,
    items_of,
    words_around,
)
from labeldp_verify.decode.file import (
    MAX_PAIRS,
    DecodeError,
    FileForm,
    Rows,
    Words,
    demand,
    read_number,
)
from labeldp_verify.forms import AdditiveRandomizer, CategoricalDomain, Domain
from labeldp_verify.graph.additive_graph import MAX_PERIOD
from labeldp_verify.graph.messages import ModelProto

_SPREAD = 0x9E3779B97F4A7C15  # an odd number: its multiples visit every residue
# t·unit is rounded once and the sum with the origin once more: below this it stays finite.
_ROUNDS_TO_INFINITY = 2**1024 - 2**970
_PRODUCT_ROUNDED_UP = 1 + Fraction(1, 2**53)


@dataclass
class AdditiveFile(FileForm):
    """An additive randomizer and the entries of its alias tables."""

    randomizer: AdditiveRandomizer
    block_table: Entries
    shape_tables: Entries

    @classmethod
    def read(cls, read: kernel.Integers, model: ModelProto, domain: Domain) -> AdditiveFile:
        """The weights of the file's alias tables, and the numbers of its lattice, which the graph
        uses after the part that the kernel reads; DecodeError if there are none."""
        (noise,) = read.tables
        if not isinstance(noise, kernel.Noise):
            raise DecodeError("not a valid artifact: the graph is not of the stated form")
        if isinstance(domain, CategoricalDomain):
            raise DecodeError("not a valid artifact: noise is added to numbers, not categories")
        period = (domain.size - 1) * noise.spacing
        demand(noise.period == period <= MAX_PERIOD, "the period of the noise is wrong")
        # A step that onnxruntime would take for 1 is stored doubled, and halved here.
        doubled, origin = read_number(model, "unit_doubled"), read_number(model, "origin")
        unit = read_number(model, "unit") if doubled is None else doubled / 2
        demand(unit is not None and unit > 0, "a lattice step has no positive value")
        demand(origin == float(domain.min), "the value of the lowest label is wrong")
        assert unit is not None and origin is not None
        furthest = max(abs(noise.low), abs(noise.high)) * Fraction(unit) * _PRODUCT_ROUNDED_UP
        finite = furthest + abs(Fraction(origin)) < _ROUNDS_TO_INFINITY
        demand(finite, "an output is not finite")

        block_table = np.array([noise.block_entries], dtype=np.uint64)
        shape_tables = np.array(noise.shape_entries, dtype=np.uint64)
        (blocks,) = column_sums(block_table, noise.bits)
        below, above = (tuple(row[:period]) for row in column_sums(shape_tables, noise.bits))
        randomizer = AdditiveRandomizer(
            word_bits=noise.bits,
            labels=domain.size,
            spacing=noise.spacing,
            blocks=tuple(blocks[: 2 * noise.half]),
            shapes=(below, above),
            low=noise.low,
            high=noise.high,
            origin=origin,
            unit=unit,
        )
        return cls(randomizer, block_table, shape_tables)

    def critical_words(self) -> tuple[Rows, Words]:
        """Rows [n] and words [n, 2] around the thresholds and the clamps."""
        rows, *pair = threshold_pairs(self.randomizer, self.block_table, self.shape_tables)
        words = [full_words(u, self.randomizer.word_bits) for u in pair]
        return rows, np.column_stack(words)

    def outputs_of(self, rows: Rows, words: Words) -> NDArray[Any]:
        """[n] what the integers give for rows [n] and words [n, 2]."""
        r = self.randomizer
        first, second = (words >> np.uint64(64 - r.word_bits)).T
        block = items_of(self.block_table, np.zeros(len(rows), dtype=np.int64), first)
        block -= r.reach + 1
        inside = items_of(self.shape_tables, (block >= 0).astype(np.int64), second)
        point = rows * r.spacing + block * r.period + inside
        point = np.where(point < r.low, r.low, point)
        point = np.where(point > r.high, r.high, point)
        return point.astype(np.float64) * r.unit + r.origin


def threshold_pairs(
    r: AdditiveRandomizer, block_table: Entries, shape_tables: Entries
) -> tuple[Rows, Entries, Entries]:
    """Rows [n], first B-bit words [n] and second B-bit words [n]."""
    _, first = words_around(block_table, r.word_bits, MAX_PAIRS // 3)
    side, second = words_around(shape_tables, r.word_bits, MAX_PAIRS // 3)
    from_zero = items_of(block_table, np.zeros(len(first), dtype=np.int64), first) > r.reach
    # A word at a threshold of one shape goes with a block that samples from this shape.
    first_for_second = np.zeros(len(second), dtype=np.uint64)
    for chosen in (0, 1):
        here = side == chosen
        first_for_second[here] = _cycle(first[from_zero == chosen], np.count_nonzero(here))
    rows, block, inside = _around_the_ends(r)
    return (
        np.concatenate([_rows(len(first), r.labels), _rows(len(second), r.labels), rows]),
        np.concatenate([first, first_for_second, block]),
        np.concatenate([_cycle(second, len(first)), second, inside]),
    )


def _cycle(words: Entries, count: int | np.intp) -> Entries:
    """``count`` of the words, over and over, in an order that leaves no pairing to chance."""
    order = (np.arange(count, dtype=np.uint64) * np.uint64(_SPREAD)) % np.uint64(len(words))
    return words[order.astype(np.int64)]


def _rows(count: int, labels: int) -> Rows:
    """Both ends of the labels and, every other time, one in between."""
    between = (np.arange(count, dtype=np.uint64) * np.uint64(_SPREAD)) % np.uint64(labels)
    rows = between.astype(np.int64)
    rows[0::4], rows[2::4] = 0, labels - 1
    return rows


def _around_the_ends(r: AdditiveRandomizer) -> tuple[Rows, Entries, Entries]:
    """Words that lead some labels to the points around both clamps, and around zero noise.

    An item keeps the lowest word of its own column, so that the index of a block (or of a place
    inside it) is itself a word for it. If it was not, other outputs would be
    tried, which does no harm.
    """
    some = sorted({0, 1, r.labels // 3, r.labels // 2, r.labels - 2, r.labels - 1})
    pairs = []
    for row in some:
        at = row * r.spacing
        for centre in (r.low, r.high, at, at - r.period, at + r.period):
            for point in (centre - 1, centre, centre + 1):
                block, inside = divmod(point - at, r.period)
                if -r.reach - 1 <= block <= r.reach:
                    pairs.append((row, block + r.reach + 1, inside))
    rows, blocks, insides = zip(*pairs, strict=True)
    return (
        np.array(rows, dtype=np.int64),
        np.array(blocks, dtype=np.uint64),
        np.array(insides, dtype=np.uint64),
    )
