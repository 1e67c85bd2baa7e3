"""The messages of ONNX are loaded without its package, and are the package's own."""

import subprocess
import sys

import onnx
import pytest
from labeldp_verify.graph import nodes as messages

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
