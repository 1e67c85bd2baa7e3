"""A revision of the text loses nothing: JSON keeps its keys, values and numbers.

``kept_json.json`` holds what the commands printed before all sentences were rewritten
(``python -m tests.cli.test_kept_json`` writes it again; only a new version of a JSON format may).
Values that machines compare are kept as they are. Of a sentence, its numbers are kept. Of a value
that depends on secret bits, the time or the machine, its key is kept.
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
from trainer.tests.kept import MASK, facts, lost

ROOT = Path(__file__).parents[2]
KEPT = Path(__file__).with_name("kept_json.json")
OLD = ROOT / "tests" / "golden"
SPECS = ("doctor-visits", "coinsurance-unbiased", "health-rating", "visits-and-health", "visits")
MACHINE = {"seconds", "tools", "labeldp", "sha256", "bytes", "size"}
"""Keys of forecasts and versions, which are not the same everywhere."""
SECRET = {
    "audit tests/": {"ok", "samples", "epsilon_lower_bound", "detail", "label"}
    | {"chi_square", "degrees_of_freedom", "p_value"},
    "evaluate": {"low", "high", "error"},  # rounding, where all rows are alike
    "ledger": {"hash", "head", "time", "key_sha256", "client_key_sha256", "data_hmac"},
}
"""Keys whose values depend on secret bits, rounding or the time, by the beginning of a command."""

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
"""What is in the ledger that ``ledger show`` shows."""


def chosen_files():
    """Two files of each folder of old files, the first and the last by name."""
    for folder in sorted(path for path in OLD.iterdir() if path.is_dir()):
        files = sorted(folder.glob("*.onnx"))
        if files:
            yield from sorted({files[0], files[-1]})


def commands():
    for file in chosen_files():
        yield f"verify {file.relative_to(ROOT)}"
        yield f"report {file.relative_to(ROOT)}"
    for spec in SPECS:
        yield f"plan specs/{spec}.yaml"
    old, private = "tests/golden", "private.csv"
    yield f"report {old}/groups/columns.onnx --group other"
    yield "sweep specs/health-rating.yaml --epsilon 1"
    yield "sweep specs/visits.yaml --epsilon 0.5,4 --mechanisms laplace,randomized_response"
    yield "sweep specs/doctor-visits.yaml --epsilon 2 --spend-prior --insecure-test-seed 1"
    yield "sweep specs/visits.yaml --epsilon 1 --mechanisms rr_on_bins --bias-frontier"
    yield "sweep specs/visits.yaml --target mean-error=0.5 --rows 20190"
    yield "sweep specs/health-rating.yaml --target max-belief=0.2@0.01"
    targets = "--target share-error=0.05 --target label-error=0.7"
    yield f"sweep specs/health-rating.yaml {targets} --rows 5000"
    yield f"audit {old}/plain/laplace.onnx --samples 100000 --no-processes"
    yield "audit --callable numpy:array --labels 0..3 --epsilon 1 --samples 100000 --no-processes"
    yield f"estimate {old}/plain/laplace.onnx {private} --column numbers"
    yield f"estimate {old}/plain/laplace.onnx {private} --column numbers --by region"
    text = f"{old}/plain/exponential-text.onnx"
    yield f"estimate {text} {private} --column colour --target population"
    yield f"estimate {old}/sets/design.onnx {private} --column member"
    colour = f"{private} {private} --column colour --model colour"
    yield f"evaluate {text} {colour} --by region --person member --unnoted"
    yield f"ledger total {old}/plain/laplace.onnx:3 {old}/plain/users-table.onnx --delta 1e-5"
    yield f"ledger total {text} --labels-per-user 40"
    yield "ledger show budget.ledger"
    yield f"diff {old}/plain/laplace.onnx {old}/plain/users-table.onnx"
    yield "diff specs/visits.yaml specs/doctor-visits.yaml"


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


def printed(line):
    """The document that a command prints; a check that fails prints one, too."""
    result = CliRunner().invoke(main, [*line.split(), "--json"])
    return json.loads(result.stdout) if result.stdout else {"error": result.exit_code}


def masked_in(line):
    return MACHINE.union(*(keys for start, keys in SECRET.items() if line.startswith(start)))


def recorded():
    return json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("place")
    prepare(folder)
    return folder


@pytest.mark.parametrize("line", sorted(recorded()))
def test_every_key_value_and_number_is_still_there(line, place):
    with chdir(place):
        now = dict(facts(printed(line), masked_in(line)))
    assert not lost(recorded()[line], now)


def with_json(command, name=""):
    """The names of the commands that have --json; the trainer's own are tested beside it."""
    if isinstance(command, click.Group):
        for part in command.list_commands(None):
            yield from with_json(command.get_command(None, part), f"{name} {part}".strip())
    elif any("--json" in option.opts for option in command.params):
        yield name


def test_of_every_command_with_json():
    kept = recorded()
    without = [
        name for name in with_json(main) if not any(line.startswith(f"{name} ") for line in kept)
    ]
    assert not without
    assert kept.keys() == set(commands())


def test_a_lost_number_is_found():
    before = dict(facts({"detail": "ε ≤ 0.5 of 25 labels", "ok": True, "list": [1, 2]}))
    for other in (
        {"detail": "ε ≤ 0.5", "ok": True, "list": [1, 2]},
        {"detail": "25 labels: ε ≤ 0.5", "ok": False, "list": [1, 2]},
        {"detail": "25 labels: ε ≤ 0.5", "ok": True, "list": [1]},
    ):
        assert lost(before, dict(facts(other)))
    same = {"ok": True, "detail": "25 labels, and ε ≤ 0.5", "list": [1, 2]}
    assert not lost(before, dict(facts(same)))


def test_a_masked_value_may_change_and_its_keys_may_not_go():
    before = dict(facts({"hash": "ab", "inner": {"time": 1}}, {"hash", "inner"}))
    assert before == {"/hash": MASK, "/inner/time": MASK}
    assert not lost(before, dict(facts({"hash": "c", "inner": {"time": 2}}, {"hash", "inner"})))
    for other in ({"inner": {"time": 1}}, {"hash": "ab", "inner": {}}):
        assert lost(before, dict(facts(other, {"hash", "inner"})))


if __name__ == "__main__":
    with TemporaryDirectory() as made, chdir(made):
        (Path(made) / "config.toml").touch()  # not the user's own
        os.environ["LABELDP_CONFIG"] = f"{made}/config.toml"
        prepare(Path(made))
        found = {line: dict(facts(printed(line), masked_in(line))) for line in commands()}
    KEPT.write_text(json.dumps(found, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
