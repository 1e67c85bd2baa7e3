"""Places of cells by their lengths are those that a look at every byte finds, or none."""

import numpy as np
import pyarrow as pa
import pytest

from labeldp_compile.errors import DataError
from labeldp_compile.tabular.csv_lengths import places_of
from labeldp_compile.tabular.csv_rows import row_form
from labeldp_compile.tabular.reader import csv_batches, open_csv

CELLS = [b"", b"1", b"22", b"red", "ré".encode(), b'""', b'"a"', b'"b,c"', b'"d\ne"', b'"f""g"']
ODD = [*CELLS, b'h"i', b"\xff", b"\xf0\x9f", b"\n", b"\r\n", b"j\rk"]


def found(path, text, names):
    """Whether places were found; they are the right ones. None where no reader takes the text."""
    head = ",".join(names).encode() + b"\n"
    path.write_bytes(head + text)
    try:
        (batch,) = csv_batches(open_csv(path), names, ["y"])
    except (DataError, ValueError):
        return None
    places = places_of(text, batch, b",")
    if places is None:
        return False
    rows = row_form(",")
    for place in range(len(names)):
        spans = rows.spans(text, len(names), place)
        assert (places[:, place : place + 2] - (0, 1)).tolist() == spans.tolist()
    return True


def test_texts_of_all_kinds(tmp_path):
    generator = np.random.default_rng(0)
    counts = {True: 0, False: 0, None: 0}
    for _ in range(3_000):
        columns = int(generator.integers(1, 4))
        names = ["y", "a", "b"][:columns]
        # Few kinds of cells a column, so that many columns are of one kind.
        kinds = [generator.choice(len(ODD), 2) for _ in names]
        if generator.random() < 0.7:
            kinds = [kind % len(CELLS) for kind in kinds]
        rows = [
            b",".join(ODD[kind[generator.integers(0, 2)]] for kind in kinds)
            for _ in range(generator.integers(1, 6))
        ]
        ends = [b"\n"] * len(rows)
        if generator.random() < 0.1:
            ends[generator.integers(0, len(rows))] = [b"", b"\n\n", b"\r\n"][
                generator.integers(0, 3)
            ]
        text = b"".join(row + end for row, end in zip(rows, ends, strict=True))
        counts[found(tmp_path / "t.csv", text, names)] += 1
    assert min(counts[True], counts[False]) > 300, counts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"1,a,b\n2,c,d\n", True),
        (b'1,"a","b"\n2,"","d,\ne"\n', True),
        (b'"1",a,"b"\n"2",c,""\n', True),
        (b'1,"a",b\n2,c,d\n', False),  # quotes around some cells of a column
        (b'1,"a",b\n2,"c""",d\n', False),
        (b'1,"a",b\n2,c,""""\n', False),  # two missing, and two too many
        (b'1,a"b,c\n', False),
        (b"1,a,b\n\n2,c,d\n", False),
        (b"\n\xc3x\xff,a,b\n", False),  # an empty line, and bytes that become more
        (b"1,a,b\n\n\xf0\x9f,c,d\n", False),
        (b"\xff,a,b\n", False),
        (b"1,a,b\r\n", False),
        (b"1,a,b", False),
    ],
)
def test_what_is_certain(tmp_path, text, expected):
    assert found(tmp_path / "t.csv", text, ["y", "a", "b"]) is expected


def test_no_rows():
    batch = pa.RecordBatch.from_arrays([pa.array([], pa.string())], names=["y"])
    assert places_of(b"", batch, b",") is None
