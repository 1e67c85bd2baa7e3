"""The rows that a release is made of: public vectors as integers, and whose they are.

What one label, or all labels of a user, can change in a sum of rows is exact.
"""

from __future__ import annotations

import hashlib
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from jaxtyping import Float32, Float64, Int, Int32, Int64, Num
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator
from scipy.linalg import blas

from labeldp_trainer.config.data import MOST_EXAMPLES
from labeldp_trainer.data.features import room
from labeldp_trainer.data.labels import label_numbers
from labeldp_trainer.errors import DataError

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
    count: int = Field(gt=0)
    most_rows: int = Field(gt=0)
    sha256: str = Field(pattern=DIGEST)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.most_rows > self.max_examples_per_user:
            raise ValueError("a user has too many rows")
        return self

    @classmethod
    def of(cls, column: str, most: int, counted: RowSums) -> Self:
        """From what ``user_counts`` counted, of all users."""
        return cls(
            column=column,
            max_examples_per_user=most,
            count=int(counted.labels[0]),
            most_rows=counted.lengths.longest,
            sha256=counted.lengths.sha256,
        )


@dataclass(frozen=True, kw_only=True)
class RowOwners:
    """Whose labels the rows of a release have.

    Attributes:
        count: n rows.
        owners: [n] numbers of the users, whose rows follow one another; None if a label is on its
            own.
        users: what a release says of them.
        weights: [n] positive numbers, in any unit; None if all are 1.
        heaviest: that counts as 1; None if it is the largest of these rows.
    """

    count: int
    owners: Int64[np.ndarray, " n"] | None = None
    users: Users | None = None
    weights: Float32[np.ndarray, " n"] | None = None
    heaviest: np.float32 | None = None

    @property
    def units(self) -> int:
        """How many labels, or users."""
        return self.count if self.users is None else self.users.count

    @property
    def most_rows(self) -> int:
        """Of a user; 1 if a label is on its own."""
        return 1 if self.users is None else self.users.most_rows

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
        """Weights, of which none is larger than 1. They are the same on every processor."""
        if self.weights is None:
            return np.ones(self.count, np.float32)
        heaviest = self.weights.max() if self.heaviest is None else self.heaviest
        return np.minimum(self.weights / heaviest, np.float32(1))

    @cached_property
    def usual_length(self) -> float:
        """Mean length of rows of weight 1, if those of a user are at right angles."""
        own = self.relative.astype(np.float64)
        if self.owners is not None:
            own = own / np.sqrt(np.bincount(self.owners))[self.owners]
        return float(own.mean())


class MomentLattice(NamedTuple):
    """What factors of moments are rounded to, so that their sums are exact in any order.

    What reads the rows may order them by the size of files, which labels change.

    Attributes:
        most: steps of a factor; n·most² ≤ 2^53.
        rows, used: [d] steps of the columns of integer rows, and of used columns; powers of 2.
    """

    most: float
    rows: Float64[np.ndarray, " d"]
    used: Float64[np.ndarray, " d"]

    def rounded(
        self, factors: Num[np.ndarray, "b d"], steps: Float64[np.ndarray, " d"]
    ) -> Float64[np.ndarray, "b d"]:
        """Factors of moments."""
        found = factors / steps
        np.clip(np.rint(found, out=found), -self.most, self.most, out=found)
        return np.multiply(found, steps, out=found)


@dataclass(frozen=True, kw_only=True, eq=False)
class PublicRows(RowOwners):
    """Public vectors, and whose rows they are.

    All that is ever asked of every row is ``sums``. What else is computed from vectors, such as
    weights and fits, may come from a sample.

    Attributes:
        vectors: [s, p] of the n rows, or of a sample of them.
        spectrum: [p] eigenvalues of the components that the columns are, if they are.
        groups: [p] numbers of the representations that columns are from, if several are joined.
        paired: whether a vector stands for a pair, which could as well be turned around: labels
            are 1 and −1, 0 of a tie, and no constant is used.
        lattice: of moments; None if these rows decide it.
        shares: [n] of these rows for some weights (``user_shares``), by ``Weights.key``.
        known: the moments of these rows for some weights.
    """

    vectors: Float32[np.ndarray, "s p"]
    spectrum: Float64[np.ndarray, " p"] | None
    groups: Int32[np.ndarray, " p"] | None = None
    paired: bool = False
    lattice: MomentLattice | None = None
    shares: dict[bytes, Float64[np.ndarray, " n"] | None] = field(
        default_factory=dict, init=False, repr=False
    )
    known: dict[bytes, RowMoments] = field(default_factory=dict, init=False, repr=False)

    def sample(self, most: int = REHEARSED) -> PublicRows:
        """At most this many of the rows, at regular distances."""
        step = -(-self.count // most)
        return replace(super().sample(most), vectors=self.vectors[::step])

    def sums(self, weights: Weights, targets: Targets | None = None) -> RowSums:
        """Sums over all rows. Raises ValueError for weights that no release has."""
        found = self.summed(weights, targets)
        self.known[weights.key] = found.moments
        return found

    def moments(self, weights: Weights) -> RowMoments:
        """Those of all rows; the rows are not read again."""
        return self.known.get(weights.key) or self.sums(weights).moments

    def summed(self, weights: Weights, targets: Targets | None) -> RowSums:
        """Sums over all rows where they are: here, in memory."""
        d, k = weights.width, 0 if targets is None else targets.width
        (cross, upper, total), _, exact = RowSums.zeros(d, (d, k))
        lattice = self.lattice or self.moment_lattice(weights)
        read = np.zeros(0, np.int64) if targets is None else targets.read(targets.column)

        def parts() -> IntegerRows:
            for part, used, _, integers in weights.chunks(self):
                q = lattice.rounded(integers / weights.unit, lattice.rows)
                x = lattice.rounded(used, lattice.used)
                np.add(cross, q.T @ x, out=cross)
                np.add(upper, blas.dsyrk(1.0, q.T), out=upper)
                np.add(total, q.sum(axis=0), out=total)
                if targets is not None:
                    entries = targets.entries(read[part])
                    # whole numbers below 2^24·2^12·2^12: the float64 sum is exact
                    np.add(exact, (integers.T @ entries).astype(np.int64), out=exact)
                yield part, integers

        found = lengths(parts(), self)
        gram = np.triu(upper) + np.triu(upper, 1).T
        return RowSums(RowMoments(cross, gram, total), found, exact)

    def moment_lattice(self, weights: Weights) -> MomentLattice:
        """For n rows like these."""
        largest = np.maximum(self.vectors.max(axis=0), -self.vectors.min(axis=0)).astype(float)
        largest = np.append(1.0, largest)[weights.columns]
        longest = np.minimum(largest * weights.metric / weights.floor, 1.0)
        bits = (53 - self.count.bit_length()) // 2
        rows, used = (
            np.exp2(np.ceil(np.log2(np.where(each > 0, each, 1.0))) + 1 - bits)
            for each in (longest, largest)
        )
        return MomentLattice(2.0**bits, rows, used)


class Targets(NamedTuple):
    """Labels as integers t(y); each is a function of its label alone.

    Attributes:
        classes: k; None for numbers.
        column: the labels [n] of rows in memory.
        read: gives of a column classes 0 … k − 1 [n], or lattice steps from the centre.
    """

    classes: int | None
    column: Any = None
    read: Callable[[Any], Int[np.ndarray, " n"]] = np.asarray

    @property
    def width(self) -> int:
        """Entries of t(y)."""
        return 1 if self.classes is None else self.classes

    def entries(self, read: Int[np.ndarray, " b"]) -> Float64[np.ndarray, "b k"]:
        """t(y) of labels that were read: one-hot classes, or the steps."""
        own = read[:, None]
        entries = own if self.classes is None else own == np.arange(self.classes)[None, :]
        return entries.astype(np.float64)


class RowMoments(NamedTuple):
    """Sums over all rows, in units of ``Weights.unit``.

    Attributes:
        cross: [d, d] Σ q·xᵀ of integer rows and used columns.
        gram: [d, d] Σ q·qᵀ.
        total: [d] Σ q, exactly.
    """

    cross: Float64[np.ndarray, "d d"]
    gram: Float64[np.ndarray, "d d"]
    total: Float64[np.ndarray, " d"]


class RowSums(NamedTuple):
    """Sums over all rows, and facts of the integers that were summed: of the same arrays.

    Attributes:
        moments: public sums.
        lengths: public facts of the integer rows.
        labels: [d, k] Σ q ⊗ t(y), or counts, exactly. Not private before noise is added.
    """

    moments: RowMoments
    lengths: Lengths
    labels: Int64[np.ndarray, ...]

    @classmethod
    def zeros(cls, d: int, labels: tuple[int, ...]) -> RowSums:
        """Over no rows."""
        moments = RowMoments(np.zeros((d, d)), np.zeros((d, d)), np.zeros(d))
        return cls(moments, Lengths(0, ()), np.zeros(labels, np.int64))


# Weighted features as integers, and what one label can change in their sum: all of it exact.

UNIT = 1 << 24
"""Lattice steps in the length of the longest row; of many rows fewer (``unit_of``)."""
STEPS = 1 << 12
"""Lattice steps from the centre of a range of labels to either end."""
MOST_ROWS = (1 << 33) - 1
"""Whose histogram, of at most 2^30 steps a row, fits an int64."""
_CHUNK = 4096  # rows
SCALE = UNIT - UNIT / 1024
"""A length so that rounded rows are no longer than UNIT."""


def unit_of(rows: int) -> int:
    """Lattice steps in the length of the longest of n rows, whose sum then fits an int64."""
    return UNIT >> max((rows * UNIT * STEPS).bit_length() - 63, 0)


class Chunk(NamedTuple):
    """The vectors of some ``rows``: used columns, factors of the rows and their integers."""

    rows: slice
    used: Float32[np.ndarray, "b d"]
    factors: Float64[np.ndarray, " b"]
    integers: Int32[np.ndarray, "b d"]


@dataclass(frozen=True, eq=False)
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

    @property
    def unit(self) -> float:
        """Lattice steps in a length of 1: the power of 2 from ``scale`` on."""
        return 2.0 ** max(math.ceil(math.log2(self.scale)), 0)

    @cached_property
    def key(self) -> bytes:
        """The same for equal weights."""
        ends = np.array([self.floor, self.scale])
        return b"".join(each.tobytes() for each in (self.columns, self.metric, ends))

    def chunks(self, rows: PublicRows) -> Iterator[Chunk]:
        """Used columns and integer rows, part by part; shares multiply the rows."""
        return self._chunks(rows, self.shares(rows))

    def shares(self, rows: PublicRows) -> Float64[np.ndarray, " n"] | None:
        """[n] what multiplies the rows (``user_shares``)."""
        if self.key not in rows.shares:
            whole = ((chunk.rows, chunk.integers) for chunk in self._chunks(rows, None))
            rows.shares[self.key] = user_shares(rows, whole, self.scale)
        return rows.shares[self.key]

    def _chunks(
        self, rows: PublicRows, shares: Float64[np.ndarray, " n"] | None
    ) -> Iterator[Chunk]:
        for start in range(0, len(rows.vectors), _CHUNK):
            part = slice(start, min(start + _CHUNK, len(rows.vectors)))
            own = None if shares is None else shares[part]
            yield Chunk(part, *self._rows(rows.vectors[part], own))

    def _rows(
        self, vectors: Float32[np.ndarray, "b p"], shares: Float64[np.ndarray, " b"] | None
    ) -> tuple[Float32[np.ndarray, "b d"], Float64[np.ndarray, " b"], Int32[np.ndarray, "b d"]]:
        """Used columns, factors and integer rows."""
        used = self.used(vectors)
        moved = used.astype(np.float64) * self.metric.astype(np.float64)[None, :]
        factors = self._factors(moved, shares)
        return used, factors, np.rint(moved * factors[:, None]).astype(np.int32)

    def factors(self, rows: PublicRows) -> Float32[np.ndarray, " n"]:
        """The factor of each row, beside the metric, in units of ``unit``."""
        found = np.concatenate([chunk.factors for chunk in self.chunks(rows)])
        return (found / self.unit).astype(np.float32)

    def _factors(
        self, moved: Float64[np.ndarray, "b d"], shares: Float32[np.ndarray, " b"] | None
    ) -> Float64[np.ndarray, " b"]:
        lengths = np.sqrt(np.square(moved).sum(axis=1))
        factor: Float64[np.ndarray, " b"] = self.scale / np.maximum(lengths, self.floor)
        return factor if shares is None else factor * shares

    def used(self, vectors: Float32[np.ndarray, "b p"]) -> Float32[np.ndarray, "b d"]:
        """The used columns, of which the first may be the constant 1."""
        found = np.empty((len(vectors), self.width), np.float32)
        # the 1 is filled in below; indexing would leave columns that follow one another
        np.take(vectors, np.maximum(self.columns - 1, 0), axis=1, out=found, mode="clip")
        found[:, self.columns == 0] = 1.0
        return found


class Lengths(NamedTuple):
    """The exact facts of the integer rows.

    Attributes:
        longest: squared length of the longest; with users, the largest square of a bound of
            ‖Σ q ⊗ u‖ over the rows q of one, for all u of length 1.
        digests: SHA-256 of each row, in sorted parts.
    """

    longest: int
    digests: tuple[NDArray[np.bytes_], ...]

    @property
    def sha256(self) -> str:
        """Of the sorted digests of all rows: the same in any order."""
        total = hashlib.sha256()
        places = [[0, *np.searchsorted(part, _FIRST_BYTES), len(part)] for part in self.digests]
        for first in range(len(_FIRST_BYTES) + 1):  # of one first byte at a time, of many rows
            ends = [slice(own[first], own[first + 1]) for own in places]
            # many rows may be alike
            parts = [np.unique(_NO_DIGEST, return_counts=True)]
            parts += [
                np.unique(part[own], return_counts=True)
                for part, own in zip(self.digests, ends, strict=True)
            ]
            digests, counts = (np.concatenate(each) for each in zip(*parts, strict=True))
            order = np.argsort(digests)
            last = np.cumsum(counts[order])
            for start in range(0, int(counts.sum()), _AT_ONCE):
                rows = np.arange(start, min(start + _AT_ONCE, last[-1]))
                own = order[np.searchsorted(last, rows, side="right")]
                total.update(digests[own].tobytes())
        return total.hexdigest()


_DIGEST = np.dtype("S32")
_NO_DIGEST = np.zeros(0, _DIGEST)
_FIRST_BYTES = np.array([bytes([first]) for first in range(1, 256)], _DIGEST)
_IN_MEMORY, _AT_ONCE = 1 << 23, 1 << 16  # digests; others are on the disk


def measured(longest: int, digests: bytes | bytearray) -> Lengths:
    """The facts of rows whose digests follow one another."""
    return Lengths(longest, (np.sort(np.frombuffer(digests, _DIGEST)),))


def user_counts(owners: Int64[np.ndarray, " n"], places: Int64[np.ndarray, " n"]) -> RowSums:
    """Of some users: how many, the most rows of one, and SHA-256 of the places of each one's rows.

    ``owners`` are the numbers 0 … u − 1 of the users.
    """
    ordered = places[np.lexsort((places, owners))].astype("<i8").tobytes()
    sizes = np.bincount(owners)
    ends = (8 * np.cumsum(sizes)).tolist()
    digests = b"".join(
        hashlib.sha256(ordered[start:end]).digest() for start, end in pairwise([0, *ends])
    )
    nothing = RowSums.zeros(0, (1,))
    return RowSums(
        nothing.moments, measured(int(sizes.max()), digests), nothing.labels + len(sizes)
    )


def added(nothing: RowSums, each: Iterable[RowSums]) -> RowSums:
    """The sums over the rows of all, and the longest of them. There are at most MOST_ROWS."""
    sums, labels = [moment.copy() for moment in nothing.moments], nothing.labels.copy()
    longest, held, on_disk = 0, list[NDArray[np.bytes_]](), list[NDArray[np.bytes_]]()
    for moments, own, exact in each:
        for total, part in zip((*sums, labels), (*moments, exact), strict=True):
            np.add(total, part, out=total)
        longest = max(longest, own.longest)
        held += own.digests
        if sum(map(len, held)) > _IN_MEMORY:
            together = np.sort(np.concatenate(held))
            kept = room(together.shape, _DIGEST, most=0)
            kept[:] = together
            on_disk.append(kept)
            held.clear()
    return RowSums(RowMoments(*sums), Lengths(longest, (*on_disk, *held)), labels)


IntegerRows = Iterable[tuple[slice, Num[np.ndarray, "b d"]]]
"""All rows as integers, part by part; in float64, too."""


def lengths(integer_rows: IntegerRows, rows: RowOwners) -> Lengths:
    """Measure integer rows. Raises ValueError for rows that are no rows of weights of scale UNIT
    and of finite vectors: the squares of others might not fit an int64.
    """
    digests, longest = bytearray(), 0

    def parts() -> IntegerRows:
        nonlocal longest
        for part, integers in integer_rows:
            each = np.ascontiguousarray(integers, "<i4").view(np.uint8)
            digests.extend(b"".join(hashlib.sha256(row).digest() for row in each))
            wide, squares = _whole(integers)
            longest = max(longest, int(squares.max()))
            yield part, wide

    if rows.owners is None:
        deque(parts(), maxlen=0)
    else:
        span = int(_user_spans(rows, parts()).max())
        longest = -(-(span**2) // (_ROOT * _ROOT))
    return measured(longest, digests)


def _whole(
    integers: Num[np.ndarray, "b d"],
) -> tuple[Float64[np.ndarray, "b d"], Int64[np.ndarray, " b"]]:
    """Integer rows as float64, and their squared lengths. Raises ValueError if they are too long:
    products of others are sums of whole numbers below 2^53, exact in any order."""
    wide = integers.astype(np.float64, copy=False)
    squares = np.einsum("bd,bd->b", wide, wide)
    if not squares.max() <= 4.0 * UNIT * UNIT:
        raise ValueError("a row is longer than any release has")
    return wide, squares.astype(np.int64)


def squared_sensitivity(longest: int, rows: int = 1, *, classes: bool) -> int:
    """Of Σ q ⊗ t(y): replacing a label moves it by q·(e_a − e_b)ᵀ, or by q·(t − t′), |t| ≤ STEPS.

    With ``longest`` of a user's rows: replacing all of their labels (docs/privacy.md, Theorem 13).
    Raises DataError unless an int64 holds the sum of n such rows, and of any of them.
    """
    if rows * rows * longest * STEPS * STEPS >= 1 << 126:
        raise DataError(f"sums of {rows:,} rows of this length may not fit 64 bits; use fewer rows")
    return longest * (2 if classes else 4 * STEPS * STEPS)


# Users: what all of their labels together can change, as whole numbers.

_ROOT = 1 << 10  # spans are whole numbers of 1/_ROOT
_ROUNDED = 20  # bits that are added up on their own
_BLOCK = 256  # rows of a user whose products with one another are measured
_EVEN, _LARGEST = 14, 20  # bits of the factor of the longest row of a block, and of any
_BITS = 22  # of an entry of a matrix that is squared: a sum of _BLOCK products is below 2^53
_SQUARINGS = 5  # make the bound of an eigenvalue too large by at most rank^(1/64)


def user_shares(
    rows: RowOwners, integer_rows: IntegerRows, scale: float = SCALE
) -> Float64[np.ndarray, " n"] | None:
    """[n] what multiplies these rows: all labels of a user then move a sum by no more than one row
    of length ``scale`` can. None if a label is on its own. No processor finds another number: up to
    the last quotient, all are whole numbers that float64 holds."""
    if rows.owners is None:
        return None
    spans = _user_spans(rows, ((part, _whole(each)[0]) for part, each in integer_rows))
    return np.minimum(scale * _ROOT / np.maximum(spans, 1), 1.0)[rows.owners]


def _user_spans(rows: RowOwners, integer_rows: IntegerRows) -> Int64[np.ndarray, " u"]:
    """[u] bounds of ‖Σ q ⊗ u‖ over the rows q of a user, for all u of length 1, in 1/_ROOT.

    They are added up over blocks of at most _BLOCK rows.
    """
    owners = rows.owners
    assert owners is not None
    first = np.flatnonzero(np.diff(owners, prepend=-1))
    count = len(owners)
    place = np.arange(count) - np.repeat(first, np.diff(first, append=count))
    begins = np.flatnonzero(place % _BLOCK == 0)
    sizes = np.diff(begins, append=count)
    found, done, waiting = np.zeros(owners.max() + 1, np.int64), 0, np.zeros((0, 0))
    for part, wide in integer_rows:
        kept = part.start - len(waiting)
        waiting = np.concatenate([waiting, wide]) if len(waiting) else wide
        there = int(np.searchsorted(begins + sizes, part.stop, side="right"))
        own, many = begins[done:there], sizes[done:there]
        for size in np.unique(many):
            at = own[many == size]
            blocks = waiting[at[:, None] + np.arange(size) - kept]
            spans = _spans(blocks @ blocks.transpose(0, 2, 1))
            np.add.at(found, owners[at], spans)
        done = there
        waiting = waiting[(begins[done] if done < len(begins) else count) - kept :]
    return found


def _spans(products: Float64[np.ndarray, "c b b"]) -> Int64[np.ndarray, " c"]:
    """Of blocks of rows, from the products of their rows: whole numbers up to 4·UNIT².

    The square of ‖Σ q ⊗ u‖ is at most the sum of all |products|. It is also at most λ·Σ 1/t² for
    any positive t, if λ bounds the eigenvalues of t·products·t; t is such that rows have about
    equal lengths.
    """
    size = products.shape[1]
    whole = np.abs(products).astype(np.int64).sum(axis=2)
    high, low = (whole >> _ROUNDED).sum(axis=1), (whole & ((1 << _ROUNDED) - 1)).sum(axis=1)
    sums = [(h << _ROUNDED) + r for h, r in zip(high.tolist(), low.tolist(), strict=True)]
    if size > 2:  # the products of two rows are as good
        squares = np.maximum(np.einsum("cbb->cb", products), 1.0)
        even = np.sqrt(np.sqrt(squares.max(axis=1, keepdims=True) / squares)) * (1 << _EVEN)
        t = np.rint(np.minimum(even, 1 << _LARGEST))
        inverse = -(-(1 << 2 * _LARGEST) // np.square(t).astype(np.int64))
        found = _largest_eigenvalues(products * (t[:, :, None] * t[:, None, :]))
        total = inverse.sum(axis=1).tolist()
        spectral = (-(-(v * each) >> 2 * _LARGEST) for v, each in zip(found, total, strict=True))
        sums = [min(pair) for pair in zip(sums, spectral, strict=True)]
    return np.array([_root_up(square * _ROOT * _ROOT) for square in sums], np.int64)


def _largest_eigenvalues(matrices: Float64[np.ndarray, "c b b"]) -> list[int]:
    """Upper bounds of those of symmetric matrices whose entries are no larger than the largest on
    the diagonal.

    Matrices are rounded to entries of _BITS bits and squared, again and again. A square is exact,
    and rounding to whole numbers moves an eigenvalue by at most the number of rows. The trace of
    the last square bounds the eigenvalues of the last matrix.
    """
    size, shifts = matrices.shape[1], []
    for _ in range(_SQUARINGS + 1):
        largest = np.einsum("cbb->cb", matrices).max(axis=1)
        shift = np.maximum(np.frexp(largest)[1] - _BITS, 0)
        shifts.append(shift.tolist())
        rounded = np.rint(np.ldexp(matrices, -shift[:, None, None]))
        matrices = rounded @ rounded
    traces = np.einsum("cbb->cb", matrices).astype(np.int64).sum(axis=1).tolist()
    found = [_root_up(trace) for trace in traces]
    for shift in shifts[:0:-1]:
        found = [_root_up((v + size) << own) for v, own in zip(found, shift, strict=True)]
    return [(v + size) << own for v, own in zip(found, shifts[0], strict=True)]


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
