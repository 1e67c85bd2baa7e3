"""What a command costs before its work counts: small commands beside bare imports, in one run.

Each command is a process of its own, in turn with the others; the first round, which compiles byte
code and fills the file cache, is not counted. Prints markdown: median and range of CPU seconds
(user and system, of all threads) and of wall seconds, and the median ratio of CPU seconds to those
of the anchors in the same round.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

LABELDP = [sys.executable, "-m", "labeldp_compile.cli"]
ROWS = 10
SPEC = """
version: 1
name: weeks
label: {{column: weeks, domain: {{kind: integer, min: 0, max: 52}}}}
loss: squared
privacy: {{epsilon: {epsilon}}}
prior: {prior}
mechanism: {{kind: {mechanism}}}
"""
# Two peaks, as in weeks worked in a year: most work none or all of them.
WEIGHTS = [48_000, *range(400, 451), 75_000]
ANCHORS = {"numpy": "import numpy", "libraries": "import onnxruntime, pyarrow.parquet"}


def commands(folder):
    """Name and words of everything that is timed; what they read is written first."""
    public = f"{{kind: public, weights: {WEIGHTS}}}"
    private = "{kind: private, data: rows.parquet}"
    rows = np.random.default_rng(7).integers(0, 53, size=ROWS)
    pq.write_table(pa.table({"weeks": rows}), folder / "ten.parquet")
    pq.write_table(pa.table({"weeks": np.repeat(rows, 1000)}), folder / "rows.parquet")
    texts = {
        "unbiased": SPEC.format(epsilon=1, prior=public, mechanism="optimal_unbiased"),
        "bins": SPEC.format(epsilon=1, prior=public, mechanism="rr_on_bins"),
        "private": SPEC.format(epsilon=1, prior=private, mechanism="optimal_unbiased"),
    }
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text)
    subprocess.run([*LABELDP, "compile", "unbiased.yaml", "-o", "made"], cwd=folder, check=True)
    artifact = "made/weeks.onnx"
    named = {
        "plan, public prior": ["plan", "unbiased.yaml"],
        "plan, private prior": ["plan", "private.yaml"],
        "compile, optimal_unbiased": ["compile", "unbiased.yaml", "-o", "out", "--overwrite"],
        "compile, rr_on_bins": ["compile", "bins.yaml", "-o", "out", "--overwrite"],
        "verify": ["verify", artifact],
        "report": ["report", artifact],
        f"randomize, {ROWS} rows": ["randomize", artifact, "ten.parquet", "-o", "private.parquet"],
        "list of commands": ["--help"],
    }
    anchors = {code: [sys.executable, "-c", code] for code in ANCHORS.values()}
    return anchors | {f"labeldp {name}": [*LABELDP, *words] for name, words in named.items()}


def timed(command, folder):
    """CPU and wall seconds of one process. Raises CalledProcessError if it failed."""
    (folder / "private.parquet").unlink(missing_ok=True)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    wall = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, wall


def shown(numbers):
    """Median (least–most)."""
    return f"{statistics.median(numbers):.2f} ({min(numbers):.2f}–{max(numbers):.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--only", default="", help="only commands whose name holds this")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        every = {
            what: command
            for what, command in commands(folder).items()
            if what in ANCHORS.values() or arguments.only in what
        }
        found = {name: [] for name in every}
        for number in range(arguments.rounds + 1):
            for what, command in every.items():
                seconds = timed(command, folder)
                if number:
                    found[what].append(seconds)
    print(f"| command | CPU s | wall s | CPU, × {' | CPU, × '.join(ANCHORS)} |")
    print("|---|---:|---:|" + "---:|" * len(ANCHORS))
    for name, seconds in found.items():
        cpu, wall = zip(*seconds, strict=True)
        ratios = [
            statistics.median(one / two for one, (two, _) in zip(cpu, found[code], strict=True))
            for code in ANCHORS.values()
        ]
        print(
            f"| `{name}` | {shown(cpu)} | {shown(wall)} |",
            " | ".join(f"{ratio:.2f}" for ratio in ratios),
            "|",
        )


if __name__ == "__main__":
    main()
