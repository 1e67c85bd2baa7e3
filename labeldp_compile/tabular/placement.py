"""Where private columns are in a table: in place of the label's, or after the last one; and the
resulting schema."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from labeldp_runtime.inputs import PRIVATE_SET

from labeldp_compile.errors import refused
from labeldp_compile.tabular.provenance import KEY, Provenance, write_note
from labeldp_compile.tabular.reader import TableReader

_FIELD_ID = b"PARQUET:field_id"
_PANDAS = b"pandas"
# Others are left out: they may contain facts about the true labels.
_PANDAS_KEYS = ("index_columns", "column_indexes", "columns", "creator", "pandas_version")


@dataclass(frozen=True)
class Placement:
    """The private columns of a rewritten table.

    Attributes:
        names: of the private columns.
        replaced: of each, the label column whose place it takes; None after the last column.
        dropped: label columns that are removed without a replacement.
    """

    names: tuple[str, ...]
    replaced: tuple[str | None, ...]
    dropped: tuple[str, ...] = ()

    @classmethod
    def of(cls, labels: Sequence[str], add_as: str | None, *, one_answer: bool) -> Placement:
        """For these label columns: ``add_as`` keeps them, and names what is added beside them.

        Each of several label columns has a private column, called NAME_COLUMN if it is added. With
        ``one_answer`` all of them share one, ``private_label``.
        """
        if add_as is None:
            if len(labels) == 1 or not one_answer:
                return cls(tuple(labels), tuple(labels))
            return cls((PRIVATE_SET,), (labels[0],), tuple(labels[1:]))
        if len(labels) == 1 or one_answer:
            return cls((add_as,), (None,))
        return cls(tuple(f"{add_as}_{label}" for label in labels), (None,) * len(labels))

    @property
    def keeps_labels(self) -> bool:
        """Whether the true labels stay in the table."""
        return self.replaced[0] is None

    def goes(self, column: str) -> bool:
        """Whether a column of the input is not in the output."""
        return column in self.replaced or column in self.dropped

    def require_free(self, file: TableReader) -> None:
        """Raise DataError if a private column would be called like another one of the file."""
        for name in self.names:
            if name in file.schema.names and not self.goes(name):
                raise refused(
                    file.path,
                    f"has a column {name!r} already: choose another name for the private column",
                )


def output_schema(
    schema: pa.Schema,
    placement: Placement,
    private: Sequence[pa.DataType],
    notes: Mapping[str, Provenance] | None = None,
) -> pa.Schema:
    """The input's fields, with the private columns where they are placed.

    Of the schema's metadata, that of pandas (index, types) is kept, with correct entries for the
    private columns, and ``notes`` on private columns are written. Of the label's metadata the field
    id is kept, by which other files refer to the column.
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
    numpy_type = {pa.string(): "object", pa.float64(): "float64"}.get(private, str(private))
    pandas_type = "unicode" if private == pa.string() else numpy_type
    return {
        "name": name,
        "field_name": name,
        "pandas_type": pandas_type,
        "numpy_type": numpy_type,
        "metadata": None,
    }
