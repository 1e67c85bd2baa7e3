"""The columns of a design: the constant, main effects, and products of basis functions.

All entries are integers, in steps of 2^−VALUE_BITS, which float32 holds exactly. Sums of products
with integer weights are exact in float64 below 2^53, in any order, so that any processor finds the
same ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float32, Float64, Int32, Int64, UInt8
from scipy.sparse import csc_array

from labeldp_trainer.data.features import room
from labeldp_trainer.interactions.columns import VALUE_BITS, BinnedColumn

MOST_PRODUCTS = {False: 40, True: 120}
"""Of basis functions in an interaction, and in a fine one."""
MOST_ENTRY, MOST_WEIGHT, MOST_COLUMNS = 1 << 24, 1 << 15, 1 << 13
"""Of a design, of what multiplies it, and columns: sums of products stay below 2^53."""
CHUNK = 4096
_TABULATED = 2  # columns of a term
_MOST_CELLS = 1 << 13  # of two columns whose products are tabulated


@dataclass(frozen=True, order=True)
class Term:
    """A main effect, a pair or a triple.

    Attributes:
        columns: ascending.
        fine: whether it has more functions of each column than usual.
    """

    columns: tuple[int, ...]
    fine: bool = False

    @property
    def size(self) -> int:
        """How many columns."""
        return len(self.columns)

    def functions(self, columns: Sequence[BinnedColumn]) -> list[Int64[np.ndarray, " k"]]:
        """Of each column, which basis function each of the k products takes.

        Of too many products those with the least Π (number of the function), as in a hyperbolic
        cross.
        """
        own = [columns[c] for c in self.columns]
        if self.size == 1:
            return [np.arange(own[0].rank if self.fine else own[0].in_mains)]
        ranks = tuple(column.rank if self.fine else column.in_pairs for column in own)
        return _strongest(ranks, MOST_PRODUCTS[self.fine])


@cache
def _strongest(ranks: tuple[int, ...], most: int) -> list[Int64[np.ndarray, " k"]]:
    found = np.indices(ranks).reshape(len(ranks), -1)
    strongest = np.argsort(np.prod(found + 1, axis=0), kind="stable")[:most]
    return list(found[:, np.sort(strongest)])


@dataclass(frozen=True)
class Terms:
    """Some terms of a table's rows.

    Attributes:
        columns: of the table.
        codes: [n, columns] bins of all rows.
        chosen: the terms; the constant comes before them.
    """

    columns: Sequence[BinnedColumn]
    codes: UInt8[np.ndarray, "n c"]
    chosen: tuple[Term, ...]

    @cached_property
    def widths(self) -> list[int]:
        """Columns of the design for each term."""
        return [len(term.functions(self.columns)[0]) for term in self.chosen]

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
        total = room((len(self.codes),), np.float64)
        total[:] = weights[0] * (1 << VALUE_BITS)
        for term, place in zip(self.chosen, self.places, strict=True):
            own = weights[place]
            table = self._leading(term)
            if table is not None and term.size <= _TABULATED:
                of_cells = table.astype(np.float64) @ own
                for part in self.parts(BLOCK):
                    total[part] += of_cells[self.cells(term.columns, self.codes[part])]
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
        """The terms of some rows."""
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
            counts = self.shape(term.columns[:_TABULATED])
            cells = np.indices(counts, np.int32).reshape(len(counts), -1)
            few = cells.shape[1] <= min(_MOST_CELLS, max(len(self.codes), 1))
            functions = term.functions(self.columns)
            product = self._product(term.columns, functions, list(cells)) if few else None
            self._tables[term] = product
        return self._tables[term]

    def shape(self, columns: Sequence[int]) -> list[int]:
        """The bins of some columns."""
        return [len(self.columns[c].values) for c in columns]

    def cells(
        self, columns: Sequence[int], codes: UInt8[np.ndarray, "b c"]
    ) -> Int32[np.ndarray, " b"]:
        """Which cell of the bins of some columns each of some rows is in."""
        cell = codes[:, columns[0]].astype(np.int32)
        for c, bins in zip(columns[1:], self.shape(columns)[1:], strict=True):
            cell = cell * np.int32(bins) + codes[:, c]
        return cell

    def _term(self, term: Term, codes: UInt8[np.ndarray, "b c"]) -> Float32[np.ndarray, "b k"]:
        functions, table, columns = term.functions(self.columns), self._leading(term), term.columns
        own = [codes[:, c] for c in columns]
        if table is None:
            return self._product(columns, functions, own)
        known, left = table[self.cells(columns[:_TABULATED], codes)], slice(_TABULATED, None)
        return self._product(columns[left], functions[left], own[left], known)

    def _product(
        self,
        columns: Sequence[int],
        functions: Sequence[Int64[np.ndarray, " k"]],
        codes: Sequence[Int32[np.ndarray, " b"]],
        product: Float32[np.ndarray, "b k"] | None = None,
    ) -> Float32[np.ndarray, "b k"]:
        """Products of basis functions of columns, times those of others."""
        for c, chosen, own in zip(columns, functions, codes, strict=False):
            values = self.columns[c].values[:, chosen].astype(np.float32)[own]
            if product is None:
                product = values
            else:
                both = np.floor(product.astype(np.float64) * values * 2.0**-VALUE_BITS)
                product = np.clip(both, -MOST_ENTRY, MOST_ENTRY).astype(np.float32)
        assert product is not None
        return product


# Products of a design with weights, and of its columns with rows, by cells of bins.
#
# The rows of a cell, which have the same bins in two or three columns, have the same entries in all
# terms of these columns. So a product with weights is computed once for every cell and looked up
# for every row, and what is summed over rows is first added up within cells.

BLOCK = 1 << 16
"""Rows that are in memory at once."""
_TILE = 136  # sums that are looked up together, at most: their tables fit a processor's cache
_TAKEN = 1 << 10  # rows that are looked up together: they fit a cache, too
_MOST_CELLS_CELLS = 1 << 15
_MOST_BOTH = 1 << 12  # of two main effects that are looked up together


@dataclass(frozen=True)
class CellGroup:
    """Terms that are looked up together.

    Attributes:
        columns: whose bins make cells.
        entries: [cells, k] of the design.
        places: [k] columns of the design.
    """

    columns: tuple[int, ...]
    entries: Float32[np.ndarray, "c k"]
    places: Int64[np.ndarray, " k"]


@dataclass(frozen=True)
class CellSums:
    """The terms of a table in groups.

    Attributes:
        terms: all of them.
        groups: of terms with few cells.
        rest: the other terms.
        places: [r] columns of the design of these.
    """

    terms: Terms
    groups: list[CellGroup]
    rest: Terms
    places: Int64[np.ndarray, " r"]

    @classmethod
    def of(cls, terms: Terms) -> CellSums:
        """All groups of terms that have at most half as many cells as there are rows."""
        places = dict(zip(terms.chosen, terms.places, strict=True))
        found, left = _grouped(terms)
        groups = []
        for columns, chosen in found:
            bins = terms.shape(columns)
            cells = np.zeros((int(np.prod(bins)), len(terms.columns)), np.int32)
            cells[:, columns] = np.indices(bins).reshape(len(columns), -1).T
            own = Terms(terms.columns, cells, tuple(chosen))
            entries = np.ascontiguousarray(own.rows(slice(None))[:, 1:])
            groups.append(CellGroup(columns, entries, _columns(places, chosen)))
        return cls(terms, groups, terms.of(tuple(left)), _columns(places, left))

    def products(
        self, weights: Int32[np.ndarray, "w m"], shift: int = 0
    ) -> Iterator[tuple[slice, Float64[np.ndarray, "b m"]]]:
        """All rows times weights, part by part; exact if these are at most MOST_WEIGHT.

        With a ``shift``, the products with the constant and with each term are divided by 2^shift
        and rounded before they are added up: small numbers are looked up faster.
        """
        dense = weights[self.places].astype(np.float64) * 2.0**-shift
        tiles = [
            self._tables(weights[:, tile] * 2.0**-shift) for tile in tiles_of(weights.shape[1])
        ]
        for block in self.terms.parts(2 * BLOCK):
            cells, rest = self.cells(block), self.rest.of_rows(block)
            found = [_looked_up(tables, cells, block.stop - block.start) for tables in tiles]
            for part in rest.parts():
                total = np.concatenate([own[part] for own in found], axis=1, dtype=np.float64)
                z = rest.rows(part)[:, 1:].astype(np.float64) if rest.chosen else None
                for term in rest.places:
                    assert z is not None
                    own = slice(term.start - 1, term.stop - 1)
                    total += np.rint(z[:, own] @ dense[own])
                yield slice(block.start + part.start, block.start + part.stop), total

    def cells(self, block: slice) -> list[Int32[np.ndarray, " b"]]:
        """The cells of some rows, in each of the groups."""
        codes = self.terms.codes[block]
        return [self.terms.cells(group.columns, codes) for group in self.groups]

    def _tables(self, weights: Float64[np.ndarray, "w t"]) -> list[Any]:
        """The constant's product with weights, then those of all cells, each term's rounded: of the
        smallest of int16, int32 and float64 that holds all sums of them."""
        tables, term_of = [np.rint(weights[:1] * (1 << VALUE_BITS))], self.terms.term_of
        most = np.abs(tables[0][0])
        for group in self.groups:
            of, table = term_of[group.places], np.zeros((len(group.entries), weights.shape[1]))
            for term in np.unique(of):
                entries = group.entries[:, of == term].astype(np.float64)
                table += np.rint(entries @ weights[term_of == term])
            # no sum of entries of tables exceeds the sum of the largest ones
            most += np.maximum(table.max(axis=0), -table.min(axis=0))
            tables.append(table if most.max() >= 1 << 31 else table.astype(np.int32))
        kinds = {15: np.int16, 31: np.int32}
        fits = [kind for bits, kind in kinds.items() if most.max() < 1 << bits]
        return [table.astype((*fits, np.float64)[0]) for table in tables]

    def adder(self, block: slice) -> _Adder:
        """The function that adds up products of some rows of the design."""
        rest = self.rest.of_rows(block)
        ones = np.ones(len(rest.codes), np.float32)
        ends = np.arange(len(ones) + 1, dtype=np.int32)
        groups = zip(self.groups, self.cells(block), strict=True)
        cells = [csc_array((ones, own, ends), (len(g.entries), len(ones))) for g, own in groups]
        return _Adder(self, rest, cells)


def _looked_up(tables: list[Any], cells: list[Int32[np.ndarray, " b"]], rows: int) -> Any:
    """The sums of the tables' entries for some rows, of the kind of these."""
    constant, *others = tables
    total = np.repeat(constant, rows, axis=0)
    looked_up = np.empty((_TAKEN, total.shape[1]), total.dtype)
    for start in range(0, rows, _TAKEN):
        own = total[start : start + _TAKEN]
        out = looked_up[: len(own)]
        for table, each in zip(others, cells, strict=True):
            np.take(table, each[start : start + _TAKEN], axis=0, out=out, mode="clip")
            own += out
    return total


@dataclass(frozen=True)
class _Adder:
    """Adds up products of some rows.

    Attributes:
        design: of all rows.
        rest: those of the rows without cells.
        cells: [cells, rows] one-hot, of each group.
    """

    design: CellSums
    rest: Terms
    cells: list[Any]

    def sums(self, rows: Float32[np.ndarray, "b m"]) -> Float64[np.ndarray, "m w"]:
        """Σ rows·zᵀ, about as exact as float32."""
        found = np.zeros((rows.shape[1], self.design.terms.width))
        found[:, 0] = rows.sum(axis=0, dtype=np.float64) * (1 << VALUE_BITS)
        for group, cells in zip(self.design.groups, self.cells, strict=True):
            found[:, group.places] = (cells @ rows).T @ group.entries
        if self.rest.chosen:
            for part in self.rest.parts():
                found[:, self.design.places] += rows[part].T @ self.rest.rows(part)[:, 1:]
        return found


def tiles_of(count: int) -> list[slice]:
    """Some sums at a time, in parts of about the same size."""
    ends = np.linspace(0, count, -(-count // _TILE) + 1).astype(int).tolist()
    return [slice(first, end) for first, end in pairwise(ends)]


def _columns(places: dict[Term, slice], chosen: list[Term]) -> Int64[np.ndarray, " k"]:
    """Of the design, of some terms."""
    own = [np.arange(places[term].start, places[term].stop) for term in chosen]
    return np.concatenate([np.zeros(0, np.int64), *own])


_Columns = tuple[int, ...]


def _grouped(terms: Terms) -> tuple[list[tuple[_Columns, list[Term]]], list[Term]]:
    """Columns and the terms that their cells give, and the terms that have too many cells."""
    most = min(_MOST_CELLS_CELLS, len(terms.codes) // 2)
    few = [term for term in terms.chosen if np.prod(terms.shape(term.columns)) <= most]
    groups: dict[_Columns, list[Term]] = {}
    for term in (term for term in few if term.size > 1):
        groups.setdefault(term.columns, []).append(term)
    alone: _Columns | None = None
    for main in (term for term in few if term.size == 1):
        own = main.columns
        pairs = (both for both in groups if len(both) == 2 and own[0] in both)
        pair: _Columns | None = next(pairs, None)
        if pair is None and alone is not None:
            both = (*alone, *own)
            if np.prod(terms.shape(both)) <= min(most, _MOST_BOTH):
                groups[both], pair, alone = groups.pop(alone), both, None
        if pair is None:
            groups[own], alone = [], own
        groups[pair or own].append(main)
    return list(groups.items()), [term for term in terms.chosen if term not in set(few)]
