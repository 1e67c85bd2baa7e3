"""The tables of a ledger in PostgreSQL, and the triggers with which they refuse changes.

``entries`` and ``secret`` hold what the SQLite file holds. ``token`` is not part of the chain: it
tells a compiler whether a commit that was not answered was its own. ``turn`` is empty; to lock it
needs the right to UPDATE it, which nobody needs of the others.
"""

from __future__ import annotations

from labeldp_compile.errors import InputError
from labeldp_compile.ledger.entries import BrokenChainError
from labeldp_compile.ledger.postgres_session import Session

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
_REFUSE = """
BEGIN
    RAISE EXCEPTION 'the % of a ledger is never changed or deleted', TG_TABLE_NAME
        USING ERRCODE = 'integrity_constraint_violation';
END
"""
# A row that does not follow may be of somebody who wrote at the same time: 40001 lets psycopg's
# users, and this program, begin again. Budgets are set by who owns the table, not by compilers.
_FOLLOW = """
DECLARE
    last RECORD;
BEGIN
    SELECT number, hash INTO last FROM {schema}.entries ORDER BY number DESC LIMIT 1;
    IF NEW.number IS DISTINCT FROM coalesce(last.number, -1) + 1
        OR NEW.previous IS DISTINCT FROM coalesce(last.hash, pg_catalog.repeat('0', 64)) THEN
        RAISE EXCEPTION 'entries of a ledger follow one another'
            USING ERRCODE = 'serialization_failure';
    END IF;
    IF NEW.kind IN ('ledger', 'budget') AND NOT pg_catalog.pg_has_role(
        current_user, (SELECT relowner FROM pg_catalog.pg_class WHERE oid = TG_RELID), 'MEMBER'
    ) THEN
        RAISE EXCEPTION 'only the owner of a ledger sets budgets'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END
"""
_FUNCTIONS = {"refuse": _REFUSE, "follow": _FOLLOW}
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
    EXISTS (SELECT FROM pg_catalog.aclexplode(c.relacl) WHERE grantee = 0),
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
    AND NOT p.prosecdef
"""
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


def create_tables(session: Session) -> None:
    """Make them, and the schema if it is not there."""
    found = "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = %s"
    if not session.execute(found, session.schema):
        session.execute("CREATE SCHEMA {schema}")
    for text in _TABLES:
        session.execute(text)


def require_tables(session: Session, name: str) -> None:
    """Raise unless the tables are a ledger's, survive a crash, and are not for everybody.

    BrokenChainError for other tables; InputError for what its owner can mend.
    """
    found = {row[0]: row[1:] for row in session.execute(_FIND_TABLES, session.schema)}
    whole = all(plain for plain, _, _ in found.values())
    if not whole or {table: columns for table, (*_, columns) in found.items()} != _COLUMNS:
        # Unlogged, with row security, rules or children: not all that was written is there.
        raise BrokenChainError(f"{name}: its tables are not those of a ledger")
    if any(public for _, public, _ in found.values()):
        raise InputError(
            f"{name}: others may use it; it holds a secret key: REVOKE ALL ON ALL TABLES IN SCHEMA "
            f"{session.schema} FROM PUBLIC"
        )
    if session.execute("SHOW fsync") != [("on",)]:
        raise InputError(
            f"{name}: its server runs with fsync = off: what was spent could be forgotten"
        )


def is_guarded(session: Session) -> bool:
    """Whether the tables have these triggers, which nothing but their owner turns off."""
    found = set(session.execute(_FIND_TRIGGERS, session.schema))
    keys = set(session.execute(_FIND_KEYS, session.schema))
    return found >= _guards(session) and keys >= _KEYS


def set_guards(session: Session) -> None:
    """Make those that are missing, or are not as they stand here, inside a transaction."""
    if is_guarded(session):
        return
    for name, body in _FUNCTIONS.items():
        session.execute(
            f"CREATE OR REPLACE FUNCTION {{schema}}.{name}() RETURNS trigger LANGUAGE plpgsql "
            f"SECURITY INVOKER AS $body${body}$body$"
        )
    for (table, trigger), (function, when, _) in _TRIGGERS.items():
        session.execute(f"DROP TRIGGER IF EXISTS {trigger} ON {{schema}}.{table}")
        session.execute(f"CREATE TRIGGER {trigger} {when} EXECUTE FUNCTION {{schema}}.{function}()")
        # Always: in a session that plays a replica, too.
        session.execute(f"ALTER TABLE {{schema}}.{table} ENABLE ALWAYS TRIGGER {trigger}")


def _guards(session: Session) -> set[tuple[object, ...]]:
    return {
        (table, trigger, function, kind, _source(_FUNCTIONS[function], session))
        for (table, trigger), (function, _, kind) in _TRIGGERS.items()
    }


def _source(body: str, session: Session) -> str:
    return body.replace("{schema}", f'"{session.schema}"')
