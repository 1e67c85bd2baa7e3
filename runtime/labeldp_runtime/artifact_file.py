"""Read an artifact's bytes, and refuse those that cannot be one before anything executes them.

A certificate may also demand something of rows together, which a randomizer of single labels cannot
see. ``labeldp randomize`` counts the rows of each person. Every other host refuses such an
artifact, unless the user says that the rows are prepared.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from labeldp_runtime.errors import (
    ArtifactError,
    ArtifactTooLargeError,
    DamagedArtifactError,
    UnpreparedRowsError,
    UnsupportedFormatError,
)
from labeldp_runtime.wire import WireError, count_fields, fields

MAX_FILE_BYTES = 64 * 1024 * 1024
_MAX_FIELDS = 5_000_000  # a million categories need four million
FORMAT_MAJOR = "1"
_METADATA, _KEY, _VALUE = 14, 1, 2  # fields of an ONNX model, and of an entry of its metadata
_MAX_MODEL_FIELDS = 1 << 16  # an artifact has a dozen
_CHECKSUM = b"labeldp.content_sha256"
_Entry = tuple[bytes, bytes, int, int]  # key, value, where the entry starts and where it ends
_VERSION_KEY = b"labeldp.format_version"
_VERSION = re.compile(rb"([0-9]{1,9})\.[0-9]{1,9}")


def read_bytes(path: Path) -> bytes:
    """The whole file. Raises ArtifactError if it cannot be read or is too large."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read: {error.strerror}") from error
    if len(data) > MAX_FILE_BYTES:
        raise ArtifactTooLargeError(
            f"{path}: is larger than {MAX_FILE_BYTES:,} bytes: it is not a labeldp artifact"
        )
    return data


def check_bytes(data: bytes, source: str) -> None:
    """Raise an error unless the bytes are a whole artifact of a format that this version reads."""
    entries, whole = [], True
    try:
        for entry in _metadata_entries(data):
            entries.append(entry)
    except ValueError:
        whole = False
    versions = [_VERSION.fullmatch(value) for key, value, _, _ in entries if key == _VERSION_KEY]
    if not versions or None in versions:
        raise ArtifactError(
            f"{source}: is not a labeldp artifact, or only part of one: labeldp compile writes them"
        )
    for version in versions:
        if version is not None and version[1].decode() != FORMAT_MAJOR:
            raise UnsupportedFormatError(
                f"{source}: has format {version[1].decode()}, and "
                f"this labeldp-runtime reads {FORMAT_MAJOR}.x: upgrade it"
            )
    if not (whole and _checksum_holds(data, entries)):
        raise DamagedArtifactError(
            f"{source}: is damaged: its checksum is wrong; copy it again from where it was compiled"
        )
    try:
        fields = count_fields(data, _MAX_FIELDS)
    except WireError as error:
        raise ArtifactError(
            f"{source}: is not a labeldp artifact: it is not a protobuf file"
        ) from error
    if fields > _MAX_FIELDS:  # onnxruntime would take gigabytes to find out
        raise ArtifactTooLargeError(
            f"{source}: has more than {_MAX_FIELDS:,} fields: it is not a labeldp artifact"
        )


def _metadata_entries(data: bytes) -> Iterator[_Entry]:
    """The entries of a model's metadata, with repeated keys.

    They are found as a protobuf reader finds them: a text elsewhere in the file that looks like an
    entry does not count. Raises ValueError where the bytes stop being a protobuf message.
    """
    for count, (number, value, start, end) in enumerate(fields(data)):
        if count == _MAX_MODEL_FIELDS:
            raise WireError("more fields than an artifact has")
        if number == _METADATA:
            if not isinstance(value, bytes):
                raise WireError("an entry that is a number")
            parts = {n: part for n, part, _, _ in fields(value)}
            yield parts.get(_KEY, b""), parts.get(_VALUE, b""), start, end


def _checksum_holds(data: bytes, entries: list[_Entry]) -> bool:
    """Whether the file has exactly one checksum in its metadata, and it is right.

    It is the SHA-256 of the same file without the checksum's own entry. It guards against
    accidents, not against forgers: anyone who rewrites the file can write its checksum too.
    """
    checksums = [entry for entry in entries if entry[0] == _CHECKSUM]
    if len(checksums) != 1:
        return False
    _, stated, start, end = checksums[0]
    digest = hashlib.sha256(memoryview(data)[:start])
    digest.update(memoryview(data)[end:])
    return digest.hexdigest().encode() == stated


def row_rules(certificate: Mapping[str, object]) -> list[str]:
    """Conditions on the rows, as plain sentences; empty for most artifacts."""
    found = []
    if "person" in certificate:
        person = _fields(certificate["person"])
        found.append(
            f"a person has at most {person.get('labels_per_person')} rows, over all calls and "
            f"tables; persons are in the column {person.get('column')!r}"
        )
    return found


def require_prepared(certificate: Mapping[str, object], source: str, how: str) -> None:
    """Raise UnpreparedRowsError if there are such rules; ``how`` says what to do."""
    if rules := row_rules(certificate):
        raise UnpreparedRowsError(
            f"{source}: its ε holds only if {'; and '.join(rules)}. Only labeldp randomize "
            f"enforces this: {how}"
        )


def _fields(part: object) -> Mapping[object, object]:
    return part if isinstance(part, Mapping) else {}
