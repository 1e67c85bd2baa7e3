"""From a column of a table to bins, and from bins to the values of a few basis functions.

Numbers are cut at quantiles; a missing number has a bin of its own. Categories with few rows share
the bin of unknown ones. The basis functions of a column are the leading eigenfunctions of a smooth
kernel on its bins (of the identity for categories), centred and orthogonal on the training rows.
Values are integers, so that every processor computes the same rows from them.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Float64, Int32, Int64

from labeldp_trainer.data import Features

VALUE_BITS = 10
"""A basis function has steps of 2^−VALUE_BITS."""
MOST_VALUE = 1 << 20
_BINS = 24  # of a column of numbers
_MOST_CATEGORIES, _LEAST_ROWS = 64, 10
_MAIN_NUMBERS, _IN_PAIRS_NUMBERS, _IN_PAIRS_CATEGORIES = 24, 5, 23
_IN_MAINS = 12
_RANGE = 0.5  # of the kernel, in quantiles
_LINEAR = 2.0  # weight of the part that is smooth over the whole range
_NOTHING = 1e-6  # of the largest eigenvalue


@dataclass(frozen=True)
class BinnedColumn:
    """The bins of one column, and its basis functions on them.

    Attributes:
        edges: [e] of a column of numbers: bin b holds x with edges[b − 1] ≤ x < edges[b], and bin
            e + 1 missing numbers. None for categories.
        bins: [codes] the bin of each code of a categorical column. None for numbers.
        values: [bins, r] of the basis functions, in steps of 2^−VALUE_BITS, strongest first.
        in_pairs: how many of them take part in interactions, at first.
    """

    edges: Float32[np.ndarray, " e"] | None
    bins: Int32[np.ndarray, " codes"] | None
    values: Int32[np.ndarray, "b r"]
    in_pairs: int

    @property
    def rank(self) -> int:
        """How many basis functions there are; 0 for a constant column."""
        return int(self.values.shape[1])

    @property
    def in_mains(self) -> int:
        """How many of them take part in a main effect, at first."""
        return self.rank if self.bins is not None else min(self.rank, _IN_MAINS)

    def codes(
        self, entries: Float32[np.ndarray, " n"] | Int32[np.ndarray, " n"]
    ) -> Int32[np.ndarray, " n"]:
        """The bin of each entry."""
        if self.bins is not None:
            return self.bins[entries]
        assert self.edges is not None
        entries, found = np.ascontiguousarray(entries), np.zeros(len(entries), np.uint8)
        for edge in self.edges:  # they are few: a search is slower
            found += entries >= edge
        return np.where(np.isnan(entries), len(self.edges) + 1, found).astype(np.int32)


def entries_of(features: Features) -> list[np.ndarray]:
    """The columns of a table in order: numbers first, then the codes of categories."""
    numeric, categorical = features["numeric"], features["categorical"]
    return [*np.asarray(numeric).T, *np.asarray(categorical).T]


def learn_columns(features: Features, vocabularies: tuple[int, ...]) -> list[BinnedColumn]:
    """The columns of training features. Numbers that many rows have get bins of their own."""
    numeric = np.asarray(features["numeric"])
    found = [_numbers(np.ascontiguousarray(numeric[:, j])) for j in range(numeric.shape[1])]
    codes = np.asarray(features["categorical"])
    return found + [_categories(codes[:, j], size) for j, size in enumerate(vocabularies)]


def _numbers(entries: Float32[np.ndarray, " n"]) -> BinnedColumn:
    there = entries[~np.isnan(entries)]
    edges = _edges(there)
    count = len(edges) + 1
    codes = BinnedColumn(edges, None, np.zeros((0, 0), np.int32), 0).codes(entries)
    at = np.linspace(0, 1, count)
    apart = np.abs(at[:, None] - at[None, :])
    kernel = np.zeros((count + 1, count + 1))
    smooth = _LINEAR * np.minimum(at[:, None], at[None, :])
    kernel[:count, :count] = np.exp(-apart / _RANGE) + smooth
    kernel[count, count] = 1.0
    values = _eigenfunctions(kernel, np.bincount(codes, minlength=count + 1), _MAIN_NUMBERS)
    whole = count <= _BINS and bool((there == np.rint(there)).all())
    in_pairs = _IN_PAIRS_CATEGORIES if whole else _IN_PAIRS_NUMBERS
    return BinnedColumn(edges, None, values, min(values.shape[1], in_pairs))


def _edges(there: Float32[np.ndarray, " n"]) -> Float32[np.ndarray, " e"]:
    """Where numbers are cut: around those in which two of the cuts at quantiles would fall, and at
    quantiles of the others."""
    values, counts = np.unique(there, return_counts=True)
    if len(values) <= _BINS:
        return values[1:]
    own, left = np.zeros(len(values), bool), _BINS
    while (heavy := ~own & (counts * left > 2 * counts[~own].sum())).any():
        own |= heavy
        left -= int(heavy.sum())  # at least half stay
    begins = own | np.r_[False, own[:-1]]
    others = np.flatnonzero(~own)
    before = np.cumsum(counts[others])
    places = np.arange(1, left) * (before[-1] - 1) // left
    begins[others[np.searchsorted(before, places, side="right")]] = True
    begins[0] = False
    return np.asarray(values[begins])


def _categories(codes: Int32[np.ndarray, " n"], size: int) -> BinnedColumn:
    counts = np.bincount(codes, minlength=size)
    frequent = np.argsort(-counts[1:], kind="stable")[:_MOST_CATEGORIES] + 1
    frequent = frequent[counts[frequent] >= _LEAST_ROWS]
    bins = np.zeros(size, np.int32)
    bins[frequent] = np.arange(1, len(frequent) + 1)
    rows = np.bincount(bins[codes], minlength=len(frequent) + 1)
    values = _eigenfunctions(np.eye(len(rows)), rows, _MOST_CATEGORIES)
    return BinnedColumn(None, bins, values, min(values.shape[1], _IN_PAIRS_CATEGORIES))


def _eigenfunctions(
    kernel: Float64[np.ndarray, "b b"], rows: Int64[np.ndarray, " b"], most: int
) -> Int32[np.ndarray, "b r"]:
    """√λ·φ for the leading eigenfunctions φ of the kernel, centred on the rows of each bin.

    Their mean squares add up to 1.
    """
    share = rows / rows.sum()
    centred = np.eye(len(rows)) - np.ones((len(rows), 1)) @ share[None, :]
    kernel = centred @ kernel @ centred.T
    root = np.sqrt(share)
    values, vectors = np.linalg.eigh(root[:, None] * kernel * root[None, :])
    order = np.argsort(-values, kind="stable")[:most]
    order = order[values[order] > max(_NOTHING * values.max(initial=0), 1e-12)]
    found = kernel @ (root[:, None] * vectors[:, order]) / np.sqrt(values[order])[None, :]
    size = np.sqrt((share[:, None] * found**2).sum())
    steps = np.rint(found / max(size, 1e-300) * (1 << VALUE_BITS))
    return np.asarray(np.clip(steps, -MOST_VALUE, MOST_VALUE), np.int32)
