"""A ledger in a schema of a PostgreSQL database, for compilers on several hosts. Needs psycopg 3.

Deleting this folder deletes the feature: only ``ledger/store.py`` names it.

Transactions are SERIALIZABLE, and one follows another: each begins by locking the table ``turn``,
before its snapshot is taken, so that it sees all that the one before wrote. A number is a primary
key: a writer that does not wait for its turn finds it taken, and begins again. If the connection is
lost during a commit, the token of its rows shows whether the commit was done.

Specs may name only the servers in the user's own configuration. libpq takes passwords from the
environment, ``.pgpass``, service files and tickets, and sends them to the host in a URL. A spec may
come from a stranger. So its URL only selects a server: the configuration describes the connection.
"""

import random
import time
from collections.abc import Callable

from labeldp_compile.errors import InputError
from labeldp_compile.ledger.client_key import UserConfig, user_config
from labeldp_compile.ledger.entries import Entry
from labeldp_compile.ledger.postgres.schema import PostgresRows
from labeldp_compile.ledger.postgres.session import (
    DisturbedError,
    ExistsError,
    LostError,
    Session,
    connected,
)
from labeldp_compile.ledger.store import SECONDS_TO_WAIT, LedgerRows, Say, Store, T
from labeldp_compile.ledger_url import Url

_ATTEMPTS = 20  # of a transaction that writers disturb who do not wait for their turn
_SECONDS_TO_SETTLE = 30.0  # for a server that went away in the middle of a commit
_LONGEST_PAUSE = 2.0
# What decides where a connection goes is the same in both; other parameters may be left out.
_PLACE = ("hosts", "database", "host", "hostaddr", "port", "dbname", "service")


def store_of(text: str, *, by_spec: bool) -> Store:
    """The store of a URL; with ``by_spec``, of the server that the configuration has for it."""
    url = Url.parse(text)
    return PostgresStore(configured(url, user_config()) if by_spec else url)


class PostgresStore(Store):
    """The schema that a URL names: compilers' roles spend, and neither set budgets nor a key."""

    def __init__(self, url: Url) -> None:
        """Nothing is opened yet."""
        self._url, self.name = url, url.name

    def create(self, key: bytes, first: Entry) -> None:
        """Make the schema, unless it is there, and its tables; InputError if those are there."""
        try:
            with connected(self._url) as session, session.transaction():
                if session.execute("SHOW server_encoding") != [("UTF8",)]:
                    raise InputError(f"{self.name}: a ledger needs a database of ENCODING 'UTF8'")
                rows = PostgresRows(session, self.name)
                rows.create_tables()
                session.execute("INSERT INTO {schema}.secret (key) VALUES (%s)", key)
                rows.add(first)
        except LostError as error:
            raise InputError(f"{self.name}: {error}") from error
        except (ExistsError, DisturbedError) as error:
            raise InputError(f"{self.name}: exists already; a ledger is never replaced") from error

    def run(self, body: Callable[[LedgerRows], T], *, waiting: Say | None = None) -> T:
        """See ``Store.run``. A lost connection is an InputError, unless ``waiting`` is given."""
        end = time.monotonic() + SECONDS_TO_WAIT
        disturbed = lost = 0
        while True:
            try:
                return self._once(body)
            except DisturbedError as error:
                disturbed += 1
                if disturbed == _ATTEMPTS:
                    raise InputError(
                        f"{self.name}: other programs, which do not wait for their turn, wrote "
                        f"during each of {_ATTEMPTS} attempts ({error}); nothing was written"
                    ) from error
                _pause(disturbed)
            except LostError as error:
                if waiting is None or time.monotonic() > end:
                    raise InputError(f"{self.name}: {error}; nothing was written") from error
                if not lost:
                    waiting(f"{self.name}: {error}; waiting for the server")
                lost += 1
                _pause(lost)

    def _once(self, body: Callable[[LedgerRows], T]) -> T:
        rows, done = None, False
        try:
            with connected(self._url) as session, session.transaction():
                _take_turn(session)
                rows = PostgresRows(session, self.name)
                result = body(rows)
                done = True  # but for the commit
        except LostError as error:
            # A commit that was not answered may have been done.
            if not done or rows is None:
                raise
            if rows.last is not None and not self._is_written(rows.last, rows.more, error):
                raise
        return result

    def _is_written(self, number: int, token: tuple[str, ...], lost: LostError) -> bool:
        """Whether an entry is, of a transaction whose commit was not answered.

        The turn is had only when that transaction has ended, one way or the other.
        """
        end, tried = time.monotonic() + _SECONDS_TO_SETTLE, 0
        while True:
            try:
                with connected(self._url) as session, session.transaction():
                    _take_turn(session)
                    found = "SELECT token FROM {schema}.entries WHERE number = %s"
                    return session.execute(found, number) == [token]
            except (LostError, DisturbedError, InputError) as error:
                if time.monotonic() > end:
                    raise InputError(
                        f"{self.name}: {lost}; whether entry {number} was written cannot be known "
                        "until the server is back: see labeldp ledger show"
                    ) from error
                tried += 1
                _pause(tried)


def _take_turn(session: Session) -> None:
    """Wait for all other transactions; what is committed from here on is on the disk."""
    if session.execute("SHOW synchronous_commit") == [("off",)]:
        session.execute("SET LOCAL synchronous_commit = on")
    session.execute("LOCK TABLE {schema}.turn IN EXCLUSIVE MODE")


def _pause(times: int) -> None:
    """Wait: longer each time, for a random time that others do not share."""
    longest = min(_LONGEST_PAUSE, 0.05 * 2 ** min(times, 10))
    time.sleep(random.uniform(longest / 2, longest))  # noqa: S311  # no secret


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
