"""The tables of a ledger in PostgreSQL, and the triggers with which they refuse changes.

``entries`` and ``secret`` hold what the SQLite file holds. ``token`` is not part of the chain: it
tells a compiler whether its unanswered commit was done. ``turn`` is empty; locking it needs the
right to UPDATE it, a right that nobody needs on the other tables.
"""

import secrets
from typing import Any

from labeldp_verify.printable import one_line

from labeldp_compile.errors import InputError
from labeldp_compile.ledger.entries import FIELDS, BrokenChainError, Entry
from labeldp_compile.ledger.postgres.functions import FOLLOW, REFUSE
from labeldp_compile.ledger.postgres.session import Session
from labeldp_compile.ledger.store import LedgerRows

_TABLES = (
    """CREATE TABLE {schema}.entries (
    number BIGINT PRIMARY KEY,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    previous TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    token TEXT NOT NULL
)""",
    """CREATE TABLE {schema}.secret (
    one BOOLEAN PRIMARY KEY DEFAULT true CHECK (one),
    key BYTEA NOT NULL
)""",
    "CREATE TABLE {schema}.turn ()",
    "REVOKE ALL ON {schema}.entries, {schema}.secret, {schema}.turn FROM PUBLIC",
)
_COLUMNS = {
    "entries": [
        *("number bigint", "kind text", "body text", "previous text", "hash text", "token text")
    ],
    "secret": ["one boolean", "key bytea"],
    "turn": [],
}
_FUNCTIONS = {"refuse": REFUSE, "follow": FOLLOW}
_PATH = "pg_catalog, pg_temp"  # of the functions, for every path of a caller
_KINDS = ", ".join(f"'{kind}'" for kind in FIELDS)
_KIND = f"ADD CONSTRAINT entries_kind CHECK (kind = ANY (ARRAY[{_KINDS}])) NOT VALID"
_ROW, _BEFORE, _INSERT, _DELETE, _UPDATE, _TRUNCATE = 1, 2, 4, 8, 16, 32  # of pg_trigger.tgtype
_CHANGE = "BEFORE UPDATE OR DELETE OR TRUNCATE ON {schema}.%s FOR EACH STATEMENT"
_CHANGES = _BEFORE | _UPDATE | _DELETE | _TRUNCATE
# (table, trigger): (function, when, the same as tgtype)
_TRIGGERS = {
    ("entries", "entries_stay"): ("refuse", _CHANGE % "entries", _CHANGES),
    ("secret", "secret_stays"): ("refuse", _CHANGE % "secret", _CHANGES),
    ("entries", "entries_follow"): (
        "follow",
        "BEFORE INSERT ON {schema}.entries FOR EACH ROW",
        _BEFORE | _INSERT | _ROW,
    ),
}
_FIND_TABLES = """
SELECT c.relname, c.relkind = 'r' AND c.relpersistence = 'p' AND NOT c.relrowsecurity
        AND NOT c.relhasrules AND NOT c.relhassubclass,
    ARRAY(
        SELECT a.attname || ' ' || pg_catalog.format_type(a.atttypid, a.atttypmod)
        FROM pg_catalog.pg_attribute a
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
    )
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname IN ('entries', 'secret', 'turn')
"""
_FIND_TRIGGERS = """
SELECT c.relname, t.tgname, p.proname, t.tgtype::int, p.prosrc
FROM pg_catalog.pg_trigger t
JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid
JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid AND p.pronamespace = c.relnamespace
JOIN pg_catalog.pg_language l ON l.oid = p.prolang AND l.lanname = 'plpgsql'
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND t.tgenabled = 'A' AND t.tgqual IS NULL AND t.tgattr = ''
    AND NOT p.prosecdef AND p.proconfig = ARRAY['search_path=' || %s]
    AND pg_catalog.pg_has_role(p.proowner, c.relowner, 'MEMBER')
"""
_FIND_KIND = """
SELECT pg_catalog.pg_get_expr(k.conbin, k.conrelid)
FROM pg_catalog.pg_constraint k
JOIN pg_catalog.pg_class c ON c.oid = k.conrelid AND c.relname = 'entries'
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND k.contype = 'c' AND k.conname = 'entries_kind'
"""
_IS_OWNER = """
SELECT pg_catalog.pg_has_role(c.relowner, 'USAGE')
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = 'entries'
"""
# The owner of a schema can drop and rename all that is in it.
_FOREIGN_SCHEMA = """
SELECT o.rolname
FROM pg_catalog.pg_namespace n
JOIN pg_catalog.pg_roles o ON o.oid = n.nspowner
JOIN pg_catalog.pg_roles me ON me.rolname = current_user
WHERE n.nspname = %s AND o.oid <> me.oid AND NOT o.rolsuper
    AND (me.rolsuper OR NOT pg_catalog.pg_has_role(me.oid, o.oid, 'MEMBER'))
"""
# Rights on tables and columns, of all but the owner.
_FIND_RIGHTS = """
SELECT c.relname, coalesce(r.rolname, 'PUBLIC'), a.privilege_type, a.grantee = 0
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN LATERAL (
    SELECT grantee, privilege_type FROM pg_catalog.aclexplode(c.relacl)
    UNION ALL
    SELECT x.grantee, x.privilege_type
    FROM pg_catalog.pg_attribute t CROSS JOIN LATERAL pg_catalog.aclexplode(t.attacl) x
    WHERE t.attrelid = c.oid AND NOT t.attisdropped
) a
LEFT JOIN pg_catalog.pg_roles r ON r.oid = a.grantee
WHERE n.nspname = %s AND c.relname IN ('entries', 'secret', 'turn') AND a.grantee <> c.relowner
"""
# What compilers need. With TRIGGER one can have the owner of the tables run one's code.
_RIGHTS = {
    *(("entries", "SELECT"), ("entries", "INSERT"), ("secret", "SELECT")),
    *(("turn", "SELECT"), ("turn", "UPDATE")),
}
# Of the columns that make a number and a hash unique.
_FIND_KEYS = """
SELECT c.relname, a.attname
FROM pg_catalog.pg_index i
JOIN pg_catalog.pg_class c ON c.oid = i.indrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
WHERE n.nspname = %s AND i.indisunique AND i.indisvalid AND i.indimmediate
    AND i.indnkeyatts = 1 AND i.indpred IS NULL AND i.indexprs IS NULL
"""
_KEYS = {("entries", "number"), ("entries", "hash"), ("secret", "one")}


class PostgresRows(LedgerRows):
    """The rows of a ledger inside one transaction of a session."""

    schema, only, mark, more_columns = "{schema}.", "ONLY ", "%s", ", token"

    def __init__(self, session: Session, name: str) -> None:
        """``name`` is the ledger's, for messages."""
        self._session, self._name = session, name
        self.more = (secrets.token_hex(16),)
        self.last: int | None = None

    def execute(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        """See ``Session.execute``."""
        return self._session.execute(text, *values)

    def add(self, entry: Entry) -> None:
        """See ``LedgerRows.add``; ``last`` is then the entry's number."""
        super().add(entry)
        self.last = entry.number

    def create_tables(self) -> None:
        """Make the tables, and the schema if it is not there.

        Raises InputError if the schema belongs to another role.
        """
        for (role,) in self._about(_FOREIGN_SCHEMA):
            raise InputError(
                f"{self._name}: the schema belongs to the role {one_line(role)!a}, who could "
                f"replace the ledger: use another schema, or ALTER SCHEMA {self._session.schema} "
                "OWNER TO its owner"
            )
        if not self._about("SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = %s"):
            self.execute("CREATE SCHEMA {schema}")
        for text in _TABLES:
            self.execute(text)

    def require_tables(self) -> None:
        """Raise unless the tables are a ledger's, survive a crash, and are not for everybody.

        BrokenChainError for other tables; InputError for what its owner can fix.
        """
        name, schema = self._name, self._session.schema
        tables = {row[0]: row[1:] for row in self._about(_FIND_TABLES)}
        whole = all(plain for plain, _ in tables.values())
        if not whole or {table: columns for table, (_, columns) in tables.items()} != _COLUMNS:
            # Unlogged, with row security, rules or children: not all that was written is there.
            raise BrokenChainError(f"{name}: its tables are not those of a ledger")
        for table, role, right, is_public in self._about(_FIND_RIGHTS):
            if is_public:
                raise InputError(
                    f"{name}: everybody may use it, and it holds a secret key: REVOKE ALL ON ALL "
                    f"TABLES IN SCHEMA {schema} FROM PUBLIC"
                )
            if (table, right) not in _RIGHTS:
                raise InputError(
                    f"{name}: the role {one_line(role)!a} has {right} on {table}, which no "
                    "compiler needs and which can undo what the ledger refuses: REVOKE "
                    f"{right} ON {schema}.{table} FROM {one_line(role)!a}"
                )
        if self.execute("SHOW fsync") != [("on",)]:
            raise InputError(
                f"{name}: its server runs with fsync = off, so it could lose what was spent: turn "
                "fsync on"
            )

    @property
    def is_guarded(self) -> bool:
        """Whether the tables have these triggers, which nothing but their owner turns off."""
        schema = f'"{self._session.schema}"'
        sources = {name: body.replace("{schema}", schema) for name, body in _FUNCTIONS.items()}
        wanted = {
            (table, trigger, function, kind, sources[function])
            for (table, trigger), (function, _, kind) in _TRIGGERS.items()
        }
        triggers, keys = set(self._about(_FIND_TRIGGERS, _PATH)), set(self._about(_FIND_KEYS))
        return triggers >= wanted and keys >= _KEYS and self._has_kind()

    def guard(self) -> None:
        """Make what is missing, or is not as it stands here, which only the tables' owner may."""
        if self.is_guarded:
            return
        if self._about(_IS_OWNER) != [(True,)]:
            raise InputError(
                f"{self._name}: cannot be used by this role: its triggers were changed or removed; "
                "the owner of its tables sets them again with the next entry: "
                f"labeldp ledger set-budget {self._name}"
            )
        for table, trigger in _TRIGGERS:
            self.execute(f"DROP TRIGGER IF EXISTS {trigger} ON {{schema}}.{table}")
        for name, body in _FUNCTIONS.items():
            # Not replaced: that would leave it to the role whose it is.
            self.execute(f"DROP FUNCTION IF EXISTS {{schema}}.{name}()")
            self.execute(
                f"CREATE FUNCTION {{schema}}.{name}() RETURNS trigger LANGUAGE plpgsql "
                f"SECURITY INVOKER SET search_path = {_PATH} AS $body${body}$body$"
            )
        for (table, trigger), (function, when, _) in _TRIGGERS.items():
            self.execute(
                f"CREATE TRIGGER {trigger} {when} EXECUTE FUNCTION {{schema}}.{function}()"
            )
            # Always: in a session that plays a replica, too.
            self.execute(f"ALTER TABLE {{schema}}.{table} ENABLE ALWAYS TRIGGER {trigger}")
        if not self._has_kind():
            self.execute("ALTER TABLE {schema}.entries DROP CONSTRAINT IF EXISTS entries_kind")
            # Not valid: it is for new rows, also where an old one has an unknown kind.
            self.execute(f"ALTER TABLE {{schema}}.entries {_KIND}")

    def _has_kind(self) -> bool:
        """Whether the table itself refuses unknown kinds; an expression has operators by oid."""
        constraints = self._about(_FIND_KIND)
        return len(constraints) == 1 and all(f"'{kind}'" in constraints[0][0] for kind in FIELDS)

    def _about(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        """The first value of a query about the ledger's schema."""
        return self.execute(text, self._session.schema, *values)
