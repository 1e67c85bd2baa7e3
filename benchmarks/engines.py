"""Spark, Polars and DuckDB: what a randomized column costs, and what plain expressions do wrong.

Prints two markdown tables. Speed: million rows a second, Parquet to Parquet, beside the same job
without noise in the same run (medians with the range; five runs after one to warm up). Traps: how
a plain function in the engine compares with the helper of labeldp_runtime, on 100,000 rows.
"""

import os
import shutil
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from labeldp_runtime import Key, Randomizer, ReplayWarning
from labeldp_runtime.engines.duckdb import register
from labeldp_runtime.engines.polars import randomize as in_polars
from labeldp_runtime.engines.spark import large_batches, randomize
from pyspark.sql import SparkSession

from tests.fixtures.compiled import compile_text, integer_spec

ROWS, RUNS = 10_000_000, 5
TRAP_ROWS = 100_000


def rates(jobs):
    """Rows of a table: median and range of each job's rate, and its time as a multiple.

    The jobs take turns, so that other work of the machine slows all of them.
    """
    seconds = {name: [] for name in jobs}
    for turn in range(RUNS + 1):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            if turn:
                seconds[name].append(time.perf_counter() - start)
    base = statistics.median(next(iter(seconds.values())))
    for name, times in seconds.items():
        middle = statistics.median(times)
        fast, slow = (ROWS / s / 1e6 for s in (min(times), max(times)))
        print(
            f"| {name} | {ROWS / middle / 1e6:.1f} ({slow:.1f}–{fast:.1f}) | {middle / base:.2f} |",
            flush=True,
        )


def spark_jobs(folder, source, artifact, key):
    os.environ["PYSPARK_PYTHON"] = sys.executable
    logging = folder / "log4j2.properties"
    logging.write_text("rootLogger.level = off\n")
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "3g")
        .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={logging}")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")

    def identity(batches):
        yield from batches

    def job(transform, rows=None):
        def run():
            frame = transform(spark.read.parquet(str(source)))
            if rows is None:
                frame.write.mode("overwrite").parquet(str(folder / "out.spark"))
            else:
                with large_batches(spark, rows):
                    frame.write.mode("overwrite").parquet(str(folder / "out.spark"))

        return run

    def keyed(check):
        return lambda df: randomize(
            df, "y", artifact, key=key, id_column="id", check_duplicates=check
        )

    return spark, {
        "Spark, read and write": job(lambda df: df),
        "Spark, identity in mapInArrow, 10,000 rows a batch": job(
            lambda df: df.mapInArrow(identity, df.schema)
        ),
        "Spark, identity, 100,000 a batch": job(
            lambda df: df.mapInArrow(identity, df.schema), 100_000
        ),
        "Spark, randomize, 10,000 a batch": job(lambda df: randomize(df, "y", artifact)),
        "Spark, randomize, 100,000 a batch": job(lambda df: randomize(df, "y", artifact), 100_000),
        "Spark, randomize with a key, ids not looked through": job(keyed(check=False), 100_000),
        "Spark, randomize with a key": job(keyed(check=True), 100_000),
    }


def polars_jobs(folder, source, fresh, keyed):
    out = folder / "out.parquet"

    def job(transform):
        return lambda: transform(pl.scan_parquet(source)).sink_parquet(out)

    return {
        "Polars, read and write": job(lambda lf: lf),
        "Polars, randomize": job(lambda lf: in_polars(lf, "y", fresh)),
        "Polars, randomize with a key": job(lambda lf: in_polars(lf, "y", keyed, ids="id")),
    }


def duckdb_jobs(folder, source, fresh, keyed):
    connection = duckdb.connect()
    register(connection, "fresh", fresh)
    register(connection, "keyed", keyed, id_type="BIGINT")
    connection.execute("SET threads = 2")

    # As ``register`` makes functions.
    options = {"type": "arrow", "null_handling": "special", "side_effects": True}
    connection.create_function("same", lambda y: y, ["DOUBLE"], "DOUBLE", **options)
    target = folder / "duck.parquet"

    def job(expression):
        query = f"SELECT id, {expression} AS y FROM '{source}'"
        return lambda: connection.execute(f"COPY ({query}) TO '{target}'")

    def stream(draw):
        def run():
            relation = connection.cursor().sql(f"SELECT id, y FROM '{source}'")
            rows = relation.to_arrow_reader(1 << 17)
            schema = rows.schema.set(1, pa.field("y", pa.float64()))
            drawn = (batch.set_column(1, schema.field(1), draw(batch)) for batch in rows)
            connection.register("drawn", pa.RecordBatchReader.from_batches(schema, drawn))
            connection.execute(f"COPY drawn TO '{target}'")

        return run

    return {
        "DuckDB, read and write": job("y"),
        "DuckDB, identity in a function": job("same(y)"),
        "DuckDB, randomize": job("fresh(y)"),
        "DuckDB, randomize with a key": job("keyed(y, id)"),
        "DuckDB, identity in a stream": stream(lambda batch: batch["y"].cast(pa.float64())),
        "DuckDB, randomize in a stream": stream(lambda batch: fresh(batch["y"])),
        "DuckDB, randomize in a stream with a key": stream(
            lambda batch: keyed(batch["y"], ids=batch["id"])
        ),
    }


def speed(folder, artifact):
    key = Key.create(folder / "k.key")
    fresh = Randomizer.load(artifact)
    keyed = Randomizer.load(artifact, key=key, context="y")
    source = folder / "in.parquet"
    labels = np.random.default_rng(0).integers(0, 52, ROWS)
    pq.write_table(pa.table({"id": np.arange(ROWS), "y": labels}), source, row_group_size=1 << 20)
    print("| job | million rows a second | time |\n|---|---|---:|")
    if shutil.which("java"):
        spark, jobs = spark_jobs(folder, source, artifact, key)
        rates(jobs)
        spark.stop()
    rates(polars_jobs(folder, source, fresh, keyed))
    rates(duckdb_jobs(folder, source, fresh, keyed))


def share(column, other):
    return f"{100 * np.mean(np.asarray(column) == np.asarray(other)):.0f} % equal"


def polars_traps(fresh):
    frame = pl.LazyFrame({"id": np.arange(TRAP_ROWS), "y": np.arange(TRAP_ROWS) % 52})
    constant = frame.with_columns(y=pl.lit(3, pl.Int64))

    def plain(lf, name="p", *, elementwise):
        mapped = pl.col("y").map_batches(fresh, pl.Float64, is_elementwise=elementwise)
        return lf.with_columns(mapped.alias(name))

    def helper(lf, name="p"):
        return in_polars(lf, "y", fresh, add_as=name)

    print("\n| Polars | plain expression | elementwise expression | helper |\n|---|---|---|---|")
    makes = [
        lambda lf, name="p": plain(lf, name, elementwise=False),
        lambda lf, name="p": plain(lf, name, elementwise=True),
        helper,
    ]
    for engine in ("in-memory", "streaming"):
        cells = []
        for make in makes:
            values = make(constant).collect(engine=engine)["p"]
            cells.append(f"{values.n_unique()} of 52")
        print(f"| values of {TRAP_ROWS:,} equal labels, {engine} | {' | '.join(cells)} |")
        cells = []
        for make in makes:
            noisy = make(frame)
            both = noisy.join(noisy, on="id").collect(
                engine=engine, optimizations=pl.QueryOptFlags.none()
            )
            cells.append(share(both["p"], both["p_right"]))
        print(f"| used twice in a query, unoptimized, {engine} | {' | '.join(cells)} |")


def duckdb_traps(fresh):
    queries = {
        "values of equal labels (of 52)": "SELECT count(DISTINCT v) FROM (SELECT p(3) v FROM t)",
        "least value kept by v > 25": "SELECT min(v) FROM (SELECT p(y) v FROM t) WHERE v > 25",
        "equal values of two mentions": "SELECT count(*) FILTER (a = b) FROM "
        "(SELECT p(y) a, p(y) b FROM t)",
        "nulls that stay null": "SELECT count(*) FILTER (p(NULLIF(y, 3)) IS NULL) FROM t",
        "CTE used twice: equal values": "WITH c AS (SELECT id, p(y) v FROM t) "
        "SELECT count(*) FILTER (a.v = b.v) FROM c a JOIN c b USING (id)",
        "the same, NOT MATERIALIZED": "WITH c AS NOT MATERIALIZED (SELECT id, p(y) v FROM t) "
        "SELECT count(*) FILTER (a.v = b.v) FROM c a JOIN c b USING (id)",
    }

    def plainly(labels):
        return fresh(labels)

    print(f"\n| DuckDB, {TRAP_ROWS:,} rows | plain function | helper |\n|---|---:|---:|")
    for name, query in queries.items():
        cells = []
        for plain in (True, False):
            connection = duckdb.connect()
            connection.execute(
                f"CREATE TABLE t AS SELECT i AS id, i % 52 AS y FROM range({TRAP_ROWS}) r(i)"
            )
            if plain:
                connection.create_function("p", plainly, ["DOUBLE"], "DOUBLE", type="arrow")
            else:
                register(connection, "p", fresh)
            try:
                cells.append(f"{connection.execute(query).fetchall()[0][0]:g}")
            except duckdb.Error as error:
                cells.append(f"error: {str(error).splitlines()[0][:60]}…")
            connection.close()
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    warnings.simplefilter("ignore", ReplayWarning)
    warnings.simplefilter("ignore", FutureWarning)
    with tempfile.TemporaryDirectory() as place:
        artifact = Path(place) / "x.onnx"
        artifact.write_bytes(compile_text(integer_spec(52, "randomized_response")).model)
        speed(Path(place), artifact)
        polars_traps(Randomizer.load(artifact))
        duckdb_traps(Randomizer.load(artifact))
