"""A connection to the schema of one ledger, and what its errors mean. Needs psycopg 3."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from labeldp_verify.printable import one_line

from labeldp_compile.errors import InputError
from labeldp_compile.ledger.store import SECONDS_TO_WAIT
from labeldp_compile.ledger_url import Url

_LONGEST = 400  # characters of the server's words
# A URL may set others. A connection that stays silent is given up after a minute.
_DEFAULTS: dict[str, Any] = {
    "application_name": "labeldp",
    "connect_timeout": "10",
    "keepalives_idle": "20",
    "keepalives_interval": "10",
    "keepalives_count": "4",
    "tcp_user_timeout": "60000",
    "target_session_attrs": "read-write",
}
_DISTURBED = ("40001", "40P01", "23505")  # serialization, deadlock, a number that is taken
_AWAY = ("08", "57P", "25P03", "53")  # connection, shutdown, idle for too long, no room
_NO_TABLE = ("42P01", "3F000")
_EXISTS = ("42P06", "42P07", "42723")  # a schema, a table, a function
_NO_LEDGER = "the schema {!r} holds no ledger; create one with: labeldp ledger init postgresql://…"


class DisturbedError(Exception):
    """Others wrote: nothing of the transaction is kept, and it can begin again."""


class ExistsError(Exception):
    """The table or schema exists already."""


class LostError(Exception):
    """The server is away or full: nothing of the transaction is kept, or that is unknown."""


@dataclass(frozen=True)
class Session:
    """An open connection that knows its schema."""

    connection: Any
    schema: str

    def execute(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows that a statement gives; ``{schema}`` in it stands for the ledger's."""
        # The name is one of small letters, digits and underscores (Url), and quoted all the same.
        query = text.replace("{schema}", f'"{self.schema}"').encode()
        cursor = self.connection.execute(query, values or None)
        return cursor.fetchall() if cursor.description is not None else []

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Committed at the end; after an exception, closing the connection undoes all of it."""
        self.execute("BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE")
        # Names without a schema mean those of PostgreSQL. A pooled connection may have temporary
        # tables, types or operators of its previous user. And a client that is stopped, or whose
        # host is gone, must not keep others waiting for ever.
        self.execute("SET LOCAL search_path = pg_catalog, pg_temp")
        self.execute(f"SET LOCAL lock_timeout = {int(1000 * SECONDS_TO_WAIT)}")
        self.execute("SET LOCAL idle_in_transaction_session_timeout = 60000")
        yield
        self.execute("COMMIT")


@contextmanager
def connected(url: Url) -> Iterator[Session]:
    """A session, closed at the end.

    Raises LostError if the server is away; what else psycopg finds wrong is raised as LostError,
    DisturbedError or InputError.
    """
    psycopg = _driver(url.name)
    try:
        given = psycopg.conninfo.conninfo_to_dict(url.conninfo)
    except psycopg.Error:  # whose message may hold the whole URL
        raise InputError(
            f"{url.name}: has a parameter that PostgreSQL's libpq does not know, or a %XX that is "
            "not a character"
        ) from None
    try:
        connection = psycopg.connect(
            **{**_DEFAULTS, **given, "client_encoding": "utf8"},
            autocommit=True,
            prepare_threshold=None,  # which connection poolers do not support
        )
    except psycopg.Error as error:
        raise LostError(f"cannot be reached: {_words(error)}") from None
    try:
        yield Session(connection, url.schema)
    except psycopg.Error as error:
        raise _explained(url, error, lost=connection.closed) from error
    finally:
        connection.close()  # inside a transaction: a rollback


def _driver(name: str) -> Any:
    try:
        import psycopg  # noqa: PLC0415  # of an extra
    except ImportError as error:
        raise InputError(
            f"{name}: needs psycopg, the extra labeldp[postgres]: pip install 'psycopg[binary]'"
        ) from error
    return psycopg


def _explained(url: Url, error: Any, *, lost: bool) -> Exception:
    state, words = error.sqlstate or "", _words(error)
    if state in _DISTURBED:
        return DisturbedError(words)
    if lost or state.startswith(_AWAY):
        return LostError(f"the connection was lost: {words}" if lost else words)
    if state in _EXISTS:
        return ExistsError(words)
    reasons = {
        **dict.fromkeys(_NO_TABLE, _NO_LEDGER.format(url.schema)),
        "42501": f"cannot be used by this role: {words}",
        "55P03": f"another session has kept it locked for {SECONDS_TO_WAIT:g} seconds",
    }
    return InputError(f"{url.name}: {reasons.get(state, f'cannot be used: {words}')}")


def _words(error: Any) -> str:
    text = error.diag.message_primary or str(error)
    return one_line(" ".join(text.split()))[:_LONGEST]
