"""The checksum that travels in the file: SHA-256 of the same file without the checksum's own entry.

It guards against accidents, not against forgers: who rewrites the file can write its checksum too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from labeldp_runtime.wire import WireError, varint

_METADATA, _KEY, _VALUE = 14, 1, 2  # fields of an ONNX model, and of an entry of its metadata
_MAX_FIELDS = 1 << 16  # an artifact has a dozen
_CHECKSUM = b"labeldp.content_sha256"
Entry = tuple[bytes, bytes, int, int]  # key, value, where the entry starts and where it ends


def metadata_entries(data: bytes) -> Iterator[Entry]:
    """The entries of a model's metadata, however often a key stands there.

    They are found as a protobuf reader finds them, so that a text elsewhere in the file that looks
    like an entry is none. Raises ValueError where the bytes stop being a protobuf message.
    """
    for count, (number, value, start, end) in enumerate(fields(data)):
        if count == _MAX_FIELDS:
            raise WireError("more fields than an artifact has")
        if number == _METADATA:
            parts = {n: part for n, part, _, _ in fields(value)}
            yield parts.get(_KEY, b""), parts.get(_VALUE, b""), start, end


def checksum_holds(data: bytes, entries: list[Entry]) -> bool:
    """True if the file has exactly one checksum among its metadata, and it is right."""
    checksums = [entry for entry in entries if entry[0] == _CHECKSUM]
    if len(checksums) != 1:
        return False
    _, stated, start, end = checksums[0]
    digest = hashlib.sha256(memoryview(data)[:start])
    digest.update(memoryview(data)[end:])
    return digest.hexdigest().encode() == stated


def fields(data: bytes) -> Iterator[tuple[int, Any, int, int]]:
    """(number, value, start, end) of each field of a message: bytes, or an integer from 0 on.

    Raises WireError where the bytes stop being a message.
    """
    at = 0
    while at < len(data):
        start = at
        try:
            tag, at = varint(data, at)
            value, at = varint(data, at)  # of bytes, how many
        except IndexError:
            raise WireError("an integer does not end") from None
        if tag & 7 not in (0, 2):
            raise WireError("not a field of an artifact")
        if tag & 7 == 0:
            yield tag >> 3, value, start, at
            continue
        if at + value > len(data):
            raise WireError("a field reaches beyond its message")
        yield tag >> 3, data[at : at + value], start, at + value
        at += value
