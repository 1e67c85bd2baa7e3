"""Files that earlier versions wrote still fit their specs, and give the same private labels.

They are never written again: if one of these tests fails, the change to the code is wrong. That
they are the bytes of their manifests, and in which format, is asked in ``verifier/tests``.
"""

import json
from pathlib import Path

import onnx
import pytest
from labeldp_runtime import Policy, Randomizer
from labeldp_verify import check_bytes, check_file
from labeldp_verify.graph import write_model
from labeldp_verify.signature import read_signed_beside, signature_path

from labeldp_compile import spec_match
from labeldp_compile.mechanisms import KINDS as MECHANISMS
from labeldp_compile.tools.port import portable
from tests.old_files.write import SIGNED, members_of, outputs_of

HERE = Path(__file__).parent
MANIFESTS = {
    path.parent.name: json.loads(path.read_text("utf-8"))
    for path in sorted(HERE.glob("*/manifest.json"))
}
FILES = [HERE / folder / name for folder, manifest in MANIFESTS.items() for name in manifest]
PLAIN = ("v1", "v2")
DECLARED = [path for path in FILES if path.parent.name == "groups_v2"]


def title(path):
    return f"{path.parent.name}/{path.stem}"


@pytest.mark.parametrize("path", FILES, ids=title)
def test_it_fits_its_spec_and_gives_the_same_private_labels(path):
    entry = MANIFESTS[path.parent.name][path.name]
    report = spec_match.check_file(path, path.with_suffix(".yaml"))
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
    if path.parent.name == "radii_v1" or (path.parent.name, path.stem) == (
        "portable_v1",
        "squared",
    ):
        assert len(claims.optimality.radii) > 2
        assert claims.utility.certified_gap < 0.05
    if path.parent.name == "groups_v2":
        assert claims.groups.assignment.startswith("declared by the author of the spec")


@pytest.mark.parametrize("folder", MANIFESTS)
def test_words_tell_something_and_files_are_small(folder):
    least = 3 if folder.startswith(("joint", "radii")) else 1
    for entry in MANIFESTS[folder].values():
        assert len(set(map(str, entry["words"]))) > least
    most = 200_000 if folder.startswith("sets") else 1_500_000
    assert sum(path.stat().st_size for path in (HERE / folder).iterdir()) < most


@pytest.mark.parametrize("folder", PLAIN)
def test_every_form_and_mechanism_is_there(folder):
    manifest = MANIFESTS[folder]
    forms = {"window", "table", "additive"}
    assert {entry["form"] for entry in manifest.values()} == forms
    of_sets = {"subset_selection"}  # of format 1.2, which sets_v1 holds
    assert {entry["mechanism"] for entry in manifest.values()} == set(MECHANISMS) - of_sets
    users = [entry for name, entry in manifest.items() if name.startswith("users-")]
    assert {entry["form"] for entry in users} == forms
    assert sum(path.stat().st_size for path in (HERE / folder).iterdir()) < 1_000_000


def test_every_kind_of_set_and_of_group_is_there():
    sets = {name: len(entry["members"]) for name, entry in MANIFESTS["sets_v1"].items()}
    assert sets == {"subsets.onnx": 15, "design.onnx": 13, "integers.onnx": 21, "large.onnx": 0}
    assert len(MANIFESTS["groups_v1"]) == len(MANIFESTS["groups_v2"]) == 7
    kinds = {name: type(entry["words"][0]) for name, entry in MANIFESTS["joint_v1"].items()}
    assert kinds.pop("subsets.onnx") is int
    assert set(kinds.values()) == {list}


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=title)
def test_its_portable_file_gives_the_same_private_labels(path, tmp_path):
    ported = portable(path).write(tmp_path / "ported").rename(tmp_path / path.name)
    entry = MANIFESTS[path.parent.name][path.name]
    outputs = outputs_of(ported, entry.get("labels"))
    for words in ("words", "keyed"):
        assert list(map(repr, outputs[words])) == list(map(repr, entry[words])), words
    stated, before = (check_file(one).require().certificate for one in (ported, path))
    assert stated.format_version == max("1.8", before.format_version)
    for name in ("exact", "digests", "utility", "privacy", "prior", "tools", "label"):
        assert getattr(stated, name) == getattr(before, name)
    if path.parent.name == "portable_v1":
        assert ported.read_bytes() == path.read_bytes()


@pytest.mark.parametrize(("older", "newer"), [("sets_v1", "sets_v2"), ("joint_v1", "joint_v2")])
def test_a_newer_format_changes_no_private_label(older, newer):
    for name, entry in MANIFESTS[newer].items():
        assert entry["words"] == MANIFESTS[older][name]["words"]


def test_the_signature_still_holds():
    for folder in PLAIN:
        artifact, public = HERE / folder / f"{SIGNED}.onnx", HERE / folder / "public.pem"
        signed = read_signed_beside(artifact, public, signature_path(artifact))
        assert check_file(artifact, signed=signed).ok
        Randomizer.load(artifact, require=Policy(public_key=public))


@pytest.mark.parametrize("path", DECLARED, ids=title)
def test_in_format_1_1_the_same_integers_make_the_same_graph(path):
    report = check_bytes(path.read_bytes()).require()
    stated = report.certificate.to_json() | {"format_version": "1.1"}
    stated["groups"]["assignment"] = "public, and fixed before any label was seen"
    older = write_model(report.artifact.label, report.artifact.lookup, stated)
    assert check_bytes(older).require().certificate.format_version == "1.1"
    assert onnx.load_from_string(older).graph == onnx.load(path).graph
