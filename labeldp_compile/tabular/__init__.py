"""Tables: streaming Parquet and CSV files, and turning a column into labels."""

from labeldp_compile.errors import refused
from labeldp_compile.tabular.label_column import label_array
from labeldp_compile.tabular.reader import TableReader, open_table
from labeldp_compile.tabular.writer import require_rewritten, rewrite_table

__all__ = [
    "TableReader",
    "label_array",
    "open_table",
    "refused",
    "require_rewritten",
    "rewrite_table",
]
