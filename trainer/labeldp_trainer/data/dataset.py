"""The data that training sees: feature arrays, and label columns in their original types."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from numpy.typing import NDArray

from labeldp_trainer.data.labels import taken

if TYPE_CHECKING:
    from labeldp_trainer.data.encoder import Encoder

Features = Any  # a pytree of arrays [n, …]: {"numeric", "categorical"} of a table, or images


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


@dataclass(frozen=True)
class DataPart:
    """Rows of one file.

    Attributes:
        features: float32 and int32 arrays [n, …].
        rows: n.
        columns: label columns [n] (numpy or pyarrow), by name.
        source: names the file in messages.
        files: that were read, with the metadata of Parquet schemas.
        bytes_: whether the features were uint8 and were scaled to [0, 1].
    """

    features: Features
    rows: int
    columns: Mapping[str, Any]
    source: str
    files: tuple[tuple[Path, Mapping[bytes, bytes] | None], ...] = ()
    bytes_: bool = False

    def take(self, rows: NDArray[np.int64]) -> DataPart:
        """Only these rows."""
        features = jax.tree.map(lambda leaf: leaf[rows], self.features)
        columns = {name: taken(column, rows) for name, column in self.columns.items()}
        return replace(self, features=features, rows=len(rows), columns=columns)


@dataclass(frozen=True)
class Dataset:
    """A training part and an optional test part.

    Attributes:
        shape: the shape of an example.
        train: the training part.
        test: the test part, if there is one.
        input_digest: digest of the features if a representation replaced them.
        encoder: turns features of files into arrays; None for arrays made in memory.
    """

    shape: FeatureShape
    train: DataPart
    test: DataPart | None
    input_digest: str | None = None
    encoder: Encoder | None = None

    @property
    def parts(self) -> list[DataPart]:
        """The training part, then the test part if there is one."""
        return [part for part in (self.train, self.test) if part is not None]

    def digest(self) -> str:
        """SHA-256 of the training features, which are public. It does not depend on labels."""
        return self.input_digest or array_digest(self.train.features)


def array_digest(tree: Any) -> str:
    """SHA-256 of the arrays of a pytree with their types and shapes."""
    total = hashlib.sha256()
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        array: NDArray[Any] = np.ascontiguousarray(leaf)
        head = f"{jax.tree_util.keystr(path)}:{array.dtype.str}:{array.shape};"
        total.update(head.encode())
        total.update(array.tobytes())
    return total.hexdigest()


def batches(features: Features, rows: int, size: int) -> Iterator[tuple[Features, int]]:
    """All rows in batches of one size, with the row count of each. Zeros fill the last batch."""
    for start in range(0, rows, size):
        count = min(size, rows - start)
        batch = jax.tree.map(lambda leaf: leaf[start : start + count], features)  # noqa: B023
        yield jax.tree.map(lambda leaf: _filled(leaf, size), batch), count


def _filled(leaf: NDArray[Any], size: int) -> NDArray[Any]:
    around = [(0, size - len(leaf))] + [(0, 0)] * (leaf.ndim - 1)
    return np.pad(leaf, around) if len(leaf) < size else leaf
