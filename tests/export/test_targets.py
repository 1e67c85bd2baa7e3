"""``labeldp export``: how a target is found, and what happens to words that are not its own."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from labeldp_compile import export
from labeldp_compile.cli import main

ROOT = Path(__file__).parents[2]
ARTIFACT = ROOT / "tests/golden/plain/exponential.onnx"


def run(*words):
    return CliRunner().invoke(main, list(words), prog_name="labeldp")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["x.onnx", "-o", "y"], "--to is missing. The targets are coq, mlflow, portable, sql"),
        (["--to", "word", "x.onnx"], "--to word: no such target. The targets are coq"),
        (["--to", "sql", "x", "--id-colum", "y"], "No such option '--id-colum'"),
        (["--to", "sql", "x", "--to", "coq"], "--to is given more than once: give it once"),
        (["--to", "sql", "--", "--to", "coq"], "Missing option '--dialect'"),
    ],
)
def test_a_word_that_is_wrong_is_one_error(words, says, here):
    done = run("export", *words)
    assert done.exit_code == 2 and says in done.stderr and list(here.iterdir()) == []


def test_without_the_trainer_its_target_is_said_to_need_it(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "labeldp_trainer" else find(name)
    )
    done = run("export", "--to", "onnx", "run")
    assert done.exit_code == 2 and "needs labeldp-trainer" in done.stderr
    assert "onnx" not in run("export", "run").stderr


DELETABLE = ("export/coq", "export/mlflow.py", "export/portable.py", "export/sql", "serve")


@pytest.mark.parametrize("deleted", DELETABLE)
def test_a_command_or_target_whose_folder_is_deleted_is_gone_and_nothing_else(deleted, tmp_path):
    package = ROOT / "labeldp_compile"
    (tmp_path / package.name / "export").mkdir(parents=True)
    for path in (*package.iterdir(), *(package / "export").iterdir()):
        name = path.relative_to(package)
        if name.as_posix() not in (deleted, "export"):
            (tmp_path / package.name / name).symlink_to(path)
    program = [sys.executable, "-m", "labeldp_compile.cli"]
    helps = [
        subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        for words in ([*program, "--help"], [*program, "export", "--help"])
    ]
    listed = set(re.findall(r"^  (?:--to )?(\w+) ", "".join(helps), re.M))
    expected = {Path(it).stem for it in DELETABLE} - {Path(deleted).stem}
    assert {Path(it).stem for it in DELETABLE} & listed == expected


def test_a_target_takes_one_file_that_of_contributing(tmp_path, monkeypatch):
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8").split("## Adding a target of export")[1]
    (tmp_path / "certificate.py").write_text(page.split("```python\n")[1].split("```")[0])
    monkeypatch.syspath_prepend(tmp_path)  # forgets what was looked for
    monkeypatch.setattr(export, "__path__", [*export.__path__, str(tmp_path)])
    monkeypatch.setattr(export.__spec__, "submodule_search_locations", export.__path__)
    assert "--to certificate" in run("export", "--help").stdout
    words = ("export", "--to", "certificate", str(ARTIFACT), "-o", str(tmp_path / "c.json"))
    assert run(*words).exit_code == 0 and '"epsilon_label"' in (tmp_path / "c.json").read_text()
    assert "exists already" in run(*words).stderr
