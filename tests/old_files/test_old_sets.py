"""Files with sets that earlier versions wrote still verify, and give the same sets and labels.

They are never written again: if one of these tests fails, the change to the code is wrong.
"""

import json

import pytest

from tests.old_files.unchanged import require_unchanged
from tests.old_files.write import outputs_of
from tests.old_files.write_sets import FOLDER, members_of

MANIFEST = json.loads((FOLDER / "manifest.json").read_text("utf-8"))


@pytest.mark.parametrize("name", sorted(MANIFEST))
def test_it_verifies_and_gives_the_same_private_labels(name):
    path, entry = FOLDER / name, MANIFEST[name]
    report = require_unchanged(path, entry, outputs_of(path, entry["labels"]))
    assert report.certificate.format_version == "1.2"
    assert report.certificate.mechanism == "subset_selection"
    assert members_of(path) == entry["members"]


def test_every_kind_of_set_is_there():
    assert {path.name for path in FOLDER.glob("*.onnx")} == set(MANIFEST)
    sets = {name: len(entry["members"]) for name, entry in MANIFEST.items()}
    assert sets == {"subsets.onnx": 15, "design.onnx": 13, "integers.onnx": 21, "large.onnx": 0}
    assert all(len(set(entry["words"])) > 1 for entry in MANIFEST.values())
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 200_000
