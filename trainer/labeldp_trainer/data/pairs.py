"""Reads pairs of answers in a public order, in which nothing but the label depends on preferences.

Where a file holds the chosen answer first, its order is the label. So the two answers of every row
are ordered by digests of their vectors, and the label says which of them is preferred.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Float32, Int64
from numpy.typing import NDArray

from labeldp_compile.toolkit import PLAIN, files_of, format_of, read_columns, refused
from labeldp_trainer.config.data import FIRST, SECOND, PairsData
from labeldp_trainer.config.representation import MOST_COLUMNS
from labeldp_trainer.data.arrays import read_npz
from labeldp_trainer.data.features import DataPart
from labeldp_trainer.data.labels import places, require_declared
from labeldp_trainer.data.table import feature_numbers, whole_column
from labeldp_trainer.errors import DataError

_FLAT = 2  # dimensions
TIE = ""
"""The label of a row whose answers are liked equally well, or whose label is no class."""


@dataclass(frozen=True)
class Pairs:
    """Pairs of some rows.

    Attributes:
        vectors: [n, 2p] of both answers, in their public order.
        turned: [n] whether the public order is the other one than that of the file.
        equal: [n] whether both vectors are the same.
        columns: [n] further columns by name, in the order of the file.
        schema: the metadata of a Parquet file.
    """

    vectors: Float32[np.ndarray, "n q"]
    turned: Bool[np.ndarray, " n"]
    equal: Bool[np.ndarray, " n"]
    columns: Mapping[str, Any]
    schema: Mapping[bytes, bytes] | None

    def labels(self, config: PairsData, source: str) -> NDArray[Any]:
        """[n] FIRST or SECOND of the public order, or TIE. Raises DataError if the type of the
        column can hold no label.

        Which of two equal vectors is first does not matter; a model that cannot tell them apart
        must not seem to be right.
        """
        if config.order_is_label:
            turned = np.where(self.equal, np.arange(len(self.turned)) % 2 == 1, self.turned)
            place = turned.astype(np.int64)
        else:
            given = self.columns[config.label]
            require_declared(given, tuple(config.classes), source, config.label)
            place = places(given, config.classes)
            place = np.where(place < 0, 2, np.where(self.turned, 1 - place, place))
        return np.array([FIRST, SECOND, TIE])[place]


def read_pairs(
    config: PairsData, path: Path, columns: Sequence[str], rows: int | None = None
) -> DataPart:
    """The pairs of a file, and the columns of users and labels. Raises DataError.

    ``rows`` limits how many rows are read.
    """
    labelled = config.label in columns
    own = [name for name in columns if not (name == config.label and config.order_is_label)]
    found, files, left = list[Pairs](), [], rows
    for file in files_of(path):
        for pairs in batches_of_pairs(config, file, own, left):
            found.append(pairs)
            files.append((file, pairs.schema))
            left = None if left is None else left - len(pairs.vectors)
        if left == 0:
            break
    if not sum(len(pairs.vectors) for pairs in found):
        raise refused(path, "has no rows")
    if len({pairs.vectors.shape[1] for pairs in found}) > 1:
        raise refused(path, "the vectors of answers have different lengths in different files")
    taken = {
        name: whole_column(path, name, [pairs.columns[name] for pairs in found])
        for name in own
        if name != config.label
    }
    if labelled:
        taken[config.label] = np.concatenate([pairs.labels(config, str(path)) for pairs in found])
    vectors = np.concatenate([pairs.vectors for pairs in found])
    return DataPart(vectors, len(vectors), taken, str(path), tuple(dict(files).items()))


def batches_of_pairs(
    config: PairsData, path: Path, columns: Sequence[str] = (), most: int | None = None
) -> Iterator[Pairs]:
    """The pairs of one file, with further columns, at most ``most`` rows. Raises DataError."""
    named = list(zip(*config.answers, strict=True))
    names = list(itertools.chain.from_iterable(named))
    if path.suffix.lower() == ".npz":
        arrays = read_npz(path, [*names, *columns])
        given = {name: array[:most] for name, array in arrays.items()}
        if len(names) != 2 or any(given[name].ndim != _FLAT for name in names):
            raise refused(path, "expected an array [n, p] for each answer")
        further = {name: given[name] for name in columns}
        yield _pairs(path, named, further, [given[name] for name in names], None)
        return
    form = format_of(path)
    if form is None or form.is_text:
        raise refused(path, "pairs are read from .npz archives and Parquet files")
    labels = () if config.order_is_label else (config.label,)
    for batch in read_columns(path, list(dict.fromkeys((*names, *columns))), PLAIN, labels):
        part = batch if most is None else batch.slice(0, most)
        given = {name: part.column(name) for name in (*names, *columns)}
        sides = [_matrix(path, given[name], alone=len(named) == 1) for name in names]
        further = {name: given[name] for name in columns}
        yield _pairs(path, named, further, sides, batch.schema.metadata)
        if most is not None and not (most := most - len(part)):
            return


def _matrix(path: Path, column: pa.Array, *, alone: bool) -> Any:
    """[n, p] of a column of lists that stands ``alone``, or [n, 1] of numbers; None of others."""
    with contextlib.suppress(DataError):
        if not _is_list(column.type):
            return feature_numbers(column, "", path)[:, None]
        lengths, numbers = np.diff(_offsets(column)), column.flatten()
        uneven = column.null_count or (lengths != lengths[:1]).any()
        if alone and not uneven and not _is_list(numbers.type):
            return feature_numbers(numbers, "", path).reshape(len(column), -1)
    return None


def _is_list(kind: pa.DataType) -> bool:
    return (
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def _offsets(column: pa.Array) -> Int64[np.ndarray, " n"]:
    if pa.types.is_fixed_size_list(column.type):
        return np.arange(len(column) + 1) * column.type.list_size
    return np.asarray(column.offsets.to_numpy(), np.int64)


def _pairs(
    path: Path,
    named: Sequence[tuple[str, str]],
    columns: Mapping[str, Any],
    sides: Sequence[Any],
    schema: Mapping[bytes, bytes] | None,
) -> Pairs:
    """Of ``sides``, which belong to the names in turn. No message says which of the two answers is
    meant: their order may be a label."""
    parts = []
    for names, *both in zip(named, sides[::2], sides[1::2], strict=True):
        reason = "expected finite numbers for both answers: arrays or lists of one length"
        wrong = refused(path, f"{' and '.join(map(repr, names))}: {reason}, or columns")
        for side in both:
            if side is None or side.shape != both[0].shape or side.dtype.kind not in "buif":
                raise wrong
        with np.errstate(over="ignore"):
            parts.append(np.stack([np.asarray(side, np.float32) for side in both]) + np.float32(0))
        if not np.isfinite(parts[-1]).all():
            raise wrong
    one, other = np.concatenate(parts, axis=2)
    if not 1 <= one.shape[1] <= MOST_COLUMNS:
        raise refused(path, f"an answer has more than {MOST_COLUMNS:,} numbers, or none")
    equal = (one == other).all(axis=1)
    turned = _digests(one) > _digests(other)
    public = np.where(turned[:, None, None], np.stack([other, one], 1), np.stack([one, other], 1))
    for name, column in columns.items():
        if len(column) != len(one):
            raise refused(path, f"{name!r} has other rows than the answers")
    return Pairs(public.reshape(len(one), -1), turned, equal, columns, schema)


def _digests(rows: Float32[np.ndarray, "n p"]) -> NDArray[Any]:
    """[n] a public number of each row."""
    found = b"".join(hashlib.sha256(row.tobytes()).digest()[:8] for row in rows)
    return np.frombuffer(found, ">u8")
