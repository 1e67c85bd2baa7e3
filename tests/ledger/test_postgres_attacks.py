"""What the role of a compiler tries with SQL of its own, on a ledger in PostgreSQL."""

from fractions import Fraction

import pytest

from labeldp_compile.ledger.book import data_sets
from labeldp_compile.ledger.entries import next_entry
from tests.ledger.postgres import PASSWORD
from tests.ledger.test_postgres import COMPILER, contents, sql, verify

INSERT = "INSERT INTO {schema}.entries VALUES (%s, %s, %s, %s, %s, 'by hand')"
TIME = "2026-01-01T00:00:00Z"


@pytest.fixture
def store():
    return "postgres"


@pytest.fixture
def role(bench):
    """A compiler's, once the ledger is there (``grant``)."""
    return f"compiler_{bench.schema}"


def grant(bench, role):
    sql(bench, COMPILER.format(role=role, schema=bench.schema, password=PASSWORD))


@pytest.fixture
def attacked(used, role):
    grant(used, role)
    return used


def values(entry):
    return (entry.number, entry.kind, entry.body, entry.previous, entry.hash)


def attack(bench, role, *entries, before=()):
    """Insert rows as the role, in one transaction."""
    connection = bench.server.connect(role)
    connection.autocommit = False
    try:
        for statement in before:
            connection.execute(statement)
        for entry in entries:
            connection.execute(INSERT.format(schema=bench.schema), values(entry))
        connection.commit()
    finally:
        connection.close()


def refused(bench, role, *entries, before=()):
    """The state of the error with which they are; the ledger is as it was, and of use."""
    import psycopg

    rows = contents(bench)
    with pytest.raises(psycopg.Error) as caught:
        attack(bench, role, *entries, before=before)
    assert contents(bench) == rows
    assert verify(bench).exit_code == 0
    assert bench.run("ledger", "show", bench.ledger).exit_code == 0
    return caught.value.sqlstate


def budget(entries, epsilon="100", **more):
    facts = {"data_set": "visits", "epsilon": epsilon, "time": TIME, **more}
    return next_entry(entries, "budget", facts)


def spend(entries, **changes):
    first = next(e for e in entries if e.kind == "spend")
    return next_entry(entries, "spend", {**first.facts, **changes})


def prior(entries, **changes):
    first = next(e for e in entries if e.kind == "prior")
    return next_entry(entries, "prior", {**first.facts, **changes})


SHADOWS = """
CREATE SCHEMA {role};
CREATE FUNCTION {role}.unless(text, text) RETURNS boolean LANGUAGE sql
    AS $$SELECT $1 OPERATOR(pg_catalog.=) $2 AND $1 OPERATOR(pg_catalog.<>) 'budget'$$;
CREATE FUNCTION {role}.never(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT false';
CREATE OPERATOR {role}.= (LEFTARG = text, RIGHTARG = text, FUNCTION = {role}.unless);
CREATE OPERATOR {role}.<> (LEFTARG = text, RIGHTARG = text, FUNCTION = {role}.never);
CREATE FUNCTION {role}.pg_has_role(name, oid, text) RETURNS boolean LANGUAGE sql
    AS 'SELECT true';
CREATE FUNCTION {role}.more(numeric, numeric) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE OPERATOR {role}.<= (LEFTARG = numeric, RIGHTARG = numeric, FUNCTION = {role}.more);
CREATE FUNCTION {role}.none(numeric, numeric) RETURNS numeric LANGUAGE sql AS 'SELECT 0.0';
CREATE OPERATOR {role}.* (LEFTARG = numeric, RIGHTARG = numeric, FUNCTION = {role}.none);
CREATE FUNCTION {role}.matches(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE OPERATOR {role}.~ (LEFTARG = text, RIGHTARG = text, FUNCTION = {role}.matches);
CREATE DOMAIN {role}.numeric AS text;
CREATE DOMAIN {role}.json AS text
"""


def test_operators_of_the_compilers_role_decide_nothing(attacked, role):
    sql(attacked, f"GRANT CREATE ON DATABASE postgres TO {role}")
    try:
        sql(attacked, SHADOWS.format(role=role), user=role)
        path = [f"SET search_path = {role}, pg_temp, pg_catalog"]
        entries = attacked.entries()
        assert refused(attacked, role, budget(entries), before=path) == "42501"
        greedy = spend(entries, epsilon="5")
        assert refused(attacked, role, greedy, before=path) == "23514"
        assert refused(attacked, role, spend(entries, command="\x1b"), before=path) == "23514"
    finally:
        sql(attacked, f"DROP SCHEMA IF EXISTS {role} CASCADE")
        sql(attacked, f"REVOKE CREATE ON DATABASE postgres FROM {role}")


@pytest.mark.parametrize(
    "setting",
    [
        "CREATE TEMP TABLE pg_class AS SELECT oid, 'owner'::regrole::oid AS relowner "
        "FROM pg_catalog.pg_class; UPDATE pg_temp.pg_class SET relowner = CURRENT_USER::regrole",
        "CREATE TEMP TABLE entries (number bigint, kind text, body text, previous text, hash text)",
        "CREATE TYPE pg_temp.json AS ENUM ('a')",
        "CREATE DOMAIN pg_temp.numeric AS int",
        "SET standard_conforming_strings = off",
        "SET default_transaction_isolation = 'read uncommitted'",
        "SET row_security = off",
        "SET constraints ALL DEFERRED",
        "SELECT set_config('search_path', 'pg_temp', false)",
    ],
)
def test_settings_and_temporary_things_of_the_session_decide_nothing(attacked, role, setting):
    entries = attacked.entries()
    for entry, state in (
        (budget(entries), "42501"),
        (next_entry(entries, "free", {}), "23514"),
        (spend(entries, epsilon="9/10000000000000000/1"), "23514"),
        (spend(entries, epsilon="9"), "23514"),
    ):
        assert refused(attacked, role, entry, before=[setting]) == state, entry.body


def test_a_row_of_an_unknown_kind_is_refused(attacked, role):
    for kind in ("group_spend", "Spend", "spend ", "", "key\n"):
        assert refused(attacked, role, next_entry(attacked.entries(), kind, {})) == "23514"
    # Of the owner, too, and without the trigger.
    connection = attacked.owner()
    connection.execute("ALTER TABLE entries DISABLE TRIGGER entries_follow")
    import psycopg

    with pytest.raises(psycopg.errors.CheckViolation, match="entries_kind"):
        connection.execute(
            INSERT.format(schema=attacked.schema), values(next_entry(attacked.entries(), "x", {}))
        )
    connection.close()


WRONG_SPENDS = [
    {"epsilon": "NaN"},
    {"epsilon": "-1"},
    {"epsilon": "1e-3"},
    {"epsilon": "1/0"},
    {"epsilon": "1/10\n"},
    {"epsilon": "1" * 400},
    {"epsilon": 0.1},
    {"data_set": "nothing-has-this-budget"},
    {"data_version": "\x1b[2J"},
    {"question_sha256": "0" * 63},
    {"spec": "x" * 10**5},
    {"time": "now"},
    {"note": "more"},
]


@pytest.mark.parametrize("change", WRONG_SPENDS, ids=str)
def test_a_spend_that_labeldp_does_not_write_is_refused(attacked, role, change):
    assert refused(attacked, role, spend(attacked.entries(), **change)) == "23514"


def nested(depth):
    return [] if not depth else [nested(depth - 1)]


WRONG_PRIORS = [
    {},  # a second answer, which would replace the first one
    {"spend": 3},
    {"spend": 99},
    {"data_set": "others"},
    {"question_sha256": "0" * 64},
    {"data_hmac": "0"},
    {"answer": {}},
    {"answer": {"rows": 1, "weights": [1.0]}},
    {"answer": {"rows": 1, "weights": [-1]}},
    {"answer": {"rows": 1e2, "weights": [1]}},
    {"answer": {"rows": 1, "weights": [1], "more": nested(300)}},
    {"answer": {"rows": 1, "weights": [nested(300)]}},
    {"answer": {"rows": 1, "weights": [1], "groups": [{"size": -1, "prior": {}}]}},
    {"answer": {"rows": 1, "weights": [1], "groups": [{"size": 1, "prior": {"rows": 1}}]}},
    {"column": nested(300)},
    {"more": 1},
]


@pytest.mark.parametrize("change", WRONG_PRIORS, ids=lambda change: str(change)[:60])
def test_a_prior_that_nobody_reads_is_refused(attacked, role, change):
    state = refused(attacked, role, prior(attacked.entries(), **change))
    assert state in ("23514", "22023"), state


def release(entries, **changes):
    """Metrics that the last entry paid for."""
    first = next(e for e in entries if e.kind == "prior")
    answer = {"rows": 140, "sums": [-3, 0, 10**20], "sensitivity": 5}
    facts = {**first.facts, "spend": entries[-1].number, "answer": answer, **changes}
    return next_entry(entries, "release", facts)


def test_metrics_that_were_paid_for_are_taken_once_and_others_refused(attacked, role):
    attack(attacked, role, spend(attacked.entries()))
    for answer in (
        {"rows": 1, "sums": []},
        {"rows": 1, "sums": [1.0]},
        {"rows": 1, "sums": [None]},
        {"rows": 1, "weights": [1]},
        {"rows": 1, "sums": [1], "groups": [{"size": 1, "prior": {"rows": 1, "weights": [1]}}]},
    ):
        wrong = release(attacked.entries(), answer=answer)
        assert refused(attacked, role, wrong) in ("23514", "22023"), answer
    unpaid = release(attacked.entries(), spend=2)  # which has its prior
    assert refused(attacked, role, unpaid) == "23514"
    attack(attacked, role, release(attacked.entries()))
    again = release(attacked.entries(), spend=4)
    assert refused(attacked, role, again) == "23514"
    assert attacked.entries()[-1].facts["answer"]["sums"] == [-3, 0, 10**20]


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{",
        "[]",
        "null",
        '"a"',
        "[" * 100_000,
        '{"a":NaN}',
        '{"epsilon":"1/10","epsilon":"0"}',
        "{" + "9" * 10_000 + "}",
    ],
    ids=lambda body: body[:20],
)
def test_a_body_that_is_no_object_is_refused(attacked, role, body):
    from labeldp_compile.ledger import entries as module

    last = attacked.entries()[-1]
    for kind in ("spend", "prior"):
        digest = module._hash(4, kind, body, last.hash)
        entry = module.Entry(4, kind, body, last.hash, digest)
        assert refused(attacked, role, entry)[:2] in ("22", "23", "54")


def test_a_hash_that_is_not_the_rows_is_refused(attacked, role):
    from dataclasses import replace

    entry = spend(attacked.entries(), epsilon="1/100")
    for wrong in ("0" * 64, entry.hash.upper(), ""):
        assert refused(attacked, role, replace(entry, hash=wrong)) == "23514"
    # What is not ASCII, or escaped, has the hash that Python gives it.
    more = spend(attacked.entries(), epsilon="1/100", spec='ε "\\\n\t\x01\x7f\u2028😀/')
    attack(attacked, role, more)
    assert verify(attacked).exit_code == 0


def test_no_spend_goes_over_budget_in_any_number_of_rows(attacked, role):
    entries = attacked.entries()  # 1/10 of 1 is spent
    almost = spend(entries, epsilon="9/10")
    over = spend(entries, epsilon=str(Fraction(9, 10) + Fraction(1, 10**99)))
    assert refused(attacked, role, over) == "23514"
    first = spend(entries, epsilon="6/10")
    second = spend([*entries, first], epsilon="6/10")
    assert refused(attacked, role, first, second) == "23514"
    # In one statement, and in two parts of one.
    one = "INSERT INTO {schema}.entries VALUES (%s, %s, %s, %s, %s, ''), (%s, %s, %s, %s, %s, '')"
    two = (
        "WITH a AS (INSERT INTO {schema}.entries VALUES (%s, %s, %s, %s, %s, '') RETURNING 1) "
        "INSERT INTO {schema}.entries VALUES (%s, %s, %s, %s, %s, '')"
    )
    import psycopg

    for statement in (one, two):
        connection = attacked.server.connect(role)
        with pytest.raises(psycopg.Error):
            connection.execute(
                statement.format(schema=attacked.schema), values(first) + values(second)
            )
        connection.close()
    assert len(attacked.entries()) == 4
    attack(attacked, role, almost)
    assert data_sets(attacked.entries())["visits"].left == 0 and verify(attacked).exit_code == 0


@pytest.mark.parametrize("level", ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
def test_an_old_snapshot_does_not_hide_what_was_spent(attacked, role, level):
    import psycopg

    entries = attacked.entries()
    connection = attacked.server.connect(role)
    connection.execute(f"BEGIN ISOLATION LEVEL {level}")
    connection.execute(f"SELECT * FROM {attacked.schema}.entries")
    attack(attacked, role, spend(entries, epsilon="9/10"))
    now = attacked.entries()
    for entry in (spend(entries, epsilon="9/10"), spend(now, epsilon="9/10")):
        connection.execute("SAVEPOINT s")
        with pytest.raises(psycopg.Error):
            connection.execute(INSERT.format(schema=attacked.schema), values(entry))
        connection.execute("ROLLBACK TO s")
    connection.execute("COMMIT")
    connection.close()
    assert attacked.entries() == now and verify(attacked).exit_code == 0


OBJECTS = [
    "CREATE TRIGGER t BEFORE INSERT ON entries FOR EACH ROW EXECUTE FUNCTION refuse()",
    "CREATE RULE r AS ON INSERT TO entries DO INSTEAD NOTHING",
    "CREATE POLICY p ON entries USING (false)",
    "ALTER TABLE entries ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE entries DROP CONSTRAINT entries_kind",
    "CREATE TABLE child () INHERITS (entries)",
    "CREATE TEMP TABLE child (number bigint REFERENCES entries (number))",
    "CREATE OR REPLACE FUNCTION follow() RETURNS trigger LANGUAGE plpgsql "
    "AS 'BEGIN RETURN NEW; END'",
    "ALTER FUNCTION follow() SET search_path = public",
    "CREATE EVENT TRIGGER e ON ddl_command_start EXECUTE FUNCTION refuse()",
    "SET ROLE owner",
    "SET SESSION AUTHORIZATION owner",
    "SET session_replication_role = replica",
]


@pytest.mark.parametrize("statement", OBJECTS)
def test_the_role_makes_nothing_in_the_ledger(attacked, role, statement):
    import psycopg

    before = contents(attacked)
    with pytest.raises(psycopg.Error) as caught:
        sql(attacked, statement.format(schema=attacked.schema), user=role)
    assert caught.value.sqlstate in ("42501", "42P16", "42703", "42P17"), caught.value
    assert contents(attacked) == before
    assert verify(attacked).exit_code == 0 and "ok     file" in verify(attacked).stdout


@pytest.mark.parametrize(
    ("grant_of", "message"),
    [
        ("GRANT TRIGGER ON entries TO {role}", "has TRIGGER on entries"),
        ("GRANT ALL ON secret TO {role}", "on secret"),
        ("GRANT DELETE ON entries TO {role}", "has DELETE on entries"),
        ("GRANT UPDATE (body) ON entries TO {role}", "has UPDATE on entries"),
        ("GRANT REFERENCES ON entries TO {role}", "has REFERENCES on entries"),
        ("GRANT SELECT (key) ON secret TO PUBLIC", "everybody may use it"),
        ("GRANT INSERT (body) ON entries TO PUBLIC", "everybody may use it"),
    ],
)
def test_rights_that_undo_the_ledger_are_refused(attacked, role, grant_of, message):
    """With TRIGGER, a role has the owner run its code at the owner's next entry."""
    sql(attacked, grant_of.format(role=role))
    result = verify(attacked)
    assert result.exit_code == 2 and message in result.stderr and "REVOKE" in result.stderr


def test_a_schema_that_somebody_else_made_first_is_not_taken(bench):
    """Its owner could drop or replace the tables."""
    squatter = f"squatter_{bench.schema}"
    sql(bench, f"CREATE ROLE {squatter}", f"CREATE SCHEMA {bench.schema} AUTHORIZATION {squatter}")
    result = bench.run("ledger", "init", bench.ledger)
    assert result.exit_code == 2 and f"belongs to the role '{squatter}'" in result.stderr
    sql(bench, f"ALTER SCHEMA {bench.schema} OWNER TO owner")
    assert bench.run("ledger", "init", bench.ledger).exit_code == 0
