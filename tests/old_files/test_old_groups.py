"""Files with groups that earlier versions wrote still verify, and give the same private labels.

They are never written again: if one of these tests fails, the change to the code is wrong.
"""

import hashlib
import json

import pytest

from labeldp_compile import spec_match
from tests.old_files.write_groups import FOLDER, outputs_of

MANIFEST = json.loads((FOLDER / "manifest.json").read_text("utf-8"))


@pytest.mark.parametrize("name", sorted(MANIFEST))
def test_it_verifies_and_gives_the_same_private_labels(name):
    path, entry = FOLDER / name, MANIFEST[name]
    assert hashlib.sha256(path.read_bytes()).hexdigest() == entry["sha256"]
    report = spec_match.check_file(path, path.with_suffix(".yaml"))
    assert report.ok, report.checks[-1]
    assert report.certificate.format_version == "1.1"
    outputs = outputs_of(path)
    for words in ("words", "keyed"):
        assert list(map(repr, outputs[words])) == list(map(repr, entry[words])), words


def test_every_kind_of_column_is_there():
    assert {path.name for path in FOLDER.glob("*.onnx")} == set(MANIFEST)
    assert len(MANIFEST) == 7
    assert all(len(set(entry["words"])) > 1 for entry in MANIFEST.values())
