"""Text tables of other delimiters, encodings and packings, and what is said of bad ones."""

import gzip
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from labeldp_verify.forms import CategoricalDomain, GroupColumn, IntegerDomain, RealDomain

from labeldp_compile.errors import DataError
from labeldp_compile.prior.histogram import count_labels
from labeldp_compile.tabular import csv_file, parquet_file
from labeldp_compile.tabular.csv_file import CsvFile
from labeldp_compile.tabular.formats import TextForm, read_delimiter, read_encoding
from labeldp_compile.tabular.reader import open_table, read_header
from labeldp_compile.tabular.writer import Rewriting

DOMAIN = IntegerDomain(0, 9)
MULTILINE = TextForm(multiline_cells=True)
WORDS = CategoricalDomain(("rot", "weiß", "?"), "?")


def opened(path, domain=DOMAIN, **form):
    return open_table(path, "y", domain, all_columns=True, form=TextForm(**form))


def message(path, domain=DOMAIN, **form):
    with pytest.raises(DataError) as caught:
        list(opened(path, domain, **form).batches())
    return str(caught.value)


@pytest.mark.parametrize("mark", [";", "\t", "|", " ", "^", "]", "\\", "#"])
def test_delimiters(tmp_path, mark):
    path = tmp_path / ("a.tsv" if mark == "\t" else "a.csv")
    path.write_text(mark.join("xyz") + "\n" + mark.join([f'"a{mark}b"', "3", ""]) + "\n")
    table = opened(path, **({} if mark == "\t" else {"delimiter": mark}))
    (batch,) = table.batches()
    assert batch.to_pydict() == {"x": [f"a{mark}b"], "y": ["3"], "z": [""]}


@pytest.mark.parametrize("text", ["", ",,", '"', "\n", "\0", "a", "7", "§", "\\n", "-", ".", "+"])
def test_what_is_no_delimiter(text):
    with pytest.raises(ValueError, match="one ASCII character"):
        read_delimiter(text)


@pytest.mark.parametrize("text", ["utf-16", "utf-7", "shift_jis", "gb18030", "hex", "x\0", "é", ""])
def test_encodings_in_which_a_label_could_eat_a_delimiter(text):
    with pytest.raises(ValueError, match="one byte per character"):
        read_encoding(text)


def test_every_encoding_is_one_byte_a_character_and_ascii():
    for name in ("latin-1", "windows-1252", "cp437", "koi8-r", "mac-roman", "iso-8859-15", "ascii"):
        encoding = read_encoding(name)
        assert bytes(range(128)).decode(encoding) == "".join(map(chr, range(128)))
        for byte in range(128, 256):
            text = bytes([byte, ord(",")]).decode(encoding, "surrogateescape")
            assert len(text) == 2 and text[1] == ","
    assert [read_delimiter(text) for text in ("\\t", "tab", "\t")] == ["\t"] * 3


def test_other_encodings_are_read_and_undecodable_labels_are_unknown(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("y,x\nrot,é\nweiß,ü\n".encode("cp1252") + b"\x81,a\n")
    table = opened(path, WORDS, encoding="cp1252")
    (batch,) = table.batches()
    assert batch.column("x").to_pylist() == ["é", "ü", "a"]
    assert count_labels(table)[0].tolist() == [1, 1, 1]
    path.write_bytes(b"y,x\nrot,\x81\n")
    assert "line 2: the column 'x' holds bytes that are not in cp1252" in message(
        path, WORDS, encoding="cp1252"
    )


@pytest.mark.parametrize("name", ["é", "größe", "é" * 40, "é" * 5000], ids=len)
@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_a_header_that_is_longer_in_utf8_takes_nothing_from_the_rows_below_it(
    tmp_path, name, ending
):
    path = tmp_path / f"a.{ending}"
    body = "".join(f"1{i},{i}\n" for i in range(9))
    data = f"{name},y\n{body}".encode("latin-1")
    path.write_bytes(gzip.compress(data) if ending == "csv.gz" else data)
    table = opened(path, encoding="latin-1")
    read = pa.Table.from_batches(table.batches())
    assert read.column(name).to_pylist() == [f"1{i}" for i in range(9)]
    assert read.column("y").to_pylist() == list("012345678")
    assert count_labels(table)[0].tolist() == [1] * 9 + [0]


@pytest.mark.parametrize("label", [b"1", b"\xff", b'"\n\n1"', b'"\xff\r\n"', b'""""', b""])
@pytest.mark.parametrize("block", [16, 1 << 22])
def test_a_bad_row_is_named_by_its_line_whatever_the_labels_are(tmp_path, cut, label, block):
    """A line end inside a label's quotes is no line, and its bytes are no fault."""
    cut(csv_file, BLOCK_BYTES=block)
    path = tmp_path / "a.csv"
    rows = b"x,y\n" + b"a,%b\r\n" % label * 20
    for bad, said in {
        b"caf\xe9,1\n": "line 23: the column 'x' holds bytes that are not UTF-8: if the file is in "
        "Latin-1, use --encoding latin-1",
        b"a\n": "line 23: has 1 cell, but the header has 2",
        b"a,1,b\n": "line 23: has 3 cells, but the header has 2",
    }.items():
        path.write_bytes(rows + b"\n" + bad + rows)
        assert said in message(path)
    path.write_bytes(b"caf\xe9,y\n1,2\n")
    assert "line 1: the header holds bytes that are not UTF-8" in message(path)


def test_only_columns_that_are_read_are_looked_at(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"x,y\n\xe9,1\n")
    table = open_table(path, "y", DOMAIN, all_columns=False)
    assert count_labels(table)[0].tolist()[:2] == [0, 1]


def test_gzip_is_streamed_and_a_cut_or_foreign_file_refused(tmp_path):
    path = tmp_path / "a.csv.gz"
    whole = gzip.compress(b"x,y\n" + b"a,3\n" * 100_000) + gzip.compress(b"a,4\n")
    path.write_bytes(whole)
    assert count_labels(opened(path))[0].tolist()[3:5] == [100_000, 1]
    for data in (whole[:-60], whole[:300] + b"\0" * 60 + whole[360:], b"x,y\na,3\n", whole + b"x"):
        path.write_bytes(data)
        assert "damaged" in message(path) or "is empty, or not a CSV file" in message(path)


def test_a_gzip_bomb_is_never_held(tmp_path, cut):
    """A row without an end is refused when it has the most bytes that a row may have."""
    cut(csv_file, MAX_ROW_BYTES=1 << 20, BLOCK_BYTES=1 << 18)
    path = tmp_path / "a.csv.gz"
    with gzip.open(path, "wb") as file:
        file.write(b"x,y\n")
        for _ in range(40):
            file.write(b"0" * (1 << 20))
    seen = unpacked(cut)
    assert "line 2: has more than 1,048,576 bytes" in message(path)
    assert sum(seen) < 5 << 20


def unpacked(cut):
    """The sizes of the pieces that are read from now on."""
    seen, read = [], csv_file.TextStream.read

    def noted(stream, size):
        data = read(stream, size)
        seen.append(len(data))
        return data

    cut(csv_file.TextStream, read=noted)
    return seen


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (b"a" * (1 << 25), "line 1: the header has more than 4,194,304 bytes"),
        (b'"' + b"a\n" * (1 << 24), "line 1: the header has more than 4,194,304 bytes"),
        (b"," * 100_000, "line 1: the header has more than 100,000 columns"),
        (b"a;" * (1 << 20), "has no column 'y'"),
    ],
)
def test_a_header_has_limits_before_it_is_read(tmp_path, cut, header, reason):
    """A few kilobytes of gzip."""
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(header + b",x\n1,2\n"))
    seen = unpacked(cut)
    assert reason in message(path)
    assert sum(seen) <= 16 << 20


@pytest.mark.parametrize("limit", ["MAX_FOOTER_BYTES", "MAX_COLUMNS"])
def test_a_parquet_footer_has_limits(tmp_path, cut, limit):
    cut(parquet_file, **{limit: 1})
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": [1], "y": [3]}), path)
    reason = (
        "has more than 1 columns" if limit == "MAX_COLUMNS" else "has a footer of more than 1 b"
    )
    assert reason in message(path)
    with pytest.raises(DataError, match=reason):
        read_header(path, "y")
    for data in (b"", b"PAR1", path.read_bytes()[:-9], b"\xff" * 40):
        path.write_bytes(data)
        assert "is empty, or not a Parquet file" in message(path)


TEXT = b'id,"y",note,"a b"\r\n007,1,1.50,1e3\n\n x ,2,"say ""hi""",\r'
TEXT += b'"1,5","3","5"" pipe",""\n+8,"4\n4",n,'


@pytest.mark.parametrize("block", [1, 7, 1 << 22])
def test_untouched_columns_keep_their_bytes(tmp_path, cut, block):
    cut(csv_file, BLOCK_BYTES=block)
    source, output = tmp_path / "a.csv", tmp_path / "b.csv"
    source.write_bytes(TEXT)
    private = iter(np.arange(5, 9))
    randomize = lambda labels: np.array([next(private) for _ in labels])  # noqa: E731
    assert Rewriting(opened(source), output, randomize).run() == 4
    expected = TEXT.replace(b"007,1,", b"007,5,").replace(b" x ,2,", b" x ,6,")
    assert output.read_bytes() == expected.replace(b'"3"', b"7").replace(b'"4\n4"', b"8")
    output.unlink()
    Rewriting(opened(source), output, lambda labels: np.full(len(labels), 9), add_as="z,z").run()
    assert pa_csv.read_csv(
        output, parse_options=pa_csv.ParseOptions(newlines_in_values=True)
    ).column_names == ["id", "y", "note", "a b", "z,z"]
    kept = output.read_bytes().replace(b',"z,z"', b"").replace(b",9\r", b"\r")
    assert kept.replace(b",9\n", b"\n").removesuffix(b",9") == TEXT


def read_by_arrow(text, names):
    """The rows of a text without its header, or None where Arrow refuses it."""
    try:
        table = pa_csv.read_csv(
            pa.BufferReader(text),
            read_options=pa_csv.ReadOptions(column_names=names, block_size=len(text) + 1),
            parse_options=pa_csv.ParseOptions(
                newlines_in_values=True, ignore_empty_lines=len(names) > 1
            ),
            convert_options=pa_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )
    except pa.ArrowException:
        return None
    return table.to_pylist()


@pytest.mark.slow
@pytest.mark.parametrize("block", [1, 5, 1 << 22])
@pytest.mark.parametrize("columns", [1, 3])
def test_cells_are_those_that_arrow_finds(tmp_path, cut, columns, block):
    """Rows of odd quotes, line ends and empty lines."""
    cut(csv_file, BLOCK_BYTES=block)
    generator = np.random.default_rng(7)
    cells = ["", "1", "ab", "é", '"a""b"', '"a,b"', '"a\r\nb"', '""', '""""', '"\n"']
    path, read, names = tmp_path / "a.csv", 0, ["x", "y", "z"][:columns]
    for number in range(600):
        end = ["\n", "\r\n", "\r"][generator.integers(3)]
        rows = [
            ",".join(generator.choice(cells, columns + int(generator.random() < 0.02)))
            for _ in range(4)
        ]
        text = (end.join(rows) + end * int(generator.integers(0, 3))).encode()
        path.write_bytes(",".join(names).encode() + end.encode() + text)
        expected = read_by_arrow(text, names)
        try:
            batches = list(CsvFile.open(path, MULTILINE).batches(names, []))
        except DataError:
            assert expected is None, text
            continue
        assert [row for batch in batches for row in batch.to_pylist()] == expected, (number, text)
        read += 1
    assert read > 500


def test_decimal_commas(tmp_path):
    """Numbers alone are read by it, and written; a point separates thousands, and is none."""
    source, domain = tmp_path / "a.csv", RealDomain(0.0, 2000.0, 2001)
    cells = ["51,5", '"7,"', " +1e1 ", "3.5", "1.234,5", "1,234,5", ""]
    source.write_text("id;g;y\n" + "".join(f"1,{i};2,{i};{c}\n" for i, c in enumerate(cells)))
    group = GroupColumn("g", bands=(2.35,))
    table = open_table(
        source,
        "y",
        domain,
        all_columns=True,
        id_column="id",
        group_columns=(group,),
        form=TextForm(";", decimal=","),
    )
    (batch,) = table.batches()
    assert table.labels_of(batch)[0].tolist() == [51.5, 7, 10, *[domain.min] * 4]
    assert table.groups_of(batch)["g"].tolist() == [2.0, 2.1, 2.2, 2.3, 2.4, 2.5, 2.6]
    assert batch["id"].to_pylist() == [f"1,{i}" for i in range(7)]
    for name, mark in (("o.csv", ";"), ("o.tsv", "\t")):
        output = tmp_path / name
        Rewriting(
            replace(table, id_column=None, group_columns=()),
            output,
            lambda y: y + 0.25,
            text=TextForm(";", decimal=","),
        ).run()
        rows = [line.split(mark) for line in output.read_text().splitlines()[1:]]
        assert [row[2] for row in rows][:4] == ["51,75", "7,25", "10,25", "0,25"]
        assert [row[:2] for row in rows] == [[f"1,{i}", f"2,{i}"] for i in range(7)]
