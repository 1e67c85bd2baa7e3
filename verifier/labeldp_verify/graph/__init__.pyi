"""The names that this room hands out; ``__init__.py`` loads each one when it is used."""

from labeldp_verify.graph.alias_table import MAX_ENTRIES as MAX_ENTRIES
from labeldp_verify.graph.alias_table import MAX_PERIOD as MAX_PERIOD
from labeldp_verify.graph.alias_table import alias_entries as alias_entries
from labeldp_verify.graph.alias_table import column_bits as column_bits
from labeldp_verify.graph.alias_table import require_small_table as require_small_table
from labeldp_verify.graph.bucket_grid import BucketGrid as BucketGrid
from labeldp_verify.graph.bucket_grid import choose_grid as choose_grid
from labeldp_verify.graph.bucket_grid import grid_entries as grid_entries
from labeldp_verify.graph.inputs import group_inputs as group_inputs
from labeldp_verify.graph.inputs import group_type as group_type
from labeldp_verify.graph.inputs import label_inputs as label_inputs
from labeldp_verify.graph.model import FORMAT_VERSION as FORMAT_VERSION
from labeldp_verify.graph.model import tables_digest as tables_digest
from labeldp_verify.graph.model import write_group_model as write_group_model
from labeldp_verify.graph.model import write_index_model as write_index_model
from labeldp_verify.graph.model import write_model as write_model
from labeldp_verify.graph.nodes import DOUBLE as DOUBLE
from labeldp_verify.graph.nodes import INT64 as INT64
from labeldp_verify.graph.nodes import is_taken_for as is_taken_for
from labeldp_verify.strict import canonical_json as canonical_json

from . import bucket_grid as bucket_grid
