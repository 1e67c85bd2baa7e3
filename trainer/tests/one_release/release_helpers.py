"""Small public tables, and releases of them."""

import numpy as np
from labeldp_trainer import parse_config
from labeldp_trainer.config import OneRelease
from labeldp_trainer.config.data import MOST_EXAMPLES
from labeldp_trainer.one_release.rows import PublicRows, Users, user_counts

CLASSES = """
version: 1
name: few
data: {kind: npz, train: train.npz, test: test.npz, classes: 3}
loss: cross_entropy
method: {kind: one_release, epsilon: 2, delta: 1e-5}
"""
NUMBERS = """
version: 1
name: some
data: {kind: npz, train: train.npz, test: test.npz, label: number}
loss: squared
method: {kind: one_release, epsilon: 2, delta: 1e-5, label_range: [-6, 6]}
"""


def method(**options):
    return OneRelease.model_validate({"kind": "one_release", "epsilon": 1, "delta": 1e-5} | options)


def rows(vectors, owners=None):
    users = None
    if owners is not None:
        users = Users.of(
            "user", MOST_EXAMPLES, user_counts(np.asarray(owners), np.arange(len(owners)))
        )
    return PublicRows(
        count=len(vectors),
        vectors=np.asarray(vectors, np.float32),
        spectrum=None,
        owners=owners,
        users=users,
    )


def write_archives(directory, count=1200, columns=5):
    """Labels that depend on the features: y in 0, 1, 2; number between −6 and 6, mostly."""
    slopes = np.random.default_rng(7).normal(size=(columns, 3))
    for name, n, seed in (("train", count, 0), ("test", 200, 1)):
        random = np.random.default_rng(seed)
        x = random.normal(size=(n, columns))
        scores = x @ slopes + 0.3 * random.normal(size=(n, 3))
        arrays = {"x": x.astype(np.float32), "y": scores.argmax(axis=1), "number": scores[:, 0]}
        np.savez(directory / f"{name}.npz", user=np.arange(n) // 3, **arrays)


def loaded(directory, text=CLASSES):
    return parse_config(text, "t.yaml", directory)
