"""One label of a file never decides an exit code, a message or how another is read."""

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from labeldp_verify.forms import CategoricalDomain, IntegerDomain, RealDomain

from labeldp_compile.tabular import csv_file
from labeldp_compile.tabular.columns import label_array
from labeldp_compile.tabular.csv_file import CsvFile
from labeldp_compile.tabular.formats import TextForm
from labeldp_compile.tabular.reader import open_table
from tests.cli.test_cli import labeldp
from tests.fixtures.compiled import CATEGORICAL_SPEC, INTEGER_SPEC, compile_text

MULTILINE = TextForm(multiline_cells=True)
WHOLE, REAL = IntegerDomain(-(2**53), 2**53, default=-1), RealDomain(0.0, 1.0, 2, default=0.5)
NUMBERS = {
    "7": 7,
    " \t7\v": 7,
    "+5": 5,
    "-5": -5,
    "007": 7,
    "1e3": 1000,
    "1E+3": 1000,
    "25e-1": 2.5,
    "2.5": 2.5,
    "4.": 4,
    ".5": 0.5,
    "9007199254740991.4": Decimal("9007199254740991.4"),
    "0." + "0" * 50 + "7e51": 7,
    "1" + "0" * 50 + "e-50": 1,
    "1e" + "0" * 50 + "1": 10,
    "1e-" + "9" * 50: 0,
    "1e" + "9" * 50: math.inf,
    "-1e400": -math.inf,
    "inf": math.inf,
    "-Infinity": -math.inf,
    "TRUE": 1,
    "false": 0,
}
NO_NUMBERS = ["", " ", "nan", "NaN", "NA", "0x10", "1_000", "1,5", "٣", "１", "+-5", "--5", "1e"]
NO_NUMBERS += ["e5", ".", "1 2", "1\u00a0", "\ufeff1", "1\0", "inf1", "+nan", "yes", "x" * 9]


def read(domain, cells):
    return label_array(domain, "y", pa.array(cells, pa.string())).tolist()


@pytest.mark.parametrize("cell", NUMBERS, ids=lambda cell: cell[:9])
def test_numbers_in_cells(cell):
    number = NUMBERS[cell]
    whole = round(number) if math.isfinite(number) else (2**63 - 1 if number > 0 else -(2**63))
    assert read(WHOLE, [cell, "x", cell]) == [whole, -1, whole]
    assert read(CategoricalDomain((0, -1), -1), [cell]) == [whole]
    assert read(REAL, [cell, "x"]) == [float(number), 0.5]


@pytest.mark.parametrize("cell", NO_NUMBERS, ids=ascii)
def test_no_numbers_in_cells(cell):
    assert read(WHOLE, [cell, "3"]) == [-1, 3]
    assert read(REAL, [cell, "3"]) == [0.5, 3]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    directory = tmp_path_factory.mktemp("cells")
    for name, text in (("numbers", INTEGER_SPEC), ("text", CATEGORICAL_SPEC)):
        (directory / f"{name}.onnx").write_bytes(compile_text(text).model)
        prior = next(line for line in text.splitlines() if line.startswith("prior:"))
        data = "prior: {kind: public, data: t.csv}"
        # Of this mechanism there is a file whatever the public prior is.
        spec = text.replace("rr_on_bins", "randomized_response").replace(prior, data)
        (directory / f"{name}.yaml").write_text(spec, encoding="utf-8")
    labeldp("keygen", directory / "k.key")
    return directory


HOSTILE = [b"unknown", b"\xff\xfe", b"2.5", b"", b'"a,""b"""', b'"two\nlines"', b"2020-01-01"]
HOSTILE += [b"\0", b"9" * 5000, b"x" * (9 << 19), b'"' + b"\n" * (9 << 19) + b'"']


def table_with(path, label, row, rows, usual):
    """A CSV file; in one row another label than the usual one."""
    lines = [b"id,y,text", *(b"%d,%s,ab" % (i, usual) for i in range(rows))]
    lines[1 + row] = b"%d,%s,ab" % (row, label)
    path.write_bytes(b"\n".join(lines) + b"\n")


@pytest.mark.parametrize("name", ["numbers", "text"])
@pytest.mark.parametrize("row", [1, 2_999], ids=["first block", "late row"])
def test_one_label_of_a_csv_file(place, name, row, cut):
    cut(csv_file, BLOCK_BYTES=1 << 13)

    def outcome(label):
        table_with(place / "t.csv", label, row, 3_000, b"3" if name == "numbers" else b"red")
        key = ["--key", place / "k.key", "--id-column", "id", "--overwrite", "--column", "y"]
        output = place / "out.parquet"
        result = labeldp("randomize", place / f"{name}.onnx", place / "t.csv", "-o", output, *key)
        table = pq.read_table(output)
        others = np.delete(table["y"].to_numpy(zero_copy_only=False), row)
        return result.exit_code, result.output, table.schema, others.tolist()

    expected = outcome(b"1")
    assert expected[0] == 0 and "3,000 rows" in expected[1]
    for label in HOSTILE:
        assert outcome(label) == expected


@pytest.mark.parametrize("name", ["numbers", "text"])
def test_one_label_of_a_csv_file_that_is_counted(place, name):
    outcomes = []
    for label in (b"3", *HOSTILE):
        table_with(place / "t.csv", label, 1, 1000, b"3")
        result = labeldp("compile", place / f"{name}.yaml", "-o", place / "b", "--overwrite")
        outcomes.append((result.exit_code, result.stderr.count("\n", 0, result.stderr.index(":"))))
        assert "labeldp:" not in result.stderr  # the summary is of the public prior
    assert set(outcomes) == {(0, outcomes[0][1])}


def rows_of(path, block, cut):
    cut(csv_file, BLOCK_BYTES=block)
    file = CsvFile.open(path, MULTILINE)
    batches = list(file.batches(file.names, ["y"]))
    return [row for batch in batches for row in zip(*batch.to_pydict().values(), strict=True)]


@pytest.mark.parametrize("index", ["int8", "uint8", "int16", "uint32", "int64", "int32"])
@pytest.mark.parametrize("text", [pa.string(), pa.large_string()], ids=str)
@pytest.mark.parametrize("columns", [1, 40])
def test_one_entry_of_a_dictionary_that_is_no_utf8(tmp_path, index, text, columns):
    """Arrow checks the entries where it narrows indices, and only there."""
    entries = pa.array([b"a", b"\xff\xfe", b"b"]).cast(
        pa.binary() if text == pa.string() else pa.large_binary()
    )
    entries = pa.Array.from_buffers(text, len(entries), entries.buffers())
    labels = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None, 2], index), entries)
    times = pa.array(range(5), pa.timestamp("us", "UTC"))
    others = {f"c{i}": pa.array(list("vwxyz")).dictionary_encode() for i in range(columns)}
    table = pa.table({"t": times, **others, "y": labels})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=2)
    domain = CategoricalDomain(("a", "b", "?"), "?")
    opened = open_table(tmp_path / "t.parquet", "y", domain, all_columns=True)
    batches = list(opened.batches())
    found = [label for batch in batches for (part,) in [opened.labels_of(batch)] for label in part]
    assert found == ["a", "\ufffd\ufffd", "b", "?", "b"]
    read = pa.Table.from_batches(batches).drop_columns("y")
    assert read.equals(table.drop_columns("y")) and opened.schema.field("t").type == times.type
