"""A run folder that is there is refused before anything is read, and before JAX loads."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner
from labeldp_trainer import RunFolderError, parse_config, train
from labeldp_trainer.cli import train_command

from trainer.tests.trainer_helpers import CONFIG, write_config

# No module of JAX can be loaded, and no table is there: whatever goes on is found out.
WITHOUT_JAX = """
import sys
sys.modules["jax"] = None
from labeldp_compile.cli import main
main(prog_name="labeldp")
"""


@pytest.fixture
def taken(tmp_path):
    """A run folder, as far as anybody looks before a refusal."""
    folder = tmp_path / "run"
    folder.mkdir()
    facts = {"format_version": "1.0", "config_sha256": "0" * 64}
    (folder / "run.json").write_text(json.dumps(facts))
    return folder


def labeldp(directory, *arguments):
    """The command in a process of its own, in which JAX cannot be imported."""
    line = [sys.executable, "-c", WITHOUT_JAX, *map(str, arguments)]
    return subprocess.run(line, cwd=directory, capture_output=True, text=True, check=False)


def require_refused(done, words):
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("labeldp: ") and done.stderr.count("\n") == 1, done.stderr
    assert words in done.stderr


def test_before_the_config_is_read(tmp_path, taken):
    done = labeldp(tmp_path, "train", "no-such-config.yaml", "-o", "run")
    require_refused(done, "run: already exists; use --resume to continue it, or choose another")


def test_before_the_data_are_read(tmp_path, taken):
    taken.rename(tmp_path / "small")
    (tmp_path / "runs").mkdir()
    (tmp_path / "small").rename(tmp_path / "runs" / "small")
    write_config(tmp_path)  # whose tables are not there
    require_refused(labeldp(tmp_path, "train", "train.yaml"), "runs/small: already exists")


def test_a_resumed_run_of_another_config(tmp_path, taken):
    write_config(tmp_path)
    done = labeldp(tmp_path, "train", "train.yaml", "-o", "run", "--resume")
    require_refused(done, "run: was started with another config")


def test_from_python(tmp_path, taken):
    with pytest.raises(RunFolderError, match="already exists"):
        train(parse_config(CONFIG, directory=tmp_path), taken)


@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_a_name_that_is_taken_by_something_else(tmp_path, kind):
    path = tmp_path / "run"
    {
        "folder": path.mkdir,
        "file": path.touch,
        "link": lambda: path.symlink_to(tmp_path / "nowhere"),
    }[kind]()
    result = CliRunner().invoke(train_command, ["no-such-config.yaml", "-o", str(path)])
    assert result.exit_code == 2
    assert "is not a run folder, or is damaged; choose another folder" in result.stderr
