"""A table whose label needs an interaction, with gaps, dates and rare categories."""

import datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

CONFIG = """
version: 1
name: interactions
data:
  kind: table
  train: train.parquet
  test: test.parquet
  label: y
  numeric: [a, b]
  categorical: [c]
method: {epsilon: 4, delta: 1e-5, label_range: [0, 10]}
"""
DATES = CONFIG.replace("categorical: [c]", "categorical: [c]\n  dates: [day]")
CLASSES = CONFIG.replace("label: y", "label: colour\n  classes: [red, green, blue]").replace(
    ", label_range: [0, 10]", ""
)
COUNTS = CONFIG.replace("method:", "loss: poisson\nmethod:")
USERS = CONFIG.replace("label_range", "user_column: who, max_examples_per_user: 3, label_range")


def some_table(rows, seed):
    """y = 5 + 3·sign(a·b) + a little of c and of the weekday; a has gaps."""
    random = np.random.default_rng(seed)
    a, b = random.normal(size=(2, rows))
    c = random.choice(["u", "v", "w", f"rare {seed}"], rows, p=[0.5, 0.3, 0.19, 0.01])
    days = random.integers(0, 365, rows)
    start = datetime.date(2024, 1, 1)  # a Monday
    sunday = days % 7 == 6
    score = 3 * np.sign(a * b) + 0.5 * (c == "u") + sunday
    y = np.clip(np.round(5 + score + random.normal(0, 0.5, rows)), 0, 10)
    colour = np.where(score < -1, "red", np.where(sunday, "green", "blue"))
    missing = random.random(rows) < 0.05
    return pa.table(
        {
            "a": pa.array(a, mask=missing),
            "b": b,
            "c": c,
            "day": pa.array([start + datetime.timedelta(int(d)) for d in days]),
            "y": y,
            "colour": colour,
            "who": np.arange(rows) // 3,
        }
    )


def write(folder, rows=1000):
    """A training and a test part."""
    pq.write_table(some_table(rows, 0), folder / "train.parquet")
    pq.write_table(some_table(1000, 1), folder / "test.parquet")
