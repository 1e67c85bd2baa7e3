"""A request as columns, ids and a version; and private columns as an answer.

A label never makes a request wrong: what is no label of the artifact follows its out-of-domain
rule, as everywhere. Only the shape of a request can be wrong, which does not depend on labels.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from labeldp_verify.strict import read_whole
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
    raw = pa.chunked_array(chunks, as_bytes)
    raw.validate(full=True)
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return pa.chunked_array([[_text(value) for value in raw.to_pylist()]], kind)
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


JSON, ARROW = "application/json", "application/vnd.apache.arrow.stream"
_LONGEST = 40  # digits of a whole number: longer ones are no label and no id
_MEMBERS = {"columns", "ids", "version"}
_LAST_VERSION = 2**64 - 1


@dataclass(frozen=True)
class Request:
    """The question of a caller.

    Attributes:
        columns: by name, label and group columns [n].
        ids: [n], or None.
        version: that of the labels.
    """

    columns: dict[str, Any]
    ids: Any
    version: int

    @property
    def rows(self) -> int:
        """How many labels are to be randomized."""
        return len(next(iter(self.columns.values())))


def read_json(body: bytes, wanted: list[str]) -> Request:
    """``{"columns": {NAME: [LABEL]}, "ids": [ID], "version": 0}``. Raises InputError."""
    try:
        # Bytes that are not UTF-8 become surrogates: no error in a label, and an error in an id.
        encoding = json.detect_encoding(body)
        errors = "surrogateescape" if encoding.startswith("utf-8") else "surrogatepass"
        text = body.decode(encoding, errors)
        request = json.loads(text, parse_int=_whole, object_pairs_hook=_object, strict=False)
    except (ValueError, RecursionError):
        raise InputError("the body is not JSON") from None
    if not isinstance(request, dict) or not set(request) <= _MEMBERS:
        raise InputError("the body is not an object of columns, ids and version")
    columns, ids, version = request.get("columns"), request.get("ids"), request.get("version", 0)
    if not isinstance(columns, dict) or not all(isinstance(c, list) for c in columns.values()):
        raise InputError("columns is not an object of arrays")
    if ids is not None and not isinstance(ids, list):
        raise InputError("ids is not an array")
    if type(version) is not int or not 0 <= version <= _LAST_VERSION:
        raise InputError("version is not a whole number of 64 bits")
    return _checked(columns, ids, version, wanted)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any] | tuple[tuple[str, Any], ...]:
    """A dict, or what is none where a name occurs twice, of which readers take another value."""
    members = dict(pairs)
    return members if len(members) == len(pairs) else tuple(pairs)


def read_arrow(
    body: bytes, wanted: list[str], id_column: str | None, version: str | None, most_rows: int
) -> Request:
    """An Arrow stream; ``id_column`` names the column of the ids. Raises InputError."""
    table = read_stream(body, most_rows)
    columns = dict(zip(table.column_names, table.columns, strict=True))
    if len(columns) < table.num_columns:
        raise InputError("two columns have the same name")
    ids = None
    if id_column is not None:
        if id_column not in columns:
            raise InputError("the id column is not in the table")
        ids = columns.pop(id_column)
    try:
        number = 0 if version is None else read_whole(version)
    except ValueError:
        number = -1
    if not 0 <= number <= _LAST_VERSION:
        raise InputError("version is not a whole number of 64 bits")
    return _checked(columns, ids, number, wanted)


def _checked(columns: dict[str, Any], ids: Any, version: int, wanted: list[str]) -> Request:
    if set(columns) != set(wanted):
        raise InputError(f"the columns must be exactly {', '.join(map(repr, wanted))}")
    lengths = {len(column) for column in columns.values()} | (
        {len(ids)} if ids is not None else set()
    )
    if len(lengths) > 1:
        raise InputError("the columns and ids have different lengths")
    return Request(columns, ids, version)


def json_answer(private: dict[str, Any]) -> bytes:
    """``{"columns": {NAME: [PRIVATE LABEL]}}``, in ASCII: a category may steer a terminal."""
    columns = {name: column.tolist() for name, column in private.items()}
    return json.dumps({"columns": columns}).encode()


def arrow_answer(private: dict[str, Any], id_column: str | None, ids: Any) -> bytes:
    """A stream of the ids, if there are any, and the private columns."""
    columns = {} if id_column is None else {id_column: ids}
    table = pa.table({**columns, **private})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _whole(text: str) -> int | float:
    return int(text) if len(text) <= _LONGEST else float(text)
