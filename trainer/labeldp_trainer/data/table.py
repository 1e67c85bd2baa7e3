"""Reads the columns of a Parquet or CSV file that a config names: features, labels and ids.

Parquet files declare types. CSV files do not, and no type is inferred: features are read as the
config declares them, and labels and ids stay ``Cells`` until they are used.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from labeldp_compile.toolkit import (
    SPACE,
    TextForm,
    files_of,
    folder_columns,
    read_columns,
    require_format,
    with_decimal_points,
)
from labeldp_trainer.config.data import TableData
from labeldp_trainer.data.dates import date_numbers, days_of
from labeldp_trainer.data.labels import Cells
from labeldp_trainer.errors import DataError

Floats = NDArray[np.float64]
_EXACT = 2**53  # beyond, a float may have been another integer


@dataclass(frozen=True)
class TableColumns:
    """Rows of a file.

    Attributes:
        source: names the file in messages.
        rows: n.
        numbers: [n, numeric features], those of dates last. NaN for a missing number or date;
            infinite for text that is none.
        texts: [n] for each categorical feature, null for missing text.
        others: [n] labels and ids by name, as Arrow arrays or ``Cells``.
        files: that were read, with the metadata of Parquet schemas.
    """

    source: str
    rows: int
    numbers: Floats
    texts: tuple[pa.Array, ...]
    others: Mapping[str, pa.Array | Cells]
    files: tuple[tuple[Path, Mapping[bytes, bytes] | None], ...] = ()


def read_table(
    path: Path, config: TableData, others: Sequence[str], rows: int | None = None
) -> TableColumns:
    """The features of a config and the columns ``others``, the labels first.

    ``path`` may be a folder of files. ``rows`` limits how many rows are read. Raises DataError.
    """
    found: list[TableColumns] = []
    left = rows
    for file in files_of(path):
        for _, batch in table_batches(file, config, others, most=left):
            found.append(batch)
            left = None if left is None else left - batch.rows
        if left == 0:
            break
    if not found or not sum(batch.rows for batch in found):
        raise DataError(f"{path}: has no rows")
    return TableColumns(
        str(path),
        sum(batch.rows for batch in found),
        np.concatenate([batch.numbers for batch in found]),
        tuple(map(pa.concat_arrays, zip(*(batch.texts for batch in found), strict=True))),
        {name: _whole(path, name, [batch.others[name] for batch in found]) for name in others},
        tuple(dict(file for batch in found for file in batch.files).items()),
    )


def _whole(path: Path, name: str, columns: Sequence[Any]) -> Any:
    if isinstance(columns[0], Cells):
        return Cells(pa.concat_arrays([column.values for column in columns]))
    if len({column.type for column in columns}) > 1:
        raise DataError(f"{path}: {name!r} has different types in different files")
    return pa.chunked_array(columns).combine_chunks()


def table_batches(
    path: Path,
    config: TableData,
    others: Sequence[str] = (),
    *,
    form: TextForm | None = None,
    every: bool = False,
    most: int | None = None,
) -> Iterator[tuple[pa.RecordBatch, TableColumns]]:
    """The rows of one file in batches, with the columns that a config names.

    ``form`` replaces the text form of the config. ``every`` also keeps all other columns in the
    batches. ``most`` limits how many rows are read. Raises DataError.
    """
    is_text = require_format(path).is_text
    names = list(dict.fromkeys((*config.columns, *others)))
    labels = {*others[:1], config.label}
    form, numbers = form or config.form, set[str]()
    if is_text and form.decimal == ",":
        numbers = {*config.numeric, *(labels if config.classes is None else ())}
    for batch in read_columns(path, names, form, labels, every=every):
        part = batch if most is None else batch.slice(0, most)
        kept = with_decimal_points(part, numbers) if numbers else part
        yield part, _columns(kept, config, others, path, is_text=is_text)
        if most is not None and not (most := most - len(part)):
            return


def _columns(
    batch: pa.RecordBatch, config: TableData, others: Sequence[str], path: Path, *, is_text: bool
) -> TableColumns:
    in_folders = folder_columns(path, ())

    def column(name: str) -> Any:
        found = batch.column(name)
        is_cells = is_text or (name in in_folders and pa.types.is_string(found.type))
        return Cells(found.cast(pa.large_string())) if is_cells else found

    columns = [feature_numbers(column(name), name, path) for name in config.numeric]
    for name in config.dates:
        columns += date_numbers(days_of(column(name), name, path))
    numbers = np.empty((len(batch), len(columns)))
    for j, found in enumerate(columns):
        numbers[:, j] = found
    texts = tuple(_texts(column(name), name, path) for name in config.categorical)
    files = ((path, None if is_text else batch.schema.metadata),)
    taken = {name: column(name) for name in others}
    return TableColumns(str(path), len(batch), numbers, texts, taken, files)


def feature_numbers(column: pa.Array | Cells, name: str, path: Path) -> Any:
    """A column of numbers [n].

    CSV cells follow the grammar of ``number_cells``. Empty ones and the word ``nan`` are NaN; what
    else is no number is infinite.
    """
    if isinstance(column, Cells):
        with contextlib.suppress(pa.ArrowInvalid):  # Arrow reads most of that grammar faster
            read = pc.cast(column.names(), pa.float64())
            numbers = read.to_numpy(zero_copy_only=False)
            if np.count_nonzero(np.isnan(numbers)) == read.null_count:
                return numbers
        numbers = column.numbers()
        return np.where(np.isnan(numbers) & (column.read(_is_missing) == 0), np.inf, numbers)
    kind = column.type
    usable = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)
    if not (usable or pa.types.is_boolean(kind) or pa.types.is_decimal(kind)):
        is_date = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
        hint = f"list it under {'dates' if is_date else 'categorical'}"
        raise DataError(f"{path}: the numeric column {name!r} holds {kind}; {hint}")
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def _is_missing(cell: bytes) -> bool:
    return cell.strip(SPACE).lower() in (b"", b"nan", b"-nan")


def _texts(column: pa.Array | Cells, name: str, path: Path) -> pa.Array:
    """A column of categories [n] as text.

    pandas makes floats of integers among which one is missing: whole numbers are taken as integers.
    """
    if isinstance(column, Cells):
        return column.names()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_floating(kind):
        numbers = np.asarray(column.to_numpy(zero_copy_only=False), np.float64)
        missing = np.isnan(numbers)
        numbers = np.where(missing, 0, numbers)
        if not ((np.abs(numbers) <= _EXACT) & (np.rint(numbers) == numbers)).all():
            raise DataError(
                f"{path}: the categorical column {name!r} holds {kind}, and some are not whole "
                "numbers: list it under numeric, or write integers or text"
            )
        column = pa.array(numbers.astype(np.int64), mask=missing)
    if pa.types.is_nested(kind):
        raise DataError(
            f"{path}: the categorical column {name!r} holds {kind}, which cannot be categories"
        )
    return column.cast(pa.large_string())
