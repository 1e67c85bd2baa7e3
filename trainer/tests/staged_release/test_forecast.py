"""``labeldp train --plan``: what to expect, from a table that has no label."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from labeldp_trainer.config.load import load_config
from labeldp_trainer.outcomes.forecast import SIGNALS, forecasts

from labeldp_compile.cli import main

CONFIG = """
version: 1
name: planned
data: {{kind: table, train: train.parquet, label: y, numeric: [a, b], categorical: [c]{classes}}}
method: {{kind: staged_release, epsilon: {epsilon}, delta: 1e-4{ends}}}
"""
NUMBERS = {"classes": "", "ends": ", label_range: [0, 9]"}
CLASSES = {"classes": ", classes: [x, y, z]", "ends": ""}


def config(folder, epsilon, more):
    random = np.random.default_rng(0)
    found = {name: random.normal(size=3000) for name in "ab"}
    found["c"] = random.choice(["u", "v", "w"], 3000)
    pq.write_table(pa.table(found), folder / "train.parquet")
    path = folder / "t.yaml"
    path.write_text(CONFIG.format(epsilon=epsilon, **more), encoding="utf-8")
    return path


@pytest.mark.parametrize("more", [NUMBERS, CLASSES])
def test_more_is_learned_of_more_and_with_less_noise(tmp_path, more):
    explained = []
    for epsilon in (0.3, 6):
        rows, found = forecasts(load_config(config(tmp_path, epsilon, more)))
        assert rows == 3000 and [each.signal for each in found] == list(SIGNALS)
        explained.append([each.explained for each in found])
    little, much = explained
    assert all(m > few for few, m in zip(little, much, strict=True))
    assert much[0] < much[1] < much[2] and much[2] > 0.7 * SIGNALS[2]
    assert all(e < s for e, s in zip(much, SIGNALS, strict=True))


def test_the_command_says_what_to_expect_and_writes_nothing(tmp_path):
    path = config(tmp_path, 4, NUMBERS)
    before = sorted(tmp_path.iterdir())
    found = CliRunner().invoke(main, ["train", str(path), "--plan"])
    assert found.exit_code == 0, found.output
    assert "3,000 rows" in found.stdout and "nothing was spent" in found.stdout
    assert "private labels" in found.stdout and sorted(tmp_path.iterdir()) == before


def test_the_other_release_is_named_for_classes_and_numbers_alone_or_few_rows(tmp_path):
    path = config(tmp_path, 1, CLASSES)
    alone = path.with_name("alone.yaml")
    alone.write_text(path.read_text(encoding="utf-8").replace("categorical: [c], ", ""), "utf-8")
    counted = path.with_name("counted.yaml")  # classes 0, 1 and 2
    counted.write_text(alone.read_text(encoding="utf-8").replace("[x, y, z]", "3"), "utf-8")
    few = path.with_name("few.yaml")  # rows, for so small an ε
    few.write_text(path.read_text(encoding="utf-8").replace("epsilon: 1", "epsilon: 0.04"), "utf-8")
    for each, named in ((path, False), (alone, True), (counted, True), (few, True)):
        found = CliRunner().invoke(main, ["train", str(each), "--plan"])
        assert ("one_release" in found.stdout) == named, found.output


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("delta: 1e-25", (), "too small"),
        ("", ("--resume",), "--resume is for training, not for --plan"),
        ("", ("--verbose",), "--verbose is for training, not for --plan"),
        ("", ("--verify-release", "r.npz"), "use either"),
        ("", ("--vectors", "run"), "--vectors is for --verify-release"),
    ],
)
def test_refusals(tmp_path, text, options, said):
    path = config(tmp_path, 1, NUMBERS)
    if text:
        path.write_text(path.read_text("utf-8").replace("delta: 1e-4", text), encoding="utf-8")
    found = CliRunner().invoke(main, ["train", str(path), "--plan", *options])
    assert found.exit_code == 2 and said in found.stderr
