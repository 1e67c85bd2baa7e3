"""The tables and triggers of a ledger in PostgreSQL as earlier versions made them, to be upgraded.

``earlier/`` has a ledger in a file that such a version wrote, with the spec and the labels.
"""

import shutil
import sqlite3
from pathlib import Path

FOLDER = Path(__file__).parent / "earlier"

TABLES = """
CREATE SCHEMA {schema};
SET search_path = {schema};
CREATE TABLE entries (
    number BIGINT PRIMARY KEY,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    previous TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    token TEXT NOT NULL
);
CREATE TABLE secret (
    one BOOLEAN PRIMARY KEY DEFAULT true CHECK (one),
    key BYTEA NOT NULL
);
CREATE TABLE turn ();
REVOKE ALL ON entries, secret, turn FROM PUBLIC;
CREATE FUNCTION {schema}.refuse() RETURNS trigger LANGUAGE plpgsql SECURITY INVOKER AS $body$
BEGIN
    RAISE EXCEPTION 'the % of a ledger is never changed or deleted', TG_TABLE_NAME
        USING ERRCODE = 'integrity_constraint_violation';
END
$body$;
CREATE FUNCTION {schema}.follow() RETURNS trigger LANGUAGE plpgsql SECURITY INVOKER AS $body$
DECLARE
    last RECORD;
BEGIN
    SELECT number, hash INTO last FROM "{schema}".entries ORDER BY number DESC LIMIT 1;
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
$body$;
CREATE TRIGGER entries_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON entries
    FOR EACH STATEMENT EXECUTE FUNCTION refuse();
CREATE TRIGGER secret_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON secret
    FOR EACH STATEMENT EXECUTE FUNCTION refuse();
CREATE TRIGGER entries_follow BEFORE INSERT ON entries
    FOR EACH ROW EXECUTE FUNCTION follow();
ALTER TABLE entries ENABLE ALWAYS TRIGGER entries_stay;
ALTER TABLE secret ENABLE ALWAYS TRIGGER secret_stays;
ALTER TABLE entries ENABLE ALWAYS TRIGGER entries_follow
"""


def bring_earlier(bench):
    """Have the bench's ledger be one that an earlier version wrote: its entries 0 to 3."""
    shutil.copy(FOLDER / "labels.csv", bench.folder)
    file = bench.folder / "budget.ledger"
    shutil.copyfile(FOLDER / "budget.ledger", file)
    file.chmod(0o600)
    if file == bench.ledger:
        return
    old = sqlite3.connect(file)
    connection = bench.server.connect()
    for statement in TABLES.format(schema=bench.schema).split(";\nCREATE"):
        connection.execute(statement if "CREATE" in statement[:10] else f"CREATE{statement}")
    for row in old.execute("SELECT number, kind, body, previous, hash FROM entries"):
        connection.execute("INSERT INTO entries VALUES (%s, %s, %s, %s, %s, 'old')", row)
    key = old.execute("SELECT key FROM secret").fetchone()
    connection.execute("INSERT INTO secret (key) VALUES (%s)", key)
    connection.close()
    old.close()


def earlier_key():
    """The random bytes under which that version digested the data: known to the server."""
    old = sqlite3.connect(FOLDER / "budget.ledger")
    (key,) = old.execute("SELECT key FROM secret").fetchone()
    old.close()
    return key
