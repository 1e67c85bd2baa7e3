"""A revision of the text loses nothing: JSON keeps its keys, values and numbers.

``kept_json.json`` holds what the commands printed before all sentences were rewritten
(``python -m tests.cli.test_kept_json`` writes it again; only a new version of a JSON format may).
Values that machines compare are kept as they are; of a sentence its numbers are.
"""

import json
import math
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KEPT = Path(__file__).with_name("kept_json.json")
OLD = ROOT / "tests" / "old_files"
SPECS = ("doctor-visits", "coinsurance-unbiased", "health-rating", "visits-and-health", "visits")
NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?(?:e-?\d+)?")
VOLATILE = {"seconds", "tools", "labeldp", "sha256", "bytes", "size"}
"""Keys of forecasts and versions, which are not the same everywhere."""


def chosen_files():
    """Two files of each folder of old files, the first and the last by name."""
    for folder in sorted(path for path in OLD.iterdir() if path.is_dir()):
        files = sorted(folder.glob("*.onnx"))
        if files:
            yield from sorted({files[0], files[-1]})


def commands():
    for file in chosen_files():
        name = str(file.relative_to(ROOT))
        yield ["verify", name, "--json"]
        yield ["inspect", name, "--json"]
    for spec in SPECS:
        yield ["plan", f"specs/{spec}.yaml", "--json"]


def printed(words):
    """The document that a command prints; a check that fails prints one, too."""
    done = subprocess.run(
        [sys.executable, "-m", "labeldp_compile.cli", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        check=False,
    )
    return json.loads(done.stdout) if done.stdout else {"error": done.returncode}


def facts(node, path=""):
    """(path, value) of each leaf; a sentence is the numbers in it."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key not in VOLATILE:
                yield from facts(value, f"{path}/{key}")
    elif isinstance(node, list):
        yield f"{path}#", len(node)
        for i, value in enumerate(node[:4]):
            yield from facts(value, f"{path}/{i}")
    elif isinstance(node, str) and " " in node:
        yield path, sorted(NUMBER.findall(node))
    else:
        yield path, node


def is_kept(before, now):
    if isinstance(before, list):
        return not Counter(before) - Counter(now if isinstance(now, list) else [])
    if isinstance(before, float) and isinstance(now, float | int):
        return math.isclose(before, now, rel_tol=1e-6, abs_tol=1e-12)
    return before == now


def recorded():
    return json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}


@pytest.mark.parametrize("command", sorted(recorded()))
def test_every_key_value_and_number_is_still_there(command):
    now = dict(facts(printed(command.split())))
    before = recorded()[command]
    lost = {path: value for path, value in before.items() if not is_kept(value, now.get(path))}
    assert not lost, {path: (value, now.get(path)) for path, value in lost.items()}


def test_a_lost_number_is_found():
    before = dict(facts({"detail": "ε ≤ 0.5 of 25 labels", "ok": True, "list": [1, 2]}))
    for other in (
        {"detail": "ε ≤ 0.5", "ok": True, "list": [1, 2]},
        {"detail": "25 labels: ε ≤ 0.5", "ok": False, "list": [1, 2]},
        {"detail": "25 labels: ε ≤ 0.5", "ok": True, "list": [1]},
    ):
        now = dict(facts(other))
        assert not all(is_kept(value, now.get(path)) for path, value in before.items())
    same = dict(facts({"ok": True, "detail": "25 labels, and ε ≤ 0.5", "list": [1, 2]}))
    assert all(is_kept(value, same.get(path)) for path, value in before.items())


if __name__ == "__main__":
    found = {" ".join(words): dict(facts(printed(words))) for words in commands()}
    KEPT.write_text(json.dumps(found, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
