"""Where a table randomizer's graph could go wrong, and what its tables answer there."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_compile.verify.alias_layout import Entries, items_of, words_at_thresholds
from labeldp_compile.verify.form import MAX_PAIRS

_WORDS_PER_ENTRY = 6


def threshold_pairs(entries: Entries, word_bits: int) -> tuple[NDArray[np.int64], Entries]:
    """Rows [n] and B-bit words [n] around the thresholds of all columns of all rows.

    Where that would be more than ``MAX_PAIRS``, of so many columns, spread over all rows; the odd
    step visits columns of every parity.
    """
    total = entries.size
    step = -(-total * _WORDS_PER_ENTRY // MAX_PAIRS) | 1
    chosen = np.arange(0, total, step, dtype=np.int64)
    rows, columns = np.divmod(chosen, entries.shape[1])
    positions, words = words_at_thresholds(entries, rows, columns, word_bits)
    last = np.uint64((1 << word_bits) - 1)
    ends = np.array([0, len(entries) - 1] * 2, dtype=np.int64)
    extremes = np.array([0, 0, last, last], dtype=np.uint64)
    return np.concatenate([rows[positions], ends]), np.concatenate([words, extremes])


def outputs_of(
    entries: Entries, values: tuple[Any, ...], rows: NDArray[np.int64], words: Entries
) -> NDArray[Any]:
    """[n] the outputs of rows [n] and B-bit words [n]."""
    kind = object if isinstance(values[0], str) else None
    return np.array(values, dtype=kind)[items_of(entries, rows, words)]
