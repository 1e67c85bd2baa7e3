"""Tiny images and tables, and configs for them."""

import numpy as np
from labeldp_trainer import parse_config
from labeldp_trainer.data import load_data
from labeldp_trainer.representations import represented

from trainer.tests.trainer_helpers import CLASSES

IMAGES = """
version: 1
name: images
data: {kind: npz, train: train.npz, test: test.npz, classes: 3}
representation: %s
model: {kind: linear}
loss: cross_entropy
method: {kind: none}
optimizer: {kind: adam, learning_rate: 0.02}
training: {epochs: 2, batch_size: 50, seed: 7}
"""
PATCHES = "{kind: patches, patches: 6, size: 3, pool: 2, components: 8}"
TABLE = CLASSES.replace("model:", "representation: %s\nmodel:").replace(
    "{kind: mlp, hidden: [8], embedding: 2}", "{kind: linear}"
)


def images(rows, seed, side=6, channels=1):
    """uint8 images whose class is where the bar lies: left, right, or across."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 3, rows)
    x = random.integers(0, 60, (rows, side, side, channels))
    half = side // 2
    for k in range(rows):
        place = (slice(half, half + 2), slice(None)) if y[k] == 2 else (slice(None), 1 + 3 * y[k])
        x[(k, *place)] += 150
    return x.astype(np.uint8), y


def write_images(directory, rows=120, **options):
    for name, count, seed in (("train", rows, 0), ("test", 40, 1), ("more", 30, 2)):
        x, y = images(count, seed, **options)
        np.savez(directory / f"{name}.npz", x=x, y=y)


def loaded(directory, representation, text=IMAGES):
    return parse_config(text % representation, "t.yaml", directory)


def vectors(directory, representation, text=IMAGES):
    """The data before and after, and the map."""
    config = loaded(directory, representation, text)
    label = config.config.data.label
    before = load_data(config, (label,), (label,))
    after, learnt = represented(config, before, directory / "runs" / "none")
    return before, after, learnt
