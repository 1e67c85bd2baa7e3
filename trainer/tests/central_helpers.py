"""Whole runs of the methods of the central model on a small table."""

import json

import jax
import numpy as np
import pyarrow.parquet as pq
from labeldp_trainer import parse_config, train

from trainer.tests.trainer_helpers import table

ROWS, TEST_ROWS = 120, 60

CONFIG = """version: 1
name: small
data: {kind: table, train: train.parquet, test: test.parquet, label: colour, numeric: [a, b],
  classes: [red, green, blue]}
model: {kind: linear}
loss: cross_entropy
method: {kind: dp_sgd, epsilon: 8, delta: 1e-5}
optimizer: {kind: sgd, learning_rate: 2}
training: {epochs: 2, batch_size: 30}
"""
METHOD = "kind: dp_sgd, epsilon: 8, delta: 1e-5"
REGRESSION = (
    CONFIG.replace("colour", "y")
    .replace(",\n  classes: [red, green, blue]", "")
    .replace("cross_entropy", "squared")
    .replace("kind: linear", "kind: linear, scale: 4.5, offset: 4.5")
    .replace("learning_rate: 2", "learning_rate: 0.1")
)


def with_method(method, text=CONFIG):
    assert METHOD in text
    return text.replace(METHOD, method)


def write_tables(directory):
    for name, rows, seed in (("train", ROWS, 0), ("test", TEST_ROWS, 1)):
        users = np.arange(rows) // 3  # three rows a user
        pq.write_table(
            table(rows, seed).append_column("user", [users]), directory / f"{name}.parquet"
        )


def run(directory, text=CONFIG, output="run", **options):
    return train(parse_config(text, "t.yaml", directory), directory / output, **options)


def statement_of(folder):
    return json.loads((folder / "privacy.json").read_text())


def lines_of(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def same(one, other):
    return all(
        np.array_equal(a, b)
        for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    )
