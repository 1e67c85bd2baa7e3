"""Products of a design with weights, and of its columns with rows, by cells of bins.

The rows of a cell, which have the same bins in two or three columns, have the same entries in all
terms of these columns. So a product with weights is computed once for every cell and looked up for
every row, and what is summed over rows is first added up within cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float32, Float64, Int32, Int64
from scipy.sparse import csc_array

from labeldp_trainer.interactions.columns import VALUE_BITS
from labeldp_trainer.interactions.terms import CHUNK, Term, Terms

BLOCK = 1 << 16
"""Rows that are in memory at once."""
_TILE = 136  # sums that are looked up together, at most: their tables fit a processor's cache
_MOST_CELLS = 1 << 15
_MOST_BOTH = 1 << 12  # of two main effects that are looked up together


@dataclass(frozen=True)
class CellGroup:
    """Terms that are looked up together.

    Attributes:
        columns: whose bins make cells.
        entries: [cells, k] of the design.
        places: [k] columns of the design.
    """

    columns: Term
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
        self, weights: Int32[np.ndarray, "w m"]
    ) -> Iterator[tuple[slice, Float64[np.ndarray, "b m"]]]:
        """All rows times weights, part by part; exact if these are at most MOST_WEIGHT."""
        dense = weights[self.places].astype(np.float64)
        for block in self.terms.parts(2 * BLOCK):
            cells, rows = self.cells(block), block.stop - block.start
            tiles = [
                self._tile(weights[:, tile].astype(np.float64), cells, rows)
                for tile in tiles_of(weights.shape[1])
            ]
            rest = self.rest.of_rows(block)
            for part in rest.parts():
                total = np.concatenate([tile[part] for tile in tiles], axis=1, dtype=np.float64)
                if rest.chosen:
                    total += rest.rows(part)[:, 1:].astype(np.float64) @ dense
                yield slice(block.start + part.start, block.start + part.stop), total

    def cells(self, block: slice) -> list[Int32[np.ndarray, " b"]]:
        """The cells of some rows, in each of the groups."""
        codes = self.terms.codes[block]
        return [self.terms.cells(group.columns, codes) for group in self.groups]

    def _tile(
        self, weights: Float64[np.ndarray, "w t"], cells: list[Int32[np.ndarray, " b"]], rows: int
    ) -> Any:
        """Rows times weights, but for the rest of the terms: [b, t] of int32 or float64."""
        constant = weights[0] * (1 << VALUE_BITS)
        kind: np.dtype[Any] = np.dtype(np.int32)
        tables, most = self._tables(weights, kind)
        # no sum of entries of tables exceeds the sum of the largest ones
        if not (abs(constant) + most).max() < 1 << 31:
            kind = np.dtype(np.float64)
            tables, _ = self._tables(weights, kind)
        total = np.empty((rows, weights.shape[1]), kind)
        total[:] = constant
        looked_up = np.empty((CHUNK, weights.shape[1]), kind)
        for start in range(0, len(total), CHUNK):
            own = total[start : start + CHUNK]
            out = looked_up[: len(own)]
            for table, each in zip(tables, cells, strict=True):
                np.take(table, each[start : start + CHUNK], axis=0, out=out, mode="clip")
                own += out
        return total

    def _tables(
        self, weights: Float64[np.ndarray, "w t"], kind: np.dtype[Any]
    ) -> tuple[list[Any], Float64[np.ndarray, " t"]]:
        """The products of all cells with weights, and a bound of the size of their sums."""
        tables, most = [], np.zeros(weights.shape[1])
        for group in self.groups:
            table = group.entries.astype(np.float64) @ weights[group.places]
            most += np.maximum(table.max(axis=0), -table.min(axis=0))
            with np.errstate(invalid="ignore"):  # what does not fit is not used
                tables.append(table.astype(kind))
        return tables, most

    def adder(self, block: slice) -> _Adder:
        """What adds up products of some rows of the design."""
        rest = self.rest.of_rows(block)
        ones = np.ones(len(rest.codes), np.float32)
        ends = np.arange(len(ones) + 1, dtype=np.int32)
        groups = zip(self.groups, self.cells(block), strict=True)
        cells = [csc_array((ones, own, ends), (len(g.entries), len(ones))) for g, own in groups]
        return _Adder(self, rest, cells)


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


def _grouped(terms: Terms) -> tuple[list[tuple[Term, list[Term]]], list[Term]]:
    """Columns and the terms that their cells give, and the terms that have too many cells."""
    most = min(_MOST_CELLS, len(terms.codes) // 2)
    few = [term for term in terms.chosen if np.prod(terms.shape(term)) <= most]
    groups = {term: [term] for term in few if len(term) > 1}
    alone: Term | None = None
    for main in (term for term in few if len(term) == 1):
        pairs = (both for both in groups if len(both) == 2 and main[0] in both)
        pair: Term | None = next(pairs, None)
        if pair is None and alone is not None:
            both: Term = (*alone, *main)
            if np.prod(terms.shape(both)) <= min(most, _MOST_BOTH):
                groups[both], pair, alone = groups.pop(alone), both, None
        if pair is None:
            groups[main], alone = [], main
        groups[pair or main].append(main)
    return list(groups.items()), [term for term in terms.chosen if term not in set(few)]
