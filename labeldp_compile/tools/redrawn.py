"""Two private outputs of the same ids: how many of their labels were drawn twice, at least."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from labeldp_compile.errors import refused
from labeldp_compile.tabular.columns import value_type
from labeldp_compile.tabular.csv_file import empty_is_null
from labeldp_compile.tabular.formats import files_of, require_format
from labeldp_compile.tabular.header import read_schema
from labeldp_compile.tabular.provenance import read_note
from labeldp_compile.tabular.reader import read_columns
from labeldp_compile.text_form import TextForm

FORMAT_VERSION = "1.0"


@dataclass(frozen=True)
class Redrawn:
    """What a comparison counted.

    Attributes:
        old, new, both: ids of each output, and those in both.
        differ: private labels that differ; of a label of several columns, those in any column.
        unnoted: Parquet files that do not note that these labels are private.
    """

    old: int
    new: int
    both: int
    differ: int
    unnoted: list[Path] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """The counts; ``differ`` is a lower bound of the labels that were drawn twice."""
        counts = {name: getattr(self, name) for name in ("old", "new", "both", "differ")}
        return {"format_version": FORMAT_VERSION, **counts}


def compare(
    old: Path, new: Path, id_column: str, columns: Sequence[str], form: TextForm
) -> Redrawn:
    """Compare the private ``columns`` of the ids that both outputs have.

    Labels without an output (null) were not drawn. Needs memory for these columns. Raises DataError
    for a missing column, and for an id that is null or twice in one output.
    """
    names = [id_column, *columns]
    tables = [_read(path, names, form) for path in (old, new)]
    for table, path in zip(tables, (old, new), strict=True):
        ids = table.column(0)
        if ids.null_count or len(pc.unique(ids)) < len(ids):
            raise refused(path, f"{id_column!r}: an id is null, or in several rows")
    first, second = _alike(*tables)
    joined = first.join(second, "0", join_type="inner", right_suffix="_new")
    differs = [
        pc.fill_null(pc.not_equal(joined[f"{place}"], joined[f"{place}_new"]), False)
        for place in range(1, len(names))
    ]
    changed = differs[0]
    for other in differs[1:]:
        changed = pc.or_(changed, other)
    return Redrawn(
        len(first),
        len(second),
        len(joined),
        pc.sum(changed).as_py() or 0,
        [file for path in (old, new) for file in files_of(path) if not _is_noted(file, columns)],
    )


def _read(path: Path, names: Sequence[str], form: TextForm) -> pa.Table:
    """The columns of all parts, called 0, 1, …; dictionaries as their values."""
    batches = []
    for file in files_of(path):
        is_text = require_format(file).is_text
        for batch in read_columns(file, names, form, names[1]):
            arrays = [column.cast(value_type(column.type)) for column in batch.columns]
            arrays = [empty_is_null(array) if is_text else array for array in arrays]
            batches.append(
                pa.RecordBatch.from_arrays(arrays, [str(place) for place in range(len(names))])
            )
    if not batches:
        return pa.table({str(place): pa.array([], pa.string()) for place in range(len(names))})
    return pa.concat_tables(
        map(pa.Table.from_batches, ([b] for b in batches)), promote_options="permissive"
    )


def _alike(first: pa.Table, second: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Both with columns of the same types: text, where they differ."""
    for place, (one, other) in enumerate(zip(first.schema, second.schema, strict=True)):
        if one.type != other.type:
            first, second = (
                table.set_column(place, one.name, table.column(place).cast(pa.string()))
                for table in (first, second)
            )
    return first, second


def _is_noted(file: Path, columns: Sequence[str]) -> bool:
    """Whether a Parquet file notes that the columns are private; CSV has no notes."""
    schema, _, csv = read_schema(file)
    return csv is not None or set(columns) <= set(read_note(file, schema.metadata))
