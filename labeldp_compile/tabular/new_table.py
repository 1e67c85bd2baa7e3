"""Write a new table of results, as Parquet or as CSV that is safe to open in a spreadsheet.

A spreadsheet runs a cell that begins like a formula, and names of groups and labels come from
files. So in CSV, such text gets an apostrophe in front, and so does text that begins with one.
Removing one leading apostrophe gives the text back. Text that is a number stays as it is. Parquet
holds every text unchanged.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from labeldp_runtime.columns.arrow import is_text

from labeldp_compile.tabular.csv_sink import CsvSink, TextOut
from labeldp_compile.whole_file import replaced_when_whole

# The signs that begin a formula, also in full width, also behind space and control characters.
_FORMULA = r"^(?:'|[\s\p{C}\p{Z}]*[=+\-@\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}]|[\t\r\n])"
_NUMBER = r"^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"


def write_new_table(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
    """Write batches of a schema, whole or not at all; returns the number of rows.

    The name decides the format: ``.parquet``, or CSV. Raises DataError.
    """
    rows = 0
    with replaced_when_whole(path) as file:
        if path.suffix.lower() == ".parquet":
            with pq.ParquetWriter(file, schema) as parquet:
                for batch in batches:
                    parquet.write_batch(batch)
                    rows += len(batch)
            return rows
        names = _without_formulas(pa.array(schema.names, pa.string())).to_pylist()
        safe = pa.schema([field.with_name(n) for field, n in zip(schema, names, strict=True)])
        csv = CsvSink(TextOut(file, gzipped=False), safe, ",")
        for batch in batches:
            cells = [_without_formulas(c) if is_text(c.type) else c for c in batch.columns]
            csv.write(pa.RecordBatch.from_arrays(cells, schema=safe))
            rows += len(batch)
        csv.finish()
    return rows


def in_batches(schema: pa.Schema, rows: Iterable[tuple[object, ...]]) -> Iterator[pa.RecordBatch]:
    """Rows of Python values, one for each column, as batches."""
    left = iter(rows)
    while held := list(islice(left, _BATCH)):
        columns = zip(zip(*held, strict=True), schema, strict=True)
        arrays = [pa.array(column, field.type) for column, field in columns]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


_BATCH = 1 << 16


def _without_formulas(texts: pa.Array) -> pa.Array:
    runs = pc.and_not(
        pc.match_substring_regex(texts, _FORMULA), pc.match_substring_regex(texts, _NUMBER)
    )
    marked = pc.binary_join_element_wise("'", texts, "")
    return pc.if_else(runs, marked, texts)
