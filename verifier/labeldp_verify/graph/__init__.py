"""The graph writer: from integers and a certificate to the bytes of an ONNX file, and nothing else.

The same integers give the same bytes with every supported version of onnx and protobuf. The
compiler writes with it; the verifier rebuilds with it and compares whole files.
"""

from labeldp_verify.graph import bucket_grid
from labeldp_verify.graph.additive_graph import MAX_PERIOD
from labeldp_verify.graph.alias_table import (
    MAX_ENTRIES,
    alias_entries,
    column_bits,
    require_small_table,
)
from labeldp_verify.graph.bucket_grid import BucketGrid, choose_grid, grid_entries
from labeldp_verify.graph.canonical import canonical_json, tables_digest
from labeldp_verify.graph.group_graph import group_inputs, group_type
from labeldp_verify.graph.joint_graph import label_inputs
from labeldp_verify.graph.model import (
    write_group_model,
    write_index_model,
    write_model,
)
from labeldp_verify.graph.nodes import DOUBLE, INT64, is_taken_for

__all__ = [
    "DOUBLE",
    "INT64",
    "MAX_ENTRIES",
    "MAX_PERIOD",
    "BucketGrid",
    "alias_entries",
    "bucket_grid",
    "canonical_json",
    "choose_grid",
    "column_bits",
    "grid_entries",
    "group_inputs",
    "group_type",
    "is_taken_for",
    "label_inputs",
    "require_small_table",
    "tables_digest",
    "write_group_model",
    "write_index_model",
    "write_model",
]
