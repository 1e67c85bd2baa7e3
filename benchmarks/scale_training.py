"""Time, memory and run folder of ``labeldp train`` on larger and larger tables.

    python benchmarks/scale_training.py [--rows 100000 1000000] [--columns 50] [--kinds ...]

The table is made up: four fifths of the columns are numbers, the others have eight categories, and
the label is a number that depends on a few of them and on a pair. It is written and trained on in
a folder under TMPDIR. Each run is a process of its own. Its peak is the resident set that the
operating system states of it (Linux only); pages of arrays on disk count while they are in memory.
``boosting`` is that of scikit-learn with its defaults, on true labels and a table in memory. It
has one thread: several wait for one another, in processor time, on a machine with other work.
``spark`` is one release on a local cluster of two workers with a core each, and
``spark_staged`` a staged release. Their memory
is that of the driver's Python. Their processor time is not measured: most of it is spent in other
processes. On a
machine that others use, too, compare processor time, not the time on the clock. Prints markdown.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from memory import MEASURED

KINDS = ("one_release", "staged_release", "boosting", "spark", "spark_staged")
_ON_SPARK = {"spark": "one_release", "spark_staged": "staged_release"}
_CLUSTER = "--master local-cluster[2,1,1024] pyspark-shell"
CONFIG = """
version: 1
name: large
data: {{kind: table, train: train.parquet, label: y, numeric: [{numeric}],
        categorical: [{categorical}]}}
loss: squared
method: {{kind: {kind}, epsilon: 1, delta: 1e-9, label_range: [0, 100]}}
"""
BOOSTING = """
import pyarrow.parquet as pq
from sklearn.ensemble import HistGradientBoostingRegressor
table = pq.read_table("train.parquet").to_pandas()
HistGradientBoostingRegressor(categorical_features="from_dtype").fit(
    table.drop(columns="y"), table["y"])
"""
_PIECE = 1 << 20  # rows


def write_table(path, rows, columns):
    """Features, and a label between 0 and 100, piece by piece."""
    generator = np.random.default_rng(0)
    numbers, writer = columns * 4 // 5, None
    words = pa.array([f"c{i}" for i in range(8)])
    for start in range(0, rows, _PIECE):
        n = min(_PIECE, rows - start)
        found = {f"x{i}": generator.normal(size=n).astype(np.float32) for i in range(numbers)}
        for i in range(columns - numbers):
            codes = generator.integers(0, 8, n).astype(np.int8)
            found[f"k{i}"] = pa.DictionaryArray.from_arrays(pa.array(codes), words)
        pair = found["x0"] * found["x1"]
        label = 40 + 8 * np.sin(found["x2"]) + 6 * pair + generator.normal(0, 10, n)
        found["y"] = np.clip(label, 0, 100)
        piece = pa.table(found)
        writer = writer or pq.ParquetWriter(path, piece.schema)
        writer.write_table(piece)
    writer.close()
    return [name for name in found if name != "y"]


def trained(folder, kind):
    """Seconds on the clock and of processor time, gigabytes, and megabytes of the run folder."""
    before, began = os.times(), time.monotonic()
    if kind == "boosting":
        command = [sys.executable, "-c", MEASURED.partition("from labeldp")[0] + BOOSTING]
    else:
        command = [sys.executable, "-c", MEASURED, "train", f"{kind}.yaml", "-o", kind]
        command += ["--spark"] * kind.startswith("spark")
    env = {**os.environ, "PYSPARK_SUBMIT_ARGS": _CLUSTER, "PYSPARK_PYTHON": sys.executable}
    env |= {"SPARK_LOCAL_IP": "127.0.0.1"}
    if kind == "boosting":
        env["OMP_NUM_THREADS"] = "1"
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=env, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    after = os.times()
    cpu = sum(after[2:4]) - sum(before[2:4])
    peak = int(done.stdout.splitlines()[-1]) * 1024 / 1e9
    size = sum(file.stat().st_size for file in (folder / kind).rglob("*")) / 1e6
    return time.monotonic() - began, cpu, peak, size


def main():
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    arguments = parser.parse_args()
    print("| rows | method | seconds | of processor time | memory, GB | run folder, MB |")
    print("|---:|---|---:|---:|---:|---:|", flush=True)
    for rows in arguments.rows:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            names = write_table(folder / "train.parquet", rows, arguments.columns)
            for kind in arguments.kinds:
                text = CONFIG.format(
                    kind=_ON_SPARK.get(kind, kind),
                    numeric=", ".join(name for name in names if name.startswith("x")),
                    categorical=", ".join(name for name in names if name.startswith("k")),
                )
                (folder / f"{kind}.yaml").write_text(text, encoding="utf-8")
                clock, cpu, peak, size = trained(folder, kind)
                folder_size = "–" if kind == "boosting" else f"{size:.0f}"
                measured = f"{clock:.0f} | {cpu:.0f} | {peak:.2f} | {folder_size}"
                if kind in _ON_SPARK:
                    measured = f"{clock:.0f} | – | {peak:.2f} | {folder_size}"
                print(f"| {rows:,} | {kind} | {measured} |", flush=True)
    load = os.getloadavg()[2]
    print(f"\nThe load of the machine was {load:.1f} (15 minutes) on {os.cpu_count()} cores.")


if __name__ == "__main__":
    main()
