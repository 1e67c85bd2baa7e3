"""The command on configs, and what it leaves in a run folder."""

import json

from click.testing import CliRunner

from labeldp_compile.cli import main


def labeldp(*arguments, code=0):
    """What the command prints: with an exit code that is not 0, on standard error."""
    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert result.exit_code == code, (result.output, result.exception)
    assert isinstance(result.exception, SystemExit | None)
    return result.stderr if code else result.stdout


def written(directory, text, name="t"):
    """The path of a config."""
    path = directory / f"{name}.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def document(folder, name="result"):
    """A JSON file of a run."""
    return json.loads((folder / f"{name}.json").read_text())


def refused(directory, text, *options):
    """The message of ``labeldp train`` for a config: exit code 2, and nothing is left behind."""
    config = written(directory, text, "train")
    before = sorted(directory.rglob("*"))
    said = labeldp("train", config, "-o", directory / "run", *options, code=2)
    assert sorted(directory.rglob("*")) == before
    assert said.startswith("labeldp: ") and "\nlabeldp: " not in said
    return said
