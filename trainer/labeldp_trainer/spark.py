"""Training on a Spark cluster: a sample of the rows on the driver, and sums over all of them.

A task returns the sums over its partition with the longest of these very rows, for any floats of
its executor. The driver takes one result of each partition, and draws the noise.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
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
from labeldp_trainer.data.features import DataPart
from labeldp_trainer.data.table import TableColumns, table_columns
from labeldp_trainer.data.users import UserBound, owner_digests, taking_part, turns
from labeldp_trainer.errors import DataError, InputError, TrainerError
from labeldp_trainer.one_release.rows import (
    RowMoments,
    RowSums,
    Users,
    added,
    measured,
    user_counts,
)
from labeldp_trainer.sampled import KINDS, SumBatch, step_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_UNUSABLE = (
    "some rows beyond the sample have features that cannot be used: numbers that are missing or "
    "too far from those of the sample, no date, or exposure or weights that are not positive"
)
_NOBODY = (
    "the user column has rows without a user (null or empty), which nobody protects; or its type "
    "names nobody"
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


def _of_users(bound: UserBound, frame: Any, width: int, rows: int) -> Any:
    """The rows that take part, user by user, and all of a user in one partition.

    The first ``width`` columns are features; then come users and places, of which the first
    become digests, and labels, if they are there. ``rows`` are about how many there are.
    """
    from pyspark.sql import Window, functions  # noqa: PLC0415
    from pyspark.sql.types import LongType, StructField, StructType  # noqa: PLC0415

    fields = frame.schema.fields
    numbers = [StructField(name, LongType()) for name in (_PERSON, _PLACE, _TURN)]
    types = StructType([*fields[:width], *numbers, *fields[width + 2 :]])
    known = frame.mapInArrow(partial(_with_persons, bound, width), types)
    together = known.repartition(max(_LEAST_PARTS, -(-rows // _ROWS)), _PERSON)
    turn = functions.row_number().over(Window.partitionBy(_PERSON).orderBy(_TURN))
    return together.withColumn(_TURN, turn).where(f"{_TURN} <= {bound.most}").drop(_TURN)


_PERSON, _PLACE, _TURN = "person", "place", "turn"
_LEAST_PARTS, _ROWS = 8, 1 << 18


def _with_persons(
    bound: UserBound, width: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Where a batch has a row without a user, all its rows have none."""
    for batch in batches:
        *features, users, places = batch.columns[: width + 2]
        try:
            found = owner_digests(users, "", bound.column)
            persons = pa.array(found.view(np.int64))
        except InputError:
            persons = pa.nulls(len(batch), pa.int64())
        turn = pa.array(turns(places.to_numpy(), bound.seed))
        columns = [*features, persons, places, turn, *batch.columns[width + 2 :]]
        names = batch.schema.names
        names = [*names[:width], _PERSON, _PLACE, _TURN, *names[width + 2 :]]
        yield pa.RecordBatch.from_arrays(columns, names)


def _whole_users(batches: Iterator[pa.RecordBatch], person: int) -> Iterator[pa.RecordBatch]:
    """The same rows, with all of a user in one batch; ``person`` is the column of users.

    Raises DataError if there is nobody, and ValueError if users do not follow one another."""
    held = list[pa.RecordBatch]()
    for batch in batches:
        held.append(batch)
        persons = batch.column(person)
        if persons.null_count:
            raise DataError(_NOBODY)
        numbers = np.concatenate([own.column(person).to_numpy() for own in held])
        if (numbers[1:] < numbers[:-1]).any():
            raise ValueError("the rows of users do not follow one another")
        last = int(np.searchsorted(numbers, numbers[-1:])[0]) if len(numbers) else 0
        if last:
            whole = pa.concat_batches(held)
            yield whole.slice(0, last)
            held = [whole.slice(last)]
    if held:
        yield pa.concat_batches(held)


@dataclass(frozen=True)
class SparkTable:
    """The rows of Parquet files, and a sample of them.

    Attributes:
        path: of the table.
        config: what its columns are.
        frame: the DataFrame of its features, of users and places if users are protected, and, last,
            of its labels.
        bound: on the rows of a user; None if each label is on its own.
        count: of all rows.
        rows: n that take part.
        users: what a release says of them.
        sample: about 1 in ⌈n/SAMPLED⌉ rows or users, in order; no rows of labels.
    """

    path: Path
    config: TableData
    frame: Any
    bound: UserBound | None
    count: int
    rows: int
    users: Users | None
    sample: TableColumns
    elsewhere: ClassVar[bool] = True

    @classmethod
    def open(cls, spark: SparkSession, loaded: LoadedConfig) -> Self:
        """Count the rows and read the sample. Raises InputError."""
        from pyspark.sql import functions  # noqa: PLC0415

        data = _require_supported(loaded)
        path, bound = loaded.path(data.train), UserBound.of(loaded)
        features = features_of(data)
        names = [*features, *([] if bound is None else [bound.column]), data.label]
        files, types = _declared(path, names)
        with _jobs(path):
            whole = spark.read.parquet(*(_escaped(file) for file, _ in files))
            for name in names:
                if [each.lower() for each in whole.columns].count(name.lower()) > 1:
                    reason = "has several columns with this name, as Spark ignores case; rename one"
                    raise DataError(f"{path}: {name!r}: {reason}")
            quoted = ["`" + name.replace("`", "``") + "`" for name in names]
            columns = [functions.col(name).alias(f"c{i}") for i, name in enumerate(quoted)]
            file, row, places = _place(whole, path)
            count = rows = whole.count()
        if not count:
            raise DataError(f"{path}: has no rows")
        users, width = None, len(features)
        with _jobs(path):
            if bound is None:
                frame = whole.select(*columns)
                where = [file.alias("path"), row.alias("row")]
                chosen = functions.pmod(places, functions.lit(step_of(rows))) == 0
                found = whole.where(chosen).select(*columns[:-1], *where).toArrow()
                order = {str(file.resolve()): number for number, (file, _) in enumerate(files)}
                paths = (unquote(each.removeprefix("file:")) for each in found["path"].to_pylist())
                numbers = [order["/" + each.lstrip("/")] for each in paths]
                ordered, owners = np.lexsort((found["row"].to_numpy(), numbers)), None
            else:
                frame = whole.select(*columns[:-1], places.alias(_PLACE), columns[-1])
                public = _of_users(bound, frame.drop(frame.columns[-1]), width, count)
                counting = SumRows(path, data, None, _count, RowSums.zeros(0, (1,)), bound, False)
                counts = _results(path, public, counting)
                rows, whole_counts = sum(row.rows for row in counts), map(counting.read, counts)
                users = Users.of(bound.column, bound.most, added(counting.nothing, whole_counts))
                step = functions.lit(step_of(rows, users))
                chosen = functions.pmod(functions.xxhash64(_PERSON), step) == 0
                found = public.where(chosen).toArrow()
                persons = found[_PERSON].to_numpy().view(np.uint64)
                ordered, owners = taking_part(persons, found[_PLACE].to_numpy(), bound)
        found = found.take(ordered)
        batch = pa.RecordBatch.from_arrays(
            [found.column(i).combine_chunks() for i in range(width)], features
        )
        sample = replace(
            table_columns(batch, data, (), path, is_text=False),
            source=f"{path}: a sample",
            others={data.label: pa.nulls(0, types.field(data.label).type)},
            files=tuple(files),
            owners=owners,
            places=np.zeros(0, np.int64) if owners is None else found[_PLACE].to_numpy(),
        )
        return cls(path, data, frame, bound, count, rows, users, sample)

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
        task = SumRows(self.path, self.config, encoder, sums, nothing, self.bound, labelled)
        return added(nothing, map(task.read, self.results(task, labelled=labelled)))

    def results(
        self, task: Callable[[Iterator[pa.RecordBatch]], Any], *, labelled: bool
    ) -> list[Any]:
        """The results of a task, one of each partition. Raises DataError.

        Spark takes the result of one successful attempt of each partition, however many there are.
        """
        frame = self.frame if labelled else self.frame.drop(self.frame.columns[-1])
        if self.bound is not None:
            frame = _of_users(self.bound, frame, len(features_of(self.config)), self.count)
        found = _results(self.path, frame, task)
        if sum(row.rows for row in found) != self.rows:
            raise DataError(f"{self.path}: was changed while it was read")
        return found


def _place(whole: Any, path: Path) -> tuple[Any, Any, Any]:
    """The columns of where a row is: file, number in it, and hash (``row_places``)."""
    from pyspark.sql import functions  # noqa: PLC0415

    place = whole.metadataColumn("_metadata")
    row, file = place.getField("row_index"), place.getField("file_path")
    # Spark quotes names, and its function for that would make a blank of each plus
    plus, quoted_plus = functions.lit("+"), functions.lit("%2B")
    whole_name = functions.url_decode(functions.replace(file, plus, quoted_plus))
    folder = (path if path.is_dir() else path.parent).resolve()
    name = functions.substring_index(whole_name, f"{folder}/", -1)
    digest = functions.substring(functions.sha2(name.cast("binary"), 256), 1, 15)
    number = functions.conv(digest, 16, 10).cast("long")
    return file, row, functions.xxhash64(number, row)


def _declared(path: Path, names: Sequence[str]) -> tuple[list[tuple[Path, Any]], pa.Schema]:
    """The files with their metadata, and the types of the columns. Raises DataError."""
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
    return files, types


def _results(path: Path, frame: Any, task: Callable[[Iterator[pa.RecordBatch]], Any]) -> list[Any]:
    with _jobs(path), warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*pandas", FutureWarning)  # as in the runtime
        found = sorted(frame.mapInArrow(task, _RESULT).collect(), key=lambda row: row.partition)
    if refused := next((row.error for row in found if row.error), None):
        raise DataError(f"{path}: {refused}")
    if len({row.partition for row in found}) < len(found):
        raise DataError(f"{path}: was changed while it was read")
    return found


def _count(part: DataPart, column: Any) -> RowSums:
    del column
    assert part.owners is not None and part.places is not None
    return user_counts(part.owners, part.places)


@dataclass(frozen=True)
class SumRows:
    """The function that ``mapInArrow`` calls: sums over the rows of one partition.

    Attributes:
        path: of the table, for messages.
        config: what its columns are.
        encoder: from columns to features; None if they are not needed.
        sums: of a part of the rows.
        nothing: over no rows.
        bound: on the rows of a user, which follow one another then, with places.
        labelled: whether the label is the last column.
    """

    path: Path
    config: TableData
    encoder: TableEncoder | None
    sums: SumBatch
    nothing: RowSums
    bound: UserBound | None
    labelled: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One batch of one row. An error is text: Spark's own may quote a row."""
        from pyspark import TaskContext  # noqa: PLC0415

        found, rows, error = self.nothing, 0, ""

        def each() -> Iterator[RowSums]:
            nonlocal rows
            width = len(features_of(self.config))
            for batch in batches if self.bound is None else _whole_users(batches, width):
                rows += batch.num_rows
                if batch.num_rows:
                    yield self._of(batch)

        try:
            with threadpool_limits(1, user_api="blas"):
                found = added(self.nothing, each())
        except InputError as refused:
            # neither which row nor how many: labels can move the ends of partitions
            error = _NOBODY if str(refused) == _NOBODY else _UNUSABLE
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
        names, columns, more = [*features_of(data)], batch.columns, dict[str, Any]()
        if self.bound is not None:
            persons, places = (each.to_numpy() for each in columns[len(names) : len(names) + 2])
            more = {
                "places": places,
                "owners": np.cumsum(np.append(False, persons[1:] != persons[:-1])),
            }
            columns = columns[: len(names)] + columns[len(names) + 2 :]
        others = [label] if self.labelled else []
        named = pa.RecordBatch.from_arrays(columns, [*names, *others])
        found = replace(table_columns(named, data, others, self.path, is_text=False), **more)
        if self.encoder is None:
            part = DataPart(
                {}, found.rows, {}, found.source, owners=found.owners, places=found.places
            )
        else:
            part = self.encoder.part(found)
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
