"""The same in PostgreSQL, and who may call the function there."""

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
