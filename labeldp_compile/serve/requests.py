"""A request as columns, ids and a version; and private columns as an answer.

A label never makes a request wrong: what is no label of the artifact follows its out-of-domain
rule, as everywhere. Only the shape of a request can be wrong, which does not depend on labels.
"""

import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from labeldp_verify.reading.numerals import read_whole

from labeldp_compile.errors import InputError
from labeldp_compile.serve.arrow_bodies import read_stream

JSON, ARROW = "application/json", "application/vnd.apache.arrow.stream"
_LONGEST = 40  # digits of a whole number: longer ones are no label and no id
_MEMBERS = {"columns", "ids", "version"}
_LAST_VERSION = 2**64 - 1


@dataclass(frozen=True)
class Request:
    """What a caller asks.

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
        found = json.loads(text, parse_int=_whole, object_pairs_hook=_object, strict=False)
    except (ValueError, RecursionError):
        raise InputError("the body is not JSON") from None
    if not isinstance(found, dict) or not set(found) <= _MEMBERS:
        raise InputError("the body is not an object of columns, ids and version")
    columns, ids, version = found.get("columns"), found.get("ids"), found.get("version", 0)
    if not isinstance(columns, dict) or not all(isinstance(c, list) for c in columns.values()):
        raise InputError("columns is not an object of arrays")
    if ids is not None and not isinstance(ids, list):
        raise InputError("ids is not an array")
    if type(version) is not int or not 0 <= version <= _LAST_VERSION:
        raise InputError("version is not a whole number of 64 bits")
    return _checked(columns, ids, version, wanted)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any] | tuple[tuple[str, Any], ...]:
    """A dict, or what is none where a name occurs twice, of which readers take another value."""
    found = dict(pairs)
    return found if len(found) == len(pairs) else tuple(pairs)


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
