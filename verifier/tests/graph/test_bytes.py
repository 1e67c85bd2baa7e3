"""The same integers give the same bytes, in any process and with any supported library version."""

import hashlib
from fractions import Fraction

import onnx
import pytest
from labeldp_verify.forms import CategoricalDomain, IntegerDomain, RealDomain
from labeldp_verify.graph import canonical_json, tables_digest, write_model
from labeldp_verify.graph.bucket_grid import BucketGrid, grid_entries

from verifier.tests.integers import response

GOLDEN = {
    ("1.0", "integer"): "81d18b084c86b463c2fcd07af95ff9afdac0729acb2fd4a8d185261b27efac7d",
    ("1.0", "clamped"): "666e0ca4663f609b85cb0b61bb231764656be84128adac7791d862c611210837",
    ("1.0", "real"): "4919d70e03d8d3b9d7c55bdb24cbf0751e7ade2d3bea9b883cf2b38222be5c1b",
    ("1.0", "categorical"): "62cd436e1fffc1ab9f3a69770203864f0c10fc98429d583cf5f60ee27eb44c24",
    ("1.4", "integer"): "ad855f8672f2c25ccd56f33e949ce134c2551dd57461c643683d0947e9a4146b",
    ("1.4", "clamped"): "0973f5fa2d22e5fcad1e7d456b634215ca35799009049cec5f8f44e066565436",
    ("1.4", "real"): "5924ac99aef447bf51b3e28de83dbab9ca87c2e3eae8f24837f6ca8e2b4568ff",
    ("1.4", "categorical"): "af70167541daff16525718fe63bc35a91dedf18d6c40e421b1ecd736531bfd27",
}


def build(version, kind):
    randomizer = response(
        ["a", "b", "c"] if kind == "categorical" else [0.0, 0.5, 2.0], range(3), Fraction(1, 2)
    )
    domain = {
        "integer": IntegerDomain(-1, 1, default=0),
        "clamped": IntegerDomain(-1, 1),
        "real": RealDomain(0.0, 1.0, 3, "unbiased"),
        "categorical": CategoricalDomain(("a", "b", "c"), "c"),
    }[kind]
    return write_model(domain, randomizer, {"format_version": version}, BucketGrid(50, 55))


@pytest.mark.parametrize(("version", "kind"), sorted(GOLDEN))
def test_bytes_are_those_of_the_format(version, kind):
    # A change here is a change of the artifact format: a new format version writes it.
    assert hashlib.sha256(build(version, kind)).hexdigest() == GOLDEN[version, kind]


@pytest.mark.parametrize(("version", "kind"), sorted(GOLDEN))
def test_the_onnx_checker_accepts_the_graph_and_finds_no_random_operator(version, kind):
    model = onnx.load_from_string(build(version, kind))
    onnx.checker.check_model(model, full_check=True)
    assert not [n.op_type for n in model.graph.node if "Random" in n.op_type]
    # Clip is used on float64 only: on int64 some versions of onnxruntime compute it wrongly.
    clipped = [n.input[0] for n in model.graph.node if n.op_type in ("Clip", "Max")]
    assert set(clipped) <= {"label_number"}


def test_a_bucket_with_two_boundaries_is_refused():
    randomizer = response([0.0, 1.0, 2.0], range(3), Fraction(1), 8)
    with pytest.raises(ValueError, match="two segment boundaries"):
        grid_entries(randomizer, BucketGrid(7, 7))


def test_canonical_json_refuses_nan():
    with pytest.raises(ValueError, match="JSON"):
        canonical_json({"x": float("nan")})


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
