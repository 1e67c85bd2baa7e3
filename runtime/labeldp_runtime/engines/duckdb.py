"""DuckDB: a randomizer as an SQL function that is called for each row, once for each mention.

Without ``side_effects`` DuckDB computes such a function once for equal mentions, once for all rows
of a constant, and twice for a filter on its result. Then rows share random bits, or labels are
drawn twice. docs/duckdb.md has what remains.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any, Literal

from labeldp_runtime.engines.layout import Layout
from labeldp_runtime.errors import IdError, MissingExtraError, ReplayWarning
from labeldp_runtime.ids import null_id, repeated_id
from labeldp_runtime.keyed import check_version
from labeldp_runtime.randomizer import NO_KEY, Randomizer

try:
    import duckdb
    import pyarrow as pa  # DuckDB hands over its arrays
except ImportError as error:
    raise MissingExtraError(
        "labeldp_runtime.engines.duckdb needs DuckDB and pyarrow: pip install duckdb pyarrow"
    ) from error

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

IdType = Literal["BIGINT", "UBIGINT", "VARCHAR", "BLOB"]
_ID_TYPES = ("BIGINT", "UBIGINT", "VARCHAR", "BLOB")
_TYPES = {"int64": "BIGINT", "float64": "DOUBLE", "string": "VARCHAR"}


def register(
    connection: DuckDBPyConnection,
    name: str,
    randomizer: Randomizer,
    *,
    id_type: IdType | None = None,
    version: int = 0,
) -> None:
    """Make ``randomizer`` the SQL function ``name(label)``, or ``name(label, id)`` with a key.

    A label of several columns takes an argument for each of the randomizer's ``label_columns``, in
    their order, ``name(converted, value)`` or ``name(converted, value, id)``, and the result is a
    STRUCT with a field for each. ``SELECT p.* FROM (SELECT name(converted, value) AS p FROM t)``
    makes columns of them; UNNEST around the call itself would be a mention for each field. The
    number of a set of combinations is a BIGINT.

    An artifact with tables by group takes a further argument for each of the randomizer's
    ``group_columns``, in their order: ``name(label, age, work)``, ``name(label, id, age, work)``.
    They are BIGINT or VARCHAR for listed values and DOUBLE for bands; NULL has the table of all
    other groups.

    Labels are taken as DOUBLE (numbers become that by themselves; BOOLEAN needs ``y::TINYINT``),
    BIGINT (categories that are integers) or VARCHAR; other columns are refused when the query is
    read, for all values. NULL follows the out-of-domain rule, and the result is never NULL.

    Without a key each mention of the function draws fresh random bits for each row, and spends ε of
    the label: mention it once and store the result. A ReplayWarning says so. With a key, repeated
    ids are only found inside one vector of 2,048 rows: call ``refuse_duplicates`` first.

    Args:
        connection: a connection of the ``duckdb`` package. The function lives as long as it does.
        name: of the SQL function.
        randomizer: the compiled randomizer, with or without a key.
        id_type: with a key, the SQL type of the ids: BIGINT, UBIGINT, VARCHAR or BLOB.
        version: of the labels; labels that changed need a new one, and spend ε again.
    """
    version = check_version(version)
    if not randomizer.is_keyed:
        if id_type is not None or version != 0:
            raise IdError(NO_KEY)
        warnings.warn(
            f"without a key each mention of {name}() in a query, and each query, draws new private "
            "labels and spends ε of every label again: mention it once and store the result, or "
            "use a randomizer with a key, and id_type=" + _unnest(randomizer),
            ReplayWarning,
            stacklevel=2,
        )
    elif id_type not in _ID_TYPES:
        raise IdError(f"this randomizer has a key: give id_type=, one of {', '.join(_ID_TYPES)}")

    label_names, label_types = randomizer.label_columns, _label_types(randomizer)
    is_joint = len(randomizer.output_types) > 1
    types = [*label_types, *([] if id_type is None else [id_type])]
    own = len(types)
    layout = Layout(
        tuple((label_names[i] if label_names else "", i) for i in range(len(label_types))),
        tuple((name, own + i) for i, name in enumerate(randomizer.group_columns)),
        None if id_type is None else len(label_types),
        version,
    )

    def private(*columns: Any) -> Any:
        answer = layout.private(randomizer, lambda index: _whole(columns[index]))
        if not is_joint:
            return answer[0]
        return pa.StructArray.from_arrays(list(map(_whole, answer)), names=label_names)

    types += [_TYPES[kind] for kind in randomizer.group_types]
    connection.create_function(
        name,
        _of_arity(private, len(types)),
        types,
        _result_type(randomizer),
        type="arrow",
        null_handling="special",  # or nulls would stay null, and show that they are
        side_effects=True,  # or DuckDB would share one call's noise, or call again for a filter
    )


def _of_arity(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    """The function with the number of arguments that it declares, which DuckDB looks at."""
    kind = Parameter.POSITIONAL_ONLY
    parameters = [Parameter(f"argument_{i}", kind) for i in range(count)]
    function.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return function


def refuse_duplicates(relation: DuckDBPyRelation, id_column: str) -> None:
    """Raise DuplicateIdError or IdError if an id of a relation comes twice or is null.

    ``relation`` is ``connection.table(…)`` or ``connection.sql(…)``; it is read once, and grouped
    by id.
    """
    quoted = '"' + id_column.replace('"', '""') + '"'
    groups = relation.aggregate(f"{quoted} IS NULL AS missing, count(*) AS rows", quoted)
    found = groups.filter("missing OR rows > 1").limit(1).fetchall()
    if not found:
        return
    missing, rows = found[0]
    raise (
        null_id(id_column) if missing else repeated_id(f"{rows:,} rows have the same id", id_column)
    )


def _unnest(randomizer: Randomizer) -> str:
    if len(randomizer.output_types) == 1:
        return ""
    return "; UNNEST around the call mentions it once for each column: use a subquery"


def _whole(column: Any) -> Any:
    """A column as one array: DuckDB gives 2,048 rows a call, and each further step costs."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _result_type(randomizer: Randomizer) -> Any:
    types = [_TYPES[kind] for kind in randomizer.output_types]
    if len(types) == 1:
        return types[0]
    return duckdb.struct_type(dict(zip(randomizer.label_columns, types, strict=True)))


def _label_types(randomizer: Randomizer) -> list[str]:
    """The SQL types of the label's arguments, to which DuckDB must never fail to convert a value.

    A conversion that fails quotes the label. Whole numbers of every size become DOUBLE, even where
    the labels are integers: those lie within ±2^53, where DOUBLE is exact.
    """
    label: Any = randomizer.certificate["label"]
    domain = label["domain"]
    domains = domain["columns"] if len(randomizer.label_types) > 1 else [domain]
    return [
        "VARCHAR" if kind == "string" else "BIGINT" if own["kind"] == "categorical" else "DOUBLE"
        for kind, own in zip(randomizer.label_types, domains, strict=True)
    ]
