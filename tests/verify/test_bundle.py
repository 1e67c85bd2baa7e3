"""Bundles of keys on P-256: made and checked here, and by the package model-signing."""

import base64
import hashlib
import json
import shutil
import subprocess

import model_signing.signing
import model_signing.verifying
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from hypothesis import given
from hypothesis import strategies as st
from labeldp_runtime import Policy, Randomizer
from labeldp_runtime.errors import PolicyError
from labeldp_verify.signature import Signed, load_public_key, signed_bytes, statement

from labeldp_compile import verify
from tests.cli.test_cli import labeldp
from tests.fixtures.compiled import INTEGER_SPEC


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """Key pairs made by OpenSSL, as the documentation says."""
    folder = tmp_path_factory.mktemp("keys")
    for name, curve in (("key", "P-256"), ("other", "P-256"), ("p384", "P-384")):
        for command in (
            f"openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:{curve} -out {name}.pem",
            f"openssl pkey -in {name}.pem -pubout -out {name}-public.pem",
        ):
            subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    command = "openssl pkey -in key.pem -aes256 -passout pass:secret -out locked.pem"
    subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def made(keys, tmp_path_factory):
    """A folder with what ``compile --sign`` writes with a key on P-256."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "spec.yaml").write_text(INTEGER_SPEC)
    out = folder / "out"
    result = labeldp("compile", folder / "spec.yaml", "-o", out, "--sign", keys / "key.pem")
    assert result.exit_code == 0, result.output
    return out


@pytest.fixture
def signed(made, tmp_path):
    """The artifact and its bundle, in a folder of the test's own."""
    shutil.copytree(made, tmp_path / "out")
    return tmp_path / "out/example.onnx", tmp_path / "out/example.onnx.sigstore.json"


def theirs(artifact, bundle, public):
    """What the package says: nothing, or an error."""
    config = model_signing.verifying.Config().use_elliptic_key_verifier(public_key=public)
    config.verify(artifact, bundle)


def ours(artifact, public):
    """What ``labeldp verify`` says."""
    return labeldp("verify", artifact, "--public-key", public)


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def test_the_package_accepts_the_bundle_and_so_do_we(made, signed, keys):
    artifact, bundle = signed
    names = ["example.certificate.json", "example.onnx", "example.onnx.sigstore.json"]
    assert sorted(path.name for path in made.iterdir()) == names
    theirs(artifact, bundle, keys / "key-public.pem")
    assert ours(artifact, keys / "key-public.pem").exit_code == 0
    hint = hashlib.sha256((keys / "key-public.pem").read_bytes()).hexdigest()
    assert json.loads(bundle.read_text())["verificationMaterial"]["publicKey"]["hint"] == hint
    result = ours(artifact, keys / "key-public.pem")
    assert hint[:16] in result.stdout


@pytest.mark.parametrize("at", [0, 100, -1])
def test_one_byte_of_the_artifact_changed(signed, keys, at):
    artifact, bundle = signed
    artifact.write_bytes(flipped(artifact.read_bytes(), at))
    with pytest.raises(ValueError, match="Signature mismatch"):
        theirs(artifact, bundle, keys / "key-public.pem")
    public = load_public_key((keys / "key-public.pem").read_bytes(), "")
    refusal = Signed(bundle.read_bytes(), public).refusal(artifact.read_bytes())
    assert refusal == "the bundle does not sign exactly this file"


def test_another_key_is_refused(signed, keys):
    artifact, bundle = signed
    with pytest.raises(ValueError, match="Key mismatch"):
        theirs(artifact, bundle, keys / "other-public.pem")
    assert ours(artifact, keys / "other-public.pem").exit_code == 1


@given(st.data())
def test_one_byte_of_the_bundle_changed(made, keys, data):
    """Any byte, to any other: nothing but white space may change without being noticed."""
    text = (made / "example.onnx.sigstore.json").read_bytes()
    public = load_public_key((keys / "key-public.pem").read_bytes(), "")
    at = data.draw(st.integers(0, len(text) - 1))
    byte = data.draw(st.integers(0, 255))
    changed = text[:at] + bytes([byte]) + text[at + 1 :]
    try:
        same = json.loads(changed) == json.loads(text)
    except (ValueError, RecursionError):
        same = False
    artifact = (made / "example.onnx").read_bytes()
    assert Signed(changed, public).holds(artifact) == same


def test_a_bundle_of_the_package_is_accepted(signed, keys):
    """As for a key that labeldp never sees; its statement is ours, but for folders' details."""
    artifact, bundle = signed
    mine = json.loads(bundle.read_text())
    bundle.unlink()
    config = model_signing.signing.Config()
    config.use_elliptic_key_signer(private_key=keys / "key.pem").sign(artifact, bundle)
    assert ours(artifact, keys / "key-public.pem").exit_code == 0
    made, yours = (payload_of(found) for found in (mine, json.loads(bundle.read_text())))
    del yours["predicate"]["serialization"]["ignore_paths"]
    assert made == yours


def payload_of(bundle):
    return json.loads(base64.b64decode(bundle["dsseEnvelope"]["payload"]))


def signed_statement(keys, stated):
    """A bundle that the key did sign, of any payload."""
    payload = stated if isinstance(stated, bytes) else json.dumps(stated).encode()
    key = load_pem_private_key((keys / "key.pem").read_bytes(), None)
    hint = hashlib.sha256((keys / "key-public.pem").read_bytes()).hexdigest()
    signature = key.sign(signed_bytes(payload), ECDSA(SHA256()))
    envelope = {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": "application/vnd.in-toto+json",
        "signatures": [{"sig": base64.b64encode(signature).decode(), "keyid": ""}],
    }
    return {
        "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
        "verificationMaterial": {"publicKey": {"hint": hint}, "tlogEntries": []},
        "dsseEnvelope": envelope,
    }


def refusal(keys, bundle, data=b"file"):
    public = load_public_key((keys / "key-public.pem").read_bytes(), "")
    text = bundle if isinstance(bundle, bytes) else json.dumps(bundle).encode()
    return Signed(text, public).refusal(data)


def changed(stated, path, value):
    """The same with another value at a path of names and numbers."""
    copy = json.loads(json.dumps(stated))
    *first, last = path
    place = copy
    for part in first:
        place = place[part]
    place[last] = value
    return copy


GOOD = statement("a.onnx", b"file")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["subject"], [GOOD["subject"][0]] * 2),
        (["subject", 0, "digest", "sha256"], "0" * 64),
        (["predicateType"], "https://model_signing/Digests/v0.1"),
        (["predicate", "more"], {}),
        (["predicate", "resources"], GOOD["predicate"]["resources"] * 2),
        (["predicate", "resources", 0, "algorithm"], "blake2b"),
        (["predicate", "serialization", "method"], "shards"),
        (["predicate", "serialization", "allow_symlinks"], 0),
        (["predicate", "serialization", "ignore_paths"], "x"),
    ],
)
def test_what_the_key_signed_is_read_strictly(keys, path, value):
    assert refusal(keys, signed_statement(keys, GOOD)) is None
    said = refusal(keys, signed_statement(keys, changed(GOOD, path, value)))
    assert said == "the bundle does not sign exactly this file"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["mediaType"], "application/vnd.dev.sigstore.bundle+json;version=0.1"),
        (["verificationMaterial", "publicKey", "hint"], "0" * 64),
        (["verificationMaterial", "tlogEntries"], [{}]),
        (["verificationMaterial", "certificate"], {}),
        (["dsseEnvelope", "payload"], "é"),
        (["dsseEnvelope", "payloadType"], "text/plain"),
        (["dsseEnvelope", "signatures"], [{"sig": "AAAA", "keyid": ""}] * 2),
        (["dsseEnvelope", "signatures", 0, "keyid"], "x"),
    ],
)
def test_the_envelopes_are_read_strictly(keys, path, value):
    said = refusal(keys, changed(signed_statement(keys, GOOD), path, value))
    assert said == "the signature is not a sigstore bundle with one DSSE envelope for this key"


@pytest.mark.parametrize("text", [b"", b"x" * 64, b"null", b"[" * 60_000, b"1" * 60_000])
def test_files_that_are_no_bundle(keys, text):
    said = refusal(keys, text)
    assert said == "the signature is not a sigstore bundle with one DSSE envelope for this key"


def test_a_service_and_a_script_demand_the_bundle(signed, keys):
    artifact, bundle = signed
    public = keys / "key-public.pem"
    assert verify(artifact, public_key=public).ok
    assert verify(artifact, public_key=public, signature=bundle).ok
    Randomizer.load(artifact, require=Policy(public_key=public))
    with pytest.raises(PolicyError, match="was not signed"):
        Randomizer.load(artifact, require=Policy(public_key=keys / "other-public.pem"))
    bundle.unlink()
    with pytest.raises(PolicyError, match="cannot be checked"):
        Randomizer.load(artifact, require=Policy(public_key=public))
