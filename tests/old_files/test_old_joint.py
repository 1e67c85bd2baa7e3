"""Files of labels of several columns that earlier versions wrote still verify and give the same.

They are never written again: if one of these tests fails, the change to the code is wrong.
"""

import json

import pytest

from tests.old_files.unchanged import require_unchanged
from tests.old_files.write_joint import FOLDERS, HERE, joint_outputs_of

MANIFESTS = {
    name: json.loads((HERE / name / "manifest.json").read_text("utf-8")) for name in FOLDERS
}
FILES = [(folder, name) for folder, names in FOLDERS.items() for name in names]


@pytest.mark.parametrize(("folder", "name"), FILES)
def test_it_verifies_and_gives_the_same_private_labels(folder, name):
    path, entry = HERE / folder / f"{name}.onnx", MANIFESTS[folder][f"{name}.onnx"]
    report = require_unchanged(path, entry, joint_outputs_of(path, entry["labels"]))
    assert report.certificate.format_version == {"joint_v1": "1.3", "joint_v2": "1.4"}[folder]
    assert report.certificate.label_columns == list(entry["labels"])


def test_every_mechanism_is_there():
    for folder, manifest in MANIFESTS.items():
        assert {path.name for path in (HERE / folder).glob("*.onnx")} == set(manifest)
        kinds = {name: type(entry["words"][0]) for name, entry in manifest.items()}
        assert kinds.pop("subsets.onnx", int) is int
        assert set(kinds.values()) == {list}
        assert all(len(set(map(str, entry["words"]))) > 3 for entry in manifest.values())
        assert sum(path.stat().st_size for path in (HERE / folder).iterdir()) < 1_500_000
    first, second = MANIFESTS.values()
    for name, entry in second.items():  # the format changes no private label
        assert entry["words"] == first[name]["words"]
