"""Keyed digests of data files: whether two files are the same, for nobody without the key.

A plain digest would let anybody confirm a guess of all labels.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from labeldp_verify.graph import canonical_json

from labeldp_compile.errors import DataError
from labeldp_compile.ledger.book import Ledger
from labeldp_compile.ledger.client_key import Binding, ClientKey
from labeldp_compile.ledger.entries import Entry
from labeldp_compile.tabular.parts import files_of

_BLOCK = 1 << 20


@dataclass(frozen=True)
class DigestKeys:
    """The keys of one ledger's digests.

    Attributes:
        new: the key that is derived from the client's.
        old: that of the entries before the adoption; None if there are none.
        adopted: the number of the first entry whose digests have the new key.
    """

    new: bytes
    old: bytes | None
    adopted: int

    @classmethod
    def of(cls, ledger: Ledger, client: ClientKey, binding: Binding) -> DigestKeys:
        """Of an open ledger that the client's key was required of."""
        salt = ledger.key()
        old = salt if binding.mac is not None else None
        return cls(client.digest_key(salt), old, binding.number)

    def digests(self, table: Path) -> FileDigests:
        """Of a file, or a folder of parts, which is read once; raises DataError."""
        keys = [self.new] if self.old is None else [self.new, self.old]
        found = keyed_digests(keys, table)
        return FileDigests(found[0], found[-1], self.adopted)


@dataclass(frozen=True)
class FileDigests:
    """What the digest of a file is in new entries, and would be in those before the adoption."""

    new: str
    old: str
    adopted: int

    def equal(self, prior: Entry) -> bool:
        """Whether a prior is of this file."""
        own = self.new if prior.number >= self.adopted else self.old
        return hmac.compare_digest(own, prior.facts["data_hmac"])


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
