"""Which store a ledger's name means: a file, or a schema of a PostgreSQL database by its URL."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from labeldp_compile.ledger.servers import configured
from labeldp_compile.ledger_url import Url, is_url
from labeldp_compile.user_config import user_config

if TYPE_CHECKING:
    from labeldp_compile.ledger.store import Store


def in_folder(directory: Path, ledger: str) -> str | Path:
    """A ledger as a spec names it: a URL, or a path relative to the spec."""
    return ledger if is_url(ledger) else directory / ledger


def open_store(where: Path | str) -> Store:
    """The store of a path or a URL, not opened yet; raises InputError for a URL that is none."""
    if isinstance(where, str) and is_url(where):
        from labeldp_compile.ledger.postgres_store import PostgresStore  # noqa: PLC0415

        return PostgresStore(Url.parse(where))
    from labeldp_compile.ledger.sqlite_store import SqliteStore  # noqa: PLC0415

    return SqliteStore(Path(where))


def place_name(where: Path | str) -> str:
    """A path or URL as messages show it, without a password."""
    return open_store(where).name


def open_named_store(where: Path | str) -> Store:
    """The store that a spec names: a server must stand in the user's configuration.

    The connection is the one that the configuration describes; raises InputError.
    """
    if isinstance(where, str) and is_url(where):
        from labeldp_compile.ledger.postgres_store import PostgresStore  # noqa: PLC0415

        return PostgresStore(configured(Url.parse(where), user_config()))
    return open_store(where)
