"""Files with a bound by radii that earlier versions wrote still verify and give the same.

They are never written again: if one of these tests fails, the change to the code is wrong.
"""

import json

import pytest

from tests.old_files.unchanged import require_unchanged
from tests.old_files.write import outputs_of
from tests.old_files.write_radii import FOLDER, SPECS

MANIFEST = json.loads((FOLDER / "manifest.json").read_text("utf-8"))


@pytest.mark.parametrize("name", SPECS)
def test_it_verifies_and_gives_the_same_private_labels(name):
    path, entry = FOLDER / f"{name}.onnx", MANIFEST[f"{name}.onnx"]
    certificate = require_unchanged(path, entry, outputs_of(path, entry["labels"])).certificate
    assert certificate.format_version == "1.5"
    assert len(certificate.optimality.radii) > 2
    assert certificate.utility.certified_gap < 0.05
    assert len(set(entry["words"])) > 3
