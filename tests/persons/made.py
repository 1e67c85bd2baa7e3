"""Specs and tables with several labels of one person."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

SPEC = """
version: 1
name: orders
label:
  column: returned
  domain: {kind: integer, min: 0, max: 2}
loss: squared
privacy: {PRIVACY}
prior: PRIOR
mechanism: {kind: randomized_response}
"""
UNIFORM = "{kind: uniform}"


def spec(labels: int = 2, epsilon: object = 1, prior: str = UNIFORM, more: str = "") -> str:
    """A spec whose unit is a person with this many labels; ``more`` are keys of privacy."""
    privacy = (
        f"epsilon: {epsilon}, unit: person, person_column: customer, labels_per_person: {labels}"
    )
    return SPEC.replace("PRIVACY", privacy + more).replace("PRIOR", prior)


def table(path: Path, customers: list, returned: list | None = None, **more: list) -> Path:
    """A Parquet file of rows."""
    labels = [0] * len(customers) if returned is None else returned
    columns = {"customer": customers, "returned": pa.array(labels, pa.int64()), **more}
    pq.write_table(pa.table(columns), path)
    return path


def drawn(path: Path) -> list:
    """The private labels of an output; None where a row has none."""
    return pq.read_table(path)["returned"].to_pylist()
