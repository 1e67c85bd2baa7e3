"""Peak memory of ``labeldp randomize`` on Parquet and CSV files of more and more rows.

Each run is a process of its own, and its peak is what the operating system says of it (resident
set, with the libraries: the first line is a table of one row; Linux only). Prints markdown. Needs
up to 4 GB of disk, and removes its files.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from labeldp_runtime import Key

from tests.fixtures.compiled import compile_text, integer_spec

# What wait4 and time say of a process counts the memory of the one that started it, too.
MEASURED = """
import atexit, re
from pathlib import Path
status = Path("/proc/self/status")
atexit.register(lambda: print(re.search("VmHWM:\\\\s+([0-9]+)", status.read_text())[1]))
from labeldp_compile.cli import main
main()
"""
PIECE = 1 << 20
WIDE = 100  # columns of float64


def pieces(rows, columns):
    """A table piece by piece, so that this process stays small, too."""
    generator = np.random.default_rng(0)
    for start in range(0, rows, PIECE):
        n = min(PIECE, rows - start)
        data = {"id": np.arange(start, start + n), "y": generator.integers(0, 52, n, np.int16)}
        if columns == WIDE:
            data |= {f"x{i}": generator.normal(size=n) for i in range(columns)}
        else:
            data["x"] = generator.normal(size=n).astype(np.float32)
            data["cost"] = generator.exponential(100, n)
            words = np.array(["red", "green", "blue", "yellow"])
            data["colour"] = words[generator.integers(0, 4, n)]
        yield pa.table(data)


def make(path, rows, group, columns):
    writer = None
    for piece in pieces(rows, columns):
        if writer is None:
            if path.suffix == ".csv":
                writer = pa_csv.CSVWriter(path, piece.schema)
            else:
                writer = pq.ParquetWriter(path, piece.schema, compression="zstd")
        if path.suffix == ".csv":
            writer.write_table(piece)
        else:
            writer.write_table(piece, group)
    writer.close()


def randomize(folder, source, *options):
    """MiB that the command took at its most."""
    command = [sys.executable, "-c", MEASURED, "randomize", folder / "benchmark.onnx", source]
    command += ["-o", folder / f"out{source.suffix}", "--quiet", "--overwrite", *options]
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return int(run.stdout) / 1024


def largest_groups(path):
    if path.suffix == ".csv":
        return "–"
    metadata = pq.read_metadata(path)
    return f"{max(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)):,}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="*", default=[1, 5_000_000, 20_000_000])
    parser.add_argument("--wide-rows", type=int, nargs="*", default=[500_000, 2_000_000])
    parser.add_argument("--group", type=int, default=PIECE, help="rows of a row group")
    parser.add_argument("--csv", action="store_true")
    parser.add_argument("--keyed", action="store_true")
    arguments = parser.parse_args()
    print("| table | MiB | row groups in | out | bytes in | out |\n|---|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        compile_text(integer_spec(52, "randomized_response")).write(folder)
        cases = [(f"{rows:,} rows", rows, 5, ".parquet", ()) for rows in arguments.rows]
        cases += [
            (f"{rows:,} rows of {WIDE + 2} columns", rows, WIDE, ".parquet", ())
            for rows in arguments.wide_rows
        ]
        if arguments.csv:
            cases += [(f"{rows:,} rows, CSV", rows, 5, ".csv", ()) for rows in arguments.rows]
        if arguments.keyed:
            Key.create(folder / "key")
            options = ("--key", folder / "key", "--id-column", "id")
            cases += [
                (f"{rows:,} rows, keyed", rows, 5, ".parquet", options) for rows in arguments.rows
            ]
        for title, rows, columns, suffix, options in cases:
            source = folder / f"in{suffix}"
            make(source, rows, arguments.group, columns)
            mib = randomize(folder, source, *options)
            target = folder / f"out{suffix}"
            groups = f"{largest_groups(source)} | {largest_groups(target)}"
            sizes = f"{source.stat().st_size:,} | {target.stat().st_size:,}"
            print(f"| {title} | {mib:,.0f} | {groups} | {sizes} |", flush=True)
            source.unlink()


if __name__ == "__main__":
    main()
