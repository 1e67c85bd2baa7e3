"""The artifacts of a service: each is verified before it answers.

A request becomes columns, ids and a version, and private columns an answer. A label never makes a
request wrong: what is no label of the artifact follows its out-of-domain rule, as everywhere. Only
the shape of a request can be wrong, which does not depend on labels.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
from labeldp_runtime import Key, Randomizer
from labeldp_runtime.artifact_file import row_rules
from labeldp_verify import OWN_FILES, check_bytes, read_artifact
from labeldp_verify.artifact import Artifact
from labeldp_verify.signature import read_signed_beside
from labeldp_verify.strict import read_whole
from pyarrow import types

from labeldp_compile.cli.options import require_prepared_rows
from labeldp_compile.errors import InputError
from labeldp_compile.page.document import page as page_of
from labeldp_compile.page.document import text_of
from labeldp_compile.tabular.formats import key_of

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
_ANY_DIGIT_AS_0 = bytes.maketrans(b"123456789", b"000000000")
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
        # Without numbers of many digits no call for each number; UTF-16 has zero bytes in them.
        is_long = b"0" * (_LONGEST + 1) in body.translate(_ANY_DIGIT_AS_0, b"\0")
        whole = _whole if is_long else None
        request = json.loads(text, parse_int=whole, object_pairs_hook=_object, strict=False)
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


@dataclass(frozen=True)
class Served:
    """One artifact.

    Attributes:
        artifact: what was verified.
        randomizer: which draws its private labels.
        context: the name that keyed words are drawn for; None without a key.
    """

    artifact: Artifact
    randomizer: Randomizer
    context: str | None

    @property
    def name(self) -> str:
        """That of the spec."""
        return self.artifact.certificate.name

    def draw(self, columns: dict[str, Any], ids: Any, version: int) -> dict[str, Any]:
        """Private columns by name, from label and group columns by name.

        Raises LabelError, GroupError or IdError, which say nothing about labels.
        """
        labels, groups = self.randomizer.label_columns, self.randomizer.group_columns
        given: Any = columns[labels[0]] if len(labels) == 1 else columns
        of_groups = {name: columns[name] for name in groups} if groups else None
        drawn: Any = self.randomizer(given, columns=of_groups, ids=ids, version=version)
        return drawn if isinstance(drawn, dict) else {self.randomizer.private_columns[0]: drawn}

    def described(self) -> dict[str, Any]:
        """The facts that a caller must know, as JSON."""
        stated, drawer = self.artifact.certificate, self.randomizer
        return {
            "name": self.name,
            "sha256": self.artifact.sha256,
            "epsilon_label": stated.privacy.epsilon_label_bound,
            "label_columns": dict(zip(drawer.label_columns, drawer.label_types, strict=True)),
            "group_columns": dict(zip(drawer.group_columns, drawer.group_types, strict=True)),
            "private_types": drawer.output_types,
            "keyed": drawer.is_keyed,
            "context": self.context,
            "row_rules": row_rules(drawer.certificate),
        }


def load(
    paths: Sequence[Path],
    key: Path | None,
    context: str | None,
    public_key: Path | None,
    *,
    prepared: bool = False,
) -> dict[str, Served]:
    """The artifacts by their names.

    With a key, words are drawn for ``context``, or for the label's columns where it is None.
    ``prepared`` says that callers send rows that meet what the artifacts demand of them together.

    Raises VerificationError if one does not verify, a RuntimeArtifactError if this platform
    computes wrongly, and InputError or KeyFileError if the input is wrong.
    """
    secret, artifacts = None if key is None else Key.load(key), dict[str, Served]()
    for path in paths:
        data = read_artifact(path)
        signed = None
        if public_key is not None:
            signed = read_signed_beside(path, public_key)
        artifact = check_bytes(data, budget=OWN_FILES, signed=signed).verified()
        key_context = (
            None if secret is None else context or key_of(artifact.certificate.label_columns)
        )
        require_prepared_rows(artifact.certificate, path, prepared=prepared)
        drawer = Randomizer(data, str(path), key=secret, context=key_context, prepared=True)
        one = Served(artifact, drawer, key_context)
        if one.name in artifacts:
            raise InputError(f"{path}: another file has the name {one.name!r}, too")
        artifacts[one.name] = one
    return artifacts


_TYPES = {"int64": "integer", "float64": "number", "string": "string"}
_ERRORS = {
    "400": "The request has a wrong shape.",
    "401": "The token is missing or wrong.",
    "404": "There is no artifact of this name.",
    "413": "The body is too large.",
    "415": "The body has an unknown type.",
    "421": "The host is not this machine's own, and the service has no token.",
    "429": "There were too many requests.",
}


def document(served: Iterable[Served], *, with_token: bool) -> dict[str, Any]:
    """The OpenAPI 3.1 document of a service with these artifacts."""
    text = text_of(
        Path(__file__).with_name("openapi.json.jinja"),
        artifacts=list(map(_operation, served)),
        version=version("labeldp"),
        with_token=with_token,
        arrow=ARROW,
        errors=_ERRORS,
    )
    openapi: dict[str, Any] = json.loads(text)
    return openapi


def _operation(one: Served) -> dict[str, Any]:
    """The facts of the template about one artifact: the columns of a request and of an answer."""
    drawer = one.randomizer
    types = dict(zip(drawer.label_columns, drawer.label_types, strict=True))
    types |= dict(zip(drawer.group_columns, drawer.group_types, strict=True))
    private = dict(zip(drawer.private_columns, drawer.output_types, strict=True))
    parameters = {"id": "the column of ids", "version": "of the labels"}
    return {
        "path": _path(one),
        "name": one.name,
        "epsilon": one.artifact.certificate.privacy.epsilon_label_bound,
        "keyed": drawer.is_keyed,
        "parameters": parameters if drawer.is_keyed else {},
        "given": {name: _array([_TYPES[kind], "null"]) for name, kind in types.items()},
        "private": {name: _array(_TYPES[kind]) for name, kind in private.items()},
    }


def _array(of: object) -> dict[str, Any]:
    return {"type": "array", "items": {"type": of}}


def page(served: Iterable[Served]) -> str:
    """A page that names the artifacts, and shows how to ask each; it loads nothing."""
    folder = Path(__file__).parent
    return page_of("served.html", "labeldp", folder, artifacts=list(map(_shown, served)))


def _shown(one: Served) -> dict[str, Any]:
    """Where an artifact is asked, what it is, in words, and what it is asked."""
    facts = one.described()
    asked: dict[str, Any] = {
        "columns": {name: [None] for name in {**facts["label_columns"], **facts["group_columns"]}}
    }
    if facts["keyed"]:
        asked["ids"] = ["an id of this label"]
    words = {key: _in_words(value) for key, value in facts.items() if value not in ({}, [], None)}
    return {"path": _path(one), "facts": words, "asked": asked}


def _path(one: Served) -> str:
    return f"/v1/artifacts/{quote(one.name, safe='')}/randomize"


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {kind}" for key, kind in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, list) else str(value)
