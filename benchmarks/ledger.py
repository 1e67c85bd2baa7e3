"""Twenty `labeldp compile` processes at once, on one ledger whose budget is enough for seven.

The ledger is a file, or a new schema of a PostgreSQL database:

    python benchmarks/ledger.py [postgresql://USER@HOST/DATABASE?schema=NAME]

Every compile asks another question, each for ε₁ = 0.1 of a budget of 0.75. Prints how many were
compiled and refused, and what `labeldp ledger verify` says afterwards.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

COMPILES = 20
LABELDP = [sys.executable, "-c", "from labeldp_compile.cli import main; main()"]
SPEC = """
version: 1
name: to-{last}
label: {{column: y, domain: {{kind: integer, min: 0, max: {last}}}}}
loss: squared
privacy: {{epsilon: 1, split: {{prior: 0.1, label: 0.9}}, ledger: "{ledger}"}}
prior: {{kind: private, data: labels.parquet, data_set: visits, data_version: first}}
mechanism: {{kind: rr_on_bins}}
"""


def labeldp(*arguments):
    return subprocess.run(
        [*LABELDP, *map(str, arguments)], capture_output=True, text=True, check=True
    ).stdout


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ledger = sys.argv[1] if len(sys.argv) > 1 else folder / "budget.ledger"
        pq.write_table(pa.table({"y": [0, 1, 2, 3] * 500}), folder / "labels.parquet")
        # A key and a configuration of the benchmark's own, which names the server for the specs.
        config = folder / "config.toml"
        server = re.sub(r"(?<=\?)schema=\w*&|[?&]schema=\w*", "", str(ledger))
        config.write_text(f"[ledger]\nservers = {json.dumps(sys.argv[1:] and [server])}\n")
        os.environ["LABELDP_CONFIG"] = str(config)
        labeldp("ledger", "init", ledger)
        labeldp("ledger", "set-budget", ledger, "--data-set", "visits", "--epsilon", "0.75")
        processes = []
        for last in range(3, 3 + COMPILES):
            spec = folder / f"to-{last}.yaml"
            spec.write_text(SPEC.format(last=last, ledger=ledger))
            command = [*LABELDP, "compile", str(spec), "-o", str(folder), "--quiet"]
            processes.append(
                subprocess.Popen(
                    command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
                )
            )
        errors = [process.communicate()[1] for process in processes]
        codes = [process.returncode for process in processes]
        print(f"{codes.count(0)} compiled, {codes.count(1)} refused (exit code 1)")
        print(next(error for error in errors if error).strip().replace(name, ""))
        print(labeldp("ledger", "verify", ledger).strip())


if __name__ == "__main__":
    main()
