"""Every command that writes a file refuses a name in the same words, before it reads anything."""

import os

import pytest
from click.testing import CliRunner
from labeldp_runtime import Key

from labeldp_compile.cli import main
from labeldp_compile.ledger.book import create_ledger
from labeldp_compile.tabular.selection import Selection
from tests.fixtures.specs import spec

SPEC = spec(labels=4)
OVERWRITE = "exists already; use --overwrite to replace it"
COMMANDS = {
    "report": (["report", "none.onnx", "-o"], "out.html", OVERWRITE),
    "sweep": (["sweep", "spec.yaml", "-o"], "out.html", OVERWRITE),
    "estimate": (["estimate", "none.onnx", "none.csv", "--csv"], "out.csv", OVERWRITE),
    "randomize": (["randomize", "none.onnx", "none.csv", "-o"], "out.csv", OVERWRITE),
    "init": (["init", "none.csv", "--column", "y", "-o"], "out.yaml", "exists already; give"),
    "compile": (["compile", "spec.yaml", "-o"], "example.onnx", OVERWRITE),
}


@pytest.fixture(params=COMMANDS)
def command(request, here):
    """What refuses a name, what the name is, and the words for one that is taken."""
    (here / "spec.yaml").write_text(SPEC)
    arguments, name, words = COMMANDS[request.param]
    path = here / name
    target = here if request.param == "compile" else path

    def run(*more):
        before = sorted(here.iterdir())
        result = CliRunner().invoke(main, [*arguments, str(target), *more])
        assert result.exit_code == 2 and result.stderr.count("\n") == 1
        assert sorted(here.iterdir()) == before
        return result.stderr

    return path, words, run


def test_what_is_there_already(command, tmp_path):
    path, words, run = command
    path.write_text("mine")
    assert f"{path}: {words}" in run() and path.read_text() == "mine"
    path.unlink()
    path.symlink_to(tmp_path / "not mounted" / "file")
    assert f"{path}: {words}" in run() and path.is_symlink()
    path.unlink()
    path.mkdir()
    assert f"{path}: is a directory" in run()


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "init"], indirect=True)
def test_a_pipe_even_if_it_may_be_replaced(command):
    """As root, this replaced /dev/null by a file."""
    path, _, run = command
    os.mkfifo(path)
    assert f"{path}: is no ordinary file" in run("--overwrite")
    assert path.is_fifo()


KEYS = {
    "ledger": create_ledger,
    "key": Key.create,
    "private key": lambda path: path.write_text("-----BEGIN PRIVATE KEY-----\nMC4\n"),
    "client key": lambda path: path.write_text(f"{'0a' * 32}\n"),
}


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("link", [None, os.symlink, os.link])
def test_a_ledger_or_a_key_is_never_replaced(command, kind, link, tmp_path_factory):
    """``-o led.csv --ledger led.csv --overwrite`` replaced the ledger that it had booked in."""
    path, _, run = command
    if path.suffix == ".yaml":
        return  # init replaces nothing
    folder = tmp_path_factory.mktemp("kept")
    kept = path if link is None else folder / "kept"
    KEYS[kind](kept)
    if link is not None:
        link(kept, path)
    before = kept.read_bytes()
    assert "which no command replaces" in run("--overwrite")
    assert kept.read_bytes() == before


def test_a_name_that_is_too_long_for_the_unfinished_file(here):
    """Before anything is read: the table and the artifact are not there."""
    path = here / ("n" * 240 + ".csv")
    result = CliRunner().invoke(main, ["randomize", "none.onnx", "none.csv", "-o", str(path)])
    assert result.exit_code == 2 and "its name is 6 bytes too long" in result.stderr


def test_a_name_that_another_run_takes_while_this_one_reads(here, monkeypatch):
    """Replacing its private labels would be a second draw that nobody asked for."""
    (here / "spec.yaml").write_text(SPEC)
    (here / "t.csv").write_text("y\n1\n2\n")
    assert CliRunner().invoke(main, ["compile", "spec.yaml", "-o", "."]).exit_code == 0
    command = ["randomize", "example.onnx", "t.csv", "-o", "out.csv"]
    monkeypatch.setattr(Selection, "measure", lambda *_: (here / "out.csv").write_text("theirs"))
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 2 and f"out.csv: {OVERWRITE}" in result.stderr
    assert (here / "out.csv").read_text() == "theirs"
    assert CliRunner().invoke(main, [*command, "--overwrite"]).exit_code == 0
    assert (here / "out.csv").read_text() != "theirs"
