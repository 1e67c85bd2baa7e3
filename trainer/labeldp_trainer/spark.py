"""Training on a Spark cluster: a sample of the rows on the driver, and sums over all of them.

Everything public is decided from the sample: the encoder, the representation or the bins, and the
weights of the release, or of its next part. A task computes the integer rows of its partition from
them, and returns their sum times the labels with the longest of these very rows: what Theorem 13
needs, with any floats of executors. The driver takes one result of each partition, and draws the
noise.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_limits

from labeldp_compile.toolkit import files_of, read_schema
from labeldp_trainer.config import LoadedConfig, OneRelease, StagedRelease
from labeldp_trainer.config.data import TableData, features_of
from labeldp_trainer.data.features import DataPart, TableEncoder, all_finite
from labeldp_trainer.data.table import TableColumns, table_columns
from labeldp_trainer.errors import DataError, InputError, TrainerError
from labeldp_trainer.interactions.columns import BinnedColumn
from labeldp_trainer.interactions.questions import KeepRows
from labeldp_trainer.methods.interactions import codes_of
from labeldp_trainer.one_release.rows import (
    REHEARSED,
    Lengths,
    PublicRows,
    RowMoments,
    RowOwners,
    RowSums,
    Targets,
    Weights,
)
from labeldp_trainer.staged_release.draw import (
    LabelColumn,
    LabelCounts,
    Labels,
    LabelSums,
    PublicTable,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from labeldp_trainer.representations import Representation

SAMPLED = 1 << 17
"""About the most rows of a table from which public things are decided."""
_KINDS = ("splines", "random_fourier")
_ARRAYS = ("cross", "gram", "total", "labels")
_RESULT = "partition long, rows long, longest long, digests binary, error string"
_RESULT += "".join(f", {name} binary" for name in _ARRAYS)


def session() -> SparkSession:
    """The session of ``labeldp train --spark``: that of spark-submit, or of Spark's own settings.

    Raises TrainerError if PySpark is not installed.
    """
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415
    except ImportError:
        reason = "--spark needs PySpark: pip install pyspark pyarrow pandas"
        raise TrainerError(reason) from None
    return SparkSession.builder.appName("labeldp train").getOrCreate()


@dataclass(frozen=True)
class SparkTable:
    """The rows of Parquet files, and a sample of them.

    Attributes:
        path: of the table.
        config: what its columns are.
        frame: the DataFrame of its features and, last, its labels.
        rows: n.
        sample: about 1 in ⌈n/SAMPLED⌉ rows, by the hash of their places, in order; no labels.
        labels: no rows of the label column, for its type.
        files: that are read, with the metadata of their schemas.
    """

    path: Path
    config: TableData
    frame: Any
    rows: int
    sample: TableColumns
    labels: pa.Array
    files: tuple[tuple[Path, Any], ...]

    @classmethod
    def open(cls, spark: SparkSession, loaded: LoadedConfig) -> Self:
        """Count the rows and read the sample. Raises InputError."""
        from pyspark.sql import functions  # noqa: PLC0415

        data = _require_supported(loaded)
        path, names = loaded.path(data.train), (*features_of(data), data.label)
        files, types = list[tuple[Path, Any]](), pa.schema([])
        for file in files_of(path):
            schema, _, csv = read_schema(file)
            if csv is not None:
                raise DataError(f"{file}: --spark reads Parquet files; convert this one")
            for name in names:
                if name not in schema.names:
                    raise DataError(f"{file}: has no column {name!r}")
            own = pa.schema([schema.field(name).remove_metadata() for name in names])
            types = types if files else own
            if not types.equals(own):
                raise DataError(f"{path}: a column has different types in different files")
            files.append((file, schema.metadata))
        with _jobs(path):
            whole = spark.read.parquet(*(_escaped(file) for file, _ in files))
            for name in names:
                if [each.lower() for each in whole.columns].count(name.lower()) > 1:
                    reason = "has several columns with this name, as Spark ignores case; rename one"
                    raise DataError(f"{path}: {name!r}: {reason}")
            quoted = ["`" + name.replace("`", "``") + "`" for name in names]
            columns = [functions.col(name).alias(f"c{i}") for i, name in enumerate(quoted)]
            count = whole.count()
            place = whole.metadataColumn("_metadata")
            row, file = place.getField("row_index"), place.getField("file_name")
            step = functions.lit(-(-count // SAMPLED))
            chosen = functions.pmod(functions.xxhash64(row, file), step) == 0
            where = [place.getField("file_path").alias("path"), row.alias("row")]
            sample = whole.where(chosen).select(*columns[:-1], *where).toArrow()
        if not count:
            raise DataError(f"{path}: has no rows")
        sample = sample.sort_by([("path", "ascending"), ("row", "ascending")]).combine_chunks()
        batch = pa.RecordBatch.from_arrays(
            [sample.column(i).combine_chunks() for i in range(len(names) - 1)], names[:-1]
        )
        return cls(
            path=path,
            config=data,
            frame=whole.select(*columns),
            rows=count,
            sample=table_columns(batch, data, (), path, is_text=False),
            labels=pa.nulls(0, types.field(data.label).type),
            files=tuple(files),
        )

    def part(self, sample: DataPart) -> DataPart:
        """The encoded sample, as the training part."""
        labels = {self.config.label: self.labels}
        return replace(sample, columns=labels, files=self.files, whole=self)

    def sums(
        self, encoder: TableEncoder, sums: SumBatch, nothing: RowSums, *, labelled: bool
    ) -> RowSums:
        """Over all rows, by one job. Raises DataError."""
        task = SumRows(self.path, self.config, encoder, sums, nothing, labelled)
        return added(*map(task.read, self.results(task, labelled=labelled)))

    def results(
        self, task: Callable[[Iterator[pa.RecordBatch]], Any], *, labelled: bool
    ) -> list[Any]:
        """The results of a task, one of each partition. Raises DataError.

        Spark takes the result of one successful attempt of each partition, however many there are.
        """
        frame = self.frame if labelled else self.frame.select(*self.frame.columns[:-1])
        with _jobs(self.path), warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*pandas", FutureWarning)  # as in the runtime
            found = sorted(frame.mapInArrow(task, _RESULT).collect(), key=lambda row: row.partition)
        if refused := next((row.error for row in found if row.error), None):
            raise DataError(refused)
        once = len({row.partition for row in found}) == len(found)
        if not once or sum(row.rows for row in found) != self.rows:
            raise DataError(f"{self.path}: was changed while it was read")
        return found


SumBatch = Callable[[DataPart, Any], RowSums]
"""Sums over some rows, of which the labels are a column, or None."""


@dataclass(frozen=True)
class SumRows:
    """The function that ``mapInArrow`` calls: sums over the rows of one partition.

    Attributes:
        path: of the table, for messages.
        config: what its columns are.
        encoder: from columns to features.
        sums: of a part of the rows.
        nothing: over no rows.
        labelled: whether the label is the last column.
    """

    path: Path
    config: TableData
    encoder: TableEncoder
    sums: SumBatch
    nothing: RowSums
    labelled: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One batch of one row. An error is text: Spark's own may quote a row."""
        from pyspark import TaskContext  # noqa: PLC0415

        found, rows, error = self.nothing, 0, ""
        try:
            with threadpool_limits(1, user_api="blas"):
                for batch in batches:
                    rows += batch.num_rows
                    found = added(found, self._of(batch)) if batch.num_rows else found
        except InputError as refused:
            error = str(refused)
        except Exception as failed:
            raise RuntimeError(type(failed).__name__) from None
        context: Any = TaskContext.get()
        arrays = [*found.moments, found.labels]
        result = {
            "partition": context.partitionId(),
            "rows": rows,
            "longest": found.lengths.longest,
            "digests": found.lengths.digests,
            "error": error,
            **{name: array.tobytes() for name, array in zip(_ARRAYS, arrays, strict=True)},
        }
        yield pa.RecordBatch.from_pylist([result])

    def _of(self, batch: pa.RecordBatch) -> RowSums:
        label, data = self.config.label, self.config
        others = [label] if self.labelled else []
        named = pa.RecordBatch.from_arrays(batch.columns, [*features_of(data), *others])
        part = self.encoder.part(table_columns(named, data, others, self.path, is_text=False))
        return self.sums(part, part.columns.get(label))

    def read(self, row: Any) -> RowSums:
        """The sums in a result."""
        cross, gram, total, labels = (
            np.frombuffer(getattr(row, name), array.dtype).reshape(array.shape)
            for name, array in zip(
                _ARRAYS, (*self.nothing.moments, self.nothing.labels), strict=True
            )
        )
        return RowSums(RowMoments(cross, gram, total), Lengths(row.longest, row.digests), labels)


def added(*each: RowSums) -> RowSums:
    """The sums over the rows of all, and the longest of them. There are at most MOST_ROWS."""
    moments, lengths, labels = zip(*each, strict=True)
    longest, digests = zip(*lengths, strict=True)
    sums = RowMoments(*(reduce(np.add, parts) for parts in zip(*moments, strict=True)))
    return RowSums(sums, Lengths(max(longest), b"".join(digests)), reduce(np.add, labels))


@dataclass(frozen=True, kw_only=True, eq=False)
class SparkRows(PublicRows):
    """Rows on a cluster; the vectors are those of the sample.

    Attributes:
        table: has all rows.
        encoder, representation: from columns to vectors.
    """

    table: SparkTable
    encoder: TableEncoder
    representation: Representation

    def summed(self, weights: Weights, targets: Targets | None) -> RowSums:
        """By one job. Raises DataError."""
        table = self.table
        sent = None if targets is None else targets._replace(column=None)
        largest = np.maximum(self.vectors.max(axis=0), -self.vectors.min(axis=0)).astype(float)
        largest = np.append(1.0, largest)[weights.columns]
        bits = (53 - table.rows.bit_length()) // 2
        steps = np.exp2(np.ceil(np.log2(np.where(largest > 0, largest, 1.0))) + 1 - bits)
        sums = partial(_vector_sums, self.representation, weights, (bits, steps), sent)
        d, k = weights.width, 0 if sent is None else sent.width
        nothing = RowSums.zeros(d, (d, k))
        return table.sums(self.encoder, sums, nothing, labelled=sent is not None)

    def sample(self, most: int = REHEARSED) -> Any:
        """At most this many of the sampled rows, in memory."""
        held = PublicRows(
            count=len(self.vectors),
            vectors=self.vectors,
            spectrum=self.spectrum,
            groups=self.groups,
        )
        return held.sample(most)


def _vector_sums(
    representation: Representation,
    weights: Weights,
    rounding: Any,
    targets: Targets | None,
    part: DataPart,
    column: Any,
) -> RowSums:
    """Of a part of the rows of one release. Raises DataError."""
    from labeldp_trainer.representations.learning import vectors_of_part  # noqa: PLC0415

    vectors = vectors_of_part(representation, part)
    if not all_finite(vectors):
        reason = "the features of some rows are too far from those of the sample"
        raise DataError(f"{part.source}: {reason}; rescale them")
    rows = PublicRows(count=part.rows, vectors=vectors, spectrum=None, rounding=rounding)
    return rows.sums(weights, targets and targets._replace(column=column))


@dataclass(frozen=True, kw_only=True)
class SparkCodes(PublicTable):
    """Rows of a staged release on a cluster; features and bins are those of the sample.

    Attributes:
        whole: has all rows.
        encoder: from columns to features.
    """

    whole: SparkTable
    encoder: TableEncoder

    @property
    def count(self) -> int:
        """Of all rows."""
        return self.whole.rows

    def sums(
        self,
        asked: LabelCounts | LabelSums,
        labels: LabelColumn | None = None,
        keep: KeepRows = lambda part, whole: None,
    ) -> RowSums:
        """By one job. Raises DataError."""
        del keep
        read, weights = None if labels is None else labels.read, self.rows.weights
        heaviest = None if weights is None else weights.max()
        sums = partial(_code_sums, list(self.columns), heaviest, asked, read)
        return self.whole.sums(self.encoder, sums, asked.nothing, labelled=read is not None)


def _code_sums(
    columns: list[BinnedColumn],
    heaviest: np.float32 | None,
    asked: LabelCounts | LabelSums,
    read: Callable[[Any], Labels] | None,
    part: DataPart,
    column: Any,
) -> RowSums:
    """Of a part of the rows of a staged release."""
    rows = RowOwners(count=part.rows, weights=part.weights, heaviest=heaviest)
    table = PublicTable(part.features, columns, codes_of(columns, part.features), rows)
    return table.sums(asked, read and LabelColumn(column, read))


def _require_supported(loaded: LoadedConfig) -> TableData:
    """The table of a config that Spark trains. Raises ConfigError for any other."""
    config, data = loaded.config, loaded.config.data
    kind = None if config.representation is None else config.representation.kind
    one, staged = (isinstance(config.method, each) for each in (OneRelease, StagedRelease))
    rules = [
        (not (one or staged), "method.kind", "--spark takes one_release or staged_release"),
        (not isinstance(data, TableData), "data.kind", "--spark reads a table of Parquet files"),
        (
            config.user_column is not None,
            "method.user_column",
            "--spark protects labels, not users",
        ),
        (one and kind not in _KINDS, "representation.kind", f"--spark takes {' or '.join(_KINDS)}"),
        (data.rows is not None, "data.rows", "--spark reads all rows; remove this key"),
    ]
    for broken, key, reason in rules:
        if broken:
            raise loaded.error(tuple(key.split(".")), reason)
    assert isinstance(data, TableData)
    return data


def _escaped(file: Path) -> str:
    """A path in which Spark sees no pattern."""
    name = str(file.resolve())
    return "file://" + "".join(f"\\{c}" if c in "\\*?[]{}" else c for c in name)


@contextmanager
def _jobs(path: Path) -> Iterator[None]:
    """Raise DataError if a job fails, without Spark's message, which may quote a label."""
    from py4j.protocol import Py4JError  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        yield
    except (PySparkException, Py4JError):
        reason = "Spark did not finish a job; its own log says why; --resume continues a begun run"
        raise DataError(f"{path}: {reason}") from None
