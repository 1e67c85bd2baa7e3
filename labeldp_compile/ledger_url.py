"""The URL of a ledger in a PostgreSQL database; its password is never shown.

No driver is needed: specs are checked without one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from urllib.parse import unquote

from labeldp_compile.errors import InputError

DEFAULT_SCHEMA = "labeldp_ledger"
# Any scheme, so that a URL of something else is refused, and not shown as the name of a file.
_BEGINS = re.compile(r"\s*(?:[a-z][a-z0-9+.-]*://|postgres(?:ql)?:)", re.IGNORECASE)
_IN_A_LINE = re.compile(r"(?<=://).*|(?<=postgresql:).*|(?<=postgres:).*", re.IGNORECASE)
_SCHEMA = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,62}")
_WORD = r"[A-Za-z0-9._~%+-]*"
_HOST = r"(?:[A-Za-z0-9._~%-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]+)?"
# Stricter than libpq: a password with a stray @, / or # must not be taken for a host or a database,
# for those are shown.
_URL = re.compile(
    rf"postgres(?:ql)?://(?:(?P<user>{_WORD})(?P<password>:[^@/?#\s]*)?@)?"
    rf"(?P<hosts>{_HOST}(?:,{_HOST})*)(?:/(?P<database>{_WORD}))?"
    r"(?:\?(?P<query>[a-z_]+=[^&=@?#\s]*(?:&[a-z_]+=[^&=@?#\s]*)*))?"
)
_SHOWN = ("host", "port", "user", "dbname", "service")
_SECRET = {"password", "sslpassword", "scram_client_key", "scram_server_key", "oauth_client_secret"}
_PLAIN = re.compile(r"[A-Za-z0-9._~%+/,-]*")


@dataclass(frozen=True)
class Url:
    """A PostgreSQL URL, taken apart.

    Attributes:
        conninfo: what libpq understands, with the password if there is one.
        name: for messages, without it.
        schema: where the ledger's tables are.
        has_password: whether it holds one, or another secret.
        states_schema: whether the URL states ``schema``.
        parameters: all but schema and secrets, by name; ``hosts``, ``user`` and ``database`` are
            the parts before the question mark.
    """

    conninfo: str
    name: str
    schema: str
    has_password: bool
    states_schema: bool
    parameters: dict[str, str]

    def __repr__(self) -> str:
        """The name: a traceback must not show the password either."""
        return f"Url({self.name!r})"

    @classmethod
    def parse(cls, text: str) -> Url:
        """Read ``postgresql://USER@HOST:PORT/DATABASE?schema=NAME``, with other options of libpq.

        Raises InputError, which does not quote the text: it may hold a password.
        """
        found = _URL.fullmatch(text)
        if found is None:
            raise InputError(
                "postgresql://…: is not the URL of a ledger: expected "
                "postgresql://USER@HOST:PORT/DATABASE?schema=NAME, with %XX for every "
                "character but letters, digits and . _ ~ + -"
            )
        pairs = [pair.split("=") for pair in (found["query"] or "").split("&") if pair]
        schemas = [value for key, value in pairs if key == "schema"]
        schema = schemas[0] if schemas else DEFAULT_SCHEMA
        if len(schemas) > 1 or not _SCHEMA.fullmatch(schema):
            raise InputError(
                "postgresql://…: schema: expected one name of at most 63 lowercase letters, digits "
                "and underscores that does not begin with a digit or pg_"
            )
        rest = [f"{key}={value}" for key, value in pairs if key != "schema"]
        shown = [
            f"{key}={value}" for key, value in pairs if key in _SHOWN and _PLAIN.fullmatch(value)
        ]
        shown += [f"schema={schema}"] if schema != DEFAULT_SCHEMA else []
        user = "" if found["user"] is None else f"{found['user']}@"
        base = f"{found['hosts']}/{found['database'] or ''}"
        secret = f"{found['user']}{found['password']}@" if found["password"] else user
        return cls(
            conninfo=f"postgresql://{secret}{base}" + ("?" + "&".join(rest) if rest else ""),
            name=f"postgresql://{user}{base}" + ("?" + "&".join(shown) if shown else ""),
            schema=schema,
            has_password=found["password"] is not None or any(key in _SECRET for key, _ in pairs),
            states_schema=bool(schemas),
            parameters={
                **{key: unquote(value) for key, value in pairs if key not in {"schema", *_SECRET}},
                **{
                    part: unquote(found[part])
                    for part in ("hosts", "user", "database")
                    if found[part]
                },
            },
        )

    def in_schema(self, schema: str) -> Url:
        """This server with another schema."""
        name = re.sub(r"[?&]schema=[a-z0-9_]*$", "", self.name)
        if schema != DEFAULT_SCHEMA:
            name += f"{'&' if '?' in name else '?'}schema={schema}"
        return replace(self, name=name, schema=schema, states_schema=True)


def is_url(text: str) -> bool:
    """Whether a ledger's name means a database, and not a file."""
    return _BEGINS.match(text) is not None


def why_refused(ledger: str) -> str | None:
    """Why a file that others can read may not name this ledger; None if it may."""
    try:
        if not is_url(ledger) or not Url.parse(ledger).has_password:
            return None
    except InputError as error:
        return str(error)
    return "others can read this file: put the password into ~/.pgpass or PGPASSWORD"


def hidden(line: str) -> str:
    """A line of a spec of the same length, in which only the scheme of a URL is shown."""
    return _IN_A_LINE.sub(lambda found: "•" * len(found[0]), line)
