"""A statement about private labels says what it cannot know of other compiles and draws."""

import re

import pytest

from trainer.tests.test_csv_labels import TRAIN, built, columns, write
from trainer.tests.trainer_helpers import INTEGERS, compile_text, write_artifact

PLAIN = "{kind: privatized, artifact: numbers.onnx}"
COMPILES = "further compile on the same labels spends it again, and nothing here counts them."


def remarks(directory, method):
    write(directory, columns())
    return built(directory, TRAIN.replace("{kind: none}", method)).statement.remarks


@pytest.mark.parametrize("kind", ["uniform", "private"])
def test_the_cost_of_a_prior_is_that_of_one_compile(tmp_path, kind):
    (tmp_path / "labels.csv").write_text("y\n" + "1\n" * 30 + "2\n" * 30)
    spec = INTEGERS
    if kind == "private":
        spec = spec.replace("{kind: uniform}", "{kind: private, data: ../labels.csv}")
        spec = re.sub(r"privacy: \{(.*)\}", r"privacy: {\1, split: {prior: 1, label: 2}}", spec)
    compile_text(spec, tmp_path).write(tmp_path)
    found = [line for line in remarks(tmp_path, PLAIN) if COMPILES in line]
    spent = [re.search(r"one compile spent (ε = \d+) on the prior", line)[1] for line in found]
    assert spent == ["ε = 1"] * (kind == "private")


def test_a_private_column_is_declared_to_be_drawn_once(tmp_path):
    write_artifact(tmp_path)
    outputs = compile_text(INTEGERS).randomizer.values
    data = columns() | {"p": [repr(outputs[0])] * len(columns()["y"])}
    write(tmp_path, data)
    text = TRAIN.replace("{kind: none}", PLAIN.replace("}", ", unnoted: true, private_column: p}"))
    found = built(tmp_path, text).statement
    assert any("declares that 'p' was made with this artifact" in said for said in found.declared)
    assert not found.again and not any("Another run" in remark for remark in found.remarks)
