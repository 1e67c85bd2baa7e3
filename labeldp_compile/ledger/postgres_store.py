"""A ledger in a schema of a PostgreSQL database, for compilers on several hosts.

Transactions are SERIALIZABLE, and one follows another: each begins by locking the table ``turn``,
before its snapshot is taken, so that it sees all that the one before wrote. A number is a primary
key: a writer that does not wait for its turn finds it taken, and begins again. If the connection is
lost during a commit, the token of its rows shows whether the commit was done.
"""

import random
import time
from collections.abc import Callable

from labeldp_compile.errors import InputError
from labeldp_compile.ledger.entries import Entry
from labeldp_compile.ledger.postgres_schema import PostgresRows
from labeldp_compile.ledger.postgres_session import (
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


class PostgresStore(Store):
    """The schema that a URL names: compilers' roles spend, and neither set budgets nor a key."""

    is_own = False

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
