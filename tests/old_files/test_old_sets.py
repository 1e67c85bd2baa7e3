"""Files with sets that earlier versions wrote still verify, and give the same sets and labels.

They are never written again: if one of these tests fails, the change to the code is wrong.
"""

import json

import pytest

from tests.old_files.unchanged import require_unchanged
from tests.old_files.write import outputs_of
from tests.old_files.write_sets import FOLDERS, HERE, members_of

MANIFESTS = {
    name: json.loads((HERE / name / "manifest.json").read_text("utf-8")) for name in FOLDERS
}
FILES = [(folder, name) for folder, names in FOLDERS.items() for name in names]


@pytest.mark.parametrize(("folder", "name"), FILES)
def test_it_verifies_and_gives_the_same_private_labels(folder, name):
    path, entry = HERE / folder / f"{name}.onnx", MANIFESTS[folder][f"{name}.onnx"]
    report = require_unchanged(path, entry, outputs_of(path, entry["labels"]))
    assert report.certificate.format_version == {"sets_v1": "1.2", "sets_v2": "1.4"}[folder]
    assert report.certificate.mechanism == "subset_selection"
    assert members_of(path) == entry["members"]


def test_every_kind_of_set_is_there():
    for folder, manifest in MANIFESTS.items():
        assert {path.name for path in (HERE / folder).glob("*.onnx")} == set(manifest)
        assert all(len(set(entry["words"])) > 1 for entry in manifest.values())
        assert sum(path.stat().st_size for path in (HERE / folder).iterdir()) < 200_000
    sets = {name: len(entry["members"]) for name, entry in MANIFESTS["sets_v1"].items()}
    assert sets == {"subsets.onnx": 15, "design.onnx": 13, "integers.onnx": 21, "large.onnx": 0}
    large = [manifest["large.onnx"] for manifest in MANIFESTS.values()]
    assert large[0]["words"] == large[1]["words"]  # the format changes no private label
