"""The table of printed numbers: its tests exist, and no command is left out."""

import ast
import re
from pathlib import Path

import click
import pytest

from labeldp_compile.cli import main

ROOT = Path(__file__).parents[2]
KINDS = ("proved", "declared", "estimated", "counted", "none")


def rows():
    """[number, printed by, kind, held by] of each row."""
    lines = (ROOT / "benchmarks/notes/numbers.md").read_text(encoding="utf-8").splitlines()
    return [[c.strip() for c in x.strip("|").split("|")] for x in lines if x[:1] == "|"][2:]


def holders():
    return sorted({name for row in rows() for name in re.findall(r"`([^`]+)`", row[3])})


def test_the_table_is_whole_and_readable():
    found = rows()
    assert 30 < len(found) <= 60
    assert all(len(row) == 4 for row in found)
    assert all(row[3].startswith("`") for row in found)


def test_every_row_says_what_its_number_is():
    for number, _, kind, _ in rows():
        assert kind.startswith(KINDS), number


@pytest.mark.parametrize("name", holders())
def test_what_holds_a_number_exists(name):
    file, _, function = name.partition("::")
    path = ROOT / file if (ROOT / file).is_file() else ROOT / "tests" / file
    assert path.is_file()
    defined = {
        node.name
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    }
    if function:
        assert function in defined
    elif not file.startswith("benchmarks/"):
        assert any(function.startswith("test_") for function in defined)


def test_every_command_occurs_and_no_other():
    commands = {*main.list_commands(click.Context(main))}
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8").split("\n\n")[1]
    assert {*re.findall(r"^\|[^|]*\| `(\w+)` \|", page, re.M)} == commands
    listed = {name for row in rows() for name in re.findall(r"`([^`]+)`", row[1])}
    assert commands and listed == commands | {"labeldp-verify"}
