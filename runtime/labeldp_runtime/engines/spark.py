"""Spark: randomize a column of a DataFrame on the cluster, and count labels for a private prior.

Needs labeldp-runtime, PySpark, pyarrow and pandas on the driver and on every executor. Spark
pickles a task with the artifact's bytes and sends it to every executor, so that no shared file
system is needed. The task holds no secret (``engines.layout``).

Without a key only versions of Spark may run that notice labels that were drawn again.
A shuffle sends the rows of a map task to the tasks that follow. If an executor is lost after some
of these are done, Spark computes its map tasks again. Without a key the labels are then different,
and rows that are sent by label go elsewhere: some are lost, and some come twice, with two draws.
From 4.2 on, Spark compares checksums of what a map task wrote. If they differ, it restarts all that
follows, or fails the job.
"""

from __future__ import annotations

import difflib
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labeldp_runtime.artifact_file import read_bytes
from labeldp_runtime.engines.layout import (
    KeyedTask,
    KeySource,
    LabelNames,
    Layout,
    Names,
    PrivateNames,
    Shipped,
    default_context,
    key_on_driver,
    refuse_secret,
)
from labeldp_runtime.errors import (
    EngineError,
    GroupError,
    IdError,
    LabelError,
    MissingExtraError,
    ReplayWarning,
)
from labeldp_runtime.ids import null_id, repeated_id
from labeldp_runtime.policy import Policy
from labeldp_runtime.randomizer import Randomizer
from labeldp_runtime.whole_file import replaced_when_whole

try:
    import pyarrow as pa
    from pyarrow import parquet
    from pyspark import cloudpickle
    from pyspark.errors import PySparkException
    from pyspark.sql import types as t
except ModuleNotFoundError as error:
    if error.name is None or error.name.split(".")[0] not in ("pyspark", "pyarrow"):
        raise
    raise MissingExtraError(
        "labeldp_runtime.engines.spark needs PySpark and pyarrow: "
        "pip install pyspark pyarrow pandas"
    ) from error


if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["label_counts", "large_batches", "randomize", "write_label_counts"]

LARGE_BATCH = 100_000
_SETTING = "spark.sql.execution.arrow.maxRecordsPerBatch"


@contextmanager
def large_batches(spark: SparkSession, rows: int = LARGE_BATCH) -> Iterator[None]:
    """Let Spark pass ``rows`` rows at a time, instead of 10,000, in all actions inside.

    Put the *action* inside (write, collect, …), since nothing runs before it. The setting is the
    session's: other queries of the session use it too, until it is reset at the end. A batch of all
    columns must fit in memory, once in the JVM and once in Python.
    """
    before = spark.conf.get(_SETTING)
    spark.conf.set(_SETTING, str(rows))
    try:
        yield
    finally:
        spark.conf.set(_SETTING, before)


def label_counts(
    df: DataFrame, column: str, *, group_columns: Sequence[str] = (), counts: str = "n"
) -> pa.Table:
    """A pyarrow table {column, counts}: each label that occurs, and the number of its rows.

    With ``group_columns`` these come before the label, and there is a row for each combination
    that occurs. These are EXACT counts, as sensitive as the labels: no noise is added here. Nulls
    are a row of their own, and so is NaN; −0.0 counts as 0.0. Labels that do not occur are missing:
    ``labeldp compile`` joins the domain. Runs one job. Raises LabelError or GroupError for a column
    that is missing or named twice.
    """
    if isinstance(group_columns, str):
        raise TypeError("group_columns must be a list of names, not one name")
    find_column(df, column, LabelError)
    for name in group_columns:
        find_column(df, name, GroupError)
    names = [*group_columns, column]
    if len(set(names)) < len(names):
        raise GroupError("a column is named twice among the label and group_columns: name it once")
    if counts in names:
        raise LabelError(
            f"{counts!r} is a label or group column: give the counts another name with counts="
        )
    # Names without a meaning, since those of columns may hold dots.
    keys = [f"c{index}" for index in range(len(names))]
    values = [_plain(df, name).alias(key) for name, key in zip(names, keys, strict=True)]
    counted = df.select(*values).groupBy(*keys).count()
    return counted.toArrow().rename_columns([*names, counts])


def _plain(df: DataFrame, name: str) -> Any:
    """A column in which Spark compares texts as the artifact does."""
    collated = df.schema[name].dataType.simpleString().startswith("string collate")
    return quoted_column(df, name).cast("string") if collated else quoted_column(df, name)


def write_label_counts(
    df: DataFrame,
    column: str,
    path: str | Path,
    *,
    group_columns: Sequence[str] = (),
    counts: str = "n",
    overwrite: bool = False,
) -> int:
    """Write ``label_counts`` to a Parquet file of mode 0600; returns the number of rows counted.

    For ``prior: {kind: private, data: PATH, counts: n, rows: …}`` in a spec. The file holds EXACT
    counts: keep it where the labels may be, and remove it after the compile. It appears whole or
    not at all. Raises FileExistsError unless ``overwrite``, before anything is counted.
    """
    path = Path(path)
    if path.suffix.lower() not in (".parquet", ".pq"):
        raise ValueError(f"{path}: expected a .parquet name")
    if not overwrite and os.path.lexists(path):
        raise FileExistsError(f"{path}: exists already; use overwrite=True to replace it")
    table = label_counts(df, column, group_columns=group_columns, counts=counts)
    with replaced_when_whole(path, most=0o600) as file:
        parquet.write_table(table, file)
    return int(sum(table.column(counts).to_pylist()))


_INTEGERS = (t.ByteType, t.ShortType, t.IntegerType, t.LongType)
_NUMBERS = (*_INTEGERS, t.FloatType, t.DoubleType, t.DecimalType, t.BooleanType)
_TEXT = (t.StringType, t.CharType, t.VarcharType)
_FITS = {
    **{"string": (_TEXT, "text"), "int64": (_INTEGERS, "integers")},
    "float64": (_NUMBERS, "numbers"),
}


def find_column(df: Any, name: str, error: type[ValueError]) -> int:
    """The position of a column. Raises ``error`` if there is none, or more than one."""
    names = list(df.columns)
    if name not in names:
        close = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"its columns: {', '.join(names[:12])}"
        raise error(f"the DataFrame has no column {name!r}; {hint}")
    refuse_homonyms([other for other in names if other != name], name, error)
    if names.count(name) > 1:
        raise error(f"the DataFrame has several columns called {name!r}: rename one")
    return names.index(name)


def refuse_homonyms(names: Sequence[str], name: str, error: type[ValueError] = LabelError) -> None:
    """Raise ``error`` if Spark, which ignores case, would confuse another column with this one."""
    for other in names:
        if other.lower() == name.lower():
            raise error(
                f"the DataFrame has a column {other!r}, and Spark ignores case: rename it or "
                f"{name!r}"
            )


def quoted_column(df: Any, name: str) -> Any:
    """A column whose name may hold dots and backticks."""
    escaped = name.replace("`", "``")
    return df[f"`{escaped}`"]


def refuse_types(
    df: Any, places: Iterable[int], types: list[str], what: str, error: type[ValueError]
) -> None:
    """Raise ``error`` unless columns of these types can hold what the artifact takes."""
    for index, element_type in zip(places, types, strict=True):
        field = df.schema.fields[index]
        fits, wanted = _FITS[element_type]
        if not isinstance(field.dataType, (*fits, t.NullType)):
            raise error(
                f"{field.name!r}: expected {wanted} as {what}, "
                f"got a column of {field.dataType.simpleString()}"
            )


def refuse_ids(df: Any, name: str) -> None:
    """Raise IdError unless the column can name labels and no id is null or repeated.

    Runs one job, which reads the ids and shuffles them by value.
    """
    refuse_id_type(df, name)
    ids = df.select(quoted_column(df, name).alias("id"))
    # Nearly all ids differ: a shuffle before counting is twice as fast as one after it.
    groups = ids.repartition("id").groupBy("id").count()
    found = groups.where("count > 1 OR id IS NULL").limit(1).collect()
    if not found:
        return
    if found[0]["id"] is None:
        raise null_id(name)
    rows = f"{found[0]['count']:,} rows have the same id, as df.groupBy(id).count() shows"
    raise repeated_id(rows, name)


def refuse_id_type(df: Any, name: str) -> None:
    """Raise IdError for a column whose type cannot name labels."""
    kind = df.schema[name].dataType
    if not isinstance(kind, (*_INTEGERS, *_TEXT, t.BinaryType)):
        raise IdError(
            f"{name!r}: ids must be integers of at most 64 bits, text or bytes, "
            f"not {kind.simpleString()}"
        )


def output_types(randomizer: Any) -> list[Any]:
    """The Spark types of an artifact's private columns."""
    types = {"int64": t.LongType(), "float64": t.DoubleType()}
    return [types.get(kind, t.StringType()) for kind in randomizer.output_types]


FIRST_SAFE = (4, 2, 0)
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)(.*)", re.DOTALL)
_BEFORE_RELEASE = re.compile(r"[-.]?(preview|snapshot|dev|rc)", re.IGNORECASE)
_MUST_BE_ON = (
    "spark.sql.shuffle.orderIndependentChecksum.enabled",
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch",
)
_PUSHED = "spark.shuffle.push.enabled"  # switches the comparison off (SPARK-54959)
_MANAGER = "spark.shuffle.manager"
_OWN_MANAGERS = ("sort", "tungsten-sort", "org.apache.spark.shuffle.sort.SortShuffleManager")


def refuse_without_rollback(spark: Any) -> None:
    """Raise EngineError unless this session's Spark notices labels that were drawn again.

    The version and the settings are those of the cluster, also through Spark Connect. They are
    checked now: later changes of the settings are not noticed.
    """
    reason = _reason(spark)
    if reason is not None:
        raise EngineError(
            "without a key this Spark may lose rows and draw others twice, without a message, "
            f"when an executor is lost: {reason}. Use a key, with which every computation gives "
            "the "
            "same labels: key=Key.load(…), id_column=…"
        )


def _reason(spark: Any) -> str | None:
    if not _is_safe(version := str(spark.version)):
        return f"it is Spark {version}, and the first version that notices this is 4.2"
    for name in _MUST_BE_ON:
        try:
            setting = str(spark.conf.get(name))
        except PySparkException:  # it has no such setting: a vendor's build without the checksums
            return f"it has no setting {name}"
        if setting.lower() != "true":
            return f"{name} is off"
    if str(spark.conf.get(_PUSHED, "false")).lower() == "true":
        return f"{_PUSHED} is on, which turns the check off"
    manager = str(spark.conf.get(_MANAGER, "sort"))
    if manager not in _OWN_MANAGERS:
        return f"its {_MANAGER} is {manager}, which labeldp does not know"
    return None


def _is_safe(version: str) -> bool:
    """Whether a version of Apache Spark's numbering is the first safe release or a later one.

    A version that does not begin with three numbers, such as a vendor's 14.3.x, does not show which
    Spark is inside. Previews are refused, and so is everything before the first safe release: it
    may lack a part of the comparison.
    """
    found = _VERSION.fullmatch(version)
    if found is None or "preview" in version:
        return False
    release = (int(found[1]), int(found[2]), int(found[3]))
    unfinished = release == FIRST_SAFE and _BEFORE_RELEASE.match(found[4])
    return release >= FIRST_SAFE and not unfinished


@dataclass(frozen=True)
class RandomizeLabels:
    """Randomizes the label of every batch; the function that ``mapInArrow`` calls.

    Attributes:
        shipped: the randomizer.
        layout: where the columns are, and what comes out. The names of incoming columns have no
            meaning.
    """

    shipped: Shipped
    layout: Layout

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The batches of one partition, with private labels."""
        randomizer = self.shipped.open()
        for batch in batches:
            yield self._with(batch, self.layout.private(randomizer, batch.column))

    def _with(self, batch: Any, private: list[Any]) -> Any:
        arrays, fields = [], []
        for name, is_private, index in self.layout.columns:
            array = private[index] if is_private else batch.column(index)
            kind = pa.field("", array.type) if is_private else batch.schema.field(index)
            arrays.append(array)
            fields.append(kind.with_name(name))
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def randomize(
    df: DataFrame,
    column: LabelNames,
    artifact: str | Path,
    *,
    id_column: str | None = None,
    key: KeySource | None = None,
    context: str | None = None,
    version: int = 0,
    group_columns: Mapping[str, str] | None = None,
    add_as: PrivateNames | None = None,
    require: Policy | None = None,
    check_duplicates: bool = True,
    prepared: bool = False,
) -> DataFrame:
    """The DataFrame with private labels in ``column``, or added as ``add_as``.

    All other columns stay as they are. The private column has the artifact's type (double, bigint
    or string) and no nulls; NaN, nulls and labels outside the domain follow the out-of-domain rule.

    Give ``key`` and ``id_column``: then every computation gives the same labels. Without a key the
    result is drawn again whenever Spark computes it (each action, each retry, each executor that is
    lost), and every time spends ε of the label again: a ReplayWarning says so. Write the result
    once and read that. A Spark that could lose rows and draw others twice, unnoticed, is refused.

    Args:
        df: a DataFrame of PySpark 4.0 or newer.
        column: the label column: numbers or text, as the artifact's domain needs. For a label
            of several columns: the names of its certificate, or which column each of them is,
            where it has another name: ``{"value": "spent", "converted": "converted"}``. Each
            private column takes the place of its label; the number of a set of combinations takes
            the place of them all, as ``private_label``.
        artifact: path of the file on the driver; its bytes travel with the plan.
        id_column: with a key, the column that names each label: integers, text or binary.
        key: a key from a file that every executor finds under the same path (mode 0600), or a
            function without arguments that fetches the key where it is called: once on the driver
            and once in each Python worker. The key itself never travels through Spark.
        context: what is randomized; by default the name of the private column. Labels of several
            columns have no default.
        version: of the labels; labels that changed need a new one, and spend ε again.
        group_columns: of an artifact with tables by group, which column gives each of those that
            its certificate names, where it has another name: ``{"age": "age_in_2024"}``. Spark must
            compute the same groups each time: with a key, noise depends on the group.
        add_as: name of a column to add, which KEEPS the true labels beside it; of several columns
            the name of each: ``{"value": "private_value", "converted": "private_converted"}``.
        require: what the artifact must be; checked on the driver. Executors accept only the same
            bytes.
        check_duplicates: with a key, look for null and repeated ids now, in one job over the id
            column. Without it, only those inside one Arrow batch are found, when it is computed.
        prepared: the rows meet what the artifact demands of them together: see
            ``Randomizer.load``.

    Raises a RuntimeArtifactError for an artifact that cannot be used, LabelError, GroupError,
    IdError or DuplicateIdError for columns that cannot, KeyFileError for a key that cannot travel,
    and without a key EngineError for a Spark that would not notice rows drawn again (``rollback``).
    """
    if key is None and (id_column is not None or context is not None or version != 0):
        raise IdError("id_column, context and version need key=: labeldp keygen makes a key")
    if key is not None and id_column is None:
        raise IdError("a key needs id_column, the column that names each label")
    if key is None:
        refuse_without_rollback(df.sparkSession)
    path = Path(artifact)
    data = read_bytes(path)
    if key is None:
        keyed = None
        randomizer = Randomizer(data, str(path), require=require, prepared=prepared)
    else:
        assert id_column is not None
        context = default_context(column, add_as) if context is None else context
        secret = key_on_driver(key)
        randomizer = Randomizer(
            data, str(path), key=secret, context=context, require=require, prepared=prepared
        )
        keyed = KeyedTask(key, secret.fingerprint, context)
    names = Names(column, id_column, version, group_columns, add_as)
    layout = names.layout(randomizer, df.columns, partial(find_column, df), refuse_homonyms)
    labels, groups = ([index for _, index in own] for own in (layout.labels, layout.groups))
    # Whole numbers as labels may come in any type of numbers.
    types = ["string" if kind == "string" else "float64" for kind in randomizer.label_types]
    refuse_types(df, labels, types, "labels", LabelError)
    refuse_types(df, groups, randomizer.group_types, "groups", GroupError)
    schema = _schema(df, layout, output_types(randomizer))
    task = RandomizeLabels(Shipped.of(data, keyed), layout)
    if keyed is None:
        _warn_of_replays()
    else:
        refuse_secret(cloudpickle.dumps(task), secret)
        _check_ids(df, str(id_column), whole=check_duplicates)
    with warnings.catch_warnings():
        # PySpark demands pandas here, and doubts new ones; mapInArrow never touches it.
        warnings.filterwarnings("ignore", ".*pandas", FutureWarning)
        # mapInArrow takes a dot in a column's name for a field of a struct: it sees no names.
        unnamed = df.toDF(*(f"c{index}" for index in range(len(df.columns))))
        return unnamed.mapInArrow(task, schema)


def _schema(df: Any, layout: Layout, private: list[Any]) -> t.StructType:
    return t.StructType(
        [
            t.StructField(name, private[index], nullable=False)
            if is_private
            else df.schema.fields[index]
            for name, is_private, index in layout.columns
        ]
    )


def _check_ids(df: Any, id_column: str, *, whole: bool) -> None:
    if not whole:
        refuse_id_type(df, id_column)
    elif df.isStreaming:
        raise IdError(
            "the ids of a stream cannot be checked in advance: make sure that no id is ever null "
            "or repeated, and give check_duplicates=False"
        )
    else:
        refuse_ids(df, id_column)


def _warn_of_replays() -> None:
    warnings.warn(
        "without a key Spark draws new private labels whenever it computes them (for each action, "
        "retry and recomputation), and each time spends ε of every label again: write the result "
        "to storage once and read that, or give key= and id_column=",
        ReplayWarning,
        stacklevel=3,
    )
