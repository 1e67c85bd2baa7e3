"""The golden files verify, byte for byte; ``tests/golden`` asks what they answer.

From the release on they are never written again: if one of these tests fails then, the change to
the code is wrong.
"""

import hashlib
import json
import os
import subprocess
import sys

import pytest
from labeldp_verify import check_file

from verifier.tests.artifacts import GOLDEN

PATHS = sorted(GOLDEN.rglob("*.onnx"))


@pytest.mark.parametrize("path", PATHS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_it_verifies(path):
    entry = json.loads((path.parent / "manifest.json").read_text("utf-8"))[path.name]
    assert hashlib.sha256(path.read_bytes()).hexdigest() == entry["sha256"]
    assert check_file(path).require().certificate.format_version == "1.0"


def test_onnxruntime_tells_its_makers_nothing(tmp_path):
    """What it would send, it keeps in a folder of the user until it is sent."""
    environment = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    command = [sys.executable, "-m", "labeldp_verify", str(PATHS[0])]
    subprocess.run(command, env={**environment, "HOME": str(tmp_path)}, check=True)
    assert list(tmp_path.iterdir()) == []


def test_none_is_missing():
    for manifest in GOLDEN.glob("*/manifest.json"):
        listed = json.loads(manifest.read_text("utf-8"))
        assert {path.name for path in PATHS if path.parent == manifest.parent} == set(listed)
