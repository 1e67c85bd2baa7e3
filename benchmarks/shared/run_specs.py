"""Plan, compile and verify one fuzzed spec."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from tests.fuzz.guard import FoundError, labeldp

MOST_LABELS, MOST_SECONDS, MOST_OUTPUTS = 64, 3, 200_000
ROWS = 400


def write_tables(folder: Path) -> None:
    """The tables that the specs name."""
    generator = np.random.default_rng(0)
    table = pa.table({name: generator.poisson(2.0, ROWS) for name in ("mdvis", "idp")})
    pq.write_table(table, folder / "table.parquet")
    pa_csv.write_csv(table, folder / "table.csv")


def try_spec(data: bytes, folder: Path) -> str:
    """What became of a spec in a folder with tables: refused, planned, unsolved, or verified.

    Raises FoundError for what must never happen.
    """
    spec, build = folder / "spec.yaml", folder / "build"
    spec.write_bytes(data)
    plan = labeldp("plan", spec, "--json", codes=(0, 2))
    if plan.exit_code == 2:
        return "refused"
    stated = json.loads(plan.stdout)
    estimate = stated["estimate"]
    small = stated["labels"] <= MOST_LABELS and estimate["seconds"]["most"] <= MOST_SECONDS
    if not small or estimate["outputs"]["most"] > MOST_OUTPUTS:
        return "planned"
    shutil.rmtree(build, ignore_errors=True)
    compiled = labeldp("compile", spec, "-o", build, "--quiet", codes=(0, 2))
    if compiled.exit_code == 2:
        # A solver that gives up leaves the prior that was drawn, and nothing else.
        left = list(build.iterdir()) if build.exists() else []
        if any(not path.name.endswith(".prior.json") for path in left):
            raise FoundError(f"a refused compile left {left}")
        return "unsolved"
    labeldp("verify", compiled.stdout.strip(), "--spec", spec, codes=(0,))
    return "verified"
