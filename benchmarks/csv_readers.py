"""What readers of CSV do with twelve malformed files: the table of benchmarks/notes/csv.md.

    python benchmarks/csv_readers.py [--without spark]

Each file has 40 rows with the columns id, y, z and w. The label y of row i is Li, so a label that
a reader puts into another column is seen. Spark needs Java, and takes a minute.
"""

import argparse
import csv
import sys
import tempfile
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv

sys.path.insert(0, str(Path(__file__).parents[1]))

from labeldp_compile.errors import DataError
from labeldp_compile.tabular.formats import PLAIN
from labeldp_compile.tabular.reader import read_columns

NAMES = ["id", "y", "z", "w"]
FAULTS = {  # lines by their numbers, 0 for the header
    "a quote in a feature opens and never closes": {5: '5,L5,"k,a'},
    "it closes two rows later, before text": {5: '5,L5,"k,a', 7: '7,L7,k"k,a'},
    "it closes two rows later, at the end of a cell": {5: '5,L5,"k,a', 7: '7,L7,k",a'},
    "it closes in the next row, at the end of a cell": {5: '5,L5,"k,a', 6: '6,L6,k",a'},
    "a quote in the label opens and never closes": {5: '5,"L5,k,a'},
    "a quote in the header opens and never closes": {0: 'id,y,z,"w'},
    'text after a closing quote: `"k"x`': {5: '5,L5,"k"x,a'},
    'a quote inside a cell: `5" k`': {5: '5,L5,5" k,a'},
    'blank and quote, closed in the next row: `⎵"k`': {5: '5,L5, "k,a', 6: '6,L6,k",a'},
    'quotes escaped by a backslash: `"k\\""`': {5: '5,L5,"k\\"",a', 6: '6,L6,"k\\"",a'},
    "a line end CR among LF": {5: "5,L5,k,a\r6,L6,k,a", 6: None},
    "a row with a cell too many": {5: "5,L5,k,k,a"},
}
REFUSED, WHOLE, MOVED = "refused", "right", "**labels elsewhere**"


def text_of(changes):
    """A file with some of its lines replaced; None leaves a line out."""
    lines = [",".join(NAMES), *(f"{i},L{i},k,a" for i in range(1, 41))]
    chosen = [changes.get(number, line) for number, line in enumerate(lines)]
    return "\n".join(line for line in chosen if line is not None) + "\n"


def ours(path):
    batches = list(read_columns(path, [], PLAIN, ["y"], every=True))
    return _rows_of_arrow(pa.Table.from_batches(batches))


def python(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file, strict=True))


def arrow(path):
    return _rows_of_arrow(pa_csv.read_csv(path))


def _rows_of_arrow(table):
    return [table.column_names, *(list(row.values()) for row in table.to_pylist())]


def duck(path):
    table = duckdb.sql(f"FROM read_csv('{path}', header = true, all_varchar = true)")
    return [table.columns, *table.fetchall()]


def polars(path):
    table = pl.read_csv(path, infer_schema=False)
    return [table.columns, *table.rows()]


def pandas(path):
    table = pd.read_csv(path, dtype=str)
    return [list(table.columns), *table.to_numpy().tolist()]


def spark(session, *, multiline):
    def read(path):
        table = session.read.option("header", True).option("multiLine", multiline).csv(str(path))
        return [table.columns, *map(list, table.collect())]

    return read


def outcome(read, path):
    """What a reader does with a file."""
    try:
        rows = read(path)
    except (DataError, csv.Error, pa.ArrowException, duckdb.Error, pl.exceptions.PolarsError):
        return REFUSED
    except pd.errors.ParserError:
        return REFUSED
    header, *cells = [[str(cell) for cell in row] for row in rows]
    others = [cell for row in cells for cell in (*row[:1], *row[2:])]
    if any("L" in cell for cell in (*header, *others)):
        return MOVED
    if [row[1:2] for row in cells] == [[f"L{i}"] for i in range(1, 41)]:
        return WHOLE
    return f"{len(cells)} rows of 40"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--without", choices=["spark"])
    readers = {"labeldp": ours, "Python, strict": python, "pyarrow": arrow, "DuckDB": duck}
    readers |= {"Polars": polars, "pandas": pandas}
    if parser.parse_args().without is None:
        from pyspark.sql import SparkSession

        session = SparkSession.builder.master("local[1]").getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        readers["Spark"] = spark(session, multiline=False)
        readers["Spark, multiLine"] = spark(session, multiline=True)
    print(f"| | {' | '.join(readers)} |")
    print("|---" * (len(readers) + 1) + "|")
    with tempfile.TemporaryDirectory() as name:
        for number, (title, changes) in enumerate(FAULTS.items()):
            path = Path(name) / f"{number}.csv"
            path.write_text(text_of(changes), encoding="utf-8", newline="")
            cells = [outcome(read, path) for read in readers.values()]
            print(f"| {title} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
