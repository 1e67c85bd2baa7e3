"""JSON keeps its keys: whoever reads a command's JSON finds what was there before.

``kept_json.json`` holds the keys that each command prints for a few files.
``python -m tests.cli.test_kept_json`` writes it again; only a new version of a JSON format may.
"""

import csv
import json
import os
from contextlib import chdir
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import pytest
from click.testing import CliRunner

from labeldp_compile.cli import main

ROOT = Path(__file__).parents[2]
KEPT = Path(__file__).with_name("kept_json.json")
FILES = ("groups/columns", "groups/real", "joint/top", "persons/window", "sets/design")
FILES += ("plain/laplace", "plain/auto-private-prior", "plain/users-window", "ranges/public-nulls")
PRIVATE = {
    "numbers": [-3, -1, 0, 2, 3, 3, 4, 5, 7, 9, 11, 14],
    "colour": ["red", "red", "blue", "green", "red", "grün"],
    "member": [0, 1, 2, 3, 5, 8, 12],
    "binned": [0, 1, 1],
    "region": ["north", "north", "south", "west"],
}
"""Columns of a table of private labels; each list is repeated to 600 rows."""
SPENDING = """
version: 1
name: spending
label: {column: numbers, domain: {kind: integer, min: -3, max: 14}}
loss: squared
privacy: {epsilon: 1.0, split: {prior: 0.1, label: 0.9}, ledger: budget.ledger}
prior: {kind: private, data: private.csv, data_set: visits, data_version: 2026-01}
mechanism: {kind: rr_on_bins}
"""
LEDGER = (
    "ledger init budget.ledger",
    "ledger set-budget budget.ledger --data-set visits --epsilon 0.25 --reason minutes",
    "sweep spending.yaml --epsilon 1 --mechanisms rr_on_bins --spend-prior",
    "ledger set-budget budget.ledger --data-set other --epsilon 3",
)
"""The entries that ``ledger show`` shows."""
OLD = "tests/golden"
COMMANDS = [
    *(f"{command} {OLD}/{file}.onnx" for command in ("verify", "report") for file in FILES),
    *(
        f"plan specs/{name}.yaml"
        for name in ("doctor-visits", "coinsurance-unbiased", "visits-and-health")
    ),
    f"report {OLD}/groups/columns.onnx --group other",
    "sweep specs/doctor-visits.yaml --epsilon 2 --spend-prior --insecure-test-seed 1",
    "sweep specs/visits.yaml --epsilon 1 --mechanisms rr_on_bins --bias-frontier",
    "sweep specs/visits.yaml --target mean-error=0.5 --rows 20190",
    "sweep specs/health-rating.yaml --target share-error=0.05 --target label-error=0.7 --rows 5000",
    f"audit {OLD}/plain/laplace.onnx --samples 100000 --no-processes",
    f"estimate {OLD}/plain/laplace.onnx private.csv --column numbers --by region",
    f"estimate {OLD}/plain/exponential-text.onnx private.csv --column colour --target population",
    f"estimate {OLD}/sets/design.onnx private.csv --column member",
    f"evaluate {OLD}/plain/exponential-text.onnx private.csv private.csv --column colour "
    "--model colour --by region --person member --unnoted",
    f"ledger total {OLD}/plain/laplace.onnx:3 {OLD}/plain/users-table.onnx --delta 1e-5",
    f"ledger total {OLD}/plain/exponential-text.onnx --labels-per-user 40",
    "ledger show budget.ledger",
    f"diff {OLD}/plain/laplace.onnx {OLD}/plain/users-table.onnx",
    "diff specs/visits.yaml specs/doctor-visits.yaml",
]


def prepare(folder):
    """The inputs of the commands, which name them from the folder."""
    for name in ("specs", "tests"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "spending.yaml").write_text(SPENDING, encoding="utf-8")
    with (folder / "private.csv").open("w", encoding="utf-8", newline="") as file:
        rows = zip(*map(cycle, PRIVATE.values()), strict=True)
        csv.writer(file).writerows([list(PRIVATE), *islice(rows, 600)])
    with chdir(folder):
        for line in LEDGER:
            result = CliRunner().invoke(main, line.split())
            assert result.exit_code == 0, result.output


def keys(node, path=""):
    """The paths of all keys; the items of a list have the same."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield f"{path}/{key}"
            yield from keys(value, f"{path}/{key}")
    elif isinstance(node, list):
        for value in node:
            yield from keys(value, f"{path}[]")


def name_of(line):
    words = line.split()
    return " ".join(words[:2]) if words[0] == "ledger" else words[0]


def printed(name):
    """The keys that a command prints in all its lines."""
    found = set()
    for line in COMMANDS:
        if name_of(line) == name:
            found |= set(
                keys(json.loads(CliRunner().invoke(main, [*line.split(), "--json"]).stdout))
            )
    return sorted(found)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("place")
    prepare(folder)
    return folder


@pytest.mark.parametrize("name", dict.fromkeys(map(name_of, COMMANDS)))
def test_every_key_is_still_there(name, place):
    with chdir(place):
        now = printed(name)
    assert not {*json.loads(KEPT.read_text(encoding="utf-8"))[name]} - {*now}


def with_json(command, name=""):
    """The names of the commands that have --json; the trainer's own are tested beside it."""
    if isinstance(command, click.Group):
        for part in command.list_commands(None):
            yield from with_json(command.get_command(None, part), f"{name} {part}".strip())
    elif any("--json" in option.opts for option in command.params):
        yield name


def test_of_every_command_with_json():
    assert {*with_json(main)} == {*map(name_of, COMMANDS)}


if __name__ == "__main__":
    with TemporaryDirectory() as made, chdir(made):
        (Path(made) / "config.toml").touch()  # not the user's own
        os.environ["LABELDP_CONFIG"] = f"{made}/config.toml"
        prepare(Path(made))
        found = {name: printed(name) for name in dict.fromkeys(map(name_of, COMMANDS))}
    KEPT.write_text(json.dumps(found, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
