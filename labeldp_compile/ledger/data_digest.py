"""Keyed digests of data files: whether two files are the same, for nobody without the key.

A plain digest would let anybody confirm a guess of all labels.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from pathlib import Path

from labeldp_verify.graph import canonical_json

from labeldp_compile.errors import DataError
from labeldp_compile.tabular.parts import files_of

_BLOCK = 1 << 20


def keyed_digests(keys: Sequence[bytes], table: Path) -> list[str]:
    """HMAC-SHA-256 of a file's bytes under each key, in one pass.

    Of a folder, that of the names of its parts, each with its own. Raises DataError.
    """
    if not table.is_dir():
        return _of_file(keys, table)
    parts = [(part.name, _of_file(keys, part)) for part in files_of(table)]
    return [
        hmac.new(
            key,
            canonical_json({name: own[i] for name, own in parts}).encode("utf-8", "surrogatepass"),
            hashlib.sha256,
        ).hexdigest()
        for i, key in enumerate(keys)
    ]


def _of_file(keys: Sequence[bytes], file: Path) -> list[str]:
    macs = [hmac.new(key, digestmod=hashlib.sha256) for key in keys]
    try:
        with file.open("rb") as stream:
            while block := stream.read(_BLOCK):
                for mac in macs:
                    mac.update(block)
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror}") from error
    return [mac.hexdigest() for mac in macs]
