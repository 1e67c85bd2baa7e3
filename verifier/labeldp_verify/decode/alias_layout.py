"""From the entries of alias tables back to the weights, column by column.

A B-bit word w lies in column j = w mod 2^c at height h = w // 2^c, and its item is
min(w, P[j]) mod 2^c. With P[j] = q·2^c + a and a ≠ j, the item is j itself where w ≤ P[j], that is
for the heights h < q, and for h = q as well if j < a; the rest of the column gives a. With a = j
the whole column gives j. So the number of words that lead to an item is a sum over columns, and no
property of the tables has to be assumed.
"""

import numpy as np
from numpy.typing import NDArray

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


def full_words(words: Entries, word_bits: int) -> Entries:
    """B-bit words [n] as 64-bit words; in every other one the bits below are set."""
    if word_bits == 64:
        return words
    shift = np.uint64(64 - word_bits)
    full = words << shift
    full[1::2] |= (np.uint64(1) << shift) - np.uint64(1)  # bits below u must not matter
    return full
