"""Files with groups that earlier versions wrote still verify, and give the same private labels.

They are never written again: if one of these tests fails, the change to the code is wrong.
"""

import json

import pytest

from tests.old_files.unchanged import require_unchanged
from tests.old_files.write_groups import FOLDER, outputs_of

MANIFEST = json.loads((FOLDER / "manifest.json").read_text("utf-8"))


@pytest.mark.parametrize("name", sorted(MANIFEST))
def test_it_verifies_and_gives_the_same_private_labels(name):
    path, entry = FOLDER / name, MANIFEST[name]
    report = require_unchanged(path, entry, outputs_of(path))
    assert report.certificate.format_version == "1.1"


def test_every_kind_of_column_is_there():
    assert {path.name for path in FOLDER.glob("*.onnx")} == set(MANIFEST)
    assert len(MANIFEST) == 7
    assert all(len(set(entry["words"])) > 1 for entry in MANIFEST.values())
