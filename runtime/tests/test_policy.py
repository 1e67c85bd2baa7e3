"""``require``: an artifact is used only if it is the one that was asked for.

What verifies the file, and needs labeldp-verify, is tried in tests/across.
"""

import hashlib
import subprocess
import sys

import pytest
from labeldp_runtime import (
    ArtifactError,
    ArtifactTooLargeError,
    DamagedArtifactError,
    InsecureArtifactError,
    Policy,
    PolicyError,
    Randomizer,
    UnsupportedFormatError,
)
from labeldp_runtime.artifact_file import MAX_FILE_BYTES, read_bytes

from runtime.tests.helpers import file, path_of, recertified, with_metadata

MODEL = file("integers")
DIGEST = hashlib.sha256(MODEL).hexdigest()


@pytest.mark.parametrize(
    "conditions",
    [{}, {"sha256": DIGEST.upper()}, {"max_epsilon": 1, "name": "example"}],
)
def test_pins_that_hold(conditions):
    policy = Policy(**{"sha256": DIGEST, **conditions})
    assert len(Randomizer.load(path_of("integers"), require=policy)([1, 2])) == 2


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({"max_epsilon": "0.5"}, "the policy allows 0.5"),
        ({"max_epsilon": 2, "max_total_epsilon": 0.5}, "the policy allows 0.5"),
        ({"name": "Example"}, "deploy the right file"),
        ({"sha256": "0" * 64}, f"{DIGEST}, not 0000"),
    ],
)
def test_pins_that_do_not_hold(conditions, message):
    with pytest.raises(PolicyError, match=message):
        Randomizer(MODEL, require=Policy(**{"sha256": DIGEST, **conditions}))


WITHOUT_THE_VERIFIER = f"""
import sys
sys.modules["labeldp_verify"] = None  # as where it is not installed
from labeldp_runtime import MissingExtraError, Policy, Randomizer
for policy in (Policy(), Policy(max_epsilon=1), Policy(name="example")):
    try:
        Randomizer.load(sys.argv[1], require=policy)
    except MissingExtraError as error:
        print(error)
Randomizer.load(sys.argv[1], require=Policy(max_epsilon=1, name="example", sha256="{DIGEST}"))
"""


def test_without_the_verifier_only_a_digest_will_do():
    command = [sys.executable, "-c", WITHOUT_THE_VERIFIER, str(path_of("integers"))]
    said = subprocess.check_output(command, text=True).splitlines()
    assert len(said) == 3 and all("pip install ./verifier" in line for line in said)


def test_a_pinned_file_without_the_claims_is_refused():
    bare = recertified(MODEL, lambda c: c["exact"].pop("epsilon_label_bound"))
    digest = hashlib.sha256(bare).hexdigest()
    with pytest.raises(PolicyError, match="lacks a field that the policy needs"):
        Randomizer(bare, require=Policy(max_epsilon=1, sha256=digest))
    bare = recertified(MODEL, lambda c: c["exact"].pop("epsilon_total"))
    digest = hashlib.sha256(bare).hexdigest()
    Randomizer(bare, require=Policy(max_epsilon=1, sha256=digest))
    with pytest.raises(PolicyError, match="lacks a field that the policy needs"):
        Randomizer(bare, require=Policy(max_total_epsilon=1, sha256=digest))


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


def test_files_that_cannot_be_used_say_why_and_what_to_do(tmp_path):
    flipped = bytearray(MODEL)
    flipped[MODEL.index(b'"example"') + 1] ^= 1  # still a protobuf, wherever else a byte is not
    insecure = recertified(MODEL, lambda c: c.update(insecure="INSECURE: test"))
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


def test_no_more_is_read_than_an_artifact_may_hold(tmp_path):
    with (tmp_path / "x.onnx").open("wb") as large:
        large.truncate(MAX_FILE_BYTES)
        assert len(read_bytes(tmp_path / "x.onnx")) == MAX_FILE_BYTES
        large.truncate(MAX_FILE_BYTES + 1)
        with pytest.raises(ArtifactTooLargeError, match="larger than"):
            Randomizer.load(tmp_path / "x.onnx")
