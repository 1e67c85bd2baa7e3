"""``verify --attest``: what was verified, as an in-toto attestation that other tools read."""

import base64
import hashlib
import importlib
import json
import subprocess
import sys
from pathlib import Path

import grpc_tools
import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from google.protobuf import json_format
from grpc_tools import protoc
from in_toto_attestation.v1.statement import Statement
from labeldp_verify import VerificationError, check_bytes
from labeldp_verify.console.attestation import attestation
from labeldp_verify.limits import Limits
from labeldp_verify.signature import read_signed_beside
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError as TheirError
from securesystemslib.signer import SSlibKey

from labeldp_compile.cli import main
from tests.fixtures.compiled import INTEGER_SPEC

PUBLISHED = Path(__file__).parents[1] / "published"
TIME = "2026-01-31T12:00:00Z"


@pytest.fixture(scope="module")
def svr(tmp_path_factory):
    """The class of the published definition, as its compiler makes it."""
    folder = tmp_path_factory.mktemp("svr")
    known = Path(grpc_tools.__file__).parent / "_proto"
    command = ["protoc", f"-I{PUBLISHED}", f"-I{known}", f"--python_out={folder}", "svr.proto"]
    assert protoc.main(command) == 0
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module("svr_pb2").SimpleVerificationResult
    finally:
        sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a spec, its artifact, and keys of both kinds."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "spec.yaml").write_text(INTEGER_SPEC)
    for kind, more in (("ed25519", []), ("EC", ["-pkeyopt", "ec_paramgen_curve:P-256"])):
        key = folder / f"{kind}.pem"
        subprocess.run(["openssl", "genpkey", "-algorithm", kind, *more, "-out", key], check=True)
        public = ["openssl", "pkey", "-in", key, "-pubout", "-out", folder / f"{kind}-public.pem"]
        subprocess.run(public, check=True)
    result = labeldp("compile", folder / "spec.yaml", "-o", folder, "--sign", folder / "EC.pem")
    assert result.exit_code == 0, result.output
    return folder


def labeldp(*arguments, **environment):
    return CliRunner().invoke(main, [str(a) for a in arguments], env=environment)


def require_valid(document, svr):
    """What the authors' own classes say of it; returns the predicate as they read it."""
    statement = Statement(**{"subjects": [], "predicate_type": "", "predicate": {}})
    json_format.ParseDict(document, statement.pb)
    statement.validate()
    for field in ("_type", "subject", "predicateType", "predicate"):
        assert json_format.MessageToDict(statement.pb)[field] == document[field]
    assert document["predicateType"] == "https://in-toto.io/attestation/svr/v0.1"
    predicate = dict(document["predicate"])
    del predicate["labeldp"]  # our own; all else is known
    return json_format.ParseDict(predicate, svr())


def test_the_attestation_is_valid_and_says_what_was_verified(made, svr, tmp_path):
    artifact, out = made / "example.onnx", tmp_path / "out.json"
    result = labeldp("verify", artifact, "--attest", out, SOURCE_DATE_EPOCH="86400")
    assert result.exit_code == 0, result.output
    assert "verified. The file proves ε ≤ " in result.stdout
    document = json.loads(out.read_text())
    read = require_valid(document, svr)
    assert read.time_created.ToJsonString() == "1970-01-02T00:00:00Z"
    assert read.verifier.id.startswith("pkg:generic/labeldp-verify@")
    assert not read.verifier.HasField("policy")
    digest = hashlib.sha256(artifact.read_bytes()).hexdigest()
    assert document["subject"] == [{"name": "example.onnx", "digest": {"sha256": digest}}]
    report = check_bytes(artifact.read_bytes())
    checks = [check.name for check in report.checks if check.name != "secure"]
    wanted = [f"LABELDP_CHECK_{name.upper().replace(' ', '_')}" for name in checks]
    assert set(wanted) <= set(read.properties)
    shown = float(result.stdout.split("ε ≤ ")[-1].split()[0])
    assert f"LABELDP_EPSILON_PROVED_{shown:.6f}" in read.properties
    again = tmp_path / "again.json"
    labeldp("verify", artifact, "--attest", again, SOURCE_DATE_EPOCH="86400")
    assert again.read_bytes() == out.read_bytes()


def test_nothing_declared_is_said_to_be_proved(made):
    data = (made / "example.onnx").read_bytes()
    report = check_bytes(data)
    document = attestation(report, "x.onnx", TIME)
    claims, certificate = document["predicate"]["labeldp"], report.certificate
    assert claims["proved"]["fields"] == certificate.fields.proved
    assert claims["declared"]["fields"] == certificate.fields.declared
    listed = {
        "epsilon_label_bound": "exact.epsilon_label_bound",
        "labels": "labels",
        "outputs": "outputs",
        "tables_sha256": "digests.tables",
    }
    assert {listed[key] for key in claims["proved"] if key != "fields"} <= {
        *certificate.fields.proved
    }
    for said in document["predicate"]["properties"]:
        assert certificate.name.upper() not in said and "SECURE" not in said.replace(
            "LABELDP_NOT_DECLARED_INSECURE", ""
        )


def test_what_was_demanded_is_the_policy(made, svr, tmp_path):
    out, public = tmp_path / "out.json", made / "EC-public.pem"
    result = labeldp(
        *("verify", made / "example.onnx", "--attest", out, "--spec", made / "spec.yaml"),
        *("--public-key", public, "--max-epsilon", "1.5", "--name", "example"),
        *("--min-outputs", "2", "--max-total-epsilon", "3"),
    )
    assert result.exit_code == 0, result.output
    document = json.loads(out.read_text())
    read = require_valid(document, svr)
    policy = document["predicate"]["verifier"]["policy"]["value"]
    spec = hashlib.sha256((made / "spec.yaml").read_bytes()).hexdigest()
    key = hashlib.sha256(public.read_bytes()).hexdigest()
    assert policy == {
        "max_epsilon": "3/2",
        "name": "example",
        "min_outputs": "2",
        "max_total_epsilon": "3",
        "spec": {"digest": {"sha256": spec}},
        "public_key": {"digest": {"sha256": key}},
    }
    for check in ("SPEC", "SIGNATURE", "LIMITS"):
        assert f"LABELDP_CHECK_{check}" in read.properties


def test_a_demand_that_nobody_checked_is_none(made):
    data, public = (made / "example.onnx").read_bytes(), made / "EC-public.pem"
    signed = read_signed_beside(made / "example.onnx", public)
    limits = Limits(name="other")
    document = attestation(check_bytes(data), "x.onnx", TIME, limits=limits, signed=signed)
    assert "policy" not in document["predicate"]["verifier"]


@pytest.mark.parametrize("limit", [["--max-epsilon", "0.01"], ["--name", "other"]])
def test_nothing_is_attested_unless_all_holds(made, tmp_path, limit):
    out = tmp_path / "out.json"
    result = labeldp("verify", made / "example.onnx", "--attest", out, *limit)
    assert result.exit_code == 1 and list(tmp_path.iterdir()) == []
    damaged = bytearray((made / "example.onnx").read_bytes())
    damaged[-1] ^= 1
    with pytest.raises(VerificationError):
        attestation(check_bytes(bytes(damaged)), "x.onnx", TIME)
    with pytest.raises(VerificationError):
        limits = Limits(name="other")
        attestation(check_bytes((made / "example.onnx").read_bytes(), limits=limits), "x", TIME)


@pytest.mark.parametrize(
    ("kind", "scheme", "type_"),
    [("EC", "ecdsa-sha2-nistp256", "ecdsa"), ("ed25519", "ed25519", "ed25519")],
)
def test_a_signed_attestation_is_an_envelope_that_others_open(made, tmp_path, kind, scheme, type_):
    """Securesystemslib verifies it, and refuses it after one byte changes."""
    out = tmp_path / "out.json"
    result = labeldp(
        *("verify", made / "example.onnx", "--attest", out),
        *("--attest-key", made / f"{kind}.pem"),
    )
    assert result.exit_code == 0, result.output
    document = json.loads(out.read_text())
    public = load_pem_public_key((made / f"{kind}-public.pem").read_bytes())
    key_id = document["signatures"][0]["keyid"]
    key = SSlibKey.from_crypto(public, keyid=key_id, scheme=scheme)
    assert key.keytype == type_
    envelope = Envelope.from_dict(json.loads(out.read_text()))
    envelope.verify([key], threshold=1)
    stated = json.loads(envelope.payload)
    assert stated["predicateType"] == "https://in-toto.io/attestation/svr/v0.1"
    payload = base64.b64decode(document["payload"]).replace(b"PROVED_1.", b"PROVED_0.")
    assert payload != base64.b64decode(document["payload"])
    document["payload"] = base64.b64encode(payload).decode()
    with pytest.raises(TheirError):
        Envelope.from_dict(document).verify([key], threshold=1)
