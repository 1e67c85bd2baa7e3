"""Labels decide nothing but the noisy sum: no message, no exit code, no file, no other label."""

import functools
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from labeldp_trainer.methods import one_release
from labeldp_trainer.one_release import plan as make
from labeldp_trainer.one_release.rows import STEPS, UNIT

from labeldp_compile.cli import main
from trainer.tests.one_release.test_command import files

ROWS = 60
TABLE = """
version: 1
name: quiet
data:
  kind: table
  train: train.%s
  test: test.%s
  label: y
  numeric: [a]
  categorical: [c]
%s
"""
COLOURS = """  classes: [red, green, blue]
loss: cross_entropy
method: {kind: one_release, epsilon: 1, delta: 1e-5, default: green}
"""
LEVELS = """  classes: [1, 2, 3]
loss: cross_entropy
method: {kind: one_release, epsilon: 1, delta: 1e-5}
"""
NUMBERS = """loss: squared
method: {kind: one_release, epsilon: 1, delta: 1e-5, label_range: [-1, 3], default: 2}
"""
LABELS = {
    "colours": [
        ["red", "green", "blue"],
        ["red"],  # one class in the whole table
        [None],
        ["", "RED", "\x1b[31m", 'a "quoted", one', "1", None],
        ["red\nblue", "x" * 10_000],
    ],
    "levels": [[1, 2, 3], [2], [None], [0, -(2**62), 2**62, None, 3]],
    "numbers": [
        [0.0, 1.5, 3.0],
        [2.0],
        [None],
        [float("nan"), float("inf"), -float("inf"), 1e300, -5.0, 3.0000001, None],
    ],
    "cells": [
        ["0", "1.5", "3"],
        ["text", "", "nan", "1e999", "-1e99999999999", "0x10", "1,5", "\x1b[2J", "٣"],
        ["9" * 5000],
        ['"', "\n", "3\r\n4"],
    ],
}
TYPES = {"colours": pa.string(), "levels": pa.int64(), "numbers": pa.float64()}


LEAST_SIGMA = functools.cache(make.least_sigma)  # the features are the same in all tests


@pytest.fixture(autouse=True)
def quick_fit(monkeypatch):
    """What is computed of a release alone is not in question."""

    def fitted(release, rows, head):
        k, p = release.statistic.shape[1], rows.vectors.shape[1]
        return np.ones((p, k), np.float32), np.ones(k, np.float32)

    monkeypatch.setattr(one_release, "fitted_release", fitted)
    monkeypatch.setattr(make, "least_sigma", LEAST_SIGMA)


@pytest.fixture
def sums(monkeypatch):
    """What is summed; the noise is so large that nothing of it is left: all else is the same."""
    found = []

    def keep(total, sigma):
        found.append(total)
        return np.full_like(total, sigma)

    monkeypatch.setattr(make, "noisy", keep)
    return found


def quoted(value):
    return '"' + ("" if value is None else str(value)).replace('"', '""') + '"'


def write(directory, labels, kind, suffix):
    random = np.random.default_rng(4)
    a, c = random.normal(size=ROWS), random.choice(["u", "v"], ROWS)
    y = [labels[i % len(labels)] for i in range(ROWS)]
    if suffix == "csv":
        lines = ["a,c,y"]
        lines += [f"{float(a[i])!r},{c[i]},{quoted(y[i])}" for i in range(ROWS)]
        data = "\n".join(lines) + "\n"
        (directory / "train.csv").write_text(data, encoding="utf-8", newline="")
    else:
        columns = {"a": a, "c": c, "y": pa.array(y, TYPES[kind])}
        pq.write_table(pa.table(columns), directory / "train.parquet")


def trained(directory, labels, kind, suffix):
    """Exit code, both streams, and all files of a run on these labels."""
    text = {"colours": COLOURS, "levels": LEVELS}.get(kind, NUMBERS)
    first = LABELS[kind][0]
    write(directory, first, kind, suffix)
    (directory / f"train.{suffix}").rename(directory / f"test.{suffix}")
    write(directory, labels, kind, suffix)
    config = directory / "t.yaml"
    config.write_text(TABLE % (suffix, suffix, text), encoding="utf-8")
    output = directory / "run"
    result = CliRunner().invoke(main, ["train", str(config), "-o", str(output)])
    assert not isinstance(result.exception, Exception), result.exception
    found = result.exit_code, result.stdout, result.stderr, files(output)
    shutil.rmtree(output, ignore_errors=True)
    return found


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("kind", "suffix"),
    [
        ("colours", "parquet"),
        ("levels", "parquet"),
        ("numbers", "parquet"),
        ("colours", "csv"),
        ("cells", "csv"),
    ],
)
def test_no_label_changes_a_word_or_a_file(tmp_path, sums, kind, suffix):
    first, *others = LABELS[kind]
    expected = trained(tmp_path, first, kind, suffix)
    assert expected[0] == 0 and "release.npz" in expected[3]
    for labels in others:
        assert trained(tmp_path, labels, kind, suffix) == expected


def test_the_default_of_the_config_is_what_odd_labels_count_as(tmp_path, sums):
    trained(tmp_path, ["green"], "colours", "csv")
    trained(tmp_path, ["purple", "", None], "colours", "csv")
    trained(tmp_path, ["green", None], "colours", "parquet")
    assert all((one == sums[0]).all() for one in sums)
    assert not sums[0][:, [0, 2]].any() and sums[0][:, 1].any()


def test_without_one_it_is_the_first_class(tmp_path, sums):
    trained(tmp_path, [1], "levels", "parquet")
    trained(tmp_path, [7, None, 0], "levels", "parquet")
    assert (sums[0] == sums[1]).all() and not sums[0][:, 1:].any()


def test_numbers_beyond_the_range_are_its_ends(tmp_path, sums):
    for labels in ([3.0], [1e300, float("inf"), 3.5], [2.0], [None, float("nan")]):
        trained(tmp_path, labels, "numbers", "parquet")
    trained(tmp_path, ["text", "", "nan"], "cells", "csv")
    trained(tmp_path, ["1e999", "3.1", "inf"], "cells", "csv")
    high, beyond, two, missing, text, large = sums
    assert (high == beyond).all() and (high == large).all()
    assert (two == missing).all() and (two == text).all()
    assert (high == 2 * two).all()  # the middle of the range is 1
    assert 0 < np.abs(high).max() <= ROWS * UNIT * STEPS
