"""Read an artifact's bytes, and refuse those that cannot be one before anything executes them."""

from __future__ import annotations

import re
from pathlib import Path

from labeldp_runtime.checksum import checksum_holds, metadata_entries
from labeldp_runtime.errors import (
    ArtifactError,
    ArtifactTooLargeError,
    DamagedArtifactError,
    UnsupportedFormatError,
)
from labeldp_runtime.wire import WireError, count_fields

MAX_FILE_BYTES = 64 * 1024 * 1024
_MAX_FIELDS = 5_000_000  # a million categories need four million
FORMAT_MAJOR = "1"
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
            f"{path}: is larger than {MAX_FILE_BYTES:,} bytes: it is no labeldp artifact"
        )
    return data


def check_bytes(data: bytes, source: str) -> None:
    """Raise an error unless the bytes are a whole artifact of a format that this version reads."""
    entries, whole = [], True
    try:
        for entry in metadata_entries(data):
            entries.append(entry)
    except ValueError:
        whole = False
    versions = [_VERSION.fullmatch(value) for key, value, _, _ in entries if key == _VERSION_KEY]
    if not versions or None in versions:
        raise ArtifactError(
            f"{source}: is no labeldp artifact, or only a part of one: labeldp compile writes them"
        )
    for version in versions:
        if version is not None and version[1].decode() != FORMAT_MAJOR:
            raise UnsupportedFormatError(
                f"{source}: has format {version[1].decode()}, "
                f"this labeldp-runtime reads {FORMAT_MAJOR}.x: upgrade it"
            )
    if not (whole and checksum_holds(data, entries)):
        raise DamagedArtifactError(
            f"{source}: is damaged: its checksum is wrong; copy it again from where it was compiled"
        )
    try:
        fields = count_fields(data, _MAX_FIELDS)
    except WireError as error:
        raise ArtifactError(f"{source}: is no labeldp artifact: it is no protobuf") from error
    if fields > _MAX_FIELDS:  # onnxruntime would take gigabytes to find out
        raise ArtifactTooLargeError(
            f"{source}: holds more than {_MAX_FIELDS:,} parts: it is no labeldp artifact"
        )
