"""The messages of ONNX are loaded without its package, and are the package's own."""

import subprocess
import sys

import onnx
import pytest
from labeldp_verify.graph import nodes as messages
from labeldp_verify.graph.nodes import DOUBLE, Graph

NAMES = [name for name in vars(messages) if name.endswith("Proto")]


@pytest.mark.parametrize("name", NAMES)
def test_the_classes_are_those_of_the_package(name):
    assert getattr(messages, name) is getattr(onnx, name)


def test_the_package_may_come_later():
    code = """
import sys
from labeldp_verify.graph import nodes as messages
assert "onnx" not in sys.modules
import onnx, onnx.checker, onnx.helper
assert onnx.ModelProto is messages.ModelProto is onnx.onnx_ml_pb2.ModelProto
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_a_module_of_messages_the_package_is_taken(monkeypatch):
    monkeypatch.setattr(messages.PathFinder, "find_spec", lambda *_: None)
    assert messages._generated() is onnx


def test_the_package_reads_what_was_written():
    graph = Graph("twice")
    graph.input("label", DOUBLE, ["n"])
    graph.node("Add", ["label", "label"], "sum")
    graph.output("sum", DOUBLE, ["n"])
    model = onnx.load_from_string(graph.to_bytes({"key": "value"}))
    onnx.checker.check_model(model, full_check=True)
    assert model.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.DOUBLE
