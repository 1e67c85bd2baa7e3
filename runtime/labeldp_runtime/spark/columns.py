"""Columns of a Spark DataFrame: found by name, and their types."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from typing import Any

from pyspark.sql import types as t

from labeldp_runtime.errors import DuplicateIdError, GroupError, IdError, LabelError
from labeldp_runtime.groups import group_sources

_INTEGERS = (t.ByteType, t.ShortType, t.IntegerType, t.LongType)
_NUMBERS = (*_INTEGERS, t.FloatType, t.DoubleType, t.DecimalType, t.BooleanType)
_TEXT = (t.StringType, t.CharType, t.VarcharType)


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


def refuse_homonyms(names: list[str], name: str, error: type[ValueError]) -> None:
    """Raise ``error`` if Spark, which ignores case, would take another column for this one."""
    for other in names:
        if other.lower() == name.lower():
            raise error(f"the DataFrame has a column {other!r}, which Spark takes for {name!r}")


def column(df: Any, name: str) -> Any:
    """A column whose name may hold dots and backticks."""
    escaped = name.replace("`", "``")
    return df[f"`{escaped}`"]


def refuse_label_type(kind: Any, element_type: str) -> None:
    """Raise LabelError unless a column of this type can hold labels of the artifact's type."""
    text = element_type == "string"
    if not isinstance(kind, (*(_TEXT if text else _NUMBERS), t.NullType)):
        wanted = "text" if text else "numbers"
        raise LabelError(f"expected {wanted} as labels, got a column of {kind.simpleString()}")


def find_groups(
    df: Any,
    labels: Collection[str],
    names: list[str],
    types: list[str],
    given: Mapping[str, str] | None,
) -> tuple[tuple[str, int], ...]:
    """The artifact's group columns, each with its position in the DataFrame.

    ``names`` and ``types`` are the artifact's, ``given`` the DataFrame's names for some of them.
    Raises GroupError for a column that is missing, is a label, or is declared of another type.
    """
    found = []
    sources = group_sources(names, given, df.columns, labels)
    for (name, source), element_type in zip(sources.items(), types, strict=True):
        index, kind = find_column(df, source, GroupError), df.schema[source].dataType
        fits = {"string": _TEXT, "int64": _INTEGERS, "float64": _NUMBERS}[element_type]
        if not isinstance(kind, (*fits, t.NullType)):
            wanted = {"string": "text", "int64": "integers", "float64": "numbers"}[element_type]
            raise GroupError(
                f"{source!r}: expected {wanted} as groups, got a column of {kind.simpleString()}"
            )
        found.append((name, index))
    return tuple(found)


def refuse_ids(df: Any, name: str) -> None:
    """Raise IdError unless the column can name labels and no id is null or stands there twice.

    Runs one job, which reads the ids and shuffles them by value.
    """
    refuse_id_type(df, name)
    ids = df.select(column(df, name).alias("id"))
    # Nearly all ids differ: meeting their equals first is twice as fast as counting beforehand.
    groups = ids.repartition("id").groupBy("id").count()
    found = groups.where("count > 1 OR id IS NULL").limit(1).collect()
    if not found:
        return
    if found[0]["id"] is None:
        raise IdError(
            f"{name!r}: an id is null: its label would have no words of its own; "
            "give every row an id, or leave out the rows that have none"
        )
    raise DuplicateIdError(
        f"{name!r}: an id stands in {found[0]['count']:,} rows, which would show whether their "
        "labels are equal: an id must name one label; add what tells them apart (a date, a line "
        "number) to the id, or remove the repeated rows; df.groupBy(id).count() finds them all"
    )


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
