"""``labeldp diff``: every change is named, and what it breaks."""

import json

import pytest
import yaml

from tests.fixtures.compiled import compile_text
from tests.policy.company import SPEC, changed, labeldp, write

BASE = changed(SPEC, privacy={"epsilon": 1}, prior={"kind": "uniform"})
COUNTED = changed(BASE, prior={"kind": "public", "data": "visits.parquet"})
PERSON = changed(BASE, privacy__labels_per_user=2)
# (old, new), whether it is breaking, the changes and whether keyed outputs stay valid.
SPECS = {
    "nothing": (BASE, BASE, None, [], "valid"),
    "ε is written otherwise": (BASE, changed(BASE, privacy__epsilon=1.0), None, [], "valid"),
    "a default is written out": (BASE, changed(BASE, goal="training"), None, [], "valid"),
    "less ε": (
        BASE,
        changed(BASE, privacy__epsilon=0.5),
        True,
        ["privacy.epsilon"],
        "not valid",
    ),
    "the domain": (
        BASE,
        changed(BASE, label__domain__max=9),
        True,
        ["label.domain.max"],
        "not valid",
    ),
    "the mechanism": (
        BASE,
        changed(BASE, mechanism__kind="randomized_response"),
        True,
        ["mechanism.kind"],
        "not valid",
    ),
    "more labels of a person": (
        PERSON,
        changed(PERSON, privacy__labels_per_user=3),
        True,
        ["privacy.labels_per_user"],
        "valid",
    ),
    "fewer labels of a person": (
        PERSON,
        changed(PERSON, privacy__labels_per_user=1),
        False,
        ["privacy.labels_per_user"],
        "valid",
    ),
    "no person": (PERSON, BASE, True, ["privacy.labels_per_user"], "valid"),
    "a new version of the data": (
        SPEC,
        changed(SPEC, prior__data_version="v2"),
        True,
        ["prior.data_version"],
        "unknown",
    ),
    "labels are said to be public": (
        changed(BASE, prior={"kind": "private", "data": "visits.parquet"}),
        COUNTED,
        True,
        ["prior.kind"],
        "not valid",
    ),
    "more ε of it for a label": (
        SPEC,
        changed(SPEC, privacy__split={"prior": 0.05, "label": 0.95}),
        True,
        ["privacy.split.prior", "privacy.split.label"],
        "not valid",
    ),
}


def found(where, old, new):
    """The JSON, after checking that both exit codes and the verdict agree with it."""
    document = json.loads(labeldp("diff", old, new, "--json", where=where).stdout)
    plain = labeldp("diff", old, new, where=where)
    detailed = labeldp("diff", old, new, "--detailed-exitcode", where=where)
    code = 0 if document["equal"] else 4 if document["breaking"] else 3
    assert (plain.exit_code, detailed.exit_code) == (0, code)
    verdict = {0: "equal:", 3: "compatible:", 4: "BREAKING:"}[code]
    assert detailed.stdout.splitlines()[-1].startswith(verdict)
    return document


@pytest.mark.parametrize("change", SPECS)
def test_two_specs(change, here):
    old, new, breaking, keys, keyed = SPECS[change]
    write(here / "old.yaml", old)
    write(here / "new.yaml", new)
    document = found(here, "old.yaml", "new.yaml")
    assert [one["what"] for one in document["changes"]] == keys
    assert document["keyed_outputs"] == keyed
    assert document["equal"] == (breaking is None) and document["breaking"] == bool(breaking)


def artifact(spec, path):
    path.write_bytes(compile_text(yaml.safe_dump(spec)).model)
    return path


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return artifact(BASE, tmp_path_factory.mktemp("base") / "base.onnx")


ARTIFACTS = {
    "the same again": (BASE, set()),
    "more ε": (
        changed(BASE, privacy__epsilon=2),
        {"integers", "outputs", "ε of a label (proved)", "total ε (declared)"},
    ),
    "the domain": (changed(BASE, label__domain__max=4), {"integers", "outputs", "domain"}),
    "a bias": (
        changed(BASE, mechanism__kind="randomized_response"),
        {"integers", "largest bias"},
    ),
    "a person is bounded": (PERSON, set()),
}


@pytest.mark.parametrize("change", ARTIFACTS)
def test_two_artifacts(change, base, here):
    spec, breaks = ARTIFACTS[change]
    new = artifact(spec, here / "new.onnx")
    document = found(here, base, new)
    assert {one["what"] for one in document["changes"] if one["breaks"]} >= breaks
    assert bool(breaks) == document["breaking"]
    assert (document["keyed_outputs"] == "valid") == ("integers" not in breaks)
    assert document["equal"] == (change == "the same again")


def test_that_persons_are_protected_is_no_weaker_promise_but_the_opposite_is(base, here):
    unit = {"unit": "person", "person_column": "who", "labels_per_person": 2, "epsilon": 2}
    new = artifact(changed(BASE, privacy=unit), here / "new.onnx")
    document = found(here, base, new)
    assert "protects each" in {one["what"] for one in document["changes"]}
    assert not document["breaking"]
    back = found(here, new, base)["changes"]
    assert "protects each" in {one["what"] for one in back if one["breaks"]}


def test_what_does_not_verify_is_not_compared(base, here):
    (here / "new.onnx").write_bytes(base.read_bytes()[:-1])
    result = labeldp("diff", base, "new.onnx", "--detailed-exitcode", where=here)
    assert result.exit_code == 1 and not result.stdout
