"""The same integers give the same bytes, in any process and with any supported library version."""

import hashlib
from fractions import Fraction

import onnx
import pytest
from labeldp_verify.forms import CategoricalDomain, IntegerDomain, RealDomain
from labeldp_verify.graph import FORMAT_VERSION, tables_digest, write_model
from labeldp_verify.graph.bucket_grid import BucketGrid, grid_entries

from verifier.tests.integers import response

GOLDEN = {
    "integer": "1f6b3424b2108a1848a6e8525ff3e10e57df543d3891a3e152819fea9220701f",
    "clamped": "e981ebd75ba1f3c7c2179ae3f92ebfab8c3fb56590ce710972db2af08ee3b15f",
    "real": "4f82a910747d074760784e2509a70de2573d80ef37880d921aae2fc13f9faa5c",
    "categorical": "180efb4866ced583c5ddebe40716905d046a6ba7a8435ced9978391fc1e5cc4b",
}


def build(kind):
    randomizer = response(
        ["a", "b", "c"] if kind == "categorical" else [0.0, 0.5, 2.0], range(3), Fraction(1, 2)
    )
    domain = {
        "integer": IntegerDomain(-1, 1, default=0),
        "clamped": IntegerDomain(-1, 1),
        "real": RealDomain(0.0, 1.0, 3, "unbiased"),
        "categorical": CategoricalDomain(("a", "b", "c"), "c"),
    }[kind]
    return write_model(domain, randomizer, {"format_version": FORMAT_VERSION}, BucketGrid(50, 55))


@pytest.mark.parametrize("kind", GOLDEN)
def test_bytes_are_those_of_the_format(kind):
    # A change here is a change of the artifact format.
    assert hashlib.sha256(build(kind)).hexdigest() == GOLDEN[kind]


@pytest.mark.parametrize("kind", GOLDEN)
def test_the_onnx_checker_accepts_the_graph_and_finds_no_random_operator(kind):
    model = onnx.load_from_string(build(kind))
    onnx.checker.check_model(model, full_check=True)
    assert not [n.op_type for n in model.graph.node if "Random" in n.op_type]
    # Clip is used on float64 only: on int64 some versions of onnxruntime compute it wrongly.
    clipped = [n.input[0] for n in model.graph.node if n.op_type in ("Clip", "Max")]
    assert set(clipped) <= {"label_number"}


def test_a_bucket_with_two_boundaries_is_refused():
    randomizer = response([0.0, 1.0, 2.0], range(3), Fraction(1), 8)
    with pytest.raises(ValueError, match="two segment boundaries"):
        grid_entries(randomizer, BucketGrid(7, 7))


def test_tables_digest_tells_tables_apart_and_nothing_else():
    domain = IntegerDomain(0, 1)
    first = response([0.0, 1.0], [0, 1], Fraction(1))
    same = response([0.0, 1.0], [0, 1], Fraction(1))
    other = response([0.0, 1.0], [1, 0], Fraction(1))
    assert tables_digest(domain, first) == tables_digest(domain, same)
    digests = {
        tables_digest(domain, first),
        tables_digest(domain, other),
        tables_digest(IntegerDomain(0, 1, default=0), first),
        tables_digest(domain, response([0.0, 2.0], [0, 1], Fraction(1))),
        tables_digest(domain, response([0.0, 1.0], [0, 1], Fraction(2))),
    }
    assert len(digests) == 5
