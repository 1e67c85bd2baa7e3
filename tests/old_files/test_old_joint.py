"""Files of labels of several columns that earlier versions wrote still verify and give the same.

They are never written again: if one of these tests fails, the change to the code is wrong.
"""

import json

import pytest

from tests.old_files.unchanged import require_unchanged
from tests.old_files.write_joint import FOLDER, joint_outputs_of

MANIFEST = json.loads((FOLDER / "manifest.json").read_text("utf-8"))


@pytest.mark.parametrize("name", sorted(MANIFEST))
def test_it_verifies_and_gives_the_same_private_labels(name):
    path, entry = FOLDER / name, MANIFEST[name]
    report = require_unchanged(path, entry, joint_outputs_of(path, entry["labels"]))
    assert report.certificate.format_version == "1.3"
    assert report.certificate.label_columns == list(entry["labels"])


def test_every_mechanism_is_there():
    assert {path.name for path in FOLDER.glob("*.onnx")} == set(MANIFEST)
    kinds = {name: type(entry["words"][0]) for name, entry in MANIFEST.items()}
    assert kinds.pop("subsets.onnx") is int
    assert set(kinds.values()) == {list}
    assert all(len(set(map(str, entry["words"]))) > 3 for entry in MANIFEST.values())
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 1_500_000
