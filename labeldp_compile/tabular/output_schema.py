"""The schema of a rewritten table: the input's, with one private column."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from labeldp_compile.tabular.provenance import KEY, Provenance, write_note

_FIELD_ID = b"PARQUET:field_id"
_PANDAS = b"pandas"
# Others are left out: whoever wrote them may tell of the true labels in them.
_PANDAS_KEYS = ("index_columns", "column_indexes", "columns", "creator", "pandas_version")


def output_schema(
    schema: pa.Schema,
    column: str,
    add_as: str | None,
    private: pa.DataType,
    notes: Mapping[str, Provenance] | None = None,
) -> pa.Schema:
    """The input's fields, with the private column in the label's place or behind the last one.

    Of the metadata of the schema, pandas' own (index, types) is kept, with an entry for the private
    column that is true, and ``notes`` on private columns are written; of the label's metadata the
    field id that other files know the column by.
    """
    fields, name = list(schema), add_as or column
    if add_as is None:
        label = schema.field(column)
        kept = {key: value for key, value in (label.metadata or {}).items() if key == _FIELD_ID}
        fields[schema.get_field_index(column)] = pa.field(column, private, metadata=kept)
    else:
        fields.append(pa.field(add_as, private))
    metadata = _pandas_metadata(schema, name, private)
    if notes:
        metadata[KEY] = write_note(notes)
    return pa.schema(fields, metadata=metadata or None)


def _pandas_metadata(schema: pa.Schema, name: str, private: pa.DataType) -> dict[bytes, bytes]:
    text = (schema.metadata or {}).get(_PANDAS)
    if text is None:
        return {}
    try:
        given = json.loads(text)
        known: dict[str, Any] = {key: given[key] for key in _PANDAS_KEYS if key in given}
        entries = {entry["field_name"]: entry for entry in known["columns"]}
    except (ValueError, RecursionError, KeyError, TypeError):
        return {}  # of an early version of pandas, or none of its own
    entries[name] = _entry(name, private)
    return {_PANDAS: json.dumps(known | {"columns": list(entries.values())}).encode()}


def _entry(name: str, private: pa.DataType) -> dict[str, Any]:
    numpy_type = "object" if private == pa.string() else str(private.to_pandas_dtype()().dtype)
    pandas_type = "unicode" if private == pa.string() else numpy_type
    return {
        "name": name,
        "field_name": name,
        "pandas_type": pandas_type,
        "numpy_type": numpy_type,
        "metadata": None,
    }
