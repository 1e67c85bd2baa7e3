"""The graph writer: from integers and a certificate to the bytes of an ONNX file, and nothing else.

The same integers give the same bytes with every supported version of onnx and protobuf. The
compiler writes with it; the verifier rebuilds with it and compares whole files.
"""

from labeldp_verify.public_names import loaded_on_use

__getattr__ = loaded_on_use(__name__)
