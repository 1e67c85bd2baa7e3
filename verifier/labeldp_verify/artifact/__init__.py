"""The graph writer: from integers and a certificate to the bytes of an ONNX file, and nothing else.

The same integers give the same bytes with every supported version of onnx and protobuf. The
compiler writes with it; the verifier rebuilds with it and compares whole files.
"""

from labeldp_verify.artifact.bucket_grid import BucketGrid, choose_grid, grid_entries
from labeldp_verify.artifact.canonical import canonical_json, tables_digest
from labeldp_verify.artifact.model import (
    FORMAT_VERSION,
    FORMAT_VERSIONS,
    format_version,
    format_versions,
    write_group_model,
    write_index_model,
    write_model,
)

__all__ = [
    "FORMAT_VERSION",
    "FORMAT_VERSIONS",
    "BucketGrid",
    "canonical_json",
    "choose_grid",
    "format_version",
    "format_versions",
    "grid_entries",
    "tables_digest",
    "write_group_model",
    "write_index_model",
    "write_model",
]
