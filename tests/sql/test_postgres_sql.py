"""The same in PostgreSQL, and who may call the function there."""

from itertools import product

import pytest
from labeldp_runtime import Key

from tests.sql.files import FILES, IDS, rows_of, rows_to_compare
from tests.sql.hosts import KEY, NAME, in_postgres


@pytest.fixture
def connection(server):
    with server.connect() as connection:
        yield connection


@pytest.mark.parametrize("name", FILES)
def test_private_labels_are_those_of_the_python_reader(connection, name):
    id_type = [*IDS][[*FILES].index(name) % 3]
    rows = rows_of(FILES[name], rows_to_compare(name), id_type)
    assert in_postgres(connection, rows) == rows.python()


def test_nobody_but_the_owner_may_call_it(connection):
    import psycopg

    rows = rows_of(FILES["window"], 1)
    connection.execute(rows.sql("postgres"))
    connection.execute("DROP ROLE IF EXISTS analyst")
    connection.execute("CREATE ROLE analyst")
    call = f"SELECT {NAME}(3, 5, %s)"
    private = connection.execute(call, [KEY.secret]).fetchone()
    connection.execute("SET ROLE analyst")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(call, [KEY.secret])
    connection.execute("RESET ROLE")
    assert connection.execute(call, [KEY.secret]).fetchone() == private
    connection.execute(f"DROP FUNCTION {NAME}; DROP ROLE analyst")


def test_missing_ids_and_short_keys_are_errors_and_other_types_are_refused(connection):
    import psycopg

    rows = rows_of(FILES["window"], 1)
    connection.execute(rows.sql("postgres"))
    for arguments in ((3, None, KEY.secret), (3, 5, KEY.secret[1:]), (3, 5, None)):
        with pytest.raises(psycopg.errors.RaiseException, match="an id is NULL, or the key"):
            connection.execute(f"SELECT {NAME}(%s, %s, %s)", arguments)
    for label in ("2.5::double precision", "2.5::numeric", "'7'::text", "true"):
        with pytest.raises(psycopg.errors.UndefinedFunction):
            connection.execute(f"SELECT {NAME}({label}, 5, %s)", [Key(bytes(32)).secret])
    connection.execute(f"DROP FUNCTION {NAME}")


TYPES = ["smallint", "integer", "bigint", "numeric", "double precision"]
TYPES += ["text", "varchar", "name", "bytea", "bit"]
OPERATORS = ["&", ">>", "<", "<=", ">", ">=", "=", "<>", "+", "-", "*", "||", "#"]
FUNCTIONS = ["convert_from", "convert_to", "decode", "encode"]


def test_what_others_put_into_the_search_path_is_not_called(connection):
    """A function or an operator of exactly these types comes before PostgreSQL's of others."""
    body = "RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''called''; END'"
    with connection.transaction(force_rollback=True):
        for types in product(TYPES, TYPES):
            for name in ("called", *FUNCTIONS):
                connection.execute(f"CREATE FUNCTION {name}({', '.join(types)}) {body}")
            for operator in OPERATORS:
                sides = "leftarg = {}, rightarg = {}, function = called".format(*types)
                connection.execute(f"CREATE OPERATOR {operator} ({sides})")
        for name in ("table", "additive", "joint groups"):
            rows = rows_of(FILES[name], 100)
            assert in_postgres(connection, rows) == rows.python()


@pytest.fixture
def other_database(connection):
    """A function that makes a database of an encoding, and connects to it."""
    import psycopg

    connection.autocommit, opened = True, []

    def connect(encoding):
        connection.execute("DROP DATABASE IF EXISTS other_encoding")
        kind = f"ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C'"
        connection.execute(f"CREATE DATABASE other_encoding TEMPLATE template0 {kind}")
        given = connection.info
        opened.append(psycopg.connect(given.dsn, password=given.password, dbname="other_encoding"))
        opened[-1].autocommit = True
        return opened[-1]

    yield connect
    for one in opened:
        one.close()
    connection.execute("DROP DATABASE IF EXISTS other_encoding")


TEXTS = [b"red", b"gr\xc3\xbcn", b"\xff", b"\xe9", b"\x81", b"blue"]


def private(database, rows, texts):
    """Of texts by their bytes; what the encoding cannot hold in the comments is left out."""
    database.execute(rows.sql("postgres").encode("ascii", "ignore"))
    found = []
    for number, text in enumerate(texts):
        label = "E'" + "".join(f"\\x{byte:02x}" for byte in text) + "'"
        call = f"SELECT {NAME}({label}, '{number}', %s)"
        found.append(database.execute(call.encode(), [KEY.secret]).fetchone()[0])
    return [one.encode() if isinstance(one, str) else one for one in found]


def test_no_bytes_of_a_label_fail_in_a_database_without_an_encoding(other_database):
    rows = rows_of(FILES["table"], 1, "text")
    labels, ids = [text.decode(errors="replace") for text in TEXTS], [*"012345"]
    expected = [label.encode() for label in rows.randomizer(labels, ids=ids)]
    assert private(other_database("SQL_ASCII"), rows, TEXTS) == expected


@pytest.mark.parametrize("text", TEXTS)
def test_a_database_in_another_encoding_is_refused_for_all_labels(other_database, text):
    """0x81 is a text of WIN1252, and has no UTF-8."""
    import psycopg

    database = other_database("WIN1252")
    with pytest.raises(psycopg.errors.RaiseException, match="neither in UTF8 nor") as refusal:
        private(database, rows_of(FILES["table"], 1, "text"), [text])
    assert refusal.value.diag.message_primary.startswith("labeldp: an id is NULL, or the key")
