"""What a statement says in words is what was shown, digit by digit."""

import json

import pytest
from labeldp_trainer.methods.statement import Statement, written

from tests.trainer.label_method_helpers import run, write_problem


@pytest.mark.parametrize(
    ("number", "text"), [(1.0, "1"), (0.1, "0.1"), (1.0000004, "1.0000004"), (1e-05, "1e-05")]
)
def test_no_digit_is_lost(number, text):
    assert written(number) == text


def test_epsilon_and_delta_are_not_rounded_down():
    said = Statement("dp_sgd", 1.0000004, 1.0000004e-5, "m").paragraph()
    assert "(ε = 1.0000004, δ = 1.0000004e-05)-label-DP" in said


def test_the_words_of_a_run(tmp_path):
    write_problem(tmp_path, 200)
    run(tmp_path, "kind: alibi, epsilon: 1.0000004")
    said = json.loads((tmp_path / "run" / "privacy.json").read_text())["statement"]
    assert said.count("ε = 1.0000004") == 3
    assert "ε = 1 " not in said
    assert "ε = 1." not in said.replace("ε = 1.0000004", "")
