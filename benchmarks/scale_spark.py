"""CPU seconds that a million rows cost on a standalone Spark cluster, and so a billion.

A master and two workers of one core on the loopback address, from one Parquet file of (id, label)
to another, k = 53. CPU is that of the executors and their Python workers, from /proc, which other
work on the machine changes less than the time that passes. Jobs take turns. Prints a markdown table
of medians with ranges: CPU and time, beside the same job without noise.

    python benchmarks/scale_spark.py [ROWS [RUNS]]
"""

import os
import shutil
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from labeldp_runtime import Key, ReplayWarning
from labeldp_runtime.engines.spark import randomize

sys.path.insert(0, str(Path(__file__).parents[1]))

from runtime.tests.engines.cluster import children, cluster, session, wait_for
from tests.fixtures.compiled import compile_text

SPEC = """
version: 1
name: scale
label: {column: y, domain: {kind: integer, min: 0, max: 52}}
loss: squared
privacy: {epsilon: 1}
prior: {kind: uniform}
mechanism: {kind: optimal_unbiased}
"""
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    """Of a process, its children that run, and those that ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / TICKS + sum(map(cpu_seconds, children(pid)))


def identity(batches):
    yield from batches


def jobs_of(artifact, key):
    keyed = {"key": key, "id_column": "id", "check_duplicates": False}
    return {
        "read and write": lambda df: df,
        "identity in mapInArrow": lambda df: df.mapInArrow(identity, df.schema),
        "randomize, no key": lambda df: randomize(df, "y", artifact),
        "randomize, key": lambda df: randomize(df, "y", artifact, **keyed),
    }


def spread(values, form):
    low, middle, high = (
        format(each, form) for each in (min(values), statistics.median(values), max(values))
    )
    return f"{middle} ({low}–{high})"


def main(rows, runs):
    with tempfile.TemporaryDirectory() as place, cluster(Path(place)) as it:
        folder = Path(place)
        ids = np.arange(rows)
        table = pa.table({"id": ids, "y": ids % 53})
        pq.write_table(table, folder / "in.parquet", row_group_size=rows // 8)
        artifact = folder / "x.onnx"
        artifact.write_bytes(compile_text(SPEC).model)
        key = Key.create(folder / "labels.key")
        # The session's own settings are for a JVM that starts soon, and not for one that works.
        options = {"spark.executor.extraJavaOptions": "-XX:+UseSerialGC"}
        spark = session(it, **options, **{"spark.sql.files.maxPartitionBytes": "8m"})
        wait_for(lambda: len(it.executors()) == 2, "two executors")
        jobs = jobs_of(artifact, key)
        cpu, wall = ({name: [] for name in jobs} for _ in range(2))
        for turn in range(runs + 1):
            for name, job in jobs.items():
                before, start = sum(map(cpu_seconds, it.executors())), time.perf_counter()
                frame = job(spark.read.parquet(str(folder / "in.parquet")))
                frame.write.mode("overwrite").parquet(str(folder / "out"))
                took = time.perf_counter() - start
                used = sum(map(cpu_seconds, it.executors())) - before
                shutil.rmtree(folder / "out")
                if turn:  # the first warms up
                    cpu[name].append(used / rows * 1e6)
                    wall[name].append(took)
        spark.stop()
    base = statistics.median(cpu["read and write"])
    print(f"Spark {spark.version}, {rows:,} rows, {runs} runs, two executors of one core\n")
    columns = ["job", "CPU seconds a million rows", "over reading and writing", "seconds"]
    print(f"| {' | '.join([*columns, 'a billion rows: CPU hours'])} |\n|---|{'---:|' * 4}")
    for name in jobs:
        middle = statistics.median(cpu[name])
        print(
            f"| {name} | {spread(cpu[name], '.2f')} | {middle / base:.2f} "
            f"| {spread(wall[name], '.1f')} | {middle * 1000 / 3600:.2f} |"
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore", ReplayWarning)
    warnings.simplefilter("ignore", FutureWarning)
    given = [int(argument) for argument in sys.argv[1:]]
    main(*given, *(4_000_000, 5)[len(given) :])
