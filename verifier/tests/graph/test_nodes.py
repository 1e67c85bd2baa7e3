"""Which nodes the graphs have, where another would take longer."""

import random
from fractions import Fraction

import onnx
from labeldp_verify.forms import CategoricalDomain, IntegerDomain, RealDomain
from labeldp_verify.forms.joint import output_values
from labeldp_verify.graph import write_model
from labeldp_verify.graph.bucket_grid import BucketGrid
from labeldp_verify.graph.nodes import DOUBLE, INT32

from verifier.tests.integers import random_additive, response

DOMAINS = {
    "integers": IntegerDomain(-2, 2),
    "integers with a default": IntegerDomain(0, 4, 3),
    "reals": RealDomain(0.0, 1.0, 5),
    "reals with a default": RealDomain(0.0, 1.0, 5, default=0.5),
    "rounded at random": RealDomain(-1.0, 1.0, 5, "unbiased"),
    "text": CategoricalDomain(("a", "b", "c", "d", "e"), "b"),
    "codes": CategoricalDomain((7, -2, 2**60, 0, 1), 0),
}


def test_which_nodes_there_are():
    """No Where but in the label's part; rows are int32 or float64 where that is cheaper."""
    for name, domain in DOMAINS.items():
        randomizer = response(output_values(domain), range(5), Fraction(3), 12)
        graph = onnx.load_from_string(write_model(domain, randomizer, {}, BucketGrid(0, 3))).graph
        conditions = {n.input[0] for n in graph.node if n.op_type == "Where"}
        assert conditions <= {"not_below", "inside"}
        to = [n.attribute[0].i for n in graph.node if n.output[0] == "row" and n.op_type == "Cast"]
        in_float64 = name == "integers" or isinstance(domain, RealDomain)
        assert to == ([INT32] if in_float64 else [])
    graph = onnx.load_from_string(
        write_model(IntegerDomain(0, 4), random_additive(random.Random(1), 5, 1, 2, 8), {})
    ).graph
    assert "Where" not in {n.op_type for n in graph.node}
    kinds = {t.name: t.data_type for t in graph.initializer}
    assert kinds["low"] == kinds["high"] == kinds["spacing"] == DOUBLE
