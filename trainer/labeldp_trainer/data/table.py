"""Tables: numeric columns standardised, categorical columns as codes.

Means, standard deviations and vocabularies come from the training features. Label DP takes
features as public; where they are not, these statistics must not be used either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from labeldp_compile.tabular.csv_file import CsvFile
from labeldp_compile.tabular.formats import files_of, require_format
from labeldp_compile.tabular.header import require_column
from labeldp_trainer.config.data import TableData
from labeldp_trainer.data.dataset import DataPart, Dataset
from labeldp_trainer.data.encoder import TableEncoder
from labeldp_trainer.data.labels import Cells
from labeldp_trainer.errors import DataError

# The columns of a Parquet or CSV file that a config names: features, labels and ids.
#
# A Parquet file declares types. A CSV file does not, and none is inferred: features are read as
# the config declares them, labels and ids stay ``Cells`` for whoever takes them.


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TableColumns:
    """What a file holds.

    Attributes:
        rows: n.
        numbers: [n, numeric features], NaN where there is no number.
        texts: [n] of each categorical feature, null where there is none.
        others: [n] labels and ids by name: Arrow arrays, or ``Cells``.
        files: Parquet files that were read, with the metadata of their schemas.
    """

    rows: int
    numbers: Floats
    texts: tuple[pa.Array, ...]
    others: Mapping[str, pa.Array | Cells]
    files: tuple[tuple[Path, Mapping[bytes, bytes] | None], ...] = ()


def read_columns(
    path: Path, config: TableData, others: Sequence[str], rows: int | None = None
) -> TableColumns:
    """The features of a config, and ``others``, of which the first are the labels.

    ``path`` may be a folder of parts. Takes the first ``rows`` only, if they are given. Raises
    DataError.
    """
    found: list[TableColumns] = []
    left = rows
    for file in files_of(path):
        read = _of_csv if require_format(file).is_text else _of_parquet
        found.append(read(file, config, others, left))
        if left is not None and not (left := left - found[-1].rows):
            break
    if not sum(part.rows for part in found):
        raise DataError(f"{path}: has no rows")
    return found[0] if len(found) == 1 else _joined(path, found)


def _joined(path: Path, parts: Sequence[TableColumns]) -> TableColumns:
    """The parts of a folder, one after another."""
    others: dict[str, pa.Array | Cells] = {}
    for name in parts[0].others:
        columns = [part.others[name] for part in parts]
        arrays = [column.values if isinstance(column, Cells) else column for column in columns]
        if len({array.type for array in arrays}) > 1:
            raise DataError(f"{path}: {name!r} does not have one type in all parts")
        whole = pa.concat_arrays(arrays)
        others[name] = Cells(whole) if isinstance(columns[0], Cells) else whole
    return TableColumns(
        sum(part.rows for part in parts),
        np.concatenate([part.numbers for part in parts]),
        tuple(
            pa.concat_arrays(texts) for texts in zip(*(part.texts for part in parts), strict=True)
        ),
        others,
        tuple(chain.from_iterable(part.files for part in parts)),
    )


def _of_csv(path: Path, config: TableData, others: Sequence[str], rows: int | None) -> TableColumns:
    csv = CsvFile.open(path, config.form)
    for name in (*config.numeric, *config.categorical, *others):
        require_column(path, name, csv.names, csv)
    texts = list(dict.fromkeys((*config.categorical, *others)))
    numbers: list[list[Floats]] = [[] for _ in config.numeric]
    chunks: dict[str, list[pa.Array]] = {name: [] for name in texts}
    left = rows
    for batch in csv.batches(list(dict.fromkeys((*config.numeric, *texts))), others[:1]):
        part = batch if left is None else batch.slice(0, left)
        for name, found in zip(config.numeric, numbers, strict=True):
            found.append(_numbers_of_cells(part.column(name)))
        for name in texts:
            chunks[name].append(part.column(name).cast(pa.large_string()))
        if left is not None and not (left := left - len(part)):
            break
    cells = {name: Cells(_one_array(parts)) for name, parts in chunks.items()}
    count = len(cells[others[0]])
    matrix = np.empty((count, len(numbers)))
    for j, found in enumerate(numbers):
        matrix[:, j] = np.concatenate([[], *found])
    return TableColumns(
        count,
        matrix,
        tuple(cells[name].names() for name in config.categorical),
        {name: cells[name] for name in others},
    )


def _one_array(chunks: list[pa.Array]) -> pa.Array:
    return pa.concat_arrays(chunks) if chunks else pa.array([], pa.large_string())


def _numbers_of_cells(values: pa.Array) -> Floats:
    """[n] by the grammar of ``number_cells``, of which Arrow reads the most part, and faster."""
    try:
        return np.asarray(pc.cast(values, pa.float64()).to_numpy(zero_copy_only=False))
    except pa.ArrowInvalid:
        return Cells(values).numbers()


def _of_parquet(
    path: Path, config: TableData, others: Sequence[str], rows: int | None
) -> TableColumns:
    names = list(dict.fromkeys(chain(config.numeric, config.categorical, others)))
    try:
        schema = pq.read_schema(path)
        known = list(schema.names)
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise DataError(f"{path}: is empty, or not a {path.suffix[1:].upper()} file") from None
    for name in names:
        require_column(path, name, known)
    try:
        table = pq.read_table(path, columns=names)
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        # The message of Arrow may quote a label: say only that something is wrong.
        raise DataError(f"{path}: is damaged, and cannot be read to the end") from None
    table = table.slice(0, rows)
    found = _declared(table, config, path)
    columns = {name: table.column(name).combine_chunks() for name in others}
    return replace(found, others=columns, files=((path, schema.metadata),))


def columns_of_batch(
    batch: pa.RecordBatch, config: TableData, path: Path, *, is_text: bool
) -> TableColumns:
    """The features of some rows of a file, as ``read_columns`` reads them. Raises DataError."""
    if not is_text:
        return _declared(pa.Table.from_batches([batch]), config, path)
    numbers = np.empty((len(batch), len(config.numeric)))
    for j, name in enumerate(config.numeric):
        numbers[:, j] = _numbers_of_cells(batch.column(name))
    texts = [batch.column(name).cast(pa.large_string()) for name in config.categorical]
    return TableColumns(len(batch), numbers, tuple(Cells(text).names() for text in texts), {})


def _declared(table: pa.Table, config: TableData, path: Path) -> TableColumns:
    """The features of a table that declares its types."""
    numbers = np.empty((table.num_rows, len(config.numeric)))
    for j, name in enumerate(config.numeric):
        numbers[:, j] = _declared_numbers(table.column(name), name, path)
    texts = (_declared_texts(table.column(name), name, path) for name in config.categorical)
    return TableColumns(table.num_rows, numbers, tuple(texts), {})


def _declared_numbers(column: pa.ChunkedArray, name: str, path: Path) -> Any:
    kind = column.type
    usable = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if not (usable or pa.types.is_boolean(kind) or pa.types.is_decimal(kind)):
        hint = "list it under categorical"
        raise DataError(f"{path}: the numeric column {name!r} holds {kind}: {hint}")
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    return column.cast(pa.float64(), safe=False).to_numpy()


def _declared_texts(column: pa.ChunkedArray, name: str, path: Path) -> pa.Array:
    column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_floating(kind) or pa.types.is_nested(kind):
        raise DataError(f"{path}: the categorical column {name!r} holds {kind}, not categories")
    return column.cast(pa.large_string())


def load_table(
    config: TableData, directory: Path, train_columns: Sequence[str], test_columns: Sequence[str]
) -> Dataset:
    """The tables of a config, with the columns that each part needs, the label first, or none.

    Raises DataError.
    """
    path = directory / config.train
    train = read_columns(path, config, train_columns or _first(config), config.rows)
    require_finite(train, config, path)
    encoder = TableEncoder.of(train, config.numeric, config.categorical, path)
    train_part = encoder.part(train, path)
    if config.test is None:
        return Dataset(encoder.shape, train_part, None, encoder=encoder)
    path = directory / config.test
    test = read_columns(path, config, test_columns or _first(config))
    require_finite(test, config, path)
    return Dataset(encoder.shape, train_part, encoder.part(test, path), encoder=encoder)


def load_unlabelled_table(
    config: TableData, directory: Path, name: str, encoder: TableEncoder
) -> DataPart:
    """The features of one more table, encoded as the training features say; no label is read.

    Raises DataError.
    """
    path = directory / name
    found = read_columns(path, config, _first(config))
    require_finite(found, config, path)
    return encoder.part(found, path)


def _first(config: TableData) -> tuple[str, ...]:
    """A feature, where no label is read."""
    return (*config.numeric, *config.categorical)[:1]


def require_finite(found: TableColumns, config: TableData, path: Path) -> None:
    """Raise DataError if a numeric feature is missing in a row."""
    gaps = np.count_nonzero(~np.isfinite(found.numbers), axis=0)
    for name, count in zip(config.numeric, gaps, strict=True):
        if count:
            raise DataError(
                f"{path}: {count:,} of {found.rows:,} rows have no finite number in the feature "
                f"{name!r}: fill these in, drop the rows, or list the column under categorical"
            )
