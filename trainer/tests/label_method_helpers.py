"""A small problem of many classes, on which a prior helps."""

from __future__ import annotations

import json

import numpy as np
from labeldp_trainer import parse_config, train

CLASSES = 12
CONFIG = """
version: 1
name: many
data: {kind: npz, train: train.npz, test: test.npz, classes: 12}
model: {kind: linear}
loss: cross_entropy
method: {kind: lp_mst, epsilon: 1.5}
optimizer: {kind: adam, learning_rate: 0.05}
training: {epochs: 4, batch_size: 100}
"""


def problem(rows: int, seed: int) -> dict[str, np.ndarray]:
    """Twelve Gaussian clouds in six dimensions, well apart."""
    centres = 2.2 * np.random.default_rng(7).normal(size=(CLASSES, 6))
    random = np.random.default_rng(seed)
    y = random.integers(0, CLASSES, rows)
    return {"x": (centres[y] + random.normal(size=(rows, 6))).astype(np.float32), "y": y}


def write_problem(directory, rows=3000):
    np.savez(directory / "train.npz", **problem(rows, 1))
    np.savez(directory / "test.npz", **problem(1000, 2))


def config(method, base=CONFIG):
    return base.replace("{kind: lp_mst, epsilon: 1.5}", "{%s}" % method)  # noqa: UP031  # braces


def run(directory, method, output="run", base=CONFIG, **options):
    loaded = parse_config(config(method, base), "t.yaml", directory)
    return train(loaded, directory / output, **options)


def kept(folder):
    with np.load(folder / "kept.npz") as archive:
        return {name: archive[name] for name in archive.files}


def statement(folder):
    return json.loads((folder / "privacy.json").read_text())
