"""Training on a Spark cluster: a sample of the rows on the driver, and sums over all of them.

A task returns the sums over its partition with the longest of these very rows, for any floats of
its executor. The driver takes one result of each partition, and draws the noise.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_limits

from labeldp_compile.toolkit import files_of, read_schema
from labeldp_trainer.config import LoadedConfig, OneRelease, StagedRelease
from labeldp_trainer.config.data import TableData, features_of
from labeldp_trainer.config.representation import Steps
from labeldp_trainer.data.encoders import TableEncoder
from labeldp_trainer.data.table import TableColumns, table_columns
from labeldp_trainer.errors import DataError, InputError, TrainerError
from labeldp_trainer.one_release.rows import RowMoments, RowSums, added, measured
from labeldp_trainer.sampled import KINDS, SumBatch, step_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_UNUSABLE = (
    "some rows beyond the sample have features that cannot be used: numbers that are missing or "
    "too far from those of the sample, no date, or exposure or weights that are not positive"
)
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
        sample: about 1 in ⌈n/SAMPLED⌉ rows (``is_sampled``), in order; no rows of labels.
    """

    path: Path
    config: TableData
    frame: Any
    rows: int
    sample: TableColumns
    elsewhere: ClassVar[bool] = True

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
            row, file = place.getField("row_index"), place.getField("file_path")
            step = functions.lit(step_of(count))
            # Spark quotes names, and its function for that would make a blank of each plus
            plus, quoted_plus = functions.lit("+"), functions.lit("%2B")
            whole_name = functions.url_decode(functions.replace(file, plus, quoted_plus))
            folder = (path if path.is_dir() else path.parent).resolve()
            name = functions.substring_index(whole_name, f"{folder}/", -1)
            hashed = functions.xxhash64(functions.crc32(name.cast("binary")), row)
            chosen = functions.pmod(hashed, step) == 0  # as is_sampled
            where = [file.alias("path"), row.alias("row")]
            found = whole.where(chosen).select(*columns[:-1], *where).toArrow()
        if not count:
            raise DataError(f"{path}: has no rows")
        order = {str(file.resolve()): number for number, (file, _) in enumerate(files)}
        paths = (unquote(each.removeprefix("file:")) for each in found["path"].to_pylist())
        numbers = [order["/" + each.lstrip("/")] for each in paths]
        found = found.take(np.lexsort((found["row"].to_numpy(), numbers)))
        batch = pa.RecordBatch.from_arrays(
            [found.column(i).combine_chunks() for i in range(len(names) - 1)], names[:-1]
        )
        features = table_columns(batch, data, (), path, is_text=False)
        labels = {data.label: pa.nulls(0, types.field(data.label).type)}
        return cls(
            path=path,
            config=data,
            frame=whole.select(*columns),
            rows=count,
            sample=replace(features, source=f"{path}: a sample", others=labels, files=tuple(files)),
        )

    def sums(
        self,
        encoder: TableEncoder,
        sums: SumBatch,
        nothing: RowSums,
        steps: Steps,
        *,
        labelled: bool,
    ) -> RowSums:
        """Over all rows, by one job, whose progress Spark shows. Raises DataError."""
        del steps
        task = SumRows(self.path, self.config, encoder, sums, nothing, labelled)
        return added(nothing, map(task.read, self.results(task, labelled=labelled)))

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
            raise DataError(f"{self.path}: {refused}")
        once = len({row.partition for row in found}) == len(found)
        if not once or sum(row.rows for row in found) != self.rows:
            raise DataError(f"{self.path}: was changed while it was read")
        return found


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

        def each() -> Iterator[RowSums]:
            nonlocal rows
            for batch in batches:
                rows += batch.num_rows
                if batch.num_rows:
                    yield self._of(batch)

        try:
            with threadpool_limits(1, user_api="blas"):
                found = added(self.nothing, each())
        except InputError:
            # neither which row nor how many: labels can move the ends of partitions
            error = _UNUSABLE
        except Exception as failed:
            raise RuntimeError(type(failed).__name__) from None
        context: Any = TaskContext.get()
        arrays = [*found.moments, found.labels]
        result = {
            "partition": context.partitionId(),
            "rows": rows,
            "longest": found.lengths.longest,
            "digests": b"".join(part.tobytes() for part in found.lengths.digests),
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
        return RowSums(RowMoments(cross, gram, total), measured(row.longest, row.digests), labels)


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
        (one and kind not in KINDS, "representation.kind", f"--spark takes {' or '.join(KINDS)}"),
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
