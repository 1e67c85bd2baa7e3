"""Files that earlier versions wrote still verify, and give the same private labels.

They are never written again: if one of these tests fails, the change to the code is wrong.
"""

import json
from pathlib import Path

import pytest
from labeldp_runtime import Policy, Randomizer
from labeldp_verify import check_file
from labeldp_verify.signature import read_signed, signature_path

from labeldp_compile.mechanisms import KINDS as MECHANISMS
from tests.old_files.unchanged import require_unchanged
from tests.old_files.write import SIGNED, outputs_of

HERE = Path(__file__).parent
MANIFESTS = {
    folder: json.loads((folder / "manifest.json").read_text("utf-8"))
    for folder in sorted(HERE.glob("v*"))
}
ARTIFACTS = [folder / name for folder, manifest in MANIFESTS.items() for name in manifest]


@pytest.mark.parametrize("path", ARTIFACTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_it_verifies_and_gives_the_same_private_labels(path):
    entry = MANIFESTS[path.parent][path.name]
    report = require_unchanged(path, entry, outputs_of(path, entry["labels"]))
    assert report.certificate.mechanism == entry["mechanism"]


def test_the_signature_still_holds():
    for folder in MANIFESTS:
        artifact, public = folder / f"{SIGNED}.onnx", folder / "public.pem"
        signed = read_signed(signature_path(artifact), public)
        assert check_file(artifact, signed=signed).ok
        Randomizer.load(artifact, require=Policy(public_key=public))


def test_nothing_is_missing():
    """Every form and mechanism, no file without an entry, and less than a megabyte."""
    for folder, manifest in MANIFESTS.items():
        assert {path.name for path in folder.glob("*.onnx")} == set(manifest)
        assert {entry["form"] for entry in manifest.values()} == {"window", "table", "additive"}
        of_sets = {"subset_selection"}  # of format 1.2, which sets_v1 holds
        assert {entry["mechanism"] for entry in manifest.values()} == set(MECHANISMS) - of_sets
        assert sum(path.stat().st_size for path in folder.iterdir()) < 1_000_000
        assert all(len(set(entry["words"])) > 1 for entry in manifest.values())
        users = [entry for name, entry in manifest.items() if name.startswith("users-")]
        assert {entry["form"] for entry in users} == {"window", "table", "additive"}


def test_what_a_user_pays_is_among_what_is_checked():
    for name in ("window", "table", "additive"):
        report = check_file(HERE / "v1" / f"users-{name}.onnx")
        assert "composition" in [check.name for check in report.checks]
        assert len(report.certificate.composition.epsilon_at_delta) == 5
