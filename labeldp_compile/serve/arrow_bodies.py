"""Arrow streams from callers: read without expanding what they compress, and with a limit of rows.

A few bytes of a stream can stand for gigabytes: compressed buffers, columns of nulls, dictionaries.
So messages of such kinds are refused before they are read, and rows are counted first. A text that
is not UTF-8 is no error: it may be a label, which must not show.
"""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
from pyarrow import types

from labeldp_compile.errors import InputError

_SCHEMA, _RECORD_BATCH = 1, 3  # kinds of messages in the schema of Arrow
_HEADER_KIND, _HEADER = 1, 2  # places of fields of a message
_LENGTH, _COMPRESSION = 0, 3  # and of a record batch
_PLAIN = (
    types.is_integer,
    types.is_floating,
    types.is_boolean,
    types.is_string,
    types.is_large_string,
    types.is_binary,
    types.is_large_binary,
    types.is_fixed_size_binary,
    types.is_null,
)


def read_stream(body: bytes, most_rows: int) -> pa.Table:
    """The table of a stream, with texts that are not UTF-8 as nulls. Raises InputError."""
    try:
        _require_plain(body, most_rows)
        table = pa.ipc.open_stream(body).read_all()
        for field in table.schema:
            if not any(of_kind(field.type) for of_kind in _PLAIN):
                raise InputError(
                    "a column is neither numbers, text nor bytes: send plain columns, not "
                    "dictionaries or nested types"
                )
        return pa.table([_sound(column) for column in table.columns], names=table.column_names)
    except InputError:
        raise
    except (pa.ArrowException, OSError, struct.error, IndexError, ValueError, TypeError):
        raise InputError("the body is not an Arrow stream") from None


def _sound(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column whose buffers are as long as they say."""
    kind = column.type
    if not (types.is_string(kind) or types.is_large_string(kind)):
        column.validate(full=True)
        return column
    as_bytes = pa.large_binary() if types.is_large_string(kind) else pa.binary()
    chunks = [chunk.view(as_bytes) for chunk in column.chunks]
    found = pa.chunked_array(chunks, as_bytes)
    found.validate(full=True)
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return pa.chunked_array([[_text(value) for value in found.to_pylist()]], kind)
    return column


def _text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def _require_plain(body: bytes, most_rows: int) -> None:
    """Raise InputError for compressed messages, for dictionaries, and for too many rows."""
    rows, reader = 0, pa.ipc.MessageReader.open_stream(body)
    while True:
        try:
            message = reader.read_next_message()
        except StopIteration:
            return
        metadata: Any = message.metadata.to_pybytes()
        root = _Table(metadata, struct.unpack_from("<I", metadata)[0])
        kind = root.byte(_HEADER_KIND)
        if kind == _SCHEMA:
            continue
        if kind != _RECORD_BATCH:
            raise InputError("the stream has messages other than record batches")
        batch = root.table(_HEADER)
        if batch.has(_COMPRESSION):
            raise InputError("the stream is compressed: send it uncompressed")
        rows += batch.long(_LENGTH)
        if rows > most_rows:
            raise InputError(f"the stream has more than {most_rows:,} rows")


class _Table:
    """A table of a flatbuffer: https://flatbuffers.dev/internals."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at
        self.fields = at - struct.unpack_from("<i", data, at)[0]

    def _place(self, field: int) -> int:
        """Where a field is; 0 if it is left out."""
        (size,) = struct.unpack_from("<H", self.data, self.fields)
        entry = 4 + 2 * field
        offset = struct.unpack_from("<H", self.data, self.fields + entry)[0] if entry < size else 0
        return self.at + offset if offset else 0

    def has(self, field: int) -> bool:
        return self._place(field) > 0

    def byte(self, field: int) -> int:
        place = self._place(field)
        return self.data[place] if place else 0

    def long(self, field: int) -> int:
        place = self._place(field)
        found: int = struct.unpack_from("<q", self.data, place)[0] if place else 0
        if found < 0:
            raise ValueError("a negative number of rows")
        return found

    def table(self, field: int) -> _Table:
        place = self._place(field)
        if not place:
            raise ValueError("a message without its header")
        return _Table(self.data, place + struct.unpack_from("<I", self.data, place)[0])
