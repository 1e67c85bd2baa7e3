"""The protobuf messages of ONNX, by themselves.

The package imports its checker, helpers and converters as well, which nothing here uses and which
take longer to load than numpy. These are the same classes as ``onnx.ModelProto`` and the others.
"""

from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import onnx


def _generated() -> Any:
    """The module that protoc wrote, or the package where that is kept in another place."""
    package = find_spec("onnx")  # which imports nothing
    folder = None if package is None else package.submodule_search_locations
    spec = None if folder is None else PathFinder.find_spec("onnx.onnx_ml_pb2", folder)
    if spec is None or spec.loader is None:
        import onnx  # noqa: PLC0415

        return onnx
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if not TYPE_CHECKING:
    onnx = _generated()

AttributeProto = onnx.AttributeProto
GraphProto = onnx.GraphProto
ModelProto = onnx.ModelProto
NodeProto = onnx.NodeProto
OperatorSetIdProto = onnx.OperatorSetIdProto
StringStringEntryProto = onnx.StringStringEntryProto
TensorProto = onnx.TensorProto
ValueInfoProto = onnx.ValueInfoProto
