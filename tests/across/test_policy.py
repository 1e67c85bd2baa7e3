"""``require``: a file is verified before it is used, and so is its signature."""

import hashlib
import json
import shutil
from decimal import Decimal
from fractions import Fraction

import onnx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from labeldp_runtime import Policy, PolicyError, Randomizer
from labeldp_verify import check_bytes

from runtime.tests.helpers import file, metadata, path_of, recertified, with_checksum
from tests.fixtures.compiled import INTEGER_SPEC, compile_text

MODEL = file("integers")
DIGEST = hashlib.sha256(MODEL).hexdigest()
STATED = json.loads(metadata(MODEL)["labeldp.certificate"])
BOUND = Fraction(STATED["exact"]["epsilon_label_bound"])
UP = Fraction(1, 10**12)


@pytest.mark.parametrize(
    "policy",
    [
        Policy(),
        Policy(max_epsilon=1),
        Policy(max_epsilon=Decimal("1.0")),
        Policy(max_epsilon=BOUND),
        Policy(name="example"),
        Policy(sha256=DIGEST),
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
        (Policy(max_total_epsilon=1 - UP), "and the policy allows"),
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
    forged = recertified(MODEL, lambda c: c["exact"].update(epsilon_label_bound="1/1000"))
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
    checked = []

    def counted(data):
        checked.append(data)
        return check_bytes(data)

    monkeypatch.setattr("labeldp_verify.check_bytes", counted)
    model = recertified(MODEL, lambda c: c.update(name="seen-nowhere-else"))
    other = compile_text(INTEGER_SPEC.replace("example", "seen-nowhere-else")).model
    for data, times in ((other, 1), (model, 2)):  # what is refused is never remembered
        for _ in range(2):
            try:
                Randomizer(data, require=Policy())
            except PolicyError:
                assert data is model
        assert checked.count(data) == times
    Randomizer(MODEL, require=Policy(sha256=DIGEST))
    assert len(checked) == 3


def test_nothing_is_executed_before_the_file_is_admitted(monkeypatch):
    def forbidden(*_, **__):
        raise AssertionError("a session was opened")

    monkeypatch.setattr("onnxruntime.InferenceSession", forbidden)
    forged = recertified(MODEL, lambda c: c["exact"].update(epsilon_label_bound="1/1000"))
    for model, policy in [(forged, Policy()), (MODEL, Policy(sha256="0" * 64))]:
        with pytest.raises(PolicyError):
            Randomizer(model, require=policy)


@pytest.fixture
def signed(tmp_path):
    """A signed artifact with its key's public part."""
    key = Ed25519PrivateKey.generate()
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "public.pem").write_bytes(public)
    path = compile_text(INTEGER_SPEC).write(tmp_path / "build", key=key)
    return path, tmp_path / "public.pem"


def test_the_signed_file_is_used(signed):
    path, public = signed
    randomizer = Randomizer.load(path, require=Policy(public_key=public, max_epsilon=1))
    assert len(randomizer([1, 2, 3])) == 3


def test_another_file_with_the_signature_of_the_first_is_refused(signed, tmp_path):
    path, public = signed
    other = compile_text(INTEGER_SPEC.replace("column: y", "column: z")).write(tmp_path / "other")
    shutil.copy(f"{path}.sig", f"{other}.sig")
    Randomizer.load(other, require=Policy())
    with pytest.raises(PolicyError, match="was not signed"):
        Randomizer.load(other, require=Policy(public_key=public))


@pytest.mark.parametrize("lost", ["signature", "key"])
def test_a_missing_signature_or_key_is_refused(signed, lost):
    path, public = signed
    (public if lost == "key" else path.with_name(path.name + ".sig")).unlink()
    with pytest.raises(PolicyError, match="cannot be checked"):
        Randomizer.load(path, require=Policy(public_key=public))


FILES = sorted(path_of("x").parent.glob("*.onnx"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_files_of_the_runtimes_tests_verify(path):
    check_bytes(path.read_bytes()).require()
