"""Databases that run what ``labeldp export --to sql`` writes, and the Python reader beside them."""

import hmac
import sqlite3
from pathlib import Path

import duckdb
import pyarrow as pa
from labeldp_runtime import Key, Randomizer
from labeldp_verify.opening import open_artifact

from labeldp_compile.export.sql import DIALECTS
from labeldp_compile.export.sql.script import sql_of

KEY = Key(bytes(range(1, 33)))
CONTEXT = "ctx'\n--"
NAME = "randomize_it"
ARROW = {"int64": pa.int64(), "float64": pa.float64(), "string": pa.string()}
ID_TYPES = {
    int: ("integer", pa.int64()),
    str: ("text", pa.string()),
    bytes: ("binary", pa.binary()),
}


class Rows:
    """The columns of an artifact's labels [n], ids [n] and groups [n], as lists with None."""

    def __init__(self, path, labels, ids, groups=()):
        self.path, self.labels, self.ids, self.groups = path, labels, ids, list(groups)
        self.randomizer = Randomizer.load(
            path, key=KEY, context=CONTEXT, construction="hmac-sha256"
        )
        self.id_type, id_arrow = ID_TYPES[type(ids[0])]
        names = ["label"] if len(labels) == 1 else [f"label_{i}" for i in range(1, len(labels) + 1)]
        names += ["id", *(f"group_{i}" for i in range(1, len(self.groups) + 1))]
        types = [ARROW[kind] for kind in self.randomizer.label_types]
        types += [id_arrow, *(ARROW[kind] for kind in self.randomizer.group_types)]
        columns = [*labels, ids, *self.groups]
        self.table = pa.table(
            [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)], names
        )

    def sql(self, dialect, version=0, **options):
        artifact = open_artifact(Path(self.path))
        return sql_of(artifact, DIALECTS[dialect], NAME, CONTEXT, self.id_type, version, **options)

    def python(self, version=0):
        """[columns][n] of the Python reader."""
        count, given = len(self.labels), self.table.columns
        names = self.randomizer.label_columns
        labels = given[0] if count == 1 else dict(zip(names, given[:count], strict=True))
        columns = dict(zip(self.randomizer.group_columns, given[count + 1 :], strict=True))
        options = {"columns": columns} if columns else {}
        answer = self.randomizer(labels, ids=given[count], version=version, **options)
        found = list(answer.values()) if isinstance(answer, dict) else [answer]
        return [column.to_pylist() for column in found]


def in_duckdb(rows, **options):
    with duckdb.connect() as connection:
        connection.execute(rows.sql("duckdb", **options))
        connection.execute("SET VARIABLE labeldp_key = ?::BLOB", [KEY.secret])
        connection.register("given", rows.table)
        arguments = ", ".join(rows.table.column_names)
        call = f"{NAME}({arguments}, getvariable('labeldp_key'))"
        found = dict(connection.execute(f"SELECT id, {call} FROM given").fetchall())
    answers = [found[one] for one in rows.ids]  # DuckDB keeps no order
    if answers and isinstance(answers[0], dict):
        return [[one[name] for one in answers] for name in answers[0]]
    return [answers]


def sqlite(rows, encoding="UTF-8", **options):
    """A connection with the rows in a table, and the query."""
    connection = sqlite3.connect(":memory:")
    connection.execute(f"PRAGMA encoding = '{encoding}'")
    connection.create_function(
        "hmac_sha256", 2, lambda key, data: hmac.digest(key, data, "sha256"), deterministic=True
    )
    names = rows.table.column_names
    connection.execute(f"CREATE TABLE {NAME}_input ({', '.join(names)})")
    values = zip(*(column.to_pylist() for column in rows.table.columns), strict=True)
    marks = ", ".join("?" * len(names))
    connection.executemany(f"INSERT INTO {NAME}_input VALUES ({marks})", values)
    return connection, rows.sql("sqlite", **options)


def in_sqlite(rows, **options):
    connection, query = sqlite(rows, **options)
    found = connection.execute(query, {"key": KEY.secret}).fetchall()
    connection.close()
    by_id = {row[0]: row[1:] for row in found}
    return [list(column) for column in zip(*(by_id[one] for one in rows.ids), strict=True)]


HERE = {"duckdb": in_duckdb, "sqlite": in_sqlite}


def in_postgres(connection, rows, **options):
    """``connection`` is one of psycopg."""
    types = {
        pa.int64(): "bigint",
        pa.float64(): "double precision",
        pa.string(): "text",
        pa.binary(): "bytea",
    }
    names = rows.table.column_names
    columns = ", ".join(f"{f.name} {types[f.type]}" for f in rows.table.schema)
    with connection.transaction(force_rollback=True), connection.cursor() as cursor:
        cursor.execute(rows.sql("postgres", **options))
        cursor.execute(f"CREATE TEMPORARY TABLE given (line bigint, {columns})")
        with cursor.copy(f"COPY given (line, {', '.join(names)}) FROM STDIN") as copy:
            values = zip(*(column.to_pylist() for column in rows.table.columns), strict=True)
            for line, row in enumerate(values):
                copy.write_row((line, *row))
        outputs = len(rows.randomizer.output_types)
        call = f"{NAME}({', '.join(names)}, %s)"
        wanted = "a.*" if outputs > 1 else "a.answer"
        source = f"{call} AS a" if outputs > 1 else f"(SELECT {call} AS answer) AS a"
        cursor.execute(f"SELECT {wanted} FROM given, LATERAL {source} ORDER BY line", [KEY.secret])
        return [list(column) for column in zip(*cursor.fetchall(), strict=True)]


def in_spark(spark, rows, **options):
    """``spark`` is a session."""
    frame = spark.createDataFrame(rows.table)
    frame.createOrReplaceTempView(f"{NAME}_input")
    keys = spark.createDataFrame([(bytearray(KEY.secret),)], "key binary")
    keys.createOrReplaceTempView(f"{NAME}_key")
    found = spark.sql(rows.sql("spark", **options)).toArrow()
    by_id = {row["id"]: row for row in found.to_pylist()}
    names = [name for name in found.column_names if name != "id"]
    return [[by_id[one][name] for one in rows.ids] for name in names]
