"""Write CSV: cells of Arrow columns, or the rows of a CSV file with new labels in them.

A new table of results is Parquet, or CSV that is safe to open in a spreadsheet. A spreadsheet runs
a cell that begins like a formula, and names of groups and labels come from files. So in CSV, such
text gets an apostrophe in front, and so does text that begins with one. Removing one leading
apostrophe gives the text back. Text that is a number stays as it is. Parquet holds every text
unchanged.

A private column takes the place of the label's, or comes after the last one.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from labeldp_runtime.columns.arrow import is_text
from labeldp_runtime.inputs import PRIVATE_SET

from labeldp_compile.errors import refused
from labeldp_compile.tabular.csv_file import CsvFile
from labeldp_compile.tabular.csv_rows import Cells, between, row_form, text_of
from labeldp_compile.tabular.provenance import KEY, Provenance, write_note
from labeldp_compile.tabular.reader import TableReader
from labeldp_compile.whole_file import replaced_when_whole

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


_BYTES = pa.large_binary()
_GZIP_LEVEL = 6
_GZIP_BYTES = 1 << 16


class TextOut:
    """A file of text, packed with gzip or not: in pieces of one size, however it is written."""

    def __init__(self, file: BinaryIO, *, gzipped: bool) -> None:
        """Write nothing yet."""
        # Without a time or a name: a keyed run repeats the file.
        packed = gzip.GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0) if gzipped else None
        self._file, self._packed, self._pending = file, packed, bytearray()

    def write(self, data: bytes | memoryview) -> None:
        """Write some text. Raises OSError."""
        if self._packed is None:
            self._file.write(data)
            return
        self._pending += data
        whole = len(self._pending) - len(self._pending) % _GZIP_BYTES
        for start in range(0, whole, _GZIP_BYTES):
            self._packed.write(bytes(self._pending[start : start + _GZIP_BYTES]))
        del self._pending[:whole]

    def finish(self) -> None:
        """Write the end; the file stays open."""
        if self._packed is not None:
            self._packed.write(bytes(self._pending))
            self._packed.close()


def cells_of(values: pa.Array, delimiter: str, decimal: str = ".") -> pa.Array:
    """The cells [n] of a column as bytes: text in quotes where it needs them, null as nothing.

    Numbers that are not whole have the ``decimal`` mark. Empty text has quotes, so that it is not a
    null. Raises ArrowInvalid or ArrowNotImplementedError for a type that CSV cannot hold.
    """
    import pyarrow.compute as pc  # noqa: PLC0415  # which looks up all functions

    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    kind = values.type
    if not (is_text(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
        numbers = values.cast(pa.string()).cast(_BYTES)
        if decimal == "." or not (pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
            return numbers
        values = pc.replace_substring(numbers, ".", decimal)
    cells = values.cast(_BYTES)
    special = pc.match_substring_regex(cells, f'[{re.escape(delimiter)}"\r\n]|^$')
    quote = pa.scalar(b'"', _BYTES)
    quoted = _joined([quote, pc.replace_substring(cells, '"', '""'), quote])
    return pc.if_else(special, quoted, cells)


def csv_holds(kind: pa.DataType) -> bool:
    """Whether columns of this type can be written as CSV."""
    try:
        cells_of(pa.nulls(1, kind), ",")
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    return True


class CsvSink:
    """Writes a header, and batches below it."""

    def __init__(
        self, file: TextOut, schema: pa.Schema, delimiter: str, decimal: str = "."
    ) -> None:
        """``delimiter`` is one ASCII character."""
        self._file, self._delimiter, self._decimal = file, delimiter, decimal
        self._write([pa.array([name], pa.string()) for name in schema.names])

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the rows of a batch of the schema."""
        self._write(batch.columns)

    def finish(self) -> None:
        """Write the end."""
        self._file.finish()

    def _cells(self, column: pa.Array) -> pa.Array:
        return cells_of(column, self._delimiter, self._decimal)

    def _write(self, columns: Sequence[pa.Array]) -> None:
        mark = pa.scalar(self._delimiter.encode(), _BYTES)
        pieces = [piece for column in columns for piece in (mark, self._cells(column))]
        self._file.write(text_of(_joined([*pieces[1:], pa.scalar(b"\n", _BYTES)])))


class EditedCsv:
    """Writes the text of a CSV file with private columns in it."""

    def __init__(self, file: TextOut, csv: CsvFile, placement: Placement) -> None:
        """Write the header; names that stay are left as they were written."""
        self._file, self._csv, self._keeps = file, csv, placement.keeps_labels
        kept = [name for name in placement.replaced if name is not None]
        self._places = [csv.names.index(name) for name in kept]
        self._dropped = {csv.names.index(name) for name in placement.dropped}
        header = csv.header.rstrip(b"\r\n")
        header += csv.header[len(header) :] or b"\n"
        if placement.names == placement.replaced and not self._dropped:
            file.write(header)
            return
        row = header.lstrip(b"\r\n")
        file.write(header[: -len(row)])
        form = row_form(csv.delimiter)
        cells, _ = form.cells(row, len(csv.names), form.marks(row).ends)
        self.write(cells, [pa.array([name]) for name in placement.names])

    def write(self, cells: Cells, private: Sequence[pa.Array]) -> None:
        """Write rows of the file with private columns [n]."""
        if self._keeps:
            cells = _as_utf8(cells, self._csv)
        form = self._csv.delimiter, self._csv.decimal
        new = [cells_of(column, *form) for column in private]
        self._file.write(text_of(_joined(list(self._pieces(cells, new)))))

    def finish(self) -> None:
        """Write the end."""
        self._file.finish()

    def _pieces(self, cells: Cells, new: Sequence[pa.Array]) -> Iterator[pa.Array | pa.Scalar]:
        """The text between edits, up to the next row, and the new cells."""
        next_rows = np.append(cells.begins[1:, 0], len(cells.text))
        at = np.append(0, next_rows[:-1])
        drawn = dict(zip(self._places, new, strict=False))
        first = min({*range(len(self._csv.names))} - self._dropped)
        for place in sorted({*drawn, *self._dropped}):
            begins, ends = cells.begins[:, place], cells.ends[:, place]
            if place in self._dropped:  # with the delimiter before it, or else after it
                begins, ends = (begins, ends + 1) if place < first else (begins - 1, ends)
            yield between(cells.text, at, begins)
            if place in drawn:
                yield drawn[place]
            at = ends
        if self._keeps:
            ends = cells.ends[:, -1]
            yield between(cells.text, at, ends)
            for column in new:
                yield pa.scalar(self._csv.delimiter.encode(), _BYTES)
                yield column
            at = ends
        yield between(cells.text, at, next_rows)


def _as_utf8(cells: Cells, csv: CsvFile) -> Cells:
    """The cells; bytes of a true label that is kept, and are no UTF-8, become U+FFFD."""
    try:
        cells.text.decode()
    except UnicodeDecodeError:
        text, form = cells.text.decode(errors="replace").encode(), row_form(csv.delimiter)
        return form.cells(text, len(csv.names), form.marks(text).ends)[0]
    return cells


def _joined(pieces: Sequence[pa.Array | pa.Scalar]) -> pa.Array:
    """[n] the pieces of each row side by side; nulls are nothing."""
    import pyarrow.compute as pc  # noqa: PLC0415  # which looks up all functions

    nothing = pa.scalar(b"", _BYTES)
    return pc.binary_join_element_wise(*pieces, nothing, null_handling="replace")


# The signs that begin a formula, also in full width, also behind space and control characters.
_FORMULA = r"^(?:'|[\s\p{C}\p{Z}]*[=+\-@\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}]|[\t\r\n])"
_NUMBER = r"^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"


def write_new_table(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
    """Write batches of a schema, whole or not at all; returns the number of rows.

    The name decides the format: ``.parquet``, or CSV. Raises DataError.
    """
    rows = 0
    with replaced_when_whole(path) as file:
        if path.suffix.lower() == ".parquet":
            with pq.ParquetWriter(file, schema) as parquet:
                for batch in batches:
                    parquet.write_batch(batch)
                    rows += len(batch)
            return rows
        names = _without_formulas(pa.array(schema.names, pa.string())).to_pylist()
        safe = pa.schema([field.with_name(n) for field, n in zip(schema, names, strict=True)])
        csv = CsvSink(TextOut(file, gzipped=False), safe, ",")
        for batch in batches:
            cells = [_without_formulas(c) if is_text(c.type) else c for c in batch.columns]
            csv.write(pa.RecordBatch.from_arrays(cells, schema=safe))
            rows += len(batch)
        csv.finish()
    return rows


def in_batches(schema: pa.Schema, rows: Iterable[tuple[object, ...]]) -> Iterator[pa.RecordBatch]:
    """Rows of Python values, one for each column, as batches."""
    left = iter(rows)
    while held := list(islice(left, _BATCH)):
        columns = zip(zip(*held, strict=True), schema, strict=True)
        arrays = [pa.array(column, field.type) for column, field in columns]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


_BATCH = 1 << 16


def _without_formulas(texts: pa.Array) -> pa.Array:
    runs = pc.and_not(
        pc.match_substring_regex(texts, _FORMULA), pc.match_substring_regex(texts, _NUMBER)
    )
    marked = pc.binary_join_element_wise("'", texts, "")
    return pc.if_else(runs, marked, texts)
