"""Tables: streaming Parquet and CSV files, and turning a column into labels."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from labeldp_compile.errors import refused

if TYPE_CHECKING:
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
_HOMES = {
    "label_column": ("label_array",),
    "reader": ("TableReader", "open_table"),
    "writer": ("require_rewritten", "rewrite_table"),
}


def __getattr__(name: str) -> Any:
    """The public names, loaded when they are used: a spec without a table needs no pyarrow."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
