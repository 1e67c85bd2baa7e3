"""``Policy(public_key=…)``: only the file that the key signed is used."""

import shutil

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from labeldp_runtime import Policy, Randomizer
from labeldp_runtime.errors import PolicyError

from tests.helpers import INTEGER_SPEC, compile_text


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


def test_another_key_is_refused(signed, tmp_path):
    path, _ = signed
    public = Ed25519PrivateKey.generate().public_key()
    (tmp_path / "theirs.pem").write_bytes(
        public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    with pytest.raises(PolicyError, match="was not signed"):
        Randomizer.load(path, require=Policy(public_key=tmp_path / "theirs.pem"))


@pytest.mark.parametrize("lost", ["signature", "key"])
def test_a_missing_signature_or_key_is_refused(signed, lost):
    path, public = signed
    (public if lost == "key" else path.with_name(path.name + ".sig")).unlink()
    with pytest.raises(PolicyError, match="cannot be checked"):
        Randomizer.load(path, require=Policy(public_key=public))


def test_bytes_without_a_path_have_no_signature(signed):
    path, public = signed
    with pytest.raises(PolicyError, match="load it from its path"):
        Randomizer(path.read_bytes(), require=Policy(public_key=public))
