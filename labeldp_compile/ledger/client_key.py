"""The client's key, and digests of data under it: nobody else can confirm a guess of labels.

A ledger keeps a digest of each data file that was read. The key of that digest was in the ledger
once, so that a server, or anybody who gave a ledger's file away, could test guesses of all labels.
It is in a file of the user's now, one for all compilers that share a ledger; the ledger has its
hash, and no other key is taken.

A ledger that an earlier labeldp began is adopted: an entry states the hash of the client's key and
a MAC, under this key, of the hash of the entry before. Only priors before it are compared under the
ledger's own key. Nobody without the client's key can add such priors: a comparison with a digest
that the server chose would tell it whether its guess was right.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from labeldp_runtime.whole_file import replaced_when_whole
from labeldp_verify.graph import canonical_json

from labeldp_compile.errors import DataError, InputError
from labeldp_compile.ledger.entries import Entry
from labeldp_compile.own_file import OTHERS, read_own
from labeldp_compile.tabular.formats import files_of
from labeldp_compile.user_config import user_config

_TEXT = re.compile(r"[0-9a-f]{64}\s*")
_MAX_BYTES = 1_000
_BLOCK = 1 << 20
_ADOPTS = b"labeldp ledger: adopted after entry "
_DIGESTS = b"labeldp ledger: digests of data, with "


@dataclass(frozen=True)
class Binding:
    """Which client key a ledger takes.

    Attributes:
        number: of the entry that says so; digests in entries before it have the ledger's own key.
        key_sha256: hash of the client's key.
        mac: that of an adoption; None where the ledger began with this key.
        previous: hash of the entry before.
    """

    number: int
    key_sha256: str
    mac: str | None
    previous: str


@dataclass(frozen=True, repr=False)
class ClientKey:
    """32 random bytes, from a file that only its user can read."""

    path: Path
    secret: bytes

    @property
    def sha256(self) -> str:
        """The hash by which a ledger knows it."""
        return hashlib.sha256(self.secret).hexdigest()

    def adoption(self, previous: str) -> str:
        """The MAC with which a ledger is adopted, after the entry that has this hash."""
        return hmac.new(self.secret, _ADOPTS + previous.encode(), hashlib.sha256).hexdigest()

    def digest_key(self, salt: bytes) -> bytes:
        """The key of a ledger's digests; ``salt`` is the ledger's own key, which may be known."""
        return hmac.new(self.secret, _DIGESTS + salt, hashlib.sha256).digest()


def binding_of(entries: Sequence[Entry]) -> Binding | None:
    """The client key that a ledger takes; None for one that an earlier labeldp began."""
    for entry in entries:
        found = entry.facts.get("client_key_sha256") if entry.kind in ("ledger", "key") else None
        if found is not None:
            return Binding(entry.number, found, entry.facts.get("mac"), entry.previous)
    return None


def find_client_key() -> ClientKey | None:
    """The key that the configuration names; None if there is no such file.

    Raises InputError if others may read it, or it holds something else.
    """
    path = user_config().ledger_key
    try:
        found = read_own(path, _MAX_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    if not found.is_file:
        raise InputError(f"{path}: expected a key file")
    if found.is_exposed(OTHERS):
        raise InputError(f"{path}: others may read this key: chmod 600 {path}")
    text = found.data.decode("ascii", "replace")
    if not _TEXT.fullmatch(text):
        raise InputError(f"{path}: expected a key of 64 hexadecimal digits (labeldp ledger init)")
    return ClientKey(path, bytes.fromhex(text.strip()))


def require_bound(client: ClientKey | None, entries: Sequence[Entry], ledger: str) -> Binding:
    """How the ledger was begun, or adopted, with the user's key; InputError if it was not."""
    binding = binding_of(entries)
    if binding is None:
        raise InputError(
            f"{ledger}: was begun by an earlier labeldp, whose digests of labels the server "
            "can test guesses against; its owner gives it a client key with: "
            f"labeldp ledger upgrade {ledger}; nothing was spent"
        )
    if client is None:
        raise InputError(
            f"{ledger}: digests its data with a client key, and {user_config().ledger_key} does "
            "not exist: copy the key file of the other compilers there; nothing was spent"
        )
    if binding.key_sha256 != client.sha256:
        raise InputError(
            f"{ledger}: digests its data with another client key (SHA-256 "
            f"{binding.key_sha256[:16]}…) than {client.path} ({client.sha256[:16]}…): all "
            "compilers of a ledger share one key file; nothing was spent"
        )
    if binding.mac is not None and not hmac.compare_digest(
        binding.mac, client.adoption(binding.previous)
    ):
        raise InputError(
            f"{ledger}: entry {binding.number} adopts the ledger, but not with the key in "
            f"{client.path}: somebody without the key wrote it; nothing was spent"
        )
    return binding


def make_client_key(say: Callable[[str], None]) -> ClientKey:
    """The key, made now if there is none, which ``say`` is told; raises InputError."""
    key = find_client_key()
    if key is not None:
        return key
    path = user_config().ledger_key
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with replaced_when_whole(path, most=0o600, replace=False) as file:
            file.write(f"{secrets.token_hex(32)}\n".encode())
    except FileExistsError:
        pass  # another process was faster
    except OSError as error:
        raise InputError(f"{path}: cannot be made: {error.strerror or error}") from error
    else:
        say(
            f"{path}: a new key, with which ledgers digest your data: back it up, share it with "
            "the other compilers of a ledger, and with nobody else"
        )
    key = find_client_key()
    if key is None:
        raise InputError(f"{path}: was made and is gone")
    return key


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
