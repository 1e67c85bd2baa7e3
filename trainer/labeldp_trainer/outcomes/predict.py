"""A finished run that is ready to predict, and ``labeldp predict``."""

import itertools
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.special
from jaxtyping import Float32, Int64

from labeldp_compile.toolkit import (
    PLAIN,
    CsvSink,
    Format,
    ParquetSink,
    TextForm,
    TextOut,
    csv_holds,
    files_of,
    folder_columns,
    folder_when_whole,
    format_of,
    read_schema,
    refused,
    replaced_when_whole,
    require_distinct,
)
from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.config.data import PairsData, TableData
from labeldp_trainer.config.representation import given_vectors
from labeldp_trainer.data import DataPart, FeatureShape, Task
from labeldp_trainer.data.arrays import as_embeddings, batches_of_arrays, batches_of_npz
from labeldp_trainer.data.encoders import Encoder, TableEncoder
from labeldp_trainer.data.pairs import batches_of_pairs
from labeldp_trainer.data.table import TableColumns, table_batches
from labeldp_trainer.errors import DataError, RunFolderError
from labeldp_trainer.losses import Loss, predict
from labeldp_trainer.models import Interactions, Model, Params, build_model, initial_params
from labeldp_trainer.representations import Representation, restored, vectors_of_part
from labeldp_trainer.run import RunFolder
from labeldp_trainer.run.folder import load_params, load_tree

# A finished run, ready to predict: config, encoder, model and parameters from its folder.

_MOST_INTEGER = 2**63


@dataclass(frozen=True)
class Trained:
    """A finished run.

    Attributes:
        folder: of the run.
        loaded: its config; relative paths start where they did in training.
        encoder: from the features of a file to those of the model.
        loss: with its task.
        representation: what the model sees instead of features; None if it sees features.
        model: built from the config.
        params: the final parameters.
    """

    folder: RunFolder
    loaded: LoadedConfig
    encoder: Encoder
    loss: Loss
    representation: Representation | None
    model: Model
    params: Params

    def outputs(self, part: DataPart) -> Float32[np.ndarray, "n k"]:
        """The model's outputs for n encoded examples."""
        if self.representation is not None:
            part = replace(part, features=vectors_of_part(self.representation, part))
        return predict(self.model, self.params, part)

    def predictions(
        self, outputs: Float32[np.ndarray, "n k"]
    ) -> tuple[pa.Array, Float32[np.ndarray, "n k"] | None]:
        """Predictions from outputs: numbers [n], or classes [n] with probabilities [n, classes]."""
        if self.loss.task.classes is None:
            return pa.array(self.loss.predictions(outputs)), None
        likeliest: Int64[np.ndarray, " n"] = outputs.argmax(axis=1)
        probabilities = scipy.special.softmax(outputs, axis=-1)
        return self.classes.take(pa.array(likeliest)), probabilities

    @property
    def classes(self) -> pa.Array:
        """[k] the classes as a column has them."""
        return class_column(self.loss.task.classes or ())


def class_column(classes: Sequence[int | str]) -> pa.Array:
    """[k] classes: int64 if all are whole numbers, else text."""
    if all(isinstance(c, int) and -_MOST_INTEGER <= c < _MOST_INTEGER for c in classes):
        return pa.array(classes, pa.int64())
    return pa.array(map(str, classes), pa.string())


def open_trained(path: Path) -> Trained:
    """The finished run in a folder. Raises InputError if it cannot predict."""
    folder = RunFolder(path)
    folder.facts()
    stated = folder.encoder()
    loaded = folder.config(stated.data_directory)
    if stated.model_from != "config":
        raise RunFolderError(
            f"{path}: was trained with a model from Python, which is not in the folder; call its "
            "apply with the parameters from labeldp_trainer.load_params"
        )
    if not folder.params.exists():
        raise RunFolderError(f"{path}: is not finished; resume it with labeldp train --resume")
    encoder, task = stated.features, Task(None if stated.classes is None else tuple(stated.classes))
    representation = None if loaded.config.representation is None else restored(path)
    shape = encoder.shape
    if representation is not None:
        if representation.shape != shape:
            raise RunFolderError(
                f"{path}: encoder.json and representation/ do not match; train again"
            )
        shape = FeatureShape(numeric=representation.width)
    model = build_model(loaded, shape, task.outputs)
    if isinstance(model, Interactions):  # which terms there are is learned: the file says it
        params = load_tree(folder.params)
    else:
        params = load_params(folder.params, initial_params(loaded, model))
    loss = Loss(loaded.config.loss, task)
    return Trained(folder, loaded, encoder, loss, representation, model, params)


# Predictions of a finished run for the rows of a file, in batches.
#
# A table keeps its columns. Only features are read; labels are not needed.

PREDICTION, PROBABILITY = "prediction", "probability_"
_EXPECTED = "expected an output name that ends in .parquet, .csv, .tsv, .csv.gz or .npz"
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

    The columns of a table are kept; of other files only predictions are written. ``form`` replaces
    the config's text form. A folder of parts becomes a folder. The output appears whole or not at
    all. If it copies a table, its permissions are no wider than the table's. Raises InputError.
    """
    names = new_columns(trained, probabilities=probabilities)
    one = partial(_predict_one, trained, names=names, form=form, progress=progress)
    rows = 0
    if isinstance(trained.encoder, TableEncoder) and source.is_dir():
        with folder_when_whole(output, most=stat.S_IMODE(source.stat().st_mode)) as folder:
            for part in files_of(source):
                name = folder / part.relative_to(source)
                name.parent.mkdir(parents=True, exist_ok=True)
                rows += one(part, name)
            if not rows:
                raise refused(source, "has no rows")
        return rows
    if not (rows := one(source, output)):
        raise refused(source, "has no rows")
    return rows


def new_columns(trained: Trained, *, probabilities: bool) -> list[str]:
    """The names of the columns that are added. Raises DataError if two are the same."""
    if not probabilities:
        return [PREDICTION]
    if trained.loss.task.classes is None:
        raise DataError("--probabilities needs classes; this run predicts numbers")
    names = [PREDICTION, *(f"{PROBABILITY}{c}" for c in trained.loss.task.classes)]
    if len(set(names)) < len(names):
        raise DataError(
            "--probabilities: two classes have the same text and would share a column name"
        )
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
    """Predictions for the rows of one file; without rows nothing is written."""
    written = format_of(output)
    if written is None and output.suffix.lower() != ".npz":
        raise refused(output, _EXPECTED)
    most, in_folders = 0o7777, set[str]()
    if isinstance(trained.encoder, TableEncoder):
        most = stat.S_IMODE(source.stat().st_mode) if source.exists() else 0o600
        if written is not None:
            own = _require_free(source, names, trained, form)
            in_folders = set(folder_columns(source, own))
    batches = encoded_rows(trained, source, form, every=written is not None)
    rows, batches = 0, itertools.dropwhile(lambda batch: not batch[2].rows, batches)
    if (first := next(batches, None)) is None:
        return 0
    with replaced_when_whole(output, most=most) as file:
        sink, predicted = None, list[dict[str, pa.Array]]()
        for batch, _, part in itertools.chain([first], batches):
            added = dict(zip(names, _predicted(trained, part), strict=False))
            if written is None:
                predicted.append(added)
            else:
                made = _beside(batch, added, in_folders)
                decimal = _decimal(trained, form)
                sink = sink or sink_of(file, written, source, made.schema, decimal, like=source)
                sink.write(made)
            rows += part.rows
            progress(part.rows)
        if sink is None:
            _write_archive(file, trained, predicted)
        else:
            sink.finish()
    return rows


def _decimal(trained: Trained, form: TextForm | None) -> str:
    """The decimal mark of text: that of the table."""
    data = trained.loaded.config.data
    used = form or (data.form if isinstance(data, TableData) else PLAIN)
    return used.decimal or "."


def encoded_rows(
    trained: Trained, path: Path, form: TextForm | None = None, *, every: bool = False
) -> Iterator[tuple[pa.RecordBatch | None, TableColumns | None, DataPart]]:
    """The rows of one file: the columns of a table, its features, and the features encoded for the
    model. Reads no label. Raises DataError."""
    config, encoder = trained.loaded.config, trained.encoder
    if isinstance(encoder, TableEncoder):
        assert isinstance(config.data, TableData)
        data = config.data.model_copy(update={"weights": None})  # of no use without labels
        for batch, found in table_batches(path, data, form=form, every=every):
            yield batch, found, encoder.part(found)
        return
    parts: Iterable[DataPart]
    if (given := given_vectors(config.representation)) is not None:
        batches = (as_embeddings(b, path, given.array) for b in batches_of_npz(path, given.array))
        parts = (DataPart(vectors, len(vectors), {}, str(path)) for vectors in batches)
    elif isinstance(config.data, PairsData):
        pairs = batches_of_pairs(config.data, path)
        parts = (DataPart(each.vectors, len(each.vectors), {}, str(path)) for each in pairs)
    else:
        assert not isinstance(config.data, TableData)
        parts = batches_of_arrays(config.data, path)
    for part in parts:
        yield None, None, encoder.part(part)


def _require_free(
    path: Path, names: list[str], trained: Trained, form: TextForm | None
) -> list[str]:
    """The columns of a file. Raises DataError if one is called like another, or like a new one."""
    data = trained.loaded.config.data
    assert isinstance(data, TableData)
    known = list(read_schema(path, form or data.form)[0].names)
    require_distinct(path, known)
    for name in names:
        if name in known:
            raise refused(path, f"already has a column {name!r}; rename it first")
    return known


def _predicted(trained: Trained, part: DataPart) -> list[pa.Array]:
    """Predictions [n], and the probabilities [n] of each class.

    Raises DataError if an output of the model is not a finite float32.
    """
    outputs = trained.outputs(part)
    strange = np.count_nonzero(~np.isfinite(outputs).all(axis=1))
    if strange:
        raise DataError(
            f"{part.source}: the model gives no finite number for {strange:,} of {part.rows:,} "
            "rows, because their features are too far from those of training"
        )
    values, probabilities = trained.predictions(outputs)
    return [values, *map(pa.array, () if probabilities is None else probabilities.T)]


def _beside(
    batch: pa.RecordBatch | None, added: dict[str, pa.Array], in_folders: Collection[str]
) -> pa.RecordBatch:
    """The columns of the input, if it has any, followed by the new ones.

    Those ``in_folders`` are left out: the names of the output's folders give them, too.
    """
    made = pa.RecordBatch.from_pydict(added)
    if batch is None:
        return made
    batch = batch.select([name for name in batch.schema.names if name not in in_folders])
    schema = pa.schema([*batch.schema, *made.schema], metadata=batch.schema.metadata)
    return pa.RecordBatch.from_arrays([*batch.columns, *made.columns], schema=schema)


def sink_of(
    file: BinaryIO,
    form: Format,
    source: Path,
    schema: pa.Schema,
    decimal: str = ".",
    *,
    like: Path | None = None,
) -> CsvSink | ParquetSink:
    """What writes rows in this form, with the codecs of the Parquet file ``like``. ``source`` names
    the input in errors. Raises DataError for columns that the form cannot hold."""
    if form.delimiter is None:
        read = None if like is None else format_of(like)
        metadata = pq.read_metadata(like) if read is not None and not read.is_text else None
        return ParquetSink(file, schema, metadata, [PREDICTION])
    for field in schema:
        if not csv_holds(field.type):
            raise refused(source, f"CSV cannot hold {field.name!r}, a {field.type}")
    return CsvSink(TextOut(file, gzipped=form.gzipped), schema, form.delimiter, decimal)


def _write_archive(file: BinaryIO, trained: Trained, predicted: list[dict[str, pa.Array]]) -> None:
    """Arrays ``prediction``, and ``probabilities`` and ``classes`` if requested."""
    first, *others = (
        np.concatenate([_storable(added[name]) for added in predicted]) for name in predicted[0]
    )
    arrays = {PREDICTION: first}
    if others:
        shares = np.stack(others, axis=1)
        arrays |= {"probabilities": shares, "classes": _storable(trained.classes)}
    np.savez(file, **arrays)  # type: ignore[arg-type]  # numpy's stub: allow_pickle


def _storable(array: pa.Array) -> Any:
    """As a numpy array; text in numpy's text type, which needs no pickle."""
    found = array.to_numpy(zero_copy_only=False)
    return found.astype(str) if found.dtype == object else found
