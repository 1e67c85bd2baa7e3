"""The golden files verify, byte for byte; ``tests/golden`` asks what they answer.

From the release on they are never written again: if one of these tests fails then, the change to
the code is wrong.
"""

import hashlib
import json

import pytest
from labeldp_verify import check_file

from verifier.tests.artifacts import GOLDEN

PATHS = sorted(GOLDEN.rglob("*.onnx"))


@pytest.mark.parametrize("path", PATHS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_it_verifies(path):
    entry = json.loads((path.parent / "manifest.json").read_text("utf-8"))[path.name]
    assert hashlib.sha256(path.read_bytes()).hexdigest() == entry["sha256"]
    assert check_file(path).require().certificate.format_version == "1.0"


def test_none_is_missing():
    for manifest in GOLDEN.glob("*/manifest.json"):
        listed = json.loads(manifest.read_text("utf-8"))
        assert {path.name for path in PATHS if path.parent == manifest.parent} == set(listed)
