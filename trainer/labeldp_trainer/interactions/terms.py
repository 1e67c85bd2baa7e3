"""The columns of a design: the constant, main effects, and products of basis functions.

All entries are integers, in steps of 2^−VALUE_BITS, which float32 holds exactly. Sums of products
with integer weights are exact in float64 below 2^53, in any order, so that any processor finds the
same ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from jaxtyping import Float32, Float64, Int32, Int64

from labeldp_trainer.interactions.columns import VALUE_BITS, BinnedColumn

Term = tuple[int, ...]
"""The columns of a main effect, a pair or a triple, ascending."""
MOST_WIDTH = 120
"""Products of basis functions in an interaction."""
MOST_ENTRY, MOST_WEIGHT, MOST_COLUMNS = 1 << 24, 1 << 15, 1 << 13
"""Of a design, of what multiplies it, and columns: sums of products stay below 2^53."""
CHUNK = 4096
_TABULATED = 2  # columns of a term
_MOST_CELLS = 1 << 13  # of two columns whose products are tabulated


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

    def rows(self, part: slice) -> Float32[np.ndarray, "b w"]:
        """The integer entries of some rows."""
        codes = self.codes[part]
        found = np.empty((len(codes), self.width), np.float32)
        found[:, 0] = 1 << VALUE_BITS
        for term, place in zip(self.chosen, self.places, strict=True):
            found[:, place] = self._term(term, codes)
        return found

    @cached_property
    def places(self) -> list[slice]:
        """The columns of the design that belong to each term."""
        ends = np.cumsum([1, *self.widths]).tolist()
        return [slice(first, end) for first, end in pairwise(ends)]

    def weighted(self, weights: Float64[np.ndarray, " w"]) -> Float64[np.ndarray, " n"]:
        """All rows times weights; exact if these are integers up to MOST_WEIGHT."""
        total = np.full(len(self.codes), weights[0] * (1 << VALUE_BITS))
        for term, place in zip(self.chosen, self.places, strict=True):
            own = weights[place]
            table = self._leading(term)
            if table is not None and len(term) <= _TABULATED:
                total += (table.astype(np.float64) @ own)[self.cells(term, self.codes)]
                continue
            for part in self.parts():
                total[part] += self._term(term, self.codes[part]).astype(np.float64) @ own
        return total

    def of(self, chosen: tuple[Term, ...]) -> Terms:
        """Other terms of the same rows."""
        return Terms(self.columns, self.codes, chosen)

    def parts(self, size: int = CHUNK) -> Iterator[slice]:
        """The rows in parts."""
        for start in range(0, len(self.codes), size):
            yield slice(start, min(start + size, len(self.codes)))

    def of_rows(self, part: slice) -> Terms:
        """The same terms of some rows."""
        return Terms(self.columns, self.codes[part], self.chosen)

    def first_of_alike(self, part: slice) -> Int64[np.ndarray, " g"]:
        """Where runs of rows begin, in a part, that no bin tells apart."""
        codes = self.codes[part]
        return np.flatnonzero(np.r_[True, (codes[1:] != codes[:-1]).any(axis=1)])

    def chunks(self) -> Iterator[tuple[slice, Float32[np.ndarray, "b w"]]]:
        """All rows, part by part."""
        return ((part, self.rows(part)) for part in self.parts())

    @cached_property
    def _tables(self) -> dict[Term, Float32[np.ndarray, "c k"] | None]:
        return {}

    def _leading(self, term: Term) -> Float32[np.ndarray, "c k"] | None:
        """The products of the first two columns of a term, in all cells; None if these are many."""
        if term not in self._tables:
            counts = self.shape(term[:_TABULATED])
            cells = np.indices(counts, np.int32).reshape(len(counts), -1)
            few = cells.shape[1] <= min(_MOST_CELLS, max(len(self.codes), 1))
            ranks = ranks_of(self.columns, term)
            self._tables[term] = self._product(term, ranks, list(cells)) if few else None
        return self._tables[term]

    def shape(self, term: Term) -> list[int]:
        """The bins of the columns of a term."""
        return [len(self.columns[c].values) for c in term]

    def cells(self, term: Term, codes: Int32[np.ndarray, "b c"]) -> Int32[np.ndarray, " b"]:
        """Which cell of the bins of a term's columns each of some rows is in."""
        found = codes[:, term[0]]
        for c, bins in zip(term[1:], self.shape(term)[1:], strict=True):
            found = found * np.int32(bins) + codes[:, c]
        return found

    def _term(self, term: Term, codes: Int32[np.ndarray, "b c"]) -> Float32[np.ndarray, "b k"]:
        ranks, table = ranks_of(self.columns, term), self._leading(term)
        own = [codes[:, c] for c in term]
        if table is None:
            return self._product(term, ranks, own)
        known = table[self.cells(term[:_TABULATED], codes)]
        return self._product(term[_TABULATED:], ranks[_TABULATED:], own[_TABULATED:], known)

    def _product(
        self,
        columns: Sequence[int],
        ranks: Sequence[int],
        codes: Sequence[Int32[np.ndarray, " b"]],
        product: Float32[np.ndarray, "b k"] | None = None,
    ) -> Float32[np.ndarray, "b k"]:
        """Products of basis functions of columns, after those of others."""
        for c, rank, own in zip(columns, ranks, codes, strict=False):
            values = self.columns[c].values[:, :rank].astype(np.float32)[own]
            if product is None:
                product = values
            else:
                both = product.astype(np.float64)[:, :, None] * values[:, None, :]
                both = np.floor(both.reshape(len(own), -1) * 2.0**-VALUE_BITS)
                product = np.clip(both, -MOST_ENTRY, MOST_ENTRY).astype(np.float32)
        assert product is not None
        return product
