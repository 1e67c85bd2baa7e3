"""Files with groups of format 1.6 still verify, and are those of format 1.1 but for their words."""

import json

import onnx
import pytest
from labeldp_verify import check_bytes
from labeldp_verify.artifact import write_model

from tests.old_files.unchanged import require_unchanged
from tests.old_files.write_declared import FOLDER, NAMES
from tests.old_files.write_groups import outputs_of

MANIFEST = json.loads((FOLDER / "manifest.json").read_text("utf-8"))


@pytest.mark.parametrize("name", sorted(MANIFEST))
def test_it_verifies_and_gives_the_same_private_labels(name):
    path, entry = FOLDER / name, MANIFEST[name]
    report = require_unchanged(path, entry, outputs_of(path))
    certificate = report.certificate
    assert certificate.format_version == "1.6"
    assert certificate.groups.assignment.startswith("declared by the author of the spec")


@pytest.mark.parametrize("name", sorted(MANIFEST))
def test_in_format_1_1_the_same_integers_make_the_same_graph(name):
    path = FOLDER / name
    report = check_bytes(path.read_bytes()).require()
    stated = report.certificate.to_json() | {"format_version": "1.1"}
    stated["groups"]["assignment"] = "public, and fixed before any label was seen"
    older = write_model(report.grouped.domain, report.grouped.randomizer, stated)
    assert check_bytes(older).require().certificate.format_version == "1.1"
    assert onnx.load_from_string(older).graph == onnx.load(path).graph
    assert len(set(MANIFEST[name]["words"])) > 1


def test_every_kind_of_column_is_there():
    assert {path.stem for path in FOLDER.glob("*.onnx")} == set(NAMES)
