"""An option with one value is given once: the last one of several is not what was meant."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from labeldp_verify import command

from labeldp_compile.cli import main

ROOT = Path(__file__).parents[2]
FILE = next((ROOT / "tests/golden").rglob("optimal-unbiased.onnx"))
TWICE = [
    ["verify", FILE, "--max-epsilon", "100", "--max-epsilon=1"],
    ["sweep", "x.yaml", "--epsilon", "1", "--epsilon", "2"],
    ["init", "x.csv", "--column", "y", "--column", "z"],
    ["randomize", FILE, "t.csv", "-o", "a.csv", "--output", "b.csv"],
    ["ledger", "set-budget", "b.ledger", "--data-set", "d", "--epsilon", "9", "--epsilon", "1"],
    ["train", "x.yaml", "-o", "a", "-o", "b"],
]


@pytest.mark.parametrize("arguments", TWICE)
def test_an_option_that_is_given_twice_is_refused(arguments, here):
    done = CliRunner().invoke(main, list(map(str, arguments)))
    assert done.exit_code == 2 and "is given more than once: give it once" in done.stderr
    assert list(here.iterdir()) == []


def test_those_that_may_be_repeated_still_may():
    done = CliRunner().invoke(main, ["report", str(FILE), "--label", "1", "--label", "2"])
    assert done.exit_code == 0, done.output
    done = CliRunner().invoke(main, ["verify", str(FILE), "--json", "--json"])
    assert done.exit_code == 0


def test_the_verifiers_own_command_refuses_it_too(capsys):
    with pytest.raises(SystemExit) as ended:
        command.main([str(FILE), "--max-epsilon", "100", "--max-epsilon", "0.1"])
    assert ended.value.code == 2
    assert "--max-epsilon is given more than once" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        command.main([str(FILE), str(FILE), "--max-epsilon", "100", "--json"])
    assert ended.value.code == 0
