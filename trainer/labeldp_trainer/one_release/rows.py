"""The rows that a release is made of: public vectors as integers, and whose they are.

What one label, or all labels of a user, can change in a sum of rows is exact.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from jaxtyping import Float32, Float64, Int, Int32, Int64, Num
from pydantic import BaseModel, ConfigDict, Field

from labeldp_trainer.config.data import MOST_EXAMPLES
from labeldp_trainer.data.labels import label_numbers

DIGEST = r"^[0-9a-f]{64}$"
REHEARSED = 500
"""Rows on which a fit is tried with noise alone, before labels are asked for anything."""


class ReleaseText(BaseModel):
    """Facts of the rows of a release; other ones are refused."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False, frozen=True)


class Users(ReleaseText):
    """Whose labels are protected together."""

    column: str
    max_examples_per_user: int = Field(gt=0, le=MOST_EXAMPLES)
    sha256: str = Field(pattern=DIGEST)


@dataclass(frozen=True, kw_only=True)
class RowOwners:
    """Whose labels the rows of a release have.

    Attributes:
        count: n rows.
        owners: [n] numbers of the users, or None if a label is on its own.
        users: what a release says of them.
        weights: [n] positive numbers, in any unit; None if all are 1.
    """

    count: int
    owners: Int64[np.ndarray, " n"] | None = None
    users: Users | None = None
    weights: Float32[np.ndarray, " n"] | None = None

    @property
    def units(self) -> int:
        """How many labels, or users."""
        return self.count if self.owners is None else int(self.owners.max()) + 1

    @property
    def most_rows(self) -> int:
        """Of a user; 1 if a label is on its own."""
        return 1 if self.owners is None else int(np.bincount(self.owners).max())

    def blocks(
        self, most: int, together: int
    ) -> Iterator[tuple[Int64[np.ndarray, " b"], Int64[np.ndarray, " b"]]]:
        """Rows in the order of their users, in blocks of at most ``most`` rows of one user.

        Yields the rows of some blocks, and the numbers 0, 1, … of these blocks.
        """
        assert self.owners is not None
        order = np.argsort(self.owners, kind="stable")
        counts = np.bincount(self.owners)
        place = np.arange(self.count) - (np.cumsum(counts) - counts)[self.owners[order]]
        begins = np.append(np.flatnonzero(place % most == 0), self.count)
        for first in range(0, len(begins) - 1, together):
            some = begins[first : first + together + 1]
            yield (
                order[some[0] : some[-1]],
                np.repeat(np.arange(len(some) - 1), np.diff(some)),
            )

    def sample(self, most: int = REHEARSED) -> Self:
        """At most this many of the rows, at regular distances."""
        step, owners = -(-self.count // most), self.owners
        if owners is not None:
            owners = np.unique(owners[::step], return_inverse=True)[1]
        weights = None if self.weights is None else self.weights[::step]
        count = len(range(0, self.count, step))
        return replace(self, count=count, owners=owners, weights=weights)

    @cached_property
    def relative(self) -> Float32[np.ndarray, " n"]:
        """Weights, of which the largest is 1. They are the same on every processor."""
        if self.weights is None:
            return np.ones(self.count, np.float32)
        return self.weights / self.weights.max()

    @cached_property
    def shares(self) -> Float32[np.ndarray, " n"] | None:
        """1/m for each of the m rows of a user, times its weight; None if all are 1."""
        if self.owners is None:
            return None if self.weights is None else self.relative
        counts = np.bincount(self.owners)
        return (self.relative / counts[self.owners]).astype(np.float32)


@dataclass(frozen=True, kw_only=True)
class PublicRows(RowOwners):
    """Public vectors, and whose rows they are.

    Attributes:
        vectors: [n, p].
        spectrum: [p] eigenvalues of the components that the columns are, if they are.
        sha256: of the vectors.
        groups: [p] numbers of the representations that columns are from, if several are joined.
    """

    vectors: Float32[np.ndarray, "n p"]
    spectrum: Float64[np.ndarray, " p"] | None
    sha256: str
    groups: Int32[np.ndarray, " p"] | None = None

    def sample(self, most: int = REHEARSED) -> Self:
        """At most this many of the rows, at regular distances."""
        step = -(-self.count // most)
        return replace(super().sample(most), vectors=self.vectors[::step])


# Weighted features as integers, and what one label can change in their sum: all of it exact.

UNIT = 1 << 24
"""Lattice steps in the length of the longest row."""
STEPS = 1 << 12
"""Lattice steps from the centre of a range of labels to either end."""
MOST_ROWS = (1 << 62) // (2 * UNIT * STEPS)
"""Whose sum fits an int64 by far."""
_CHUNK = 4096  # rows
_MOST_SQUARED = 4.0 * UNIT * UNIT
_ROOT = 1 << 10  # a user's rows: roots are rounded up to 1/_ROOT
_BLOCK = 64  # rows of a user whose products with one another are measured
_BLOCKS = 128  # at a time


class Chunk(NamedTuple):
    """The vectors of some ``rows``: used columns, factors of the rows and their integers."""

    rows: slice
    used: Float32[np.ndarray, "b d"]
    factors: Float64[np.ndarray, " b"]
    integers: Int32[np.ndarray, "b d"]


@dataclass(frozen=True)
class Weights:
    """How a public vector becomes an integer row; a function of features alone.

    A row is scale·v/max(‖v‖, floor), rounded, where v holds the used columns of a vector, preceded
    by 1, times the metric. The rows of a user are then made shorter, all by the same factor, until
    all labels of the user together move a sum by no more than one row of length ``scale`` can.

    Attributes:
        columns: [d] which of 1 and the vector's columns are used; 0 is the 1.
        metric: [d] positive.
        floor: rows that are shorter than this in the metric keep their proportion.
        scale: lattice steps.
    """

    columns: Int64[np.ndarray, " d"]
    metric: Float32[np.ndarray, " d"]
    floor: float
    scale: float

    @property
    def width(self) -> int:
        """d."""
        return len(self.columns)

    def chunks(self, rows: PublicRows) -> Iterator[Chunk]:
        """Used columns and integer rows, part by part; shares multiply the rows."""
        return self._chunks(rows, self._shares(rows))

    def _chunks(
        self, rows: PublicRows, shares: Float64[np.ndarray, " n"] | None
    ) -> Iterator[Chunk]:
        for start in range(0, len(rows.vectors), _CHUNK):
            part = slice(start, min(start + _CHUNK, len(rows.vectors)))
            own = None if shares is None else shares[part]
            yield Chunk(part, *self._rows(rows.vectors[part], own))

    def integer_rows(self, rows: PublicRows) -> Iterator[tuple[slice, Int32[np.ndarray, "b d"]]]:
        """The integer rows, part by part."""
        return ((chunk.rows, chunk.integers) for chunk in self.chunks(rows))

    def lengths(self, rows: PublicRows) -> Lengths:
        """Of the integer rows. Raises ValueError for weights that no release has."""
        shares = self._shares(rows)
        integers = ((chunk.rows, chunk.integers) for chunk in self._chunks(rows, shares))
        return lengths(integers, rows, None if rows.owners is None else self._spans(rows, shares))

    def _shares(self, rows: PublicRows) -> Float64[np.ndarray, " n"] | None:
        """[n] what the rows of users are multiplied by. No processor computes another number: up to
        the last quotient, all are whole numbers that float64 holds."""
        if rows.owners is None:
            return None
        spans = np.maximum(self._spans(rows, None), 1)
        return np.minimum(self.scale * _ROOT / spans, 1.0)[rows.owners]

    def _spans(
        self, rows: PublicRows, shares: Float64[np.ndarray, " n"] | None
    ) -> Int64[np.ndarray, " u"]:
        """[u] by how much the labels of each user together move a sum, in units of 1/_ROOT."""
        assert rows.owners is not None
        found = np.zeros(rows.units, np.int64)
        for block, number in rows.blocks(_BLOCK, _BLOCKS):
            own = None if shares is None else shares[block]
            squares = _products(self._rows(rows.vectors[block], own)[2], number)
            np.add.at(
                found, rows.owners[block][np.diff(number, prepend=-1) > 0], _roots_up(squares)
            )
        return found

    def _rows(
        self, vectors: Float32[np.ndarray, "b p"], shares: Float64[np.ndarray, " b"] | None
    ) -> tuple[Float32[np.ndarray, "b d"], Float64[np.ndarray, " b"], Int32[np.ndarray, "b d"]]:
        """Used columns, factors and integer rows."""
        used = self.used(vectors)
        moved = used.astype(np.float64) * self.metric.astype(np.float64)[None, :]
        factors = self._factors(moved, shares)
        return used, factors, np.rint(moved * factors[:, None]).astype(np.int32)

    def factors(self, rows: PublicRows) -> Float32[np.ndarray, " n"]:
        """The factor of each row, beside the metric, in units of UNIT."""
        found = np.concatenate([chunk.factors for chunk in self.chunks(rows)])
        return (found / UNIT).astype(np.float32)

    def _factors(
        self, moved: Float64[np.ndarray, "b d"], shares: Float32[np.ndarray, " b"] | None
    ) -> Float64[np.ndarray, " b"]:
        # numpy adds in another order in another layout: rows in one layout for every input
        squares = np.square(np.ascontiguousarray(moved))
        lengths = np.sqrt(squares.sum(axis=1))
        factor: Float64[np.ndarray, " b"] = self.scale / np.maximum(lengths, self.floor)
        return factor if shares is None else factor * shares

    def used(self, vectors: Float32[np.ndarray, "b p"]) -> Float32[np.ndarray, "b d"]:
        """The used columns, of which the first may be the constant 1."""
        ones = np.ones((len(vectors), 1), np.float32)
        return np.concatenate([ones, vectors], axis=1)[:, self.columns]


class Lengths(NamedTuple):
    """The exact facts of the integer rows.

    Attributes:
        longest: squared length of the longest; with users, the largest square of a bound of
            ‖Σ ±q‖ over the rows q of one, for all signs.
        sha256: of all rows.
    """

    longest: int
    sha256: str


def lengths(
    chunks: Iterable[tuple[slice, Num[np.ndarray, "b d"]]],
    rows: RowOwners,
    spans: Int64[np.ndarray, " u"] | None = None,
) -> Lengths:
    """Measure integer rows, part by part; in float64, too.

    ``spans`` are bounds for the users in units of 1/_ROOT: without them, sums of the lengths of
    their rows. Raises ValueError for rows that are no rows of weights of scale UNIT and of finite
    vectors: the squares of others might not fit an int64.
    """
    total, owners = hashlib.sha256(), rows.owners
    squares = np.zeros(rows.count, np.int64)
    for part, integers in chunks:
        total.update(np.ascontiguousarray(integers, "<i4").tobytes())
        squares[part] = _whole(integers)[1]
    if owners is None:
        return Lengths(int(squares.max()), total.hexdigest())
    if spans is None:
        spans = np.zeros(rows.units, np.int64)
        np.add.at(spans, owners, _roots_up(squares))
    return Lengths(-(-(int(spans.max()) ** 2) // (_ROOT * _ROOT)), total.hexdigest())


def _whole(
    integers: Num[np.ndarray, "b d"],
) -> tuple[Float64[np.ndarray, "b d"], Int64[np.ndarray, " b"]]:
    """Integer rows as float64, and their squared lengths. Raises ValueError if they are too long:
    products of others are sums of whole numbers below 2^53, exact in any order."""
    wide = integers.astype(np.float64, copy=False)
    squares = np.einsum("bd,bd->b", wide, wide)
    if not squares.max() <= _MOST_SQUARED:
        raise ValueError("a row is longer than any release has")
    return wide, squares.astype(np.int64)


def _products(
    integers: Int32[np.ndarray, "b d"], number: Int64[np.ndarray, " b"]
) -> Int64[np.ndarray, " c"]:
    """Σ |⟨q, q′⟩| over all pairs of rows of each block, whose ``number`` counts from 0; exact.

    It bounds ‖Σ s·q‖² for all signs s, and is at most the square of the sum of lengths.
    """
    wide, squares = _whole(integers)
    found = np.zeros(number[-1] + 1, np.int64)
    np.add.at(found, number, squares)
    for apart in range(1, len(wide)):
        at = np.flatnonzero(number[apart:] == number[:-apart])
        if len(at) == 0:
            break
        products = np.abs(np.einsum("bd,bd->b", wide[at + apart], wide[at]))
        np.add.at(found, number[at], 2 * products.astype(np.int64))
    return found


def squared_sensitivity(longest: int, *, classes: bool) -> int:
    """Of Σ q ⊗ t(y): replacing a label moves it by q·(e_a − e_b)ᵀ, or by q·(t − t′), |t| ≤ STEPS.

    With ``longest`` of a user's rows: replacing all of their labels (docs/privacy.md, Theorem 13).
    """
    return longest * (2 if classes else 4 * STEPS * STEPS)


def label_sums(
    weights: Weights, rows: PublicRows, labels: Int[np.ndarray, " n"], classes: int | None
) -> Int64[np.ndarray, "d k"]:
    """Σ q ⊗ e(y), exactly, of labels that are classes 0 … k − 1; Σ q·t of labels in lattice steps
    from the centre if ``classes`` is None, with k = 1. There are at most MOST_ROWS.
    """
    total = np.zeros((weights.width, 1 if classes is None else classes), np.int64)
    for part, _, _, integers in weights.chunks(rows):
        own = labels[part][:, None]
        entries = own if classes is None else own == np.arange(classes)[None, :]
        total += integers.astype(np.int64).T @ entries.astype(np.int64)
    return total


def _roots_up(squares: Int64[np.ndarray, " n"]) -> Int64[np.ndarray, " n"]:
    """In units of 1/_ROOT."""
    return np.array([_root_up(int(square) * _ROOT * _ROOT) for square in squares], np.int64)


def _root_up(square: int) -> int:
    root = math.isqrt(square)
    return root + (root * root < square)


# True labels in lattice steps.


def label_steps(
    values: Any, low: float, high: float, default: float | None
) -> Int64[np.ndarray, " n"]:
    """The numbers of n labels (``label_numbers``) in steps from the middle: −STEPS … STEPS."""
    inside = label_numbers(values, low, high, default)
    with np.errstate(all="ignore"):
        share = (inside - low) / (high - low) * 2 - 1
    return in_steps(share)


def in_steps(shares: Float64[np.ndarray, " n"]) -> Int64[np.ndarray, " n"]:
    """Numbers in [−1, 1] in steps; what lies beyond becomes an end."""
    return np.rint(np.clip(shares, -1.0, 1.0) * STEPS).astype(np.int64)
