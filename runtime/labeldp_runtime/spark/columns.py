"""Columns of a Spark DataFrame: found by name, and their types."""

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

from pyspark.sql import types as t

from labeldp_runtime.errors import IdError, LabelError
from labeldp_runtime.ids import null_id, repeated_id

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


def column(df: Any, name: str) -> Any:
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
    ids = df.select(column(df, name).alias("id"))
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
