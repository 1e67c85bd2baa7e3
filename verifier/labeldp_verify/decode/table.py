"""The table randomizer in the constants of a graph.

Its counts come from the alias tables that the graph gathers from. The graph is run around the
thresholds of these tables.
"""

from __future__ import annotations

from dataclasses import dataclass
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
    read_outputs,
)
from labeldp_verify.forms import ClassSets, Domain, TableRandomizer
from labeldp_verify.forms.joint import output_array


@dataclass
class TableFile(FileForm):
    """A table randomizer and the entries of its alias tables, one table a label."""

    randomizer: TableRandomizer
    entries: Entries

    @classmethod
    def read(
        cls, read: kernel.Integers, domain: Domain, sets: ClassSets | None = None
    ) -> TableFile:
        """The counts of the file's alias tables; DecodeError if it has none.

        ``sets`` are those that the certificate claims its outputs to be; ``analysis/sets.py`` holds
        them against the counts.
        """
        (table,) = read.tables
        if not isinstance(table, kernel.Table):
            raise DecodeError("not a valid artifact: the graph is not of the stated form")
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
