"""``require``: an artifact is used only if it is the one that was asked for."""

import hashlib
import sys
from decimal import Decimal
from fractions import Fraction

import onnx
import pytest
from labeldp_runtime import (
    ArtifactError,
    ArtifactTooLargeError,
    DamagedArtifactError,
    InsecureArtifactError,
    MissingExtraError,
    Policy,
    PolicyError,
    Randomizer,
    UnsupportedFormatError,
)
from labeldp_runtime import artifact_file as artifact_module
from labeldp_runtime import policy as policy_module
from labeldp_verify import check_bytes

from tests.helpers import INTEGER_SPEC, compile_text
from tests.runtime.test_randomizer import with_checksum, with_metadata
from tests.verify.test_mutations import rebuilt

ARTIFACT = compile_text(INTEGER_SPEC)
MODEL = ARTIFACT.model
DIGEST = hashlib.sha256(MODEL).hexdigest()
BOUND = Fraction(ARTIFACT.certificate.exact.epsilon_label_bound)
UP = Fraction(1, 10**12)


@pytest.mark.parametrize(
    "policy",
    [
        Policy(),
        Policy(max_epsilon=1),
        Policy(max_epsilon=1.0),
        Policy(max_epsilon="1.0"),
        Policy(max_epsilon=Decimal("1.0")),
        Policy(max_epsilon=BOUND),
        Policy(max_total_epsilon=1),
        Policy(max_epsilon=1, max_total_epsilon="1.0"),
        Policy(name="example"),
        Policy(sha256=DIGEST),
        Policy(sha256=DIGEST.upper()),
        Policy(max_epsilon=1, name="example", sha256=DIGEST),
    ],
)
def test_policies_that_hold(tmp_path, policy):
    path = tmp_path / "x.onnx"
    path.write_bytes(MODEL)
    assert len(Randomizer.load(path, require=policy)([1, 2])) == 2


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (Policy(max_epsilon=BOUND - UP), "spends up to .* smaller ε"),
        (Policy(max_epsilon="0.5", sha256=DIGEST), "the policy allows 0.5"),
        (Policy(max_total_epsilon=1 - UP), "in total, as is declared, and the policy allows"),
        (Policy(max_epsilon=2, max_total_epsilon=0.5, sha256=DIGEST), "the policy allows 0.5"),
        (Policy(name="other"), "'example', not 'other'"),
        (Policy(name="Example", sha256=DIGEST), "deploy the right file"),
        (Policy(sha256="0" * 64), f"{DIGEST}, not 0000"),
    ],
)
def test_policies_that_do_not_hold(policy, message):
    with pytest.raises(PolicyError, match=message):
        Randomizer(MODEL, require=policy)


def test_a_file_that_does_not_verify_is_refused_unless_it_is_pinned():
    forged = rebuilt(MODEL, lambda c: c["exact"].update(epsilon_label_bound="1/1000"))
    Randomizer(forged)  # whole, but false: only a verification finds that out
    for policy in (Policy(), Policy(max_epsilon=1), Policy(name="example")):
        with pytest.raises(PolicyError, match="does not verify"):
            Randomizer(forged, require=policy)
    pinned = hashlib.sha256(forged).hexdigest()
    Randomizer(forged, require=Policy(sha256=pinned))
    appended = onnx.load_from_string(MODEL)
    appended.doc_string = "x"
    with pytest.raises(PolicyError, match="does not verify"):
        Randomizer(with_checksum(appended), require=Policy())


def test_the_same_bytes_are_verified_once_a_process(monkeypatch):
    monkeypatch.setattr(policy_module, "_VERIFIED", set())
    checked = []

    def counted(data):
        checked.append(data)
        return check_bytes(data)

    monkeypatch.setattr("labeldp_verify.check_bytes", counted)
    forged = rebuilt(MODEL, lambda c: c["exact"].update(realised_ratio="1"))
    for data, times in ((MODEL, 1), (forged, 2)):  # what is refused is never remembered
        for _ in range(2):
            try:
                Randomizer(data, require=Policy())
            except PolicyError:
                assert data is forged
        assert checked.count(data) == times
    Randomizer(MODEL, require=Policy(sha256=DIGEST))
    assert len(checked) == 3


def test_nothing_is_executed_before_the_file_is_admitted(monkeypatch):
    def forbidden(*_, **__):
        raise AssertionError("a session was opened")

    monkeypatch.setattr("onnxruntime.InferenceSession", forbidden)
    forged = rebuilt(MODEL, lambda c: c["exact"].update(epsilon_label_bound="1/1000"))
    for model, policy in [(forged, Policy()), (MODEL, Policy(sha256="0" * 64))]:
        with pytest.raises(PolicyError):
            Randomizer(model, require=policy)


def test_a_pinned_file_without_the_claims_is_refused():
    bare = rebuilt(MODEL, lambda c: c["exact"].pop("epsilon_label_bound"))
    digest = hashlib.sha256(bare).hexdigest()
    with pytest.raises(PolicyError, match="lacks what the policy asks"):
        Randomizer(bare, require=Policy(max_epsilon=1, sha256=digest))
    bare = rebuilt(MODEL, lambda c: c["exact"].pop("epsilon_total"))
    digest = hashlib.sha256(bare).hexdigest()
    Randomizer(bare, require=Policy(max_epsilon=1, sha256=digest))
    with pytest.raises(PolicyError, match="lacks what the policy asks"):
        Randomizer(bare, require=Policy(max_total_epsilon=1, sha256=digest))


def test_without_the_verifier_only_a_digest_will_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "labeldp_verify", None)
    monkeypatch.setattr(policy_module, "_VERIFIED", set())
    for policy in (Policy(), Policy(max_epsilon=1), Policy(name="example")):
        with pytest.raises(MissingExtraError, match=r"pip install \./verifier"):
            Randomizer(MODEL, require=policy)
    Randomizer(MODEL, require=Policy(max_epsilon=1, name="example", sha256=DIGEST))


@pytest.mark.parametrize(
    "conditions",
    [
        {"sha256": "abc"},
        {"sha256": "g" * 64},
        {"max_epsilon": 0},
        {"max_epsilon": -1},
        {"max_epsilon": "one"},
        {"max_epsilon": float("nan")},
        {"max_epsilon": float("inf")},
        {"max_total_epsilon": 0},
        {"max_total_epsilon": "one"},
    ],
)
def test_policies_that_no_file_could_meet_are_refused(conditions):
    with pytest.raises(ValueError, match=r"sha256|max_epsilon|max_total_epsilon"):
        Policy(**conditions)


def test_a_policy_cannot_be_changed():
    with pytest.raises(AttributeError):
        Policy(name="a").name = "b"


def test_files_that_cannot_be_used_say_why_and_what_to_do(tmp_path, monkeypatch):
    flipped = bytearray(MODEL)
    flipped[MODEL.index(b'"example"') + 1] ^= 1  # still a protobuf, wherever else a byte is not
    insecure = rebuilt(MODEL, lambda c: c.update(insecure="INSECURE: test"))
    newer = with_metadata(MODEL, "labeldp.format_version", "2.0")
    cases = [
        (bytes(flipped), DamagedArtifactError, "copy it again"),
        (MODEL + b"\0", DamagedArtifactError, "copy it again"),
        (MODEL[: len(MODEL) // 2], ArtifactError, "labeldp compile writes them"),
        (b"", ArtifactError, "labeldp compile writes them"),
        (newer, UnsupportedFormatError, "format 2.*upgrade"),
        (insecure, InsecureArtifactError, "INSECURE.*without a test seed"),
    ]
    for data, error, message in cases:
        path = tmp_path / "x.onnx"
        path.write_bytes(data)
        with pytest.raises(error, match=message):
            Randomizer.load(path)
    monkeypatch.setattr(artifact_module, "MAX_FILE_BYTES", len(MODEL))
    path.write_bytes(MODEL)
    Randomizer.load(path)
    path.write_bytes(MODEL + b"\0")
    with pytest.raises(ArtifactTooLargeError, match="larger than"):
        Randomizer.load(path)


def test_a_newer_format_is_recognised_before_onnxruntime_reads_the_file():
    proto = onnx.load_from_string(MODEL)
    proto.ir_version = 1000  # which onnxruntime refuses
    for prop in proto.metadata_props:
        if prop.key == "labeldp.format_version":
            prop.value = "12.3"
    with pytest.raises(UnsupportedFormatError, match="upgrade"):
        Randomizer(with_checksum(proto))
