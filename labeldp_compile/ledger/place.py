"""Which store a ledger's name means: a file, or a schema of a PostgreSQL database by its URL.

Specs may name only the servers in the user's own configuration. libpq takes passwords from the
environment, ``.pgpass``, service files and tickets, and sends them to the host in a URL. A spec may
come from a stranger. So its URL only selects a server: the configuration describes the connection.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from labeldp_compile.errors import InputError
from labeldp_compile.ledger_url import Url, is_url
from labeldp_compile.user_config import UserConfig, user_config

if TYPE_CHECKING:
    from labeldp_compile.ledger.store import Store


# What decides where a connection goes is the same in both; other parameters may be left out.
_PLACE = ("hosts", "database", "host", "hostaddr", "port", "dbname", "service")


def open_store(where: Path | str, *, by_spec: bool = False) -> Store:
    """The store of a path or a URL, not opened yet; raises InputError for an invalid URL.

    A server that a spec names must be in the user's configuration, which describes the connection;
    others are refused.
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


def configured(url: Url, config: UserConfig) -> Url:
    """The server of the configuration that a spec's URL names, with the schema of the spec.

    The first one that has the same place, and every other parameter that the spec states. Raises
    InputError if there is none, or an entry of the configuration is not a URL of a server.
    """
    for text in config.servers:
        server = _server(text, config)
        if _names(url.parameters, server.parameters):
            return server.in_schema(url.schema)
    raise InputError(
        f"{url.name}: this spec names a server that is not in your configuration, so your password "
        f"is not sent there. If you trust it, write into {config.path}: [ledger] servers = "
        '["postgresql://…"], with the URL of the spec, but no schema'
    )


def _names(wanted: dict[str, str], server: dict[str, str]) -> bool:
    same = all(wanted.get(key) == server.get(key) for key in _PLACE)
    return same and wanted.items() <= server.items()


def _server(text: str, config: UserConfig) -> Url:
    try:
        server = Url.parse(text)
    except InputError as error:
        raise InputError(f"{config.path}: ledger.servers: {error}") from None
    if server.has_password:
        reason = "has a password: put it into ~/.pgpass or PGPASSWORD instead"
    elif server.states_schema:
        reason = "has a schema, which specs state: leave it out"
    else:
        return server
    raise InputError(f"{config.path}: ledger.servers: {server.name}: {reason}")
