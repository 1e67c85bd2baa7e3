"""A CSV file that readers may cut into rows in two ways is refused; no label leaves its cell."""

import gzip
import io
from random import Random

import pyarrow as pa
import pytest
from labeldp_verify.forms import IntegerDomain

from labeldp_compile.errors import DataError
from labeldp_compile.tabular import csv_file
from labeldp_compile.tabular.formats import TextForm
from labeldp_compile.tabular.reader import open_table, read_columns
from tests.fuzz.run_csv import try_csv

HEADER = "id,y,z,w\n"
LOST = {  # the text after the header; the line, and what is wrong in it
    '1,4,"k,a\n2,3,k,a\n3,7,k,a\n': (2, "no quote closes it"),
    '1,4,k,a\n2,"3,k,a\n3,7,k,a\n': (3, "no quote closes it"),
    '1,4,"k,a\n2,3,k,a\n3,7,k"x,a\n': (2, "text follows the quote"),
    '1,4,"k"x,a\n': (2, "text follows the quote"),
    '1,4,"k" ,a\n': (2, "text follows the quote"),
    '1,4,"k\\"k",a\n': (2, "text follows the quote"),
    '1,4,k,a\n2,3,5" pipe,a\n': (3, "does not begin with one"),
    '1,4, "k\n2,3,k",a\n': (2, "does not begin with one"),
    '1,4,k,a\n2,3" ,k,a\n': (3, "does not begin with one"),
    '1,4,k,"a\n2,3,k,a\n3,7,k,a"\n': (2, "may hide rows"),
    '1,4,k,a\n2,3,"k,a\n3,7,k",a\n': (3, "may hide rows"),
    '1,4,k,"\r\n2,3,k,a"\n': (2, "may hide rows"),
    '1,4,k,"\r2,3,k,a"\n': (2, "may hide rows"),
    '1,4,"k,a\n2,3,k\nk",a\n': (2, "may hide rows"),  # a text with a line end
    '1,4,"k,a\n\n2,3,k",a\n': (2, "may hide rows"),
}
FINE = ['1,4,"two\nlines",a\n', '1,4,"a, b\nc",a\n', '1,4,k,"a\n,,\nb"\n', '"1\n",4,k,a\n']


def message(path, labels=("y",), **form):
    with pytest.raises(DataError) as caught:
        list(read_columns(path, ["id"], TextForm(**form), labels))
    return str(caught.value)


@pytest.mark.parametrize("block", [1, 7, 1 << 22])
@pytest.mark.parametrize("text", LOST, ids=ascii)
def test_the_line_of_a_malformed_row_is_named(tmp_path, cut, text, block):
    """Wherever blocks end, and whatever is wrong below it."""
    cut(csv_file, BLOCK_BYTES=block)
    line, reason = LOST[text]
    for suffix, mark in (("csv", ","), ("csv.gz", ","), ("tsv", "\t"), ("csv", ";")):
        path = tmp_path / f"t.{suffix}"
        data = (HEADER + text).replace(",", mark).encode()
        for below in (b"", b"5\n", b'6,7,k"\n'):
            if below and "closes" in reason:
                continue
            path.write_bytes(gzip.compress(data + below) if suffix == "csv.gz" else data + below)
            said = message(path, delimiter=";" if mark == ";" else None)
            assert f"line {line}: " in said and reason in said


@pytest.mark.parametrize("text", FINE, ids=ascii)
def test_line_ends_in_a_cell_are_said_once_unless_they_are_meant(tmp_path, capsys, text):
    path = tmp_path / "t.csv"
    path.write_text(HEADER + "0,1,k,a\n" + text * 9)
    table = open_table(path, "y", IntegerDomain(0, 9), all_columns=True)
    rows = [sum(batch.num_rows for batch in table.batches()) for _ in range(2)]
    said = capsys.readouterr().err
    assert rows == [10, 10] and said.count("\n") == 1
    assert "lines 3, 4, 5, 6, 7 and 4 more: quoted cells contain line ends" in said
    path.write_text(HEADER + '0,1,"k\n2,3,k,a",a\n' + text * 9)
    form = TextForm(multiline_cells=True)
    assert len(pa.Table.from_batches(read_columns(path, ["id"], form, ["y"]))) == 10
    assert not capsys.readouterr().err
    assert "line 2: quoted cells contain line ends" in message(path)


@pytest.mark.parametrize(
    "text",
    [
        'a,b,c,y,d,e\na,"b,c,4,d,e\na",b,"c,5,d,e\na,b,c,6,d","e\na,b,c,7,d",e\n',
        'a,y,b,c,d\n"a,4,b",c,"d\nf,5,g",h,i\n',
        'a,b,c,y\na,"b,c,4\nd",e,"f,5\ng,h,i,6"\n',
        'a,y,b,c\n"a,5,b","c\r\n\r\na",4,"b,c\r\n"\n',
    ],
    ids=ascii,
)
def test_rows_that_quotes_join_across_the_label_are_refused(tmp_path, text):
    """Their cells fit the header; the label's cell, which decides nothing, may be among them."""
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    with pytest.raises(DataError, match="line 2: quoted cells contain line ends"):
        list(open_table(path, "y", IntegerDomain(0, 9), all_columns=True).batches())


@pytest.mark.parametrize("label", ['"\n"', '"1,2,k,a\n3,4,k,a"', '"""\r"', '"\n,,,\n"'], ids=ascii)
def test_line_ends_in_a_label_decide_nothing(tmp_path, capsys, label):
    """Of a label that is read, and of one that is not."""
    path = tmp_path / "t.csv"
    path.write_text(HEADER + f"1,{label},k,a\n" + "2,3,k,a\n")
    for columns in (["y"], ["id"]):
        assert len(pa.Table.from_batches(read_columns(path, columns, TextForm(), ["y"]))) == 2
    assert not capsys.readouterr().err


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ('id,y,"z\n1,4,k\n2,3,k"\n', "the header has a cell with line ends"),
        ('id,y,"z\n"\n', "the header has a cell with line ends"),
        ('id,y,"z\n1,4,k\n', "no quote closes it"),
        ('id,y,z"\n1,4,k\n', "does not begin with one"),
        ('"id";"y";"z"\n1;4;k\n', "use --delimiter"),
    ],
)
def test_headers(tmp_path, header, reason):
    path = tmp_path / "t.csv"
    path.write_text(header)
    said = message(path)
    assert "line 1: " in said and reason in said and "k" not in said.split("line 1")[1][:9]


def test_a_byte_order_mark_is_no_part_of_the_first_row(tmp_path):
    """Also where the header has fewer bytes than the mark."""
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xef\xbb\xbfy\n3\n4\n")
    (batch,) = read_columns(path, ["y"], TextForm(), ["y"])
    assert batch["y"].to_pylist() == ["3", "4"]


def test_the_first_fault_is_named_wherever_blocks_end(tmp_path, cut):
    """Labels have bytes, and bytes end blocks."""
    path = tmp_path / "t.csv"
    faults = [b"\xe9,1,k,a\n", b"1,2,k\n", b'1,2,"k\n,,,\n",a\n', b'1,2,k"\n', b"1,2,k,\xe9\n"]
    for first in faults:
        for second in faults:
            path.write_bytes(HEADER.encode() + first + b"1,2,k,a\n" + second)
            said = set()
            for block in (1, 9, 16, 1 << 22):
                cut(csv_file, BLOCK_BYTES=block)
                with pytest.raises(DataError) as caught:
                    list(open_table(path, "y", IntegerDomain(0, 9), all_columns=True).batches())
                said.add(str(caught.value))
            assert len(said) == 1 and "line 2: " in said.pop()


@pytest.mark.parametrize("number", range(4))
def test_random_files(tmp_path, number, monkeypatch):
    monkeypatch.setattr("sys.stderr", io.StringIO())
    became = [try_csv(Random(f"{number}-{part}"), tmp_path) for part in range(25)]
    assert set(became) == {"accepted", "refused"}
