"""What a ledger in PostgreSQL refuses, whom it trusts with what, and what it says."""

import pytest

from labeldp_compile.errors import InputError
from labeldp_compile.ledger import postgres as postgres_store
from labeldp_compile.ledger.book import in_transaction
from labeldp_compile.ledger.entries import next_entry
from labeldp_compile.ledger.postgres import session as postgres_session
from labeldp_compile.ledger.store import open_store
from tests.ledger.postgres import PASSWORD


@pytest.fixture
def store():
    return "postgres"


def verify(bench):
    return bench.run("ledger", "verify", bench.ledger)


def contents(bench):
    connection = bench.owner()
    tables = [connection.execute(f"SELECT * FROM {t}").fetchall() for t in ("entries", "secret")]
    connection.close()
    return tables


def sql(bench, *statements, **who):
    """Run by the owner, or by ``user``, each in a transaction of its own."""
    connection = bench.server.connect(**who)
    connection.execute(f"SET search_path = {bench.schema}")
    try:
        for statement in statements:
            connection.execute(statement)
    finally:
        connection.close()


LAST = "(SELECT hash FROM entries ORDER BY number DESC LIMIT 1)"
NEVER = [
    "UPDATE entries SET body = ''",
    "DELETE FROM entries WHERE number = 3",
    "TRUNCATE entries",
    "INSERT INTO entries VALUES (9, 'a', 'b', 'c', 'd', 'e')",
    "INSERT INTO entries VALUES (4, 'a', 'b', 'c', 'd', 'e')",
    f"INSERT INTO entries VALUES (3, 'a', 'b', {LAST}, 'd', 'e')",
    f"INSERT INTO entries VALUES (4, 'a', 'b', {LAST}, {LAST}, 'e')",
    f"INSERT INTO entries VALUES (3, 'a', 'b', {LAST}, 'd', 'e') "
    "ON CONFLICT (number) DO UPDATE SET body = ''",
    f"INSERT INTO entries VALUES (4, 'a', 'b', {LAST}, {LAST}, 'e') "
    "ON CONFLICT (hash) DO UPDATE SET body = ''",
    f"INSERT INTO entries VALUES (4, 'a', 'b', {LAST}, 'd', 'e'), (5, 'a', 'b', {LAST}, 'f', 'e')",
    f"INSERT INTO entries VALUES (NULL, 'a', 'b', {LAST}, 'd', 'e')",
    "WITH gone AS (DELETE FROM entries RETURNING *) SELECT * FROM gone",
    "UPDATE secret SET key = ''",
    "DELETE FROM secret",
    "INSERT INTO secret (key) VALUES ('')",
    "INSERT INTO secret (key) VALUES ('') ON CONFLICT (one) DO UPDATE SET key = ''",
]


@pytest.mark.parametrize("replica", [False, True], ids=["session", "replica"])
def test_the_tables_refuse_what_a_ledger_never_does(used, replica):
    import psycopg

    before = contents(used)
    for statement in NEVER:
        role = "SET session_replication_role = replica" if replica else "SELECT 1"
        with pytest.raises(psycopg.Error) as caught:
            sql(used, role, statement)
        # 23: integrity, 40001: does not follow. Not a statement that makes no sense.
        assert caught.value.sqlstate[:2] in ("23", "40"), (statement, caught.value)
        assert contents(used) == before, statement
    assert verify(used).exit_code == 0 and "it refuses to change" in verify(used).stdout


@pytest.mark.parametrize(
    "change",
    [
        "DROP TRIGGER entries_stay ON entries",
        "ALTER TABLE secret DISABLE TRIGGER secret_stays",
        "ALTER TABLE entries ENABLE TRIGGER entries_follow",  # but not for replicas
        "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql "
        "AS 'BEGIN RETURN NULL; END'",
        "CREATE OR REPLACE TRIGGER entries_follow BEFORE INSERT ON entries FOR EACH ROW "
        "WHEN (NEW.number < 0) EXECUTE FUNCTION follow()",
        "CREATE OR REPLACE TRIGGER entries_stay BEFORE UPDATE OF token ON entries "
        "FOR EACH STATEMENT EXECUTE FUNCTION refuse()",
        "ALTER FUNCTION follow() SET search_path = pg_temp, pg_catalog",
        "ALTER FUNCTION refuse() SECURITY DEFINER",
        "ALTER TABLE entries DROP CONSTRAINT entries_kind",
    ],
)
def test_triggers_that_were_taken_away_are_set_by_the_next_entry(used, change):
    sql(used, change)
    result = verify(used)
    assert result.exit_code == 0 and "note   file" in result.stdout
    assert used.compile("other", last="9").exit_code == 0
    assert "ok     file" in verify(used).stdout


@pytest.mark.parametrize(
    "body", ["RETURN NULL;", "NEW.body = '{}'; RETURN NEW;", "NEW.token = 'mine'; RETURN NEW;"]
)
def test_nothing_is_read_that_a_trigger_keeps_out_or_alters(used, body):
    sql(
        used,
        f"CREATE FUNCTION other() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN {body} END$$",
        "CREATE TRIGGER z BEFORE INSERT ON entries FOR EACH ROW EXECUTE FUNCTION other()",
    )
    before = contents(used)
    result = used.compile("other", last="9")
    assert result.exit_code == 1 and "keeps entries out of it" in result.stderr
    assert contents(used) == before


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ("ALTER TABLE entries SET UNLOGGED", 1, "its tables are not those of a ledger"),
        ("ALTER TABLE entries ENABLE ROW LEVEL SECURITY", 1, "its tables are not"),
        ("ALTER TABLE entries ADD COLUMN note TEXT", 1, "its tables are not"),
        ("CREATE TABLE more () INHERITS (entries)", 1, "its tables are not"),
        ("CREATE RULE r AS ON INSERT TO entries DO INSTEAD NOTHING", 1, "its tables are not"),
        ("DROP TABLE secret", 1, "its tables are not"),
        (
            "ALTER TABLE entries RENAME TO e; CREATE VIEW entries AS SELECT * FROM e",
            1,
            "its tables are not",
        ),
        ("DROP TABLE turn", 2, "holds no ledger"),
        ("GRANT SELECT ON secret TO PUBLIC", 2, "REVOKE ALL"),
    ],
)
def test_other_tables_in_place_of_a_ledgers(used, change, code, message):
    sql(used, change)
    for result in (verify(used), used.compile("other", last="9")):
        assert result.exit_code == code and message in result.stderr


def test_a_server_that_does_not_flush_is_refused(used):
    used.server.stop()
    used.server.start(fsync="off")
    try:
        result = used.compile("other", last="9")
    finally:
        used.server.stop()
        used.server.start()
    assert result.exit_code == 2 and "fsync = off" in result.stderr
    assert verify(used).exit_code == 0


def test_a_commit_is_flushed_whatever_the_role_is_used_to(used, environment):
    environment(PGOPTIONS="-c synchronous_commit=off")
    store = open_store(used.ledger)

    def settings(ledger):
        session = ledger.rows._session
        names = ("synchronous_commit", "transaction_isolation", "search_path")
        return [session.execute(f"SHOW {name}")[0][0] for name in names]

    assert in_transaction(store, settings) == ["on", "serializable", "pg_catalog, pg_temp"]


COMPILER = """
CREATE ROLE {role} LOGIN PASSWORD '{password}';
GRANT USAGE ON SCHEMA {schema} TO {role};
GRANT SELECT, INSERT ON {schema}.entries TO {role};
GRANT SELECT ON {schema}.secret TO {role};
GRANT UPDATE ON {schema}.turn TO {role}
"""


def test_a_role_that_compiles_and_sets_no_budgets(used):
    import psycopg

    role = f"compiler_{used.schema}"
    sql(used, COMPILER.format(role=role, schema=used.schema, password=PASSWORD))
    owners = used.named
    used.named = used.name_server(used.server.url(used.schema, user=role, password=""))
    assert used.compile("other", last="9").exit_code == 0
    used.ledger = used.server.url(used.schema, user=role)
    assert verify(used).exit_code == 0
    flags = ("--data-set", "visits", "--epsilon", "9")
    result = used.run("ledger", "set-budget", used.ledger, *flags)
    assert result.exit_code == 2 and "only the owner of a ledger sets budgets" in result.stderr
    for statement in (
        "UPDATE entries SET body = ''",
        "DELETE FROM entries",
        "DROP TRIGGER entries_stay ON entries",
        "ALTER TABLE entries DISABLE TRIGGER ALL",
        "SET session_replication_role = replica",
        "INSERT INTO secret (key) VALUES ('')",
        "DROP TABLE turn",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            sql(used, statement, user=role)
    sql(used, "DROP TRIGGER secret_stays ON secret")  # by the owner
    result = used.compile("third", last="10")
    assert result.exit_code == 2 and "cannot be used by this role" in result.stderr
    used.named = owners
    assert used.compile("third", last="10").exit_code == 0
    # Who has no right to the tables is told so.
    sql(used, f"REVOKE ALL ON {used.schema}.turn FROM {role}")
    assert "cannot be used by this role" in verify(used).stderr


@pytest.mark.parametrize("rivals", [1, 3])
def test_who_does_not_wait_for_a_turn_makes_others_begin_again(used, monkeypatch, limit, rivals):
    monkeypatch.setattr(postgres_store, "_pause", lambda times: None)
    limit(postgres_store, "_ATTEMPTS", 3)
    seen = []

    def body(ledger):
        seen.append(len(ledger.entries))
        if len(seen) <= rivals:
            used.insert(next_entry(ledger.entries, "budget", ledger.entries[1].facts))
        return ledger.append("budget", {"data_set": "visits", "epsilon": "2"})

    if rivals < 3:
        assert in_transaction(open_store(used.ledger), body).number == 5
    else:
        with pytest.raises(InputError, match=r"during each of 3 attempts .* nothing was written"):
            in_transaction(open_store(used.ledger), body)
    assert seen == [4, 5, 6][: rivals + 1] and len(used.entries()) == 4 + max(rivals, 2)
    assert verify(used).exit_code == 0


def test_somebody_who_keeps_the_turn(used, limit):
    limit(postgres_session, "SECONDS_TO_WAIT", 0.05)
    connection = used.owner()
    connection.execute("LOCK TABLE turn IN EXCLUSIVE MODE")
    result = used.compile("other", last="9")
    connection.close()
    assert result.exit_code == 2 and "has kept it locked for 0.05 seconds" in result.stderr


def test_what_is_no_ledger(bench):
    missing = bench.run("ledger", "show", bench.ledger)
    assert missing.exit_code == 2 and "labeldp ledger init postgresql://" in missing.stderr
    connection = bench.server.connect()
    connection.execute(f"CREATE SCHEMA {bench.schema} CREATE TABLE entries (x int)")
    connection.close()
    for command in ("show", "init"):
        assert bench.run("ledger", command, bench.ledger).exit_code == 2


def test_a_wrong_password(used):
    url = used.server.url(used.schema, password="another-word")
    result = used.run("ledger", "show", url)
    assert result.exit_code == 2 and "password authentication failed" in result.stderr
    assert "another-word" not in result.stderr and result.stderr.count("\n") == 1


def test_a_server_that_is_not_there(bench):
    result = bench.run("ledger", "show", f"postgresql://me:{PASSWORD}@/db?host=/nowhere")
    assert result.exit_code == 2 and "cannot be reached" in result.stderr
    assert result.stderr.startswith("labeldp: postgresql://me@/db?host=/nowhere: ")
    assert result.stderr.count("\n") == 1
