"""The golden files fit their specs, and give the same private labels, as they always did.

From the release on they are never written again: if one of these tests fails then, the change to
the code is wrong. ``verifier/tests`` asks that they are the bytes of their manifests.
"""

import json
from pathlib import Path

import pytest
from labeldp_runtime import Policy, Randomizer
from labeldp_verify import check_file
from labeldp_verify.signature import read_signed_beside, signature_path

from labeldp_compile.export.portable import portable
from labeldp_compile.mechanisms import KINDS as MECHANISMS
from labeldp_compile.spec import agreement
from tests.golden.write import SIGNED, members_of, outputs_of

HERE = Path(__file__).parent
MANIFESTS = {
    path.parent.name: json.loads(path.read_text("utf-8"))
    for path in sorted(HERE.glob("*/manifest.json"))
}
FILES = [HERE / folder / name for folder, manifest in MANIFESTS.items() for name in manifest]
PLAIN = HERE / "plain"


def title(path):
    return f"{path.parent.name}/{path.stem}"


@pytest.mark.parametrize("path", FILES, ids=title)
def test_it_fits_its_spec_and_gives_the_same_private_labels(path):
    entry = MANIFESTS[path.parent.name][path.name]
    report = agreement.check_file(path, path.with_suffix(".yaml"))
    assert report.ok, report.checks[-1]
    outputs = outputs_of(path, entry.get("labels"))
    for words in ("words", "keyed"):
        got = list(map(repr, outputs[words]))  # −0 and 0 differ
        assert got == list(map(repr, entry[words])), words
    claims = report.certificate
    assert entry.get("mechanism", claims.mechanism) == claims.mechanism
    if claims.joint is not None:
        assert claims.label_columns == list(entry["labels"])
    if "members" in entry:
        assert claims.mechanism == "subset_selection"
        assert members_of(path) == entry["members"]
    if path.parent.name == "radii" or (path.parent.name, path.stem) == (
        "portable",
        "squared",
    ):
        assert len(claims.optimality.radii) > 2
        assert claims.utility.certified_gap < 0.05
    if path.parent.name == "groups":
        assert claims.groups.assignment.startswith("declared by the author of the spec")


def test_every_form_and_mechanism_is_there():
    manifest = MANIFESTS["plain"]
    forms = {"window", "table", "additive"}
    assert {entry["form"] for entry in manifest.values()} == forms
    of_sets = {"subset_selection"}  # which the folder of sets holds
    assert {entry["mechanism"] for entry in manifest.values()} == set(MECHANISMS) - of_sets
    users = [entry for name, entry in manifest.items() if name.startswith("users-")]
    assert {entry["form"] for entry in users} == forms
    assert sum(path.stat().st_size for path in PLAIN.iterdir()) < 1_000_000


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=title)
def test_its_portable_file_gives_the_same_private_labels(path, tmp_path):
    ported = portable(path).write(tmp_path / "ported").rename(tmp_path / path.name)
    entry = MANIFESTS[path.parent.name][path.name]
    outputs = outputs_of(ported, entry.get("labels"))
    for words in ("words", "keyed"):
        assert list(map(repr, outputs[words])) == list(map(repr, entry[words])), words
    stated, before = (check_file(one).require().certificate for one in (ported, path))
    for name in ("exact", "digests", "utility", "privacy", "prior", "tools", "label"):
        assert getattr(stated, name) == getattr(before, name)
    if path.parent.name == "portable":
        assert ported.read_bytes() == path.read_bytes()


def test_the_signature_still_holds():
    artifact, public = PLAIN / f"{SIGNED}.onnx", PLAIN / "public.pem"
    signed = read_signed_beside(artifact, public, signature_path(artifact))
    assert check_file(artifact, signed=signed).ok
    Randomizer.load(artifact, require=Policy(public_key=public))
