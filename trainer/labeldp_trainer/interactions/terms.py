"""The columns of a design: the constant, main effects, and products of basis functions.

All entries are integers, in steps of 2^−VALUE_BITS, held in float64: sums of products with integer
weights are exact below 2^53, in any order, so that any processor finds the same ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float64, Int32, Int64

from labeldp_trainer.interactions.columns import VALUE_BITS, BinnedColumn

Term = tuple[int, ...]
"""The columns of a main effect, a pair or a triple, ascending."""
MOST_WIDTH = 120
"""Products of basis functions in an interaction."""
MOST_ENTRY, MOST_WEIGHT, MOST_COLUMNS = 1 << 24, 1 << 15, 1 << 13
"""Of a design, of what multiplies it, and columns: sums of products stay below 2^53."""
CHUNK = 4096


def ranks_of(columns: Sequence[BinnedColumn], term: Term) -> list[int]:
    """How many basis functions of each column of a term take part."""
    if len(term) == 1:
        return [columns[term[0]].rank]
    found = [columns[c].in_pairs for c in term]
    while np.prod(found) > MOST_WIDTH:
        found[int(np.argmax(found))] -= 1
    return found


@dataclass(frozen=True)
class Terms:
    """Some terms of a table's rows.

    Attributes:
        columns: of the table.
        codes: [n, columns] bins of all rows.
        chosen: the terms; the constant comes before them.
    """

    columns: Sequence[BinnedColumn]
    codes: Int32[np.ndarray, "n c"]
    chosen: tuple[Term, ...]

    @cached_property
    def widths(self) -> list[int]:
        """Columns of the design for each term."""
        return [int(np.prod(ranks_of(self.columns, term))) for term in self.chosen]

    @cached_property
    def term_of(self) -> Int64[np.ndarray, " w"]:
        """The number of the term of each column of the design; −1 for the constant."""
        return np.concatenate([[-1], np.repeat(np.arange(len(self.chosen)), self.widths)])

    @property
    def width(self) -> int:
        """Columns of the design."""
        return 1 + sum(self.widths)

    def rows(self, part: slice) -> Float64[np.ndarray, "b w"]:
        """The integer entries of some rows."""
        codes = self.codes[part]
        found = np.empty((len(codes), self.width))
        found[:, 0] = 1 << VALUE_BITS
        at = 1
        for term, width in zip(self.chosen, self.widths, strict=True):
            found[:, at : at + width] = self._term(term, codes)
            at += width
        return found

    def of(self, chosen: tuple[Term, ...]) -> Terms:
        """Other terms of the same rows."""
        return Terms(self.columns, self.codes, chosen)

    def parts(self) -> Iterator[slice]:
        """The rows in parts."""
        for start in range(0, len(self.codes), CHUNK):
            yield slice(start, min(start + CHUNK, len(self.codes)))

    def chunks(self) -> Iterator[tuple[slice, Float64[np.ndarray, "b w"]]]:
        """All rows, part by part."""
        return ((part, self.rows(part)) for part in self.parts())

    def _term(self, term: Term, codes: Int32[np.ndarray, "b c"]) -> Float64[np.ndarray, "b k"]:
        product: Float64[np.ndarray, "b k"] | None = None
        for c, rank in zip(term, ranks_of(self.columns, term), strict=True):
            values = self.columns[c].values[:, :rank].astype(np.float64)[codes[:, c]]
            if product is None:
                product = values
            else:
                both = product[:, :, None] * values[:, None, :]
                product = np.floor(both.reshape(len(codes), -1) * 2.0**-VALUE_BITS)
                np.clip(product, -MOST_ENTRY, MOST_ENTRY, out=product)
        assert product is not None
        return np.asarray(product)
