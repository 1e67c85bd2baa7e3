"""The table and the additive randomizer in the constants of a graph: both are alias tables."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_verify import kernel
from labeldp_verify.decode.file import (
    MAX_PAIRS,
    FileForm,
    Rows,
    Words,
    full_words,
    read_number,
    read_outputs,
)
from labeldp_verify.errors import CheckFailedError, demand
from labeldp_verify.forms import (
    AdditiveRandomizer,
    CategoricalDomain,
    ClassSets,
    Domain,
    TableRandomizer,
)
from labeldp_verify.forms.joint import output_array
from labeldp_verify.graph.alias_table import MAX_PERIOD
from labeldp_verify.graph.nodes import ModelProto

# ---- From the entries of alias tables back to the weights, column by column.
#
# A B-bit word w lies in column j = w mod 2^c at height h = w // 2^c, and its item is
# min(w, P[j]) mod 2^c. With P[j] = q·2^c + a and a ≠ j, the item is j itself where w ≤ P[j], that
# is for the heights h < q, and for h = q as well if j < a; the rest of the column gives a. With a =
# j the whole column gives j. So the number of words that lead to an item is a sum over columns, and
# no property of the tables has to be assumed.


Entries = NDArray[np.uint64]
_LOW_HALF = np.uint64(0xFFFFFFFF)
_HALF_BITS = np.uint64(32)
_WORDS_PER_ENTRY = 6


def own_counts(entries: Entries, word_bits: int) -> Entries:
    """[n, 2^c] words of each column that lead to its own item; 2^(B − c) where all do."""
    columns = entries.shape[1]
    c = np.uint64(columns.bit_length() - 1)
    height = np.uint64(1 << (word_bits - int(c)))  # at most 2^63, as c ≥ 1
    j = np.arange(columns, dtype=np.uint64)[None, :]
    alias = entries & np.uint64(columns - 1)
    own = (entries >> c) + (j < alias).astype(np.uint64)  # at most 2^63: no overflow
    return np.where(alias == j, height, np.minimum(own, height))


def column_sums(entries: Entries, word_bits: int) -> list[list[int]]:
    """[n][2^c] words that lead to each item; every row sums to 2^B.

    ``entries`` [n, 2^c] with 1 ≤ c ≤ B. A sum can reach 2^64, so halves of 32 bits are added apart.
    """
    tables, columns = entries.shape
    own = own_counts(entries, word_bits)
    rest = np.uint64(1 << (word_bits - columns.bit_length() + 1)) - own
    alias = (entries & np.uint64(columns - 1)).astype(np.int64)
    target = np.arange(tables)[:, None], alias
    low, high = own & _LOW_HALF, own >> _HALF_BITS
    np.add.at(low, target, rest & _LOW_HALF)
    np.add.at(high, target, rest >> _HALF_BITS)
    rows = zip(high.tolist(), low.tolist(), strict=True)
    return [[(h << 32) + x for h, x in zip(*row, strict=True)] for row in rows]


def items_of(entries: Entries, rows: NDArray[np.int64], words: Entries) -> NDArray[np.int64]:
    """[n] the items of B-bit words [n], each sampled from the table of its row [n]."""
    mask = np.uint64(entries.shape[1] - 1)
    entry = entries[rows, (words & mask).astype(np.int64)]
    return (np.where(words < entry, words, entry) & mask).astype(np.int64)


def words_around(entries: Entries, word_bits: int, most: int) -> tuple[NDArray[np.int64], Entries]:
    """The table [n] and a B-bit word [n] on both sides of columns' thresholds and of bit 31.

    For each column of each table: the last word of the column's own item, the first of the alias,
    and words that share the entry's high half, with low halves at both ends and around bit 31.
    Where that would be more than ``most``, of fewer columns, spread over all tables; the odd step
    visits columns of every parity.
    """
    step = -(-entries.size * _WORDS_PER_ENTRY // most) | 1
    rows, columns = np.divmod(np.arange(0, entries.size, step, dtype=np.int64), entries.shape[1])
    bits = entries.shape[1].bit_length() - 1
    c, j = np.uint64(bits), columns.astype(np.uint64)
    mask = np.uint64(entries.shape[1] - 1)
    one = np.uint64(1)
    top = np.uint64((1 << (word_bits - bits)) - 1)
    own = own_counts(entries, word_bits)[rows, columns]
    entry = entries[rows, columns]
    words = [
        np.where(own > 0, own - one, own) << c | j,  # wraps where it is not taken
        np.minimum(own, top) << c | j,
    ]
    high = entry & ~_LOW_HALF
    for low in (0x00000000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF):
        words.append(high | (np.uint64(low) & ~mask) | j)
    flat = np.concatenate(words)
    inside = flat <= np.uint64((1 << word_bits) - 1)
    return np.tile(rows, len(words))[inside], flat[inside]


# ---- The table randomizer in the constants of a graph.
#
# Its counts come from the alias tables that the graph gathers from. The graph is run around the
# thresholds of these tables.


@dataclass
class TableFile(FileForm):
    """A table randomizer and the entries of its alias tables, one table a label."""

    randomizer: TableRandomizer
    entries: Entries

    @classmethod
    def read(
        cls, read: kernel.Integers, domain: Domain, sets: ClassSets | None = None
    ) -> TableFile:
        """The counts of the file's alias tables; CheckFailedError if it has none.

        ``sets`` are those that the certificate claims its outputs to be; ``analysis/sets.py`` holds
        them against the counts.
        """
        (table,) = read.tables
        if not isinstance(table, kernel.Table):
            raise CheckFailedError("the graph is not of the stated form")
        demand(len(table.rows) == domain.size, "there is not one table for each label")
        entries = np.array(table.rows, dtype=np.uint64)
        m = len(table.answers)
        counts = tuple(tuple(row[:m]) for row in column_sums(entries, table.bits))
        values = read_outputs(table.answers, domain, sets)
        return cls(TableRandomizer(table.bits, counts, values, sets), entries)

    def critical_words(self) -> tuple[Rows, Words]:
        """Rows [n] and words [n, 1] around the thresholds."""
        bits = self.randomizer.word_bits
        rows, u = words_around(self.entries, bits, MAX_PAIRS)
        last = np.uint64((1 << bits) - 1)
        ends = np.array([0, len(self.entries) - 1] * 2, dtype=np.int64)
        extremes = np.array([0, 0, last, last], dtype=np.uint64)
        u = full_words(np.concatenate([u, extremes]), bits)
        return np.concatenate([rows, ends]), u[:, None]

    def outputs_of(self, rows: Rows, words: Words) -> NDArray[Any]:
        """[n] what the integers give for rows [n] and words [n, 1]."""
        values = self.randomizer.values
        u = words[:, 0] >> np.uint64(64 - self.randomizer.word_bits)
        return output_array(values)[items_of(self.entries, rows, u)]


# ---- The additive randomizer in the constants of a graph.
#
# Its weights come from the alias tables that the graph gathers from. This
# module checks what the claims rely on: where the tails are folded, and that float64 and int64 are
# exact.
#
# The graph is run on three kinds of word pairs: around the thresholds of the blocks, around those
# of both shapes, and such that labels at both ends and in between reach the points around ``low``,
# ``high`` and zero.


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
        uses after the part that the kernel reads; CheckFailedError if there are none."""
        (noise,) = read.tables
        if not isinstance(noise, kernel.Noise):
            raise CheckFailedError("the graph is not of the stated form")
        if isinstance(domain, CategoricalDomain):
            raise CheckFailedError("noise is added to numbers, not categories")
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
