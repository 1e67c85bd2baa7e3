"""``labeldp randomize`` beside pyarrow's own copy of the same file, alternating, in one run.

The copy reads a row group (of CSV: a block) at a time with pyarrow's defaults, which decode columns
on as many threads as there are cores, and writes it on the same Python thread with the input's
codec. Both are processes of their own, so that their starts count. Wall and CPU seconds, medians
with range; the ratio is the median of the ratios of neighbouring runs; prints markdown. Linux only.
Twenty million rows need 2 GB of disk, and ten minutes.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from labeldp_runtime import Key

from tests.fixtures.compiled import compile_text, integer_spec

COPY_PARQUET = """
import sys
import pyarrow.parquet as pq
source, target, codec = sys.argv[1:]
with pq.ParquetFile(source) as file, pq.ParquetWriter(
    target, file.schema_arrow, compression=codec
) as writer:
    for group in range(file.num_row_groups):
        table = file.read_row_group(group)
        writer.write_table(table, row_group_size=len(table))
"""
COPY_CSV = """
import sys
import pyarrow.csv as pa_csv
source, target = sys.argv[1:]
with pa_csv.open_csv(source) as reader, pa_csv.CSVWriter(target, reader.schema) as writer:
    for batch in reader:
        writer.write_batch(batch)
"""
RANDOMIZE = "from labeldp_compile.cli import main; main()"
CASES = {  # columns, suffix, codec, keyed, mechanism
    "3 columns of numbers, snappy": ("few", ".parquet", "snappy", False, "randomized_response"),
    "the same, zstd": ("few", ".parquet", "zstd", False, "randomized_response"),
    "the same, snappy, unbiased": ("few", ".parquet", "snappy", False, "optimal_unbiased"),
    "the same, snappy, keyed": ("few", ".parquet", "snappy", True, "randomized_response"),
    "the same, zstd, keyed": ("few", ".parquet", "zstd", True, "randomized_response"),
    "5 columns, one of text, snappy": ("text", ".parquet", "snappy", False, "randomized_response"),
    "the same 5, zstd": ("text", ".parquet", "zstd", False, "randomized_response"),
    "the same 5, CSV": ("text", ".csv", None, False, "randomized_response"),
    "the same 5, CSV, keyed": ("text", ".csv", None, True, "randomized_response"),
}
PIECE = 1 << 20


def make(path, rows, columns, codec):
    generator = np.random.default_rng(0)
    words = np.array(["red", "green", "blue", "yellow"])
    writer = None
    for start in range(0, rows, PIECE):
        n = min(PIECE, rows - start)
        data = {
            "y": generator.integers(0, 52, n, np.int16),
            "x": generator.normal(size=n).astype(np.float32),
            "id": generator.integers(0, 2**62, n),
        }
        if columns == "text":
            data["cost"] = generator.exponential(100, n)
            data["colour"] = words[generator.integers(0, 4, n)]
        piece = pa.table(data)
        if writer is None:
            if codec is None:
                writer = pa_csv.CSVWriter(path, piece.schema)
            else:
                writer = pq.ParquetWriter(path, piece.schema, compression=codec)
        writer.write_table(piece)
    writer.close()


def run(command, cache):
    """Wall seconds, CPU seconds; ``cache`` is where Python keeps what it has compiled."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(cache)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    start = time.perf_counter()
    child = os.posix_spawn(command[0], list(map(str, command)), environment)
    _, status, usage = os.wait4(child, 0)
    wall = time.perf_counter() - start
    if status:
        raise SystemExit(f"{command} failed")
    return wall, usage.ru_utime + usage.ru_stime


def shown(numbers):
    return f"{statistics.median(numbers):.2f} ({min(numbers):.2f}–{max(numbers):.2f})"


def measure(folder, case, rows, runs):
    columns, suffix, codec, keyed, mechanism = case
    source, target = folder / f"in{suffix}", folder / f"out{suffix}"
    make(source, rows, columns, codec)
    artifact = folder / mechanism / "benchmark.onnx"
    copy = [sys.executable, "-c", *((COPY_CSV,) if codec is None else (COPY_PARQUET,))]
    copy += [source, target, *(() if codec is None else (codec,))]
    ours = [sys.executable, "-c", RANDOMIZE, "randomize", artifact, source, "-o", target]
    ours += ["--quiet", "--overwrite"]
    if keyed:
        ours += ["--key", folder / "key", "--id-column", "id"]
    found = {"copy": [], "ours": []}
    for i in range(-1, runs):
        for name, command in (("copy", copy), ("ours", ours)):
            target.unlink(missing_ok=True)
            times = run(command, folder / "cache")
            if i >= 0:  # the first pair warms the file
                found[name].append(times)
    cells = []
    for which in (0, 1):  # wall, CPU
        ours, copy = ([times[which] for times in found[name]] for name in ("ours", "copy"))
        ratios = [a / b for a, b in zip(ours, copy, strict=True)]
        cells += [shown(copy), shown(ours), shown(ratios)]
    source.unlink()
    target.unlink()
    return cells


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--csv-rows", type=int, default=5_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", default="", help="a part of the name of a case")
    arguments = parser.parse_args()
    print("| table | rows | copy, wall s | randomize | ratio | copy, CPU s | randomize | ratio |")
    print("|---|---:|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for mechanism in {case[-1] for case in CASES.values()}:
            compile_text(integer_spec(52, mechanism)).write(folder / mechanism)
        Key.create(folder / "key")
        for title, case in CASES.items():
            if arguments.only not in title:
                continue
            rows = arguments.rows if case[2] else arguments.csv_rows
            cells = measure(folder, case, rows, arguments.runs)
            print(f"| {title} | {rows:,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
