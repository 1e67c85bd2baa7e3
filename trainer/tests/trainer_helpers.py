"""A small table, its artifact, and configs for it."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from labeldp_compile import Compiled, compile_spec

INTEGERS = """
version: 1
name: numbers
label: {column: y, domain: {kind: integer, min: 0, max: 9}}
loss: squared
privacy: {epsilon: 3.0}
prior: {kind: uniform}
mechanism: {kind: optimal_unbiased}
"""

CATEGORIES = """
version: 1
name: colours
label:
  column: colour
  domain: {kind: categorical, values: [red, green, blue]}
  out_of_domain: {default: red}
loss: zero_one
privacy: {epsilon: 1.0}
prior: {kind: uniform}
mechanism: {kind: randomized_response}
"""

CONFIG = """
version: 1
name: small
data:
  kind: table
  train: train.parquet
  test: test.parquet
  label: y
  numeric: [a, b]
  categorical: [c]
model: {kind: mlp, hidden: [8], embedding: 2, offset: 4.5}
loss: squared
method: {kind: none}
optimizer: {kind: adam, learning_rate: 0.02}
training: {epochs: 3, batch_size: 50, checkpoint_every: 3}
"""

CLASSES = (
    CONFIG.replace("label: y", "label: colour")
    .replace(", offset: 4.5", "")
    .replace("loss: squared", "loss: cross_entropy")
)


def table(rows: int, seed: int) -> pa.Table:
    """Labels that depend on the features: y in 0 … 9, colour in red, green, blue."""
    random = np.random.default_rng(seed)
    a, b = random.normal(size=rows), random.integers(0, 2, rows).astype(bool)
    c = random.choice(["u", "v", "w"], rows)
    y = np.clip(np.round(4.5 + 2 * a + b + (c == "u")), 0, 9).astype(np.int64)
    colour = np.where(a + b < 0, "red", np.where(c == "u", "green", "blue"))
    return pa.table({"a": a, "b": b, "c": c, "y": y, "colour": colour, "id": np.arange(rows)})


def write_tables(directory: Path, rows: int = 600) -> None:
    pq.write_table(table(rows, 0), directory / "train.parquet")
    pq.write_table(table(200, 1), directory / "test.parquet")


def compile_text(text: str, directory: Path | None = None) -> Compiled:
    """Compile a spec's text, whose paths start from the directory."""
    with TemporaryDirectory(dir=directory) as folder:
        path = Path(folder) / "spec.yaml"
        path.write_text(text, encoding="utf-8")
        return compile_spec(path)


def write_artifact(directory: Path, text: str = INTEGERS) -> Compiled:
    artifact = compile_text(text)
    artifact.write(directory)
    return artifact


def write_config(directory: Path, text: str = CONFIG) -> Path:
    path = directory / "train.yaml"
    path.write_text(text, encoding="utf-8")
    return path
