"""Where an additive randomizer's graph could go wrong, and what its tables answer there.

Three kinds of word pairs: around the thresholds of the blocks, around those of both shapes, and
such that labels at both ends and in between reach the points around ``low``, ``high`` and zero.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labeldp_compile.randomizer import AdditiveRandomizer
from labeldp_compile.verify.alias_layout import Entries, items_of, words_at_thresholds
from labeldp_compile.verify.form import MAX_PAIRS

_WORDS_PER_ENTRY = 6
_SPREAD = 0x9E3779B97F4A7C15  # an odd number: its multiples visit every residue
Rows = NDArray[np.int64]


def threshold_pairs(
    r: AdditiveRandomizer, block_table: Entries, shape_tables: Entries
) -> tuple[Rows, Entries, Entries]:
    """Rows [n], first B-bit words [n] and second B-bit words [n]."""
    _, first = _around(block_table, r.word_bits)
    side, second = _around(shape_tables, r.word_bits)
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


def outputs_of(
    r: AdditiveRandomizer,
    block_table: Entries,
    shape_tables: Entries,
    rows: Rows,
    first: Entries,
    second: Entries,
) -> NDArray[np.float64]:
    """[n] the outputs of rows [n] and B-bit words [n] and [n]."""
    block = items_of(block_table, np.zeros(len(rows), dtype=np.int64), first) - (r.reach + 1)
    inside = items_of(shape_tables, (block >= 0).astype(np.int64), second)
    point = rows * r.spacing + block * r.period + inside
    point = np.where(point < r.low, r.low, point)
    point = np.where(point > r.high, r.high, point)
    return point.astype(np.float64) * r.unit + r.origin


def _around(entries: Entries, word_bits: int) -> tuple[Rows, Entries]:
    """The table [n] and a word [n] around the thresholds of all columns, or of many."""
    total = entries.size
    step = -(-total * _WORDS_PER_ENTRY * 3 // MAX_PAIRS) | 1
    tables, columns = np.divmod(np.arange(0, total, step, dtype=np.int64), entries.shape[1])
    positions, words = words_at_thresholds(entries, tables, columns, word_bits)
    return tables[positions], words


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
    inside it) is itself a word for it. Were it not, other outputs would be tried: no harm.
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
