"""Time and memory of ``labeldp train`` on a large table: a staged release, and one release.

    python benchmarks/staged_release_scale.py [--rows 1000000] [--columns 50]

The table is made up: four fifths of the columns are numbers, the others have eight categories, and
the label is a number that depends on a few of them and on a pair. Each run is a process of its own.
Its peak is the resident set that the operating system states of it (Linux only). On a machine that
others use, too, compare processor time, not the time on the clock. Prints markdown.
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

CONFIG = """
version: 1
name: large
data: {{kind: table, train: train.parquet, label: y, numeric: [{numeric}],
        categorical: [{categorical}]}}
loss: squared
method: {{kind: {kind}, epsilon: 1, delta: 1e-6, label_range: [0, 100]}}
"""


def write_table(path, rows, columns):
    """Features, and a label between 0 and 100."""
    generator = np.random.default_rng(0)
    numbers = columns * 4 // 5
    found = {f"x{i}": generator.normal(size=rows).astype(np.float32) for i in range(numbers)}
    words = np.array([f"c{i}" for i in range(8)])
    for i in range(columns - numbers):
        codes = generator.integers(0, 8, rows).astype(np.int8)
        found[f"k{i}"] = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(words))
    pair = found["x0"] * found["x1"]
    label = 40 + 8 * np.sin(found["x2"]) + 6 * pair + generator.normal(0, 10, rows)
    found["y"] = np.clip(label, 0, 100)
    pq.write_table(pa.table(found), path)
    return [name for name in found if name != "y"]


def trained(folder, kind):
    """Seconds on the clock, of processor time, and gigabytes of one run."""
    before, began = os.times(), time.monotonic()
    command = [sys.executable, "-c", MEASURED, "train", f"{kind}.yaml", "-o", kind]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    after = os.times()
    cpu = sum(after[2:4]) - sum(before[2:4])
    peak = int(done.stdout.splitlines()[-1]) * 1024 / 1e9
    size = sum(file.stat().st_size for file in (folder / kind).rglob("*")) / 1e9
    return time.monotonic() - began, cpu, peak, size


def main():
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=50)
    arguments = parser.parse_args()
    print("| method | seconds | of processor time | memory, GB | run folder, GB |")
    print("|---|---:|---:|---:|---:|", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        names = write_table(folder / "train.parquet", arguments.rows, arguments.columns)
        for kind in ("one_release", "staged_release"):
            text = CONFIG.format(
                kind=kind,
                numeric=", ".join(name for name in names if name.startswith("x")),
                categorical=", ".join(name for name in names if name.startswith("k")),
            )
            (folder / f"{kind}.yaml").write_text(text, encoding="utf-8")
            clock, cpu, peak, size = trained(folder, kind)
            print(f"| {kind} | {clock:.0f} | {cpu:.0f} | {peak:.2f} | {size:.3f} |", flush=True)
    load = os.getloadavg()[2]
    print(f"\nThe load of the machine was {load:.1f} (15 minutes) on {os.cpu_count()} cores.")


if __name__ == "__main__":
    main()
