"""Names, labels and columns that look like SQL change nothing but themselves."""

import re

import duckdb
import pytest
import sqlglot

from labeldp_compile import compile_spec
from labeldp_compile.export.sql import DIALECTS, NOT_RUN
from tests.sql.files import FILES, FIVE, rows_of
from tests.sql.hosts import HERE, KEY, NAME, Rows, in_postgres, sqlite
from tests.sql.made_rows import HOSTILE

CATEGORIES = [
    *HOSTILE,
    "$labeldp$",
    "*/",
    "'''",
    "\\'",
    "{name}",
    "%s",
    ":key",
    "x\r\n-- y",
    "\x1b[2J",
]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """An artifact whose every string is made to break out."""
    import yaml

    folder = tmp_path_factory.mktemp("hostile")
    label = {
        "column": "y'; DROP TABLE given; --\n\"`",
        "domain": {"kind": "categorical", "values": CATEGORIES},
        "out_of_domain": {"default": CATEGORIES[2]},
    }
    spec = {
        "version": 1,
        "name": "hostile",
        "label": label,
        "loss": "zero_one",
        "privacy": {"epsilon": 2},
        "prior": {"kind": "uniform"},
        "mechanism": {"kind": "exponential"},
    }
    (folder / "x.yaml").write_text(yaml.safe_dump(spec, allow_unicode=True))
    return compile_spec(folder / "x.yaml").write(folder / "build")


@pytest.fixture(scope="module")
def hostile_rows(hostile):
    labels = [CATEGORIES[i % len(CATEGORIES)] for i in range(600)]
    return Rows(hostile, [labels], [f"{i}'; --" for i in range(600)])


@pytest.mark.parametrize("host", HERE)
def test_hostile_categories_come_out_as_they_are(hostile_rows, host):
    expected = hostile_rows.python()
    assert {*expected[0]} == {*CATEGORIES}
    assert HERE[host](hostile_rows) == expected


def test_hostile_categories_come_out_of_postgres(server, hostile_rows):
    with server.connect() as connection:
        assert in_postgres(connection, hostile_rows) == hostile_rows.python()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_string_of_the_artifact_is_in_the_statement(hostile_rows, dialect):
    text = hostile_rows.sql(dialect)
    comments, body = text.split("\n\n", 1)
    assert all(line.startswith("-- ") and line.isprintable() for line in comments.split("\n"))
    assert "DROP" not in body and "\x1b" not in text and KEY.secret.hex() not in text.lower()
    strings = re.findall(r"'([^']*)'", body)
    assert "".join(strings).isascii() and not any(set(s) & set('\\"`;') for s in strings)


# BigQuery and Snowflake cannot run here, so of them every form is parsed.
PARSED = [("table", one) for one in DIALECTS] + [(name, one) for name in FIVE for one in NOT_RUN]


@pytest.mark.parametrize(("name", "dialect"), sorted({*PARSED}))
def test_parsers_find_one_statement(name, dialect):
    text = rows_of(FILES[name], 1).sql(dialect)
    found = [one for one in sqlglot.parse(text, dialect=dialect) if one is not None]
    assert len(found) == (2 if dialect == "postgres" else 1)  # and its REVOKE
    if dialect != "postgres":  # of whose PL/pgSQL it knows nothing
        assert not list(sqlglot.parse_one(text, dialect=dialect).find_all(sqlglot.exp.Command))


STEPS = ["given_id", "given_label", "digest", "answer", "u", "row_index", "canonical", "inner_pad"]


@pytest.mark.parametrize("names", [*zip(STEPS, STEPS[1:] + STEPS[:1], strict=True)], ids=str)
def test_columns_with_the_names_of_steps_are_read_as_they_are(names):
    """A macro is text: its argument must not be caught by a name inside."""
    rows = rows_of(FILES["window"], 50)
    label, own_id = names
    with duckdb.connect() as connection:
        connection.execute(rows.sql("duckdb"))
        connection.execute("SET VARIABLE labeldp_key = ?::BLOB", [KEY.secret])
        given = rows.table.rename_columns([label, own_id])
        connection.register("given", given)
        call = f"{NAME}({label}, {own_id}, getvariable('labeldp_key'))"
        found = connection.execute(f"SELECT {call} FROM given").fetchall()
    assert [[one for (one,) in found]] == rows.python()
    database, query = sqlite(rows)
    for column in STEPS:
        database.execute(f"ALTER TABLE {NAME}_input ADD COLUMN {column} DEFAULT 7")
    by_id = dict(database.execute(query, {"key": KEY.secret}).fetchall())
    database.close()
    assert [[by_id[one] for one in rows.ids]] == rows.python()


def test_missing_ids_and_other_keys_are_errors_in_duckdb():
    rows = rows_of(FILES["window"], 1)
    with duckdb.connect() as connection:
        connection.execute(rows.sql("duckdb"))
        for arguments in ([3, None, KEY.secret], [3, 5, KEY.secret[1:]], [3, 5, None]):
            with pytest.raises(duckdb.InvalidInputException, match="an id is NULL, or the key"):
                connection.execute(f"SELECT {NAME}(?::BIGINT, ?::BIGINT, ?::BLOB)", arguments)
        for wrong in ("2.5::DOUBLE", "2.5", "'7'", "true", "7::UBIGINT", "7::HUGEINT"):
            for arguments in (f"{wrong}, 5", f"3, {wrong}"):
                with pytest.raises(duckdb.BinderException):
                    connection.execute(f"SELECT {NAME}({arguments}, ?::BLOB)", [KEY.secret])


@pytest.mark.parametrize("key", [None, b"", KEY.secret[1:], KEY.secret.hex(), 5])
def test_another_key_gives_nothing_in_sqlite(key):
    database, query = sqlite(rows_of(FILES["window"], 3))
    assert [private for _, private in database.execute(query, {"key": key})] == [None] * 3
    database.close()


@pytest.mark.parametrize("encoding", ["UTF-16le", "UTF-16be"])
def test_a_database_in_another_encoding_gives_nothing_in_sqlite(encoding):
    """Its texts have other bytes: categories and ids would be read as others."""
    rows = rows_of(FILES["table"], 3, "text")
    database, query = sqlite(rows, encoding)
    assert [private for _, private in database.execute(query, {"key": KEY.secret})] == [None] * 3
    database.close()


def test_values_of_any_type_are_read_in_sqlite_as_objects_are_in_python():
    rows = rows_of(FILES["window"], 1)
    odd = [None, 1, 2.5, 3.5, 0.5, -0.5, 1.5, 2.4999999999999996, "7", b"7", 1e300, -1e300]
    odd += [
        2**63 - 1,
        -(2**63),
        9007199254740993,
        0.49999999999999994,
        float("inf"),
        4503599627370497.5,
    ]
    ids = list(range(len(odd)))
    expected = rows.randomizer(odd, ids=ids).tolist()
    database, query = sqlite(rows)
    database.execute(f"DELETE FROM {NAME}_input")
    database.executemany(f"INSERT INTO {NAME}_input VALUES (?, ?)", zip(odd, ids, strict=True))
    assert dict(database.execute(query, {"key": KEY.secret})) == dict(
        zip(ids, expected, strict=True)
    )
    wrong = [("5", None), (2.5, None), (b"5", None), (None, None)]
    database.execute(f"DELETE FROM {NAME}_input")
    database.executemany(f"INSERT INTO {NAME}_input VALUES (3, ?)", [(one,) for one, _ in wrong])
    assert sorted(map(repr, database.execute(query, {"key": KEY.secret}))) == sorted(
        map(repr, wrong)
    )
    database.close()
