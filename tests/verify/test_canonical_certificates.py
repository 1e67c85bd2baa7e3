"""One meaning, one text: a certificate that writes its numbers otherwise does not verify.

And what verifies is what the runtime loads, whatever the texts in it look like.
"""

from fractions import Fraction

import onnx
import pytest
from labeldp_runtime import Randomizer
from labeldp_runtime.errors import DamagedArtifactError
from labeldp_verify import check_bytes
from labeldp_verify.forms import CategoricalDomain, IntegerDomain, RealDomain

from labeldp_compile.rounding.windows import randomized_response
from runtime.tests.helpers import with_checksum
from verifier.tests.files import file_of

CONSTANT = randomized_response([0.0], [0, 0], Fraction(1), 8)  # biased by 0 and by −1


@pytest.mark.parametrize("end", ["min", "default"])
def test_a_negative_zero_in_a_domain_fails(end):
    zeros = {"min": 0.0, "default": 0.0, end: -0.0}
    domain = RealDomain(zeros["min"], 1.0, 2, "nearest", zeros["default"])
    randomizer = randomized_response([0.0, 1.0], [0, 1], Fraction(1), 20)
    report = check_bytes(file_of(domain, randomizer, Fraction(1), "squared"))
    assert not report.ok and "−0" in report.checks[-1].detail


ENTRY = "\x0a\x16labeldp.content_sha256\x12\x40" + 64 * "0"
TEXTS = [
    "labeldp.content_sha256",
    "r\x5a" + ENTRY,  # all bytes of an entry with its tag
    "\x0a\x16labeldp.format_version\x12\x039.0",
    "labeldp.format_version",
]


@pytest.mark.parametrize("text", TEXTS)
def test_texts_that_look_like_metadata_verify_and_load(text):
    domain = CategoricalDomain((text, "plain"), "plain")
    model = file_of(
        domain,
        randomized_response(domain.values, range(2), Fraction(1)),
        Fraction(1),
        loss="zero_one",
    )
    assert check_bytes(model).ok
    private = Randomizer(model)([text, "plain", "other"] * 50)
    assert set(private) == {text, "plain"}


def test_two_checksums_are_still_refused():
    model = file_of(IntegerDomain(0, 1), CONSTANT, Fraction(1), "squared")
    proto = onnx.load_from_string(with_checksum(onnx.load_from_string(model)))
    proto.metadata_props.add(key="labeldp.content_sha256", value="0" * 64)
    with pytest.raises(DamagedArtifactError):
        Randomizer(proto.SerializeToString(deterministic=True))
