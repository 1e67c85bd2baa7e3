"""A misspelt command or option is answered with the nearest name."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

from labeldp_compile.cli import _COMMANDS, main


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["complie", "spec.yaml"], "No such command 'complie'. Did you mean 'compile'?"),
        (["verfiy"], "Did you mean 'verify'?"),
        (["qqq"], "No such command 'qqq'. See labeldp --help."),
        (["plan", "--jsn", "spec.yaml"], "Did you mean '--json'?"),
        (["ledger", "inti"], "Did you mean 'init'?"),
    ],
)
def test_labeldp(arguments, hint):
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2 and result.stderr.rstrip().endswith(hint)


def test_what_is_not_printable_stays_so():
    result = CliRunner().invoke(main, ["comp\x1b[2Jile"])
    assert result.exit_code == 2 and "\x1b" not in result.stderr


def test_every_command_is_found():
    for name in _COMMANDS:
        assert CliRunner().invoke(main, [name, "--help"]).exit_code == 0, name


@pytest.mark.parametrize(
    ("option", "hint"),
    [("--jsn", "; did you mean --json?\n"), ("--max-epsilom=1", "; did you mean --max-epsilon?\n")],
)
def test_labeldp_verify(option, hint):
    line = [sys.executable, "-m", "labeldp_verify", "x.onnx", option]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.endswith(hint)
