"""Which store a ledger's name means: a file, or a schema of a PostgreSQL database by its URL."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from labeldp_compile.ledger.servers import configured
from labeldp_compile.ledger_url import Url, is_url
from labeldp_compile.user_config import user_config

if TYPE_CHECKING:
    from labeldp_compile.ledger.store import Store


def open_store(where: Path | str, *, by_spec: bool = False) -> Store:
    """The store of a path or a URL, not opened yet; raises InputError for a URL that is none.

    A server that is named by a spec must stand in the user's configuration, which describes the
    connection; others are refused.
    """
    if isinstance(where, str) and is_url(where):
        from labeldp_compile.ledger.postgres_store import PostgresStore  # noqa: PLC0415

        url = Url.parse(where)
        return PostgresStore(configured(url, user_config()) if by_spec else url)
    from labeldp_compile.ledger.sqlite_store import SqliteStore  # noqa: PLC0415

    return SqliteStore(Path(where))


def place_name(where: Path | str) -> str:
    """A path or URL as messages show it, without a password."""
    return open_store(where).name
