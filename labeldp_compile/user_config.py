"""The user's own configuration: the allowed database servers, and the file with the ledger key.

A spec may come from another person. It must not decide where a password or a digest of labels is
sent. That is why these settings are in a file of the user's own.
"""

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labeldp_compile.errors import InputError

VARIABLE = "LABELDP_CONFIG"
_KEY = "ledger.key"


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
    servers, key = ledger.get("servers", []), ledger.get("key", _KEY)
    if not isinstance(servers, list) or not all(isinstance(server, str) for server in servers):
        raise InputError(f'{path}: ledger.servers: expected a list of URLs: ["postgresql://…"]')
    if not isinstance(key, str) or not key or "\0" in key:
        raise InputError(f"{path}: ledger.key: expected the name of a file")
    return UserConfig(path, tuple(servers), path.parent / key)
