"""The user's configuration, the client's key that it names, and digests of data under this key.

A spec may come from another person. It must not decide where a password or a digest of labels is
sent. That is why the allowed database servers and the key's file are in a file of the user's own.

A ledger keeps a digest of each data file that was read. If its key were in the ledger, a server, or
anyone with a copy of its file, could test guesses of all labels. So the key is in a file of the
user, and all compilers that share a ledger use the same key. The ledger holds the key's hash, and
accepts no other key.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labeldp_runtime.whole_file import replaced_when_whole
from labeldp_verify.errors import readable
from labeldp_verify.graph import canonical_json

from labeldp_compile.errors import DataError, InputError
from labeldp_compile.tabular.formats import files_of
from labeldp_compile.whole_file import read_secret

if TYPE_CHECKING:
    from labeldp_compile.ledger.entries import Entry

VARIABLE = "LABELDP_CONFIG"
_KEY_FILE = "ledger.key"


@dataclass(frozen=True)
class UserConfig:
    """The settings of the file, or the defaults.

    Attributes:
        path: the file, which need not exist.
        servers: URLs of the databases whose ledgers specs may name.
        ledger_key: the file with the key of the digests of data.
    """

    path: Path
    servers: tuple[str, ...]
    ledger_key: Path


def user_config() -> UserConfig:
    """The configuration of this user.

    ``$LABELDP_CONFIG`` names the file. Without it, the file is ``labeldp/config.toml`` in
    ``$XDG_CONFIG_HOME`` or ``~/.config``, and need not exist. Raises InputError if it is damaged or
    has unknown keys.
    """
    named = os.environ.get(VARIABLE, "")
    path = Path(named).absolute() if named else _default_path()
    try:
        facts = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        if named:
            raise InputError(f"{path}: is named by {VARIABLE} but does not exist") from None
        facts = {}
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:  # of TOML, of UTF-8, or a NUL in the name
        raise InputError(f"{str(path)!a}: is not valid TOML: {error}") from error
    return _checked(path, facts)


def _default_path() -> Path:
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    try:
        # The standard ignores a path that is not absolute.
        base = Path(folder) if folder and Path(folder).is_absolute() else Path.home() / ".config"
    except RuntimeError:
        raise InputError(
            f"there is no home folder for the configuration: set {VARIABLE} to a file"
        ) from None
    return base / "labeldp" / "config.toml"


def _checked(path: Path, facts: dict[str, Any]) -> UserConfig:
    ledger = facts.get("ledger", {})
    if not isinstance(ledger, dict) or set(facts) - {"ledger"}:
        raise InputError(f"{path}: expected one table, [ledger]")
    if set(ledger) - {"servers", "key"}:
        raise InputError(f"{path}: [ledger] may only have the keys servers and key")
    servers, key = ledger.get("servers", []), ledger.get("key", _KEY_FILE)
    if not isinstance(servers, list) or not all(isinstance(server, str) for server in servers):
        raise InputError(f'{path}: ledger.servers: expected a list of URLs: ["postgresql://…"]')
    if not isinstance(key, str) or not key or "\0" in key:
        raise InputError(f"{path}: ledger.key: expected the name of a file")
    return UserConfig(path, tuple(servers), path.parent / key)


_TEXT = re.compile(r"[0-9a-f]{64}\s*")
_MAX_BYTES = 1_000
_BLOCK = 1 << 20
_DIGESTS = b"labeldp ledger: digests of data, with "


@dataclass(frozen=True, repr=False)
class ClientKey:
    """32 random bytes, from a file that only its user can read."""

    path: Path
    secret: bytes

    @property
    def sha256(self) -> str:
        """The hash that a ledger stores."""
        return hashlib.sha256(self.secret).hexdigest()

    def digest_key(self, salt: bytes) -> bytes:
        """The key of a ledger's digests; ``salt`` is the ledger's own key, and no secret."""
        return hmac.new(self.secret, _DIGESTS + salt, hashlib.sha256).digest()


def find_client_key() -> ClientKey | None:
    """The key that the configuration names; None if it does not exist.

    Raises InputError if others may read it, or it holds something else.
    """
    path = user_config().ledger_key
    if not path.exists():
        return None
    data, refusal = read_secret(path, _MAX_BYTES)
    if refusal is not None:
        raise InputError(refusal)
    text = data.decode("ascii", "replace")
    if not _TEXT.fullmatch(text):
        raise InputError(f"{path}: expected a key of 64 hexadecimal digits (labeldp ledger init)")
    return ClientKey(path, bytes.fromhex(text.strip()))


def require_bound(client: ClientKey | None, first: Entry, ledger: str) -> ClientKey:
    """The user's key, with which the ledger of this first entry began.

    Raises InputError for another key, or none.
    """
    if client is None:
        raise InputError(
            f"{ledger}: needs its client key, but {user_config().ledger_key} does not exist: copy "
            "the key file of the other compilers there; nothing was spent"
        )
    bound = first.facts["client_key_sha256"]
    if bound != client.sha256:
        raise InputError(
            f"{ledger}: has another client key (SHA-256 {bound[:16]}…) than the one in "
            f"{client.path} ({client.sha256[:16]}…): all compilers of a ledger share one key file; "
            "nothing was spent"
        )
    return client


def make_client_key(say: Callable[[str], None]) -> ClientKey:
    """The key. If there is none, it is made now, and ``say`` gets a line. Raises InputError."""
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
        raise InputError(f"{path}: cannot be created: {error.strerror or error}") from error
    else:
        say(
            f"{path}: a new key, with which ledgers make digests of your data: back it up, and "
            "share it only with the other compilers of a ledger"
        )
    key = find_client_key()
    if key is None:
        raise InputError(f"{path}: was created, but is missing now: run the command again")
    return key


def keyed_digest(key: bytes, table: Path) -> str:
    """HMAC-SHA-256 of a file's bytes.

    Of a folder, that of the names of its parts, each with its own. Raises DataError.
    """
    if not table.is_dir():
        return _of_file(key, table)
    parts = {str(part.relative_to(table)): _of_file(key, part) for part in files_of(table)}
    text = canonical_json(parts).encode("utf-8", "surrogatepass")
    return hmac.new(key, text, hashlib.sha256).hexdigest()


def _of_file(key: bytes, file: Path) -> str:
    mac = hmac.new(key, digestmod=hashlib.sha256)
    with readable(file, DataError), file.open("rb") as stream:
        while block := stream.read(_BLOCK):
            mac.update(block)
    return mac.hexdigest()
