"""The Dockerfile and the unit of systemd: their linters find nothing, and their options exist."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from labeldp_compile.serve.command import serve_command

FOLDER = Path(__file__).parents[2] / "runtime/examples/service"
DOCKERFILE, UNIT = FOLDER / "Dockerfile", FOLDER / "labeldp.service"


def test_the_linter_of_dockerfiles_finds_nothing():
    linter = shutil.which("hadolint", path=Path(sys.executable).parent)
    done = subprocess.run([linter, DOCKERFILE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_systemd_finds_nothing():
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd-analyze")
    command = ["systemd-analyze", "verify", UNIT]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert str(UNIT) not in done.stderr


@pytest.mark.parametrize("path", [DOCKERFILE, UNIT], ids=lambda path: path.name)
def test_options_exist(path):
    known = {option for parameter in serve_command.params for option in parameter.opts}
    text = re.search(r"labeldp serve (.*?)(?:\"\]|'\n)", path.read_text("utf-8"), re.S)[1]
    named = set(re.findall(r"--[a-z-]+", text))
    assert len(named) >= 2
    assert named <= known
