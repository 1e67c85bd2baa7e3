"""npz archives and idx files (the format of MNIST)."""

import difflib
import gzip
import math
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import chain, pairwise
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from labeldp_trainer.config.data import IdxData, IdxFiles, NpzData
from labeldp_trainer.config.representation import MOST_COLUMNS
from labeldp_trainer.data.features import DataPart
from labeldp_trainer.errors import DAMAGE, DataError

_IDX_TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
_ROWS = 1 << 12  # at a time
_FLAT, _IMAGES = 2, 4  # dimensions
MOST_BYTE = 255


def read_arrays(
    config: NpzData | IdxData,
    directory: Path,
    named: str | IdxFiles,
    columns: Sequence[str],
    rows: int | None = None,
) -> DataPart:
    """The features of an archive or a file of images, and the named label columns.

    uint8 features are scaled to [0, 1]. ``rows`` limits how many rows are read. Raises DataError.
    """
    path = directory / (named.images if isinstance(named, IdxFiles) else named)
    with _in_memory(path):
        if isinstance(config, NpzData):
            arrays = read_npz(path, [config.features, *columns])
            return _part(arrays[config.features], {c: arrays[c] for c in columns}, path, rows)
        if not columns or isinstance(named, str):
            return _part(_images(path, read_idx(path)), {}, path, rows)
        labels = read_idx(directory / named.labels)
        if labels.ndim != 1:
            raise DataError(f"{directory / named.labels}: expected labels with 1 dimension")
        return _part(_images(path, read_idx(path)), {config.label: labels}, path, rows)


@contextmanager
def _in_memory(path: Path) -> Iterator[None]:
    """A small file can hold large arrays, which are packed. Raises DataError."""
    try:
        yield
    except MemoryError:
        raise DataError(f"{path}: its arrays need more memory than there is") from None


def batches_of_arrays(config: NpzData | IdxData, path: Path) -> Iterator[DataPart]:
    """The features of a file, some rows at a time. Raises DataError."""
    with _in_memory(path):
        if isinstance(config, NpzData):
            batches = batches_of_npz(path, config.features)
        else:
            batches = (_images(path, batch) for batch in _batches_of_idx(path))
        for batch in batches:
            yield _part(batch, {}, path, None)


def _images(path: Path, images: NDArray[Any]) -> NDArray[Any]:
    """[n, height, width, channels] of an idx file. Raises DataError."""
    if images.ndim not in (3, 4):
        raise DataError(f"{path}: expected images with 3 or 4 dimensions")
    return images[..., None] if images.ndim < _IMAGES else images


def read_idx(path: Path) -> NDArray[Any]:
    """The array of an idx file, gzipped or not. Raises DataError."""
    return np.concatenate(list(_batches_of_idx(path)))


def _batches_of_idx(path: Path) -> Iterator[NDArray[Any]]:
    """Some rows of an idx file at a time. Unpacks at most one byte more than its header says."""
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            with gzip.open(file) if packed else nullcontext(file) as opened:
                zero, kind, dimensions = struct.unpack(">HBB", opened.read(4))
                if zero or not dimensions:
                    raise KeyError
                shape = struct.unpack(f">{dimensions}I", opened.read(4 * dimensions))
                kind = np.dtype(_IDX_TYPES[kind])
                for batch in _batches(cast(IO[bytes], opened), shape, kind):
                    yield batch.astype(kind.newbyteorder("="))
                if opened.read(1):
                    raise ValueError
    except FileNotFoundError:
        raise DataError(f"{path}: does not exist") from None
    except ValueError:
        raise DataError(f"{path}: is not an idx file or is incomplete") from None
    except (OSError, EOFError, zlib.error):
        raise DataError(f"{path}: cannot be read or is damaged") from None
    except (struct.error, KeyError):
        raise DataError(f"{path}: is not an idx file") from None


def _batches(
    file: IO[bytes], shape: tuple[int, ...], kind: np.dtype[Any]
) -> Iterator[NDArray[Any]]:
    """Some rows at a time of an array that is stored by row. Raises ValueError if some are missing.

    An array without rows is one batch."""
    size = math.prod(shape[1:]) * kind.itemsize
    # the last batch is not tiny: networks take 1,024 rows at once, if there are as many
    ends = range(_ROWS, shape[0] + 1 - _ROWS // 4, _ROWS)
    for start, end in pairwise(chain([0], ends, [shape[0]])):
        own = end - start, *shape[1:]
        yield np.frombuffer(file.read(own[0] * size), kind).reshape(own)


@contextmanager
def _archive(path: Path, names: Sequence[str]) -> Iterator[np.lib.npyio.NpzFile]:
    """An archive that has arrays with these names. Raises DataError."""
    if not path.is_file():
        raise DataError(f"{path}: does not exist")
    try:
        with path.open("rb") as file, _in_memory(path):
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise DataError(f"{path}: is a single array, not an .npz archive")
            for name in names:
                if name not in archive.files:
                    close = difflib.get_close_matches(name, archive.files, n=1)
                    listed = ", ".join(map(repr, archive.files[:12]))
                    hint = f"did you mean {close[0]!r}?" if close else f"its arrays: {listed}"
                    raise DataError(f"{path}: has no array {name!r}; {hint}")
            yield archive
    except DAMAGE:
        raise DataError(f"{path}: is not an .npz archive or is damaged") from None


def read_npz(path: Path, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """The arrays with these names. Raises DataError."""
    with _archive(path, names) as archive:
        arrays = {name: archive[name] for name in names}
        if not all(isinstance(array, np.ndarray) for array in arrays.values()):
            raise ValueError("numpy gives an entry that is no array as bytes")
        return arrays


def batches_of_npz(path: Path, name: str) -> Iterator[NDArray[Any]]:
    """Some rows of an array at a time, if it is stored by row; else all of it. Raises DataError."""
    with _archive(path, [name]) as archive:
        form = np.lib.format
        with zipfile.ZipFile(path) as files, files.open(f"{name}.npy") as file:
            old = form.read_magic(file) == (1, 0)
            head = form.read_array_header_1_0 if old else form.read_array_header_2_0
            shape, by_column, kind = head(file)
            if not by_column and len(shape) in (_FLAT, _IMAGES):
                yield from _batches(file, shape, kind)
                return
        yield archive[name]


def read_embeddings(
    path: Path, array: str, rows: int, taken: int | None = None
) -> NDArray[np.float32]:
    """Vectors [rows, d] of an archive, or only the first ``taken``. Raises DataError."""
    return as_embeddings(read_npz(path, [array])[array], path, array, rows, taken)


def as_embeddings(
    found: NDArray[Any], path: Path, array: str, rows: int | None = None, taken: int | None = None
) -> NDArray[np.float32]:
    """The first ``taken`` rows of an array as vectors [rows, d]. None allows any number of rows.

    Raises DataError.
    """
    fits = found.ndim == 2 and found.dtype.kind in "buif"
    if not fits or rows not in (None, len(found[:taken])):
        raise DataError(
            f"{path}: {array!r} has shape {list(found.shape)}; expected numbers "
            f"[{'n' if rows is None else rows}, d], with a row for each row of the data"
        )
    if not 1 <= found.shape[1] <= MOST_COLUMNS:
        raise DataError(
            f"{path}: {array!r} has {found.shape[1]:,} columns; allowed are 1 to {MOST_COLUMNS:,}"
        )
    with np.errstate(over="ignore"):
        vectors: NDArray[np.float32] = found[:taken].astype(np.float32)
    if not np.isfinite(vectors).all():
        raise DataError(
            f"{path}: {array!r} has numbers that are NaN, infinite or too large for float32"
        )
    return vectors


def _part(
    features: NDArray[Any], columns: Mapping[str, NDArray[Any]], path: Path, rows: int | None
) -> DataPart:
    if features.ndim not in (_FLAT, _IMAGES) or features.dtype.kind not in "buif":
        raise DataError(
            f"{path}: expected features [n, p] or [n, height, width, channels] of numbers, "
            f"got {features.dtype} {list(features.shape)}"
        )
    for name, column in columns.items():
        if column.shape != features.shape[:1]:
            raise DataError(
                f"{path}: {len(features):,} examples, but {name!r} has shape {list(column.shape)}"
            )
    if len(features) == 0 or 0 in features.shape:
        raise DataError(f"{path}: has no examples")
    features, columns = features[:rows], {name: c[:rows] for name, c in columns.items()}
    with np.errstate(over="ignore"):  # refused below; numpy need not warn
        numbers = features.astype(np.float32)
    if features.dtype == np.uint8:
        numbers /= np.float32(MOST_BYTE)
    if not np.isfinite(numbers).all():
        raise DataError(
            f"{path}: some features are NaN, infinite or too large for float32; fill them in or "
            "rescale them"
        )
    return DataPart(numbers, len(numbers), columns, str(path), bytes_=features.dtype == np.uint8)
