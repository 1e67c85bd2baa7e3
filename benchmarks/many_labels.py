"""What 10^4, 10^5 and 10^6 labels cost: compile, verify, randomize. Prints a Markdown table.

    python benchmarks/many_labels.py [--labels 10000 100000 1000000] [--mechanism rr_on_bins]

Each command runs in a process of its own, five times, or once where that takes 10 s or more:
seconds of the processor, median (least–most), and the peak of its memory. Beside them, from the
same run, two anchors in processes of their own: onnxruntime opening the file, and Python reading
its certificate. ``gap`` is the certified one. ``randomize`` gets 100,000 rows of Parquet.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from statistics import median

from tests.fixtures.compiled import integer_spec

LABELS = (10_000, 100_000, 1_000_000)
RUNS, LONG = 5, 10.0
ROWS = 100_000
CLI = [sys.executable, "-m", "labeldp_compile.cli"]
OPEN = "import onnxruntime, sys; onnxruntime.InferenceSession(sys.argv[1])"
# In a process of its own: what this one holds would count as the peak of all that it starts.
ROWS_OF = (
    "import sys, numpy as np, pyarrow as pa, pyarrow.parquet as pq;"
    "drawn = np.random.default_rng(0).integers(0, int(sys.argv[1]), int(sys.argv[2]));"
    "pq.write_table(pa.table({'y': drawn}), sys.argv[3])"
)
READ = "import json, sys; json.load(open(sys.argv[1], encoding='utf-8'))"


def timed(command: list[str]) -> tuple[float, float]:
    """(processor seconds, peak MB) of a command that must succeed."""
    pid = os.posix_spawn(
        command[0],
        command,
        os.environ,
        file_actions=[(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)],
    )
    _, status, usage = os.wait4(pid, 0)
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"failed: {' '.join(command)}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e3


def cell(command: list[str], runs: int) -> str:
    """Median (least–most) of the seconds, and the largest peak."""
    found = [timed(command)]
    while len(found) < runs and found[0][0] < LONG:
        found.append(timed(command))
    seconds, peak = [s for s, _ in found], max(mb for _, mb in found)
    spread = f" ({min(seconds):.2f}–{max(seconds):.2f})" if len(found) > 1 else ""
    return f"{median(seconds):.2f}{spread}; {peak:,.0f}"


def measure(
    labels: int, mechanism: str, loss: str, epsilon: float, runs: int, folder: Path
) -> list[str]:
    """The cells of one row."""
    spec, table = folder / "many.yaml", folder / "rows.parquet"
    spec.write_text(integer_spec(labels, mechanism, epsilon=epsilon, loss=loss, name="many"))
    timed([sys.executable, "-c", ROWS_OF, str(labels), str(ROWS), str(table)])
    artifact, out = folder / "many.onnx", folder / "private.parquet"
    compiled = [*CLI, "compile", str(spec), "-o", str(folder), "--overwrite"]
    cells = [cell(compiled, runs)]
    verified = [*CLI, "verify", str(artifact)]
    randomized = [*CLI, "randomize", str(artifact), str(table), "-o", str(out), "--overwrite"]
    opened = [sys.executable, "-c", OPEN, str(artifact)]
    read = [sys.executable, "-c", READ, str(folder / "many.certificate.json")]
    cells += [cell(command, runs) for command in (verified, randomized, opened, read)]
    stated = json.loads((folder / "many.certificate.json").read_text(encoding="utf-8"))
    gap = stated["utility"]["certified_gap"]
    size = f"{artifact.stat().st_size / 1e6:.2f}"
    return [size, "none" if gap is None else f"{gap:.1e}", *cells]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--labels", type=int, nargs="+", default=LABELS)
    parser.add_argument("--mechanism", default="rr_on_bins")
    parser.add_argument("--loss", nargs="+", default=("squared", "absolute"))
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=RUNS)
    arguments = parser.parse_args()
    print(
        "| k | loss | file MB | gap | compile | verify | randomize | onnxruntime opens "
        "| JSON is read |"
    )
    print("|---:|---|---:|---:|---|---|---|---|---|")
    for labels in arguments.labels:
        for loss in arguments.loss:
            with tempfile.TemporaryDirectory() as folder:
                cells = measure(
                    labels,
                    arguments.mechanism,
                    loss,
                    arguments.epsilon,
                    arguments.runs,
                    Path(folder),
                )
            print(f"| {labels:,} | {loss} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
