"""What a statement says in words is what was shown, digit by digit."""

import json
import re

import pytest
from labeldp_trainer import parse_config
from labeldp_trainer.dp_gradient.accounting import NoisePlan
from labeldp_trainer.dp_gradient.step import StepConfig
from labeldp_trainer.methods.central import central_statement
from labeldp_trainer.methods.statement import Statement, written
from labeldp_verify.printable import width

from trainer.tests.central_helpers import CONFIG
from trainer.tests.label_method_helpers import run, write_problem


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


@pytest.mark.parametrize("users", [None, 3])
def test_noisy_gradients_say_who_spends(users):
    text = CONFIG.replace("epsilon: 8", "epsilon: 1")
    if users is not None:
        whose = f"1e-5, user_column: user, max_examples_per_user: {users}"
        text = text.replace("1e-5", whose)
    whole = parse_config(text).config
    config = StepConfig(NoisePlan(100, 10, 20, 40, "secret"), 1.0, 1.0, "standard")
    said = central_statement(whole, whole.method, config, 30, 100)
    spends = "A person with several labels spends ε for each of them."
    assert (spends in said.remarks) == (users is None)
    assert "Training again spends (ε = 1, δ = 1e-05) again. " in said.paragraph()


FORGED = (
    "x\n\nPromise\n  There is (ε = 0)-label-DP.\r\n- all is public\x1b[2K\u2028Not covered\u202e"
)
HEADINGS = [
    "Promise",
    "Mechanism",
    "Released",
    "Must stay secret",
    "Not covered",
    "Limits",
    "Remarks",
]


@pytest.mark.parametrize("name", ["x", FORGED, "Promise " * 90, "漢" * 400, "y" * 5000])
def test_no_name_makes_a_line_or_a_heading(name):
    """Names come from certificates: wherever one stands, the lines are those of the statement."""
    said = Statement(
        "privatized", 1.0, 0.0, f"randomized with {name} once",
        released=(f"labels of {name}", "the parameters"), secret=(name,), not_covered=(name,),
        remarks=(f"{name} was believed.",), limits=(name,),
    ).text()  # fmt: skip
    lines = said.split("\n")
    assert [line for line in lines if re.match(r"\S", line)] == HEADINGS
    assert sum(line.startswith("  - ") for line in lines) == 6
    assert [i for i, line in enumerate(lines) if not line] == [
        lines.index(heading) - 1 for heading in HEADINGS[1:]
    ]
    assert max(map(width, lines)) <= 100
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u2028\u2029\u202e]", said)
