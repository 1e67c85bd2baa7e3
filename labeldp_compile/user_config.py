"""The user's own configuration: which servers may be connected to, and where the ledger key is.

A spec is somebody else's text. What it must not decide, because it could send a password or a
digest of labels to its author, stands in a file that only the user can write.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labeldp_compile.errors import InputError
from labeldp_compile.own_file import OTHERS_WRITE, read_own

VARIABLE = "LABELDP_CONFIG"
_MAX_BYTES = 1 << 20
_KEY = "ledger.key"


@dataclass(frozen=True)
class UserConfig:
    """What the file says, or what holds without one.

    Attributes:
        path: the file, which need not be there.
        servers: URLs of the databases whose ledgers specs may name.
        ledger_key: the file with the key of the digests of data.
    """

    path: Path
    servers: tuple[str, ...]
    ledger_key: Path


def user_config() -> UserConfig:
    """The configuration of this user.

    ``$LABELDP_CONFIG`` names the file; else it is ``labeldp/config.toml`` in ``$XDG_CONFIG_HOME``
    or ``~/.config``, and need not be there. Raises InputError if others may change it, if it is
    damaged, or if it says something unknown.
    """
    named = os.environ.get(VARIABLE, "")
    path = Path(named).absolute() if named else _default_path()
    try:
        found = read_own(path, _MAX_BYTES)
        if not found.is_file:
            raise InputError(f"{path}: expected a TOML file")
        if found.is_exposed(OTHERS_WRITE):
            raise InputError(
                f"{path}: others may write to it, and it decides where passwords are sent: it must "
                "belong to you and have the mode 600 or 644"
            )
        facts = tomllib.loads(found.data.decode())
    except FileNotFoundError:
        if named:
            raise InputError(f"{path}: does not exist, but {VARIABLE} names it") from None
        facts = {}
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:  # of TOML, of UTF-8, or a NUL in the name
        raise InputError(f"{str(path)!a}: is no TOML: {error}") from error
    return _checked(path, facts)


def _default_path() -> Path:
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    try:
        # The standard ignores a path that is not absolute.
        base = Path(folder) if folder and Path(folder).is_absolute() else Path.home() / ".config"
    except RuntimeError:
        raise InputError(
            f"there is no home folder for the configuration: name a file in {VARIABLE}"
        ) from None
    return base / "labeldp" / "config.toml"


def _checked(path: Path, facts: dict[str, Any]) -> UserConfig:
    ledger = facts.get("ledger", {})
    if not isinstance(ledger, dict) or set(facts) - {"ledger"}:
        raise InputError(f"{path}: expected one table, [ledger]")
    if set(ledger) - {"servers", "key"}:
        raise InputError(f"{path}: [ledger] has servers and key, and nothing else")
    servers, key = ledger.get("servers", []), ledger.get("key", _KEY)
    if not isinstance(servers, list) or not all(isinstance(server, str) for server in servers):
        raise InputError(f'{path}: ledger.servers: expected a list of URLs: ["postgresql://…"]')
    if not isinstance(key, str) or not key or "\0" in key:
        raise InputError(f"{path}: ledger.key: expected the name of a file")
    return UserConfig(path, tuple(servers), path.parent / key)
