"""Files are written field by field, as protobuf's own writer would write them."""

import onnx
import pytest
from labeldp_verify.artifact.messages import varint

from tests.helpers import INTEGER_SPEC, compile_text


def test_files_are_what_onnx_itself_writes():
    model = compile_text(INTEGER_SPEC).model
    assert onnx.ModelProto.FromString(model).SerializeToString(deterministic=True) == model


@pytest.mark.parametrize("number", [0, 1, 127, 128, 300, 2**63 - 1, -1, -(2**63)])
def test_numbers_are_those_of_protobuf(number):
    tensor = onnx.TensorProto(dims=[number])
    assert tensor.SerializeToString() == b"\x08" + varint(number)
