"""A column of a CSV file: text, which whoever takes it reads cell by cell."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from labeldp_runtime.columns.arrow import by_entries, distinct
from numpy.typing import NDArray

from labeldp_compile.tabular.csv_file import empty_is_null
from labeldp_compile.tabular.number_cells import labels_of_cells


@dataclass(frozen=True)
class Cells:
    """Text [n] without a type: nothing is inferred, so that no cell decides how another is read.

    Attributes:
        values: an Arrow array of large strings, without nulls.
    """

    values: pa.LargeStringArray

    def __len__(self) -> int:
        """How many there are."""
        return len(self.values)

    def take(self, rows: NDArray[np.int64]) -> Cells:
        """The cells of these rows."""
        return Cells(self.values.take(pa.array(rows)))

    def numbers(self) -> NDArray[np.float64]:
        """[n] by the grammar of ``number_cells``; NaN for what is no number."""
        return labels_of_cells(self.values, "float64", math.nan)

    def names(self) -> pa.Array:
        """[n] ids or categories; null for an empty cell."""
        return empty_is_null(self.values)

    def read(self, one: Callable[[bytes], int]) -> NDArray[np.int64]:
        """[n] what ``one`` makes of each cell, in UTF-8; few differ, mostly: each is read once."""
        encoded = distinct(self.values)
        found = [one(cell) for cell in encoded.dictionary.to_pylist()]
        entries = np.array([*found, 0], np.int64)  # the last one is that of nulls
        result: NDArray[Any] = by_entries(encoded, entries)
        return result
