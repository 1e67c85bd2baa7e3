"""Files that earlier versions wrote still verify, each in the format that it was written in.

They are never written again: if one of these tests fails, the change to the code is wrong. What
they answer is asked in ``tests/old_files``.
"""

import hashlib
import json

import pytest
from labeldp_verify import check_file

from verifier.tests.artifacts import OLD_FILES

FORMATS = {
    "v1": {"1.0"},
    "v2": {"1.0", "1.4"},
    "groups_v1": {"1.1"},
    "groups_v2": {"1.6"},
    "joint_v1": {"1.3"},
    "joint_v2": {"1.4"},
    "mature_v1": {"1.9"},
    "persons_v1": {"1.9"},
    "portable_v1": {"1.8"},
    "ranges_v1": {"1.9"},
    "radii_v1": {"1.5"},
    "sets_v1": {"1.2"},
    "sets_v2": {"1.4"},
}
PATHS = sorted(OLD_FILES.rglob("*.onnx"))


@pytest.mark.parametrize("path", PATHS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_it_verifies(path):
    entry = json.loads((path.parent / "manifest.json").read_text("utf-8"))[path.name]
    assert hashlib.sha256(path.read_bytes()).hexdigest() == entry["sha256"]
    report = check_file(path).require()
    assert report.certificate.format_version in FORMATS[path.parent.name]


def test_none_is_missing():
    assert {path.parent.name for path in PATHS} == set(FORMATS)
    for folder in FORMATS:
        manifest = json.loads((OLD_FILES / folder / "manifest.json").read_text("utf-8"))
        assert {path.name for path in PATHS if path.parent.name == folder} == set(manifest)


def test_what_a_user_pays_is_among_what_is_checked():
    for name in ("window", "table", "additive"):
        report = check_file(OLD_FILES / "v1" / f"users-{name}.onnx")
        assert "composition" in [check.name for check in report.checks]
        assert len(report.certificate.composition.epsilon_at_delta) == 5
