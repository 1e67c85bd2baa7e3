"""What a newcomer meets first: the list of commands, at once, and an example for each."""

import json
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from labeldp_compile.cli import _COMMANDS, _HEADINGS, main
from labeldp_compile.cli.export import load_target, target_modules
from labeldp_compile.cli.group import THEIRS as TRAINERS

ROOT = Path(__file__).parents[2]
HEAVY = [
    *("numpy", "pyarrow", "onnx", "onnxruntime", "scipy", "clarabel", "opendp", "mpmath"),
    *("pydantic", "yaml", "cryptography", "matplotlib", "jax", "labeldp_runtime"),
    "labeldp_compile.build.pipeline",
]
LOADED = """
import json, sys
from labeldp_compile.cli import main
commands, candidates = map(json.loads, sys.argv[1:])
for command in commands:
    try:
        main(command, prog_name="labeldp")
    except SystemExit:
        pass
    print(json.dumps(sorted(set(candidates) & set(sys.modules))), file=sys.stderr)
"""


def heavy_modules(*commands, candidates=HEAVY):
    """The heavy modules that are loaded after each command, one after the other in one process."""
    words = [list(map(str, command)) for command in commands]
    script = [sys.executable, "-c", LOADED, json.dumps(words), json.dumps(candidates)]
    done = subprocess.run(script, capture_output=True, text=True, check=True)
    loaded = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("[")]
    assert len(loaded) == len(commands)
    return loaded


def leaves(command, path):
    """All commands below a group, with the words that lead to them."""
    if not isinstance(command, click.Group):
        return [(path, command)]
    context = click.Context(command)
    names = command.list_commands(context)
    return [
        leaf for name in names for leaf in leaves(command.get_command(context, name), (*path, name))
    ]


def every_command():
    """The trainer's own command in the place of the one that hands over to it."""
    for path, command in leaves(main, ("labeldp",)):
        if path[1] == "export":
            for name in target_modules():
                yield ("labeldp", f"export --to {name}"), load_target(name)
        elif path[1] in TRAINERS:
            cli = pytest.importorskip("labeldp_trainer.cli")
            yield path, getattr(cli, f"{path[1]}_command")
        else:
            yield path, command


def test_the_short_helps_are_those_of_the_commands():
    context = click.Context(main)
    for name, short in _COMMANDS.items():
        assert main.get_command(context, name).get_short_help_str(1000) == short, name


def test_every_command_is_under_one_of_five_headings():
    names = [name for heading in _HEADINGS.values() for name in heading]
    assert sorted(names) == sorted(_COMMANDS) and len(names) <= 22
    shown = CliRunner().invoke(main, ["--help"], prog_name="labeldp").stdout
    assert re.findall(r"^([A-Z]\w+):$", shown, re.M)[1:] == list(_HEADINGS)
    listed = shown.split("\nStart:")[1]
    assert re.findall(r"^  (\w+)  ", listed, re.M) == names


def test_python_m_is_the_command():
    command = [sys.executable, "-m", "labeldp_compile.cli", "ledger", "show", "no-such-file"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.startswith("labeldp: no-such-file: cannot be read")


def test_commands_import_no_more_than_they_use():
    names = [[], *([name, "--help"] for name in ("verify", "randomize", "report"))]
    spec = str(ROOT / "specs/health-rating.yaml")
    loaded = heavy_modules(
        *(["--help"], ["--version"], ["export", "--to", "x"], ["init", "--help"]),
        *names,
        ["plan", spec],
    )
    assert loaded[:4] == [[], [], [], ["numpy", "yaml"]]
    solvers = {"scipy", "clarabel", "opendp", "mpmath", "matplotlib", "jax"}
    assert not solvers & {module for modules in loaded for module in modules}
    assert "pydantic" not in loaded[-2]


def test_what_waits_for_no_jax(tmp_path):
    pytest.importorskip("labeldp_trainer")
    wrong, run = tmp_path / "train.yaml", tmp_path / "run"
    wrong.write_text("version: 1\n", encoding="utf-8")
    run.mkdir()
    (run / "run.json").write_text("{}", encoding="utf-8")
    commands = [["train", wrong], *([name, "--help"] for name in TRAINERS)]
    commands += [["runs", tmp_path, *more] for more in ((), ("--html", tmp_path / "p.html"))]
    heavy = ["jax", "optax", "orbax", "dp_accounting"]
    assert not any(heavy_modules(*commands, candidates=heavy))


@pytest.mark.parametrize(
    "words", [("plan",), ("verify",), ("compile", "-o", "x"), ("ledger", "show"), ("evil\x1b[2J",)]
)
def test_a_message_is_one_line_that_no_terminal_obeys(words):
    result = CliRunner().invoke(main, [*words, "no\x1b[31m\nfile"], color=True)
    assert result.exit_code == 2 and "\x1b" not in result.stderr
    if len(words[0]) < 8:
        assert result.stderr.count("\n") == 1 and "no\ufffd[31m\ufffdfile" in result.stderr


def test_every_command_has_an_example_with_options_that_exist():
    for path, command in every_command():
        name, context = " ".join(path), click.Context(command, info_name=" ".join(path))
        known = {opt for parameter in command.get_params(context) for opt in parameter.opts}
        text = command.get_help(context).replace("\\\n", " ")
        text = re.split(r"^ *Examples?\b", text, flags=re.MULTILINE)[-1]
        examples = re.findall(rf"^ +{name} ?(.*)$", text, re.MULTILINE)
        assert examples, name
        for option in re.findall(r"(?<!\S)-{1,2}[a-z][a-z-]*", " ".join(examples)):
            assert option in known, (name, option)


def complete(*words):
    """What the shell is told for the words after ``labeldp``, the last of them unfinished."""
    environment = {
        "_LABELDP_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("labeldp", *words)),
        "COMP_CWORD": str(len(words)),
    }
    result = CliRunner().invoke(main, [], env=environment, prog_name="labeldp")
    return [tuple(line.split(",", 1)) for line in result.stdout.splitlines()]


def test_completion_of_commands_options_files_and_mechanisms():
    assert complete("ver") == [("plain", "verify")]
    assert complete("verify", "build/x") == [("file", "build/x")]
    assert complete("ledger", "total", "build/x.onnx:3", "build/y") == [("file", "build/y")]
    assert complete("export", "--to", "sql", "--di") == [("plain", "--dialect")]
    assert complete("init", "t.csv", "--mechanism", "rr_") == [
        ("plain", "rr_on_bins"),
        ("plain", "rr_with_prior"),
    ]
    assert complete("sweep", "s.yaml", "--mechanisms", "laplace,stair") == [
        ("plain", "laplace,staircase")
    ]
