"""The schema of a rewritten table: the input's, with private columns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from labeldp_compile.tabular.placement import Placement
from labeldp_compile.tabular.provenance import KEY, Provenance, write_note

_FIELD_ID = b"PARQUET:field_id"
_PANDAS = b"pandas"
# Others are left out: whoever wrote them may tell of the true labels in them.
_PANDAS_KEYS = ("index_columns", "column_indexes", "columns", "creator", "pandas_version")


def output_schema(
    schema: pa.Schema,
    placement: Placement,
    private: Sequence[pa.DataType],
    notes: Mapping[str, Provenance] | None = None,
) -> pa.Schema:
    """The input's fields, with the private columns where they are placed.

    Of the metadata of the schema, pandas' own (index, types) is kept, with entries for the private
    columns that are true, and ``notes`` on private columns are written; of the label's metadata the
    field id that other files know the column by.
    """
    named = dict(zip(placement.names, private, strict=True))
    drawn = dict(zip(placement.replaced, named.items(), strict=True))
    fields = []
    for field in schema:
        if field.name in drawn:
            name, kind = drawn[field.name]
            kept = {key: value for key, value in (field.metadata or {}).items() if key == _FIELD_ID}
            fields.append(pa.field(name, kind, metadata=kept))
        elif field.name not in placement.dropped:
            fields.append(field)
    if placement.keeps_labels:
        fields += [pa.field(name, kind) for name, kind in named.items()]
    gone = [name for name in schema.names if placement.goes(name) and name not in named]
    metadata = _pandas_metadata(schema, named, gone)
    if notes:
        metadata[KEY] = write_note(notes)
    return pa.schema(fields, metadata=metadata or None)


def _pandas_metadata(
    schema: pa.Schema, named: Mapping[str, pa.DataType], gone: Sequence[str]
) -> dict[bytes, bytes]:
    text = (schema.metadata or {}).get(_PANDAS)
    if text is None:
        return {}
    try:
        given = json.loads(text)
        known: dict[str, Any] = {key: given[key] for key in _PANDAS_KEYS if key in given}
        entries = {entry["field_name"]: entry for entry in known["columns"]}
    except (ValueError, RecursionError, KeyError, TypeError):
        return {}  # of an early version of pandas, or none of its own
    for name in gone:
        entries.pop(name, None)
    if gone:
        known["index_columns"] = [i for i in known.get("index_columns", []) if i not in gone]
    entries.update({name: _entry(name, kind) for name, kind in named.items()})
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
