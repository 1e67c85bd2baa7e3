"""Rows a second of the SQL that ``labeldp export --to sql`` writes, beside the Python reader.

Prints a markdown table: DuckDB (one thread), SQLite, PostgreSQL and Spark (one thread), and the
Python reader with each construction, whole calls. Medians of the runs, with the range. Reading the
labels and writing nothing is part of the time; loading the table and planning Spark's query is not.

    python -m benchmarks.sql [ROWS] [RUNS] [--without spark,postgres]
"""

import argparse
import os
import statistics
import time

import duckdb
from labeldp_runtime import Randomizer

from tests.ledger import postgres
from tests.sql.files import FIVE, rows_of
from tests.sql.hosts import CONTEXT, KEY, NAME, sqlite


def python_reader(construction):
    def prepared(rows):
        reader = Randomizer.load(rows.path, key=KEY, context=CONTEXT, construction=construction)
        label, ids, *groups = rows.table.columns
        columns = dict(zip(reader.group_columns, groups, strict=True))
        options = {"columns": columns} if columns else {}
        return lambda: reader(label, ids=ids, **options), lambda: None

    return prepared


def in_duckdb(rows):
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.execute(rows.sql("duckdb"))
    connection.execute("SET VARIABLE labeldp_key = ?::BLOB", [KEY.secret])
    connection.register("given", rows.table)
    connection.execute("CREATE TABLE held AS SELECT * FROM given")
    call = f"{NAME}({', '.join(rows.table.column_names)}, getvariable('labeldp_key'))"
    query = f"SELECT count({call}) FROM held"
    return lambda: connection.execute(query).fetchall(), connection.close


def in_sqlite(rows):
    connection, query = sqlite(rows)

    def run():
        for _ in connection.execute(query, {"key": KEY.secret}):
            pass

    return run, connection.close


def in_postgres(rows):
    server = postgres.Server(postgres.programs())
    connection = server.connect()
    types = {"int64": "bigint", "double": "double precision", "string": "text"}
    columns = ", ".join(f"{f.name} {types[str(f.type)]}" for f in rows.table.schema)
    connection.execute(rows.sql("postgres"))
    connection.execute(f"CREATE TABLE given ({columns})")
    with connection.cursor() as cursor, cursor.copy("COPY given FROM STDIN") as copy:
        for row in zip(*(column.to_pylist() for column in rows.table.columns), strict=True):
            copy.write_row(row)
    connection.execute("SET max_parallel_workers_per_gather = 0")
    query = f"SELECT count({NAME}({', '.join(rows.table.column_names)}, %s)) FROM given"

    def close():
        connection.close()
        server.close()

    return lambda: connection.execute(query, [KEY.secret]).fetchall(), close


def in_spark(rows):
    from pyspark.sql import SparkSession

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    frame = spark.createDataFrame(rows.table).coalesce(1).cache()
    frame.count()
    frame.createOrReplaceTempView(f"{NAME}_input")
    keys = spark.createDataFrame([(bytearray(KEY.secret),)], "key binary")
    keys.createOrReplaceTempView(f"{NAME}_key")
    private = spark.sql(rows.sql("spark"))

    def run():
        private.write.format("noop").mode("overwrite").save()

    run()  # which plans and compiles
    return run, frame.unpersist


HOSTS = {
    "Python, aes-256": python_reader("aes-256"),
    "Python, hmac-sha256": python_reader("hmac-sha256"),
    "duckdb": in_duckdb,
    "postgres": in_postgres,
    "sqlite": in_sqlite,
    "spark": in_spark,
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", type=int, nargs="?", default=100_000)
    parser.add_argument("runs", type=int, nargs="?", default=5)
    parser.add_argument("--without", default="")
    given = parser.parse_args()
    print(f"thousand rows a second, {given.rows:,} rows a call")
    print(f"| | {' | '.join(FIVE)} |")
    print(f"|---|{'---:|' * len(FIVE)}")
    for host, prepare in HOSTS.items():
        if host in given.without.split(","):
            continue
        cells = []
        for path in FIVE.values():
            run, close = prepare(rows_of(path, given.rows))
            rates = []
            for _ in range(given.runs):
                start = time.perf_counter()
                run()
                rates.append(given.rows / (time.perf_counter() - start) / 1000)
            close()
            cells.append(f"{statistics.median(rates):,.0f} ({min(rates):,.0f}–{max(rates):,.0f})")
        print(f"| {host} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
