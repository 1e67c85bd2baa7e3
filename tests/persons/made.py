"""Specs and tables with several labels of one person."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.fixtures.specs import spec as stated


def orders(**changes: Any) -> str:
    """A spec of three labels, without a word about persons."""
    usual = {"name": "orders", "column": "returned", "mechanism": "randomized_response"}
    return stated(labels=3, **(usual | changes))


def spec(labels: int = 2, epsilon: object = 1, prior: object = "uniform", **more: Any) -> str:
    """A spec whose unit is a person with this many labels."""
    unit = {"unit": "person", "person_column": "customer", "labels_per_person": labels}
    return orders(**unit, epsilon=epsilon, prior=prior, **more)


def table(path: Path, customers: list, returned: list | None = None, **more: list) -> Path:
    """A Parquet file of rows."""
    labels = [0] * len(customers) if returned is None else returned
    columns = {"customer": customers, "returned": pa.array(labels, pa.int64()), **more}
    pq.write_table(pa.table(columns), path)
    return path


def drawn(path: Path) -> list:
    """The private labels of an output; None where a row has none."""
    return pq.read_table(path)["returned"].to_pylist()
