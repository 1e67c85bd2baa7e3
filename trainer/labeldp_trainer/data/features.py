"""The data that training sees: arrays of features, and label columns in their original types."""

from __future__ import annotations

import errno
import hashlib
import math
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from jaxtyping import Int64
from numpy.typing import NDArray

from labeldp_trainer.data.labels import taken
from labeldp_trainer.errors import DataError

# A pytree of arrays [n, …]: {"numeric", "categorical"} of a table, with its "exposure" and
# "weights"; or images.
Features = Any


@dataclass(frozen=True)
class FeatureShape:
    """The shape of one example, from which a model makes its parameters.

    Attributes:
        numeric: number of numeric features of a table or a flat array.
        vocabularies: number of codes of each categorical column; code 0 is any unknown category.
        image: (height, width, channels), or None for tables.
    """

    numeric: int = 0
    vocabularies: tuple[int, ...] = ()
    image: tuple[int, int, int] | None = None


class AllRows(Protocol):
    """The rows of which a part is a sample.

    Attributes:
        elsewhere: whether other machines read labels.
        users: what a release says of them; None if each label is on its own.
    """

    elsewhere: ClassVar[bool]

    @property
    def users(self) -> Any:
        """``one_release.rows.Users``."""
        ...

    @property
    def rows(self) -> int:
        """n."""
        ...

    def sums(self, encoder: Any, sums: Any, nothing: Any, steps: Any, *, labelled: bool) -> Any:
        """Those over all rows (``labeldp_trainer.sampled``)."""
        ...


@dataclass(frozen=True)
class DataPart:
    """Rows of one file.

    Attributes:
        features: float32 and int32 arrays [n, …].
        rows: n.
        columns: label columns [n] (numpy or pyarrow), by name; of all rows, or of none, if
            these are a sample of them.
        source: names the file in messages.
        files: that were read, with the metadata of Parquet schemas.
        bytes_: whether the features were uint8 and were scaled to [0, 1].
        whole: all rows, if these are a sample of them.
        owners, places: [n] numbers 0 … u − 1 of the users, and where rows are in their table; None
            if each label is on its own.
    """

    features: Features
    rows: int
    columns: Mapping[str, Any]
    source: str
    files: tuple[tuple[Path, Mapping[bytes, bytes] | None], ...] = ()
    bytes_: bool = False
    whole: AllRows | None = None
    owners: Int64[np.ndarray, " n"] | None = None
    places: Int64[np.ndarray, " n"] | None = None

    @property
    def all_rows(self) -> int:
        """n, or those of which n are a sample."""
        return self.rows if self.whole is None else self.whole.rows

    @property
    def exposure(self) -> NDArray[np.float32] | None:
        """[n] of a table of counts that has one."""
        return factors_of(self.features, "exposure")

    @property
    def weights(self) -> NDArray[np.float32] | None:
        """[n] of a table that has them."""
        return factors_of(self.features, "weights")

    def take(self, rows: NDArray[np.int64]) -> DataPart:
        """Only these rows."""
        features = each_array(self.features, lambda array: array[rows])
        columns = self.columns  # of a sample, they have no rows
        if self.whole is None:
            columns = {name: taken(column, rows) for name, column in columns.items()}
        found = replace(self, features=features, rows=len(rows), columns=columns)
        if self.owners is None or self.places is None:
            return found
        owners = np.unique(self.owners[rows], return_inverse=True)[1]
        return replace(found, owners=owners, places=self.places[rows])


def factors_of(features: Features, key: str) -> NDArray[np.float32] | None:
    """[n] exposure or weights of a table that has them."""
    return features.get(key) if isinstance(features, dict) else None


def each_array(tree: Any, function: Callable[[Any], Any]) -> Any:
    """Dictionaries, lists and tuples of what a function gives for each array inside.

    It is called in the order of ``named_arrays``.
    """
    if isinstance(tree, dict):
        return {name: each_array(tree[name], function) for name in sorted(tree)}
    if isinstance(tree, list | tuple):
        return type(tree)(each_array(leaf, function) for leaf in tree)
    return function(tree)


def named_arrays(tree: Any) -> list[tuple[str, Any]]:
    """The arrays of a pytree by their path in it, as in ``['layers'][0]['w']``.

    Dictionaries, lists and tuples need no JAX; what else may hold arrays is for JAX to say.
    """
    if isinstance(tree, np.ndarray | np.generic):
        return [("", tree)]
    if type(tree) is dict:
        places = [(f"[{name!r}]", tree[name]) for name in sorted(tree)]
    elif type(tree) in (list, tuple):
        places = [(f"[{number}]", leaf) for number, leaf in enumerate(tree)]
    else:
        import jax  # noqa: PLC0415

        leaves = jax.tree_util.tree_leaves_with_path(tree)
        return [(jax.tree_util.keystr(path), leaf) for path, leaf in leaves]
    return [(place + path, leaf) for place, inner in places for path, leaf in named_arrays(inner)]


def array_digest(tree: Any) -> str:
    """SHA-256 of an array, or of arrays in dictionaries, with their names, types and shapes."""
    total = hashlib.sha256()
    for path, leaf in named_arrays(tree):
        rows: NDArray[Any] = np.atleast_1d(np.asarray(leaf))
        total.update(f"{path}:{rows.dtype.str}:{rows.shape};".encode())
        for start in range(0, len(rows), _BLOCK):
            total.update(np.ascontiguousarray(rows[start : start + _BLOCK]).data)
    return total.hexdigest()


_IN_MEMORY = 1 << 30  # bytes of one array
_FULL = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))
_BLOCK = 1 << 16  # rows


def room(
    shape: tuple[int, ...],
    kind: type[np.generic] | np.dtype[Any],
    *,
    by_column: bool | None = None,
    most: int | None = None,
) -> NDArray[Any]:
    """An array to be filled with public numbers; the columns follow one another, or the rows.

    A large one, by default of more than ``_IN_MEMORY`` bytes, is in a file that has no name and is
    gone with the process (in TMPDIR). Unless stated, it is by column, and a small one by row.

    Raises DataError if the disk has no room for it.
    """
    size = math.prod(shape) * np.dtype(kind).itemsize
    large = size > (_IN_MEMORY if most is None else most)
    order: Literal["C", "F"] = "F" if (large if by_column is None else by_column) else "C"
    if not large:
        return np.empty(shape, kind, order)
    with disk_room(f"{size / 1e9:.1f} GB"), tempfile.TemporaryFile() as file:
        if hasattr(os, "posix_fallocate"):  # or a full disk would end the process later
            os.posix_fallocate(file.fileno(), 0, size)
        return np.asarray(np.memmap(file, kind, "w+", shape=shape, order=order))


@contextmanager
def disk_room(what: str) -> Iterator[None]:
    """Raise DataError if the disk has no room for ``what``."""
    try:
        yield
    except OSError as error:
        hint = "; set TMPDIR to a folder on a larger disk" if error.errno in _FULL else ""
        reason = f"{what} do not fit here: {error.strerror}{hint}"
        raise DataError(f"{tempfile.gettempdir()}: {reason}") from None


def all_finite(numbers: NDArray[np.floating[Any]]) -> bool:
    """Whether none is infinite or NaN, without another array of their size."""
    return bool(np.isfinite(numbers.min(initial=0)) and np.isfinite(numbers.max(initial=0)))


def batches(features: Features, rows: int, size: int) -> Iterator[tuple[Features, int]]:
    """All rows in batches of one size, with the row count of each. Zeros fill the last batch."""
    for start in range(0, rows, size):
        count = min(size, rows - start)
        part = slice(start, start + count)
        yield each_array(features, lambda leaf: _filled(leaf[part], size)), count  # noqa: B023


def _filled(leaf: NDArray[Any], size: int) -> NDArray[Any]:
    around = [(0, size - len(leaf))] + [(0, 0)] * (leaf.ndim - 1)
    return np.pad(leaf, around) if len(leaf) < size else leaf
