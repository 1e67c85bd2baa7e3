"""Detached Ed25519 signatures: made and checked here, and by OpenSSL."""

import shutil
import subprocess

import pytest
from labeldp_runtime import Key, KeyFileError

from tests.cli.test_cli import labeldp
from tests.fixtures.compiled import INTEGER_SPEC


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """A key pair made by OpenSSL, as the documentation says."""
    folder = tmp_path_factory.mktemp("keys")
    for command in (
        "openssl genpkey -algorithm ed25519 -out key.pem",
        "openssl pkey -in key.pem -pubout -out public.pem",
        "openssl genpkey -algorithm ed25519 -out other.pem",
        "openssl pkey -in other.pem -pubout -out other-public.pem",
        "openssl genpkey -algorithm rsa -out rsa.pem",
        "openssl pkey -in rsa.pem -pubout -out rsa-public.pem",
        "openssl pkey -in key.pem -aes256 -passout pass:secret -out locked.pem",
    ):
        subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "spec.yaml"
    path.write_text(INTEGER_SPEC)
    return path


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_key_that_others_can_read_signs_nothing(spec, keys, tmp_path, mode):
    """In the words of label keys, and before anything is solved or spent."""
    key, label_key, out = tmp_path / "key.pem", tmp_path / "labels.key", tmp_path / "out"
    shutil.copy(keys / "key.pem", key)
    Key.create(label_key)
    for path in (key, label_key):
        path.chmod(mode)
    result = labeldp("compile", spec, "-o", out, "--sign", key)
    with pytest.raises(KeyFileError) as refused:
        Key.load(label_key)
    assert result.exit_code == 2 and not out.exists()
    assert result.stderr == f"labeldp: {refused.value}\n".replace(str(label_key), str(key))
    key.chmod(0o600)
    assert labeldp("compile", spec, "-o", out, "--sign", key).exit_code == 0


def test_sign_and_verify(spec, keys, tmp_path):
    out = tmp_path / "out"
    assert labeldp("compile", spec, "-o", out, "--sign", keys / "key.pem").exit_code == 0
    artifact = out / "example.onnx"
    assert len((out / "example.onnx.sig").read_bytes()) == 64
    good = labeldp("verify", artifact, "--public-key", keys / "public.pem")
    assert good.exit_code == 0 and "the holder of the key signed exactly this file" in good.output
    bad = labeldp("verify", artifact, "--public-key", keys / "other-public.pem")
    assert bad.exit_code == 1 and "FAILED signature" in bad.output


def test_openssl_checks_what_labeldp_signs_and_the_other_way_round(spec, keys, tmp_path):
    out = tmp_path / "out"
    labeldp("compile", spec, "-o", out, "--sign", keys / "key.pem")
    check = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", keys / "public.pem", "-rawin"]
    check += ["-in", out / "example.onnx", "-sigfile", out / "example.onnx.sig"]
    assert subprocess.run(check, check=False, capture_output=True).returncode == 0
    sign = ["openssl", "pkeyutl", "-sign", "-rawin", "-inkey", keys / "other.pem"]
    sign += ["-in", out / "example.onnx", "-out", tmp_path / "theirs"]
    subprocess.run(sign, check=True, capture_output=True)
    result = labeldp(
        *("verify", out / "example.onnx", "--public-key", keys / "other-public.pem"),
        *("--signature", tmp_path / "theirs"),
    )
    assert result.exit_code == 0


def test_a_signature_protects_declared_fields_too(spec, keys, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    labeldp("compile", spec, "-o", one, "--sign", keys / "key.pem")
    spec.write_text(INTEGER_SPEC.replace("column: y", "column: z"))
    labeldp("compile", spec, "-o", two)
    shutil.copy(one / "example.onnx.sig", two / "example.onnx.sig")
    assert labeldp("verify", two / "example.onnx").exit_code == 0
    result = labeldp("verify", two / "example.onnx", "--public-key", keys / "public.pem")
    assert result.exit_code == 1


def test_overwriting_without_a_key_removes_the_old_signature(spec, keys, tmp_path):
    out = tmp_path / "out"
    labeldp("compile", spec, "-o", out, "--sign", keys / "key.pem")
    assert labeldp("compile", spec, "-o", out, "--overwrite").exit_code == 0
    assert not (out / "example.onnx.sig").exists()
    result = labeldp("verify", out / "example.onnx", "--public-key", keys / "public.pem")
    assert result.exit_code == 2
    assert "example.onnx is not signed, or its signature is elsewhere" in result.output


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("missing.pem", "cannot be read"),
        ("public.pem", "not a private key"),
        ("rsa.pem", "neither an Ed25519 key nor one on P-256"),
        ("locked.pem", "openssl pkeyutl -sign"),
    ],
)
def test_unusable_keys_are_found_before_anything_is_spent(spec, keys, tmp_path, key, message):
    result = labeldp("compile", spec, "-o", tmp_path / "out", "--sign", keys / key)
    assert result.exit_code == 2 and message in result.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("signature", [b"", b"x" * 63, b"x" * 64, b"x" * 65])
def test_wrong_signatures_fail(spec, keys, tmp_path, signature):
    labeldp("compile", spec, "-o", tmp_path)
    (tmp_path / "example.onnx.sig").write_bytes(signature)
    result = labeldp("verify", tmp_path / "example.onnx", "--public-key", keys / "public.pem")
    assert result.exit_code == 1
