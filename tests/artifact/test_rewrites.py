"""What onnxruntime makes of the graph before it runs it: only rewrites that keep every output.

The optimised graph of every form and kind of domain must be the written one, but for constants
that are shared, nodes that compute the same, and nodes with an exactly neutral constant. A later
version of onnxruntime with another rewrite fails this test, and somebody has to look at it.
"""

import random
import struct
from contextlib import contextmanager
from fractions import Fraction

import labeldp_verify.decode as forms_module
import labeldp_verify.graph.nodes as graph_module
import numpy as np
import onnx
import onnxruntime
import pytest
from labeldp_runtime import Randomizer
from labeldp_runtime.errors import PlatformError
from labeldp_verify import check_bytes, steps
from labeldp_verify.forms import CategoricalDomain, IntegerDomain, RealDomain
from labeldp_verify.forms.joint import output_values
from labeldp_verify.graph.nodes import DOUBLE, Graph, is_taken_for, vanishes

from labeldp_compile.rounding.windows import randomized_response, rr_top_k
from verifier.tests.files import file_of
from verifier.tests.integers import laplace_like, random_table

DOMAINS = {
    "integer": IntegerDomain(3, 8),
    "integer from 0": IntegerDomain(0, 5),
    "integer from 1": IntegerDomain(1, 6),
    "integer with a default": IntegerDomain(-2, 3, 1),
    "integer from 0 with a default": IntegerDomain(0, 5, 1),
    "real, nearest": RealDomain(-1.5, 1.5, 6),
    "real, nearest, from 0": RealDomain(0.0, 5.0, 6),
    "real, unbiased": RealDomain(0.1, 0.7, 6, "unbiased"),
    "real, steps of 1": RealDomain(2.0, 7.0, 6, "unbiased"),
    "real, steps of 1 in float32": RealDomain(0.0, 5.0000001, 6, "unbiased"),
    "real, nearest, steps of 1 in float32": RealDomain(1.0, 6.0000001, 6),
    "real with a default": RealDomain(0.0, 0.5, 6, "unbiased", 0.5),
    "text": CategoricalDomain(("a", "b", "c", "d", "e", "f"), "b"),
    "codes": CategoricalDomain((7, -20, 300, 0, 1, 2**60), 300),
}
NUMBERS = [name for name, domain in DOMAINS.items() if not isinstance(domain, CategoricalDomain)]
NEUTRAL = {"Add": 0, "Sub": 0, "Mul": 1}
# Attributes that onnxruntime writes out with their defaults; the writer sets none of them.
DEFAULTS = {
    ("Shape", "start"),
    ("Cast", "saturate"),
    ("LabelEncoder", "default_float"),
    ("LabelEncoder", "default_string"),
}
UNITS = (1.0, 0.25, 1.0000000001, 0.99999999999, 3.7)


def windows(domain):
    values = output_values(domain)
    for epsilon in (Fraction(1), Fraction(12)):
        loss = "zero_one"
        yield file_of(domain, randomized_response(values, range(6), epsilon, 40), epsilon, loss)
    yield file_of(
        domain, rr_top_k(values, [0, 2, 3], Fraction(9), 40), Fraction(9), loss="zero_one"
    )


def tables(domain):
    for bits in (12, 64):
        table = random_table(random.Random(1), 6, tuple(output_values(domain)), bits)
        yield file_of(domain, table, Fraction(9), "zero_one")


def noise(domain):
    for unit in UNITS:
        for spacing in (1, 4):
            r = laplace_like(6, spacing, 3, origin=float(domain.min), unit=unit)
            yield file_of(domain, r, Fraction(9))


CASES = [
    *[(windows, name) for name in DOMAINS],
    *[(tables, name) for name in DOMAINS],
    *[(noise, name) for name in NUMBERS],
]


def optimised(model, folder):
    """The graph that onnxruntime runs."""
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(folder / "optimised.onnx")
    options.log_severity_level = 4
    onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return onnx.load(folder / "optimised.onnx").graph


def meaning(graph, known):
    """A number for what the output computes: equal for equal expressions of labels and words.

    Equal constants are one, to the last bit; nodes with an exactly neutral constant are their
    input; two nodes that compute the same are one. ``known`` numbers the expressions.
    """

    def number(expression):
        return known.setdefault(expression, len(known))

    of = {tensor.name: number(("input", tensor.name)) for tensor in graph.input}
    neutral = {}
    for t in graph.initializer:
        content = t.raw_data or tuple(t.string_data)
        of[t.name] = number(("constant", t.data_type, tuple(t.dims), content))
        if t.data_type in (onnx.TensorProto.DOUBLE, onnx.TensorProto.INT64) and not t.dims:
            form = "<d" if t.data_type == onnx.TensorProto.DOUBLE else "<q"
            neutral[t.name] = struct.unpack(form, t.raw_data)[0]
    for node in graph.node:
        second = neutral.get(node.input[1]) if len(node.input) == 2 else None
        if second is not None and NEUTRAL.get(node.op_type) == second:
            of[node.output[0]] = of[node.input[0]]
            continue
        attributes = tuple(
            (attribute.name, attribute.SerializeToString(deterministic=True))
            for attribute in sorted(node.attribute, key=lambda a: a.name)
            if (node.op_type, attribute.name) not in DEFAULTS
        )
        inputs = tuple(of[name] for name in node.input)
        for i, output in enumerate(node.output):
            of[output] = number((node.op_type, node.domain, inputs, attributes, i))
    (output,) = graph.output
    return of[output.name]


@pytest.mark.slow
@pytest.mark.parametrize(("form", "name"), CASES)
def test_no_rewrite_changes_what_is_computed(form, name, tmp_path):
    for model in form(DOMAINS[name]):
        known = {}
        written = meaning(onnx.load_from_string(model).graph, known)
        assert meaning(optimised(model, tmp_path), known) == written
        assert check_bytes(model).ok


@pytest.mark.parametrize("factor", [1 + 1e-12, 1 - 1e-9, 1 + 2.0**-24, 1 - 2.0**-25, 1 + 2.0**-52])
def test_a_factor_of_1_in_float32_is_applied_exactly(factor, tmp_path):
    assert is_taken_for(factor, 1.0)
    graph = Graph("product")
    graph.input("x", DOUBLE, ["N"])
    graph.output("y", DOUBLE, ["N"])
    graph.node("Identity", [graph.product("x", "factor", factor, "product")], "y")
    generator = np.random.default_rng(0)
    x = np.concatenate(
        [
            generator.uniform(0, 50, 10_000),
            generator.integers(-(2**52), 2**52, 10_000).astype(np.float64),
            2.0 ** generator.uniform(-1000, 1000, 10_000),
            [0.0, 1.0, 49.0, 2.0**52 - 1],
        ]
    )
    session = onnxruntime.InferenceSession(graph.to_bytes({}), providers=["CPUExecutionProvider"])
    (got,) = session.run(None, {"x": x})
    assert got.tobytes() == (x * factor).tobytes()
    assert np.any(x * factor != x)


@pytest.mark.parametrize(
    ("operation", "number"),
    [("Mul", 1 + 1e-9), ("Div", 1 - 1e-12), ("Add", 1e-50), ("Sub", -1e-50), ("Add", 1e-40)],
)
def test_no_such_node_can_be_written(operation, number):
    graph = Graph("guarded")
    graph.input("x", DOUBLE, ["N"])
    with pytest.raises(ValueError, match="in float32"):
        graph.node(operation, ["x", graph.scalar("c", DOUBLE, number)], "y")
    graph.node(operation, ["x", graph.scalar("fine", DOUBLE, 0.5)], "z")


def test_what_is_neutral_in_float32():
    assert not any(vanishes("Mul", c) for c in (1.0, 0.0, 2.0, 1 + 2.0**-23, 1 - 2.0**-24, 1e300))
    assert not any(vanishes("Add", c) for c in (0.0, -0.0, 1.0, 1e-30, -(2.0**-126)))
    assert all(vanishes("Div", c) for c in (1 + 2.0**-24, 1 - 2.0**-26))
    assert all(vanishes("Sub", c) for c in (5e-324, -1e-45, 2.0**-127))


@pytest.fixture
def unaware(monkeypatch):
    """The writer and all readers know of no factor that vanishes in float32, as once."""

    @contextmanager
    def once():
        with monkeypatch.context() as patch:
            for name in ("is_taken_for", "vanishes"):
                patch.setattr(graph_module, name, lambda *_: False)
            patch.setattr(forms_module, "refuse_vanishing_nodes", lambda _: None)
            patch.setattr(steps.Verification, "_check_kernel", lambda _: "not asked")
            yield

    return once


@pytest.mark.parametrize("rounding", ["nearest", "unbiased"])
def test_files_with_such_a_node_fail(unaware, rounding):
    domain = RealDomain(0.0, 49.000001, 50, rounding)
    many = randomized_response(output_values(domain), range(50), Fraction(1))
    with unaware():
        model = file_of(domain, many, 1, "zero_one")
    last = check_bytes(model).checks[-1]
    assert (last.name, last.ok) == ("tables", False) and "compile the spec again" in last.detail
    with pytest.raises(PlatformError, match="gives wrong results"):
        Randomizer(model)
    # Where nobody knows the rewrite, the running graph itself gives it away.
    with unaware():
        last = check_bytes(model).checks[-1]
    assert (last.name, last.ok) == ("execution", False)
