"""Predictions of a finished run for the rows of a file, batch by batch.

A table keeps its columns, of which only the features are looked at; labels need not be there.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from labeldp_compile.errors import refused
from labeldp_compile.tabular.csv_sink import CsvSink, TextOut, csv_holds
from labeldp_compile.tabular.formats import Format, files_of, format_of, require_format
from labeldp_compile.tabular.header import read_schema
from labeldp_compile.tabular.parquet_sink import ParquetSink
from labeldp_compile.tabular.reader import read_columns
from labeldp_compile.text_form import TextForm
from labeldp_compile.whole_file import folder_when_whole, replaced_when_whole
from labeldp_trainer.config.data import TableData
from labeldp_trainer.data import DataPart, load_features
from labeldp_trainer.data.arrays import require_alike
from labeldp_trainer.data.encoder import ArrayEncoder, TableEncoder
from labeldp_trainer.data.table import columns_of_batch, require_finite
from labeldp_trainer.errors import DataError
from labeldp_trainer.outcomes.trained import Predictions, Trained

PREDICTION, PROBABILITY = "prediction", "probability_"
_EXPECTED = "expected a .parquet, .csv or .npz name for the output (.tsv and .csv.gz, too)"
Progress = Callable[[int], None]


def predict_file(
    trained: Trained,
    source: Path,
    output: Path,
    *,
    probabilities: bool = False,
    form: TextForm | None = None,
    progress: Progress = lambda rows: None,
) -> int:
    """Write predictions for the rows of ``source``; returns how many there are.

    The columns of a table are kept; of other files only predictions are written. ``form`` is that
    of text, if it is not that of the config. A folder of parts becomes a folder. The output
    appears whole, or not at all, and is no more readable than a table that it copies. Raises
    InputError.
    """
    names = new_columns(trained, probabilities=probabilities)
    one = partial(_predict_one, trained, names=names, form=form, progress=progress)
    if isinstance(trained.encoder, TableEncoder) and source.is_dir():
        rows = 0
        with folder_when_whole(output, most=stat.S_IMODE(source.stat().st_mode)) as folder:
            for part in files_of(source):
                rows += one(part, folder / part.name)
        return rows
    return one(source, output)


def new_columns(trained: Trained, *, probabilities: bool) -> list[str]:
    """The names of the columns that are added. Raises DataError if two are the same."""
    if not probabilities:
        return [PREDICTION]
    if trained.loss.task.classes is None:
        raise DataError("--probabilities is for classes: this run predicts numbers")
    names = [PREDICTION, *(f"{PROBABILITY}{c}" for c in trained.loss.task.classes)]
    if len(set(names)) < len(names):
        raise DataError("--probabilities: two classes are the same as text")
    return names


def _predict_one(
    trained: Trained,
    source: Path,
    output: Path,
    *,
    names: list[str],
    form: TextForm | None,
    progress: Progress,
) -> int:
    written = format_of(output)
    is_archive = output.suffix.lower() == ".npz"
    if written is None and not is_archive:
        raise refused(output, _EXPECTED)
    if isinstance(trained.encoder, TableEncoder):
        if not is_archive:
            _require_free(source, names, trained, form)
        batches = _table_batches(trained, source, form, every=not is_archive)
        most = stat.S_IMODE(source.stat().st_mode) if source.exists() else 0o600
    else:
        batches, most = _array_batches(trained, source), 0o7777
    rows = 0
    with replaced_when_whole(output, most=most) as file:
        sink = _archive(file) if written is None else _columns(file, written, source, trained)
        with sink as write:
            for batch, found in batches:
                write(batch, names, found, trained)
                rows += len(found.values)
                progress(len(found.values))
            if not rows:
                raise refused(source, "has no rows")
    return rows


Write = Callable[[pa.RecordBatch | None, list[str], Predictions, Trained], None]


def _table_batches(
    trained: Trained, path: Path, form: TextForm | None, *, every: bool
) -> Iterator[tuple[pa.RecordBatch, Predictions]]:
    """Columns of the rows, and what the model says of them. Raises DataError."""
    data, encoder = trained.loaded.config.data, trained.encoder
    assert isinstance(data, TableData)
    assert isinstance(encoder, TableEncoder)
    for batch in rows_of_table(path, data, form, every=every):
        columns = columns_of_batch(batch, data, path, is_text=require_format(path).is_text)
        require_finite(columns, data, path)
        yield batch, _predicted(trained, encoder.part(columns, path), path)


def rows_of_table(
    path: Path, data: TableData, form: TextForm | None = None, *, every: bool = False
) -> Iterator[pa.RecordBatch]:
    """The features of the rows of one file, or every column; those of text as text.

    Raises DataError.
    """
    features = [*data.numeric, *data.categorical]
    return read_columns(path, features, form or data.form, data.label, every=every)


def _require_free(path: Path, names: list[str], trained: Trained, form: TextForm | None) -> None:
    """Raise DataError if a new column is there already, or names of text stand there twice."""
    data = trained.loaded.config.data
    assert isinstance(data, TableData)
    known = list(read_schema(path, form or data.form)[0].names)
    for name in (*known, *names):
        if known.count(name) > 1:
            raise refused(path, f"has several columns called {name!r}")
        if name in names and name in known:
            raise refused(path, f"has a column {name!r} already: rename it first")


def _array_batches(trained: Trained, path: Path) -> Iterator[tuple[None, Predictions]]:
    part = load_features(trained.loaded, path)
    assert isinstance(trained.encoder, ArrayEncoder)
    require_alike(part, trained.encoder.example)
    yield None, _predicted(trained, part, path)


def _predicted(trained: Trained, part: DataPart, path: Path) -> Predictions:
    """Raises DataError where float32 does not hold what the model makes of the features."""
    outputs = trained.outputs(part.features, part.rows)
    strange = np.count_nonzero(~np.isfinite(outputs).all(axis=1))
    if strange:
        raise refused(
            path,
            f"the model gives no finite number for {strange:,} of {part.rows:,} rows: their "
            "features are too far from those of training",
        )
    return trained.predictions(outputs)


def _added(names: list[str], found: Predictions) -> list[pa.Array]:
    arrays = [found.values]
    if len(names) > 1:
        assert found.probabilities is not None
        arrays += [pa.array(column) for column in found.probabilities.T]
    return arrays


@contextmanager
def _columns(file: BinaryIO, form: Format, source: Path, trained: Trained) -> Iterator[Write]:
    """The columns of the input, if it has any, and behind them the new ones."""
    sink: Any = None

    def write(
        batch: pa.RecordBatch | None, names: list[str], found: Predictions, trained: Trained
    ) -> None:
        nonlocal sink
        before = [] if batch is None else list(zip(batch.schema, batch.columns, strict=True))
        arrays = [*(column for _, column in before), *_added(names, found)]
        fields = [field for field, _ in before]
        fields += [pa.field(n, a.type) for n, a in zip(names, arrays[len(before) :], strict=True)]
        metadata = None if batch is None else batch.schema.metadata
        made = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields, metadata=metadata))
        if sink is None:
            sink = _sink(file, form, made.schema, source)
        sink.write(made)

    yield write
    if sink is not None:
        sink.finish()


def _sink(out: BinaryIO, form: Format, schema: pa.Schema, source: Path) -> Any:
    if form.delimiter is not None:
        for field in schema:
            if not csv_holds(field.type):
                raise refused(source, f"CSV cannot hold {field.name!r}, a {field.type}")
        return CsvSink(TextOut(out, gzipped=form.gzipped), schema, form.delimiter)
    read = format_of(source)
    like = pq.read_metadata(source) if read is not None and not read.is_text else None
    return ParquetSink(out, schema, like, [PREDICTION])


@contextmanager
def _archive(file: BinaryIO) -> Iterator[Write]:
    """Arrays ``prediction``, and ``probabilities`` and ``classes`` where they are asked for."""
    values: list[Any] = []
    shares: list[Any] = []
    classes: dict[str, Any] = {}

    def write(
        batch: pa.RecordBatch | None, names: list[str], found: Predictions, trained: Trained
    ) -> None:
        values.append(_storable(found.values))
        if len(names) > 1:
            shares.append(found.probabilities)
            classes["classes"] = _storable(trained.classes)

    yield write
    arrays = {PREDICTION: np.concatenate(values)} if values else {}
    if shares:
        arrays |= {"probabilities": np.concatenate(shares), **classes}
    np.savez(file, **arrays)  # type: ignore[arg-type]  # numpy's stub: allow_pickle


def _storable(array: pa.Array) -> Any:
    """As numpy; text as numpy's own, which needs no pickle."""
    found = array.to_numpy(zero_copy_only=False)
    return found.astype(str) if found.dtype == object else found
