"""The table randomizer in the constants of a graph.

Its counts are read from the very alias tables that the graph gathers from, around whose thresholds
the graph is tried.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_verify import kernel
from labeldp_verify.decode.alias_layout import (
    Entries,
    column_sums,
    full_words,
    items_of,
    words_at_thresholds,
)
from labeldp_verify.decode.file import MAX_PAIRS, FileForm, Rows, Words, demand, read_outputs
from labeldp_verify.forms import ClassSets, Domain, TableRandomizer
from labeldp_verify.forms.joint import output_array

_WORDS_PER_ENTRY = 6


class TableFile(FileForm):
    """A table randomizer and the entries of its alias tables, one table a label."""

    def __init__(self, randomizer: TableRandomizer, entries: Entries) -> None:
        """What ``read`` decoded."""
        self.randomizer: TableRandomizer = randomizer
        self.entries = entries

    @classmethod
    def read(
        cls, read: kernel.Integers, domain: Domain, sets: ClassSets | None = None
    ) -> TableFile:
        """The counts of the file's alias tables; DecodeError if it has none.

        ``sets`` are those that the certificate claims its outputs to be; ``analysis/sets.py`` holds
        them against the counts.
        """
        (table,) = read.tables
        demand(isinstance(table, kernel.Table), "the form of the graph")
        assert isinstance(table, kernel.Table)
        demand(len(table.rows) == domain.size, "the number of tables")
        entries = np.array(table.rows, dtype=np.uint64)
        m = len(table.answers)
        counts = tuple(tuple(row[:m]) for row in column_sums(entries, table.bits))
        values = read_outputs(table.answers, domain, sets)
        return cls(TableRandomizer(table.bits, counts, values, sets), entries)

    def critical_words(self) -> tuple[Rows, Words]:
        """Rows [n] and words [n, 1] around the thresholds."""
        rows, u = threshold_pairs(self.entries, self.randomizer.word_bits)
        return rows, full_words(u, self.randomizer.word_bits)[:, None]

    def outputs_of(self, rows: Rows, words: Words) -> NDArray[Any]:
        """[n] what the integers demand for rows [n] and words [n, 1]."""
        values = self.randomizer.values
        u = words[:, 0] >> np.uint64(64 - self.randomizer.word_bits)
        return output_array(values)[items_of(self.entries, rows, u)]


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
