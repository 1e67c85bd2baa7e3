"""The same integers give the same bytes, in any process and with any supported library version."""

import hashlib
from fractions import Fraction

import onnx
import pytest
from labeldp_verify.artifact import canonical_json, tables_digest, write_model
from labeldp_verify.artifact.bucket_grid import BucketGrid, grid_entries
from labeldp_verify.forms import CategoricalDomain, IntegerDomain, RealDomain

from labeldp_compile.rounding.randomized_response import randomized_response

GOLDEN = {
    "integer": "ecb9ee6d23bdba7208f510de0910d040a8494795e6ab457491eefcaabcdb184b",
    "clamped": "3006bf6dc99f202ecd2bf36be4402968c5ee9d1cd4b4714af7dba78fb2faedaa",
    "real": "8d7636ce8e34cfb99904c7be68bd74392e599d6c3753f712943647453d593db8",
    "categorical": "68b5787a9f35c2f13a704f4bc4ba1ab0be674ca5a439ae1549613740580d2a91",
}


def build(kind):
    randomizer = randomized_response(
        ["a", "b", "c"] if kind == "categorical" else [0.0, 0.5, 2.0], range(3), Fraction(1, 2)
    )
    domain = {
        "integer": IntegerDomain(-1, 1, default=0),
        "clamped": IntegerDomain(-1, 1),
        "real": RealDomain(0.0, 1.0, 3, "unbiased"),
        "categorical": CategoricalDomain(("a", "b", "c"), "c"),
    }[kind]
    return write_model(domain, randomizer, {"made": "for a test"}, BucketGrid(50, 55))


@pytest.mark.parametrize("kind", sorted(GOLDEN))
def test_bytes_are_those_of_format_1_0(kind):
    # A change here is a change of the artifact format: raise FORMAT_VERSION and say so.
    assert hashlib.sha256(build(kind)).hexdigest() == GOLDEN[kind]


@pytest.mark.parametrize("kind", sorted(GOLDEN))
def test_the_onnx_checker_accepts_the_graph_and_finds_no_random_operator(kind):
    model = onnx.load_from_string(build(kind))
    onnx.checker.check_model(model, full_check=True)
    assert not [n.op_type for n in model.graph.node if "Random" in n.op_type]
    # Clip is used on float64 only: on int64 some versions of onnxruntime compute it wrongly.
    clipped = [n.input[0] for n in model.graph.node if n.op_type in ("Clip", "Max")]
    assert set(clipped) <= {"label_number"}


def test_a_bucket_with_two_boundaries_is_refused():
    randomizer = randomized_response([0.0, 1.0, 2.0], range(3), Fraction(1), 8)
    with pytest.raises(ValueError, match="two segment boundaries"):
        grid_entries(randomizer, BucketGrid(7, 7))


def test_canonical_json_refuses_nan():
    with pytest.raises(ValueError, match="JSON"):
        canonical_json({"x": float("nan")})


def test_tables_digest_tells_tables_apart_and_nothing_else():
    domain = IntegerDomain(0, 1)
    first = randomized_response([0.0, 1.0], [0, 1], Fraction(1))
    same = randomized_response([0.0, 1.0], [0, 1], Fraction(1))
    other = randomized_response([0.0, 1.0], [1, 0], Fraction(1))
    assert tables_digest(domain, first) == tables_digest(domain, same)
    digests = {
        tables_digest(domain, first),
        tables_digest(domain, other),
        tables_digest(IntegerDomain(0, 1, default=0), first),
        tables_digest(domain, randomized_response([0.0, 2.0], [0, 1], Fraction(1))),
        tables_digest(domain, randomized_response([0.0, 1.0], [0, 1], Fraction(2))),
    }
    assert len(digests) == 5
