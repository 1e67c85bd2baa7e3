"""Who a person is: one rule for randomize and evaluate, in every kind of column.

``trainer/tests/test_owners.py`` asks the same of the trainer.
"""

import datetime
import json
import struct
from decimal import Decimal

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from labeldp_runtime.elements import number_in

from labeldp_compile.errors import DataError
from labeldp_compile.tabular.persons import _text_name, person_names, persons_of
from tests.cli.test_cli import labeldp
from tests.evaluate.test_release import UNITS
from tests.persons.made import drawn, spec

QUIET = struct.unpack("d", struct.pack("Q", 0x7FF8000000000001))[0]
EXACT = str(Decimal.from_float(0.1))
NOON = datetime.datetime(2020, 2, 3, 12)
ENCODED = {
    "as it is": lambda values: values,
    "dictionary": lambda values: values.dictionary_encode(),
    "runs": lambda values: pa.RunEndEncodedArray.from_arrays(
        pa.array(range(1, len(values) + 1), pa.int32()), values
    ),
    "chunks": lambda values: pa.chunked_array([values.slice(0, 1), values.slice(1)]),
}


@pytest.mark.parametrize("encoded", ENCODED.values(), ids=ENCODED)
@pytest.mark.parametrize(
    "same",
    [
        [
            pa.array([0, 17, -3, 17], pa.int16()),
            pa.array([0.0, 17.0, -3.0, 17.0]),
            pa.array([-0.0, 17.0, -3.0, 17.0], pa.float32()),
            pa.array([Decimal("-0.00"), Decimal("17.00"), Decimal(-3), Decimal(17)]),
            pa.array(["0", "17", "-3", "17.0"]),
            pa.array(["-0", " 017", "-3e0", "+17"], pa.large_string()),
        ],
        [
            pa.array([1.5, 0.1, 1e300]),
            pa.array(["1.50", EXACT, str(int(1e300))]),
        ],
        [pa.array([True, False]), pa.array([1, 0], pa.uint8()), pa.array(["true", "0"])],
        [pa.array([2**64 - 1], pa.uint64()), pa.array([str(2**64 - 1)])],
        [pa.array(["\u00e9", "Ann"]), pa.array(["e\u0301 ", "\tAnn"], pa.large_string())],
        [pa.array([b"a", b"\xff"]), pa.array([b"a", b"\xff"], pa.binary(1))],
        [
            pa.array([NOON], pa.timestamp(unit, zone))
            for unit in ("s", "ns")
            for zone in (None, "UTC")
        ],
        [
            pa.array([NOON.date()], pa.date32()).cast(kind)
            for kind in (pa.date32(), pa.date64(), pa.timestamp("ms"))
        ],
    ],
)
def test_one_person_has_one_name_in_every_container(same, encoded, tmp_path):
    names = [person_names(encoded(values), "t", "who").to_pylist() for values in same]
    assert names == [names[0]] * len(same)
    digests = [persons_of(tmp_path, "who", encoded(values)).tolist() for values in same]
    assert digests == [digests[0]] * len(same)


@pytest.mark.parametrize(
    "values",
    [
        pa.array([2**53, 2**53 + 1]),
        pa.array([0.1, 0.1 + 2**-56]),
        pa.array(["0.1", EXACT]),
        pa.array(["Ann", "ann"]),
        pa.array(["1", "1x"]),
        pa.array(["1e400", "1e401"]),
        pa.array(["a", "a\0"]),
    ],
)
def test_other_persons_have_other_names(values):
    assert len(set(person_names(values, "t", "who").to_pylist())) == 2


@pytest.mark.parametrize("encoded", ENCODED.values(), ids=ENCODED)
@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, None]),
        pa.array([1.0, float("nan")]),
        pa.array([1.0, QUIET]),
        pa.array(["a", None]),
        pa.array(["a", " \t"]),
        pa.array([b"a", b""]),
        pa.array([NOON, None]),
        pa.nulls(2),
    ],
)
def test_a_row_without_a_person_is_refused(values, encoded, tmp_path):
    for read in (person_names, lambda values, s, column: persons_of(tmp_path, column, values)):
        with pytest.raises(DataError, match="'who': a row names no person"):
            read(encoded(values), "t", "who")


def test_text_that_is_no_text_names_persons_by_its_bytes():
    values = pa.Array.from_buffers(
        pa.string(),
        2,
        [None, pa.py_buffer(struct.pack("3i", 0, 1, 2)), pa.py_buffer(b"\xff\xfe")],
    )
    assert person_names(values, "t", "who").to_pylist() == [b"\xff", b"\xfe"]


TEXTS = ["12ab-3", "1e5", "1e5x", "1e-5-", "0x10", "f1", "false", "False1", "inf", "-inf", "1."]
TEXTS += [".5", "+1", "true", "t", "i9", "infinity", "Infinity8", "007", "1_000", "12e", "é", "a b"]
TEXTS += ["-", "1-2", "9" * 30]


def test_text_is_its_own_name_unless_it_is_a_number():
    """Most names are found without a look at each: the same names as with one."""
    names = person_names(pa.array(TEXTS), "t", "who").to_pylist()
    assert names == [_text_name(text.encode()) for text in TEXTS]
    assert all(
        name == text.encode()
        for name, text in zip(names, TEXTS, strict=True)
        if number_in(text.encode()) is None
    )


ZEROS = pa.array([0.0, -0.0] * 20)


@pytest.fixture
def place(tmp_path):
    (tmp_path / "s.yaml").write_text(spec(2))
    assert labeldp("compile", tmp_path / "s.yaml", "-o", tmp_path).exit_code == 0
    return tmp_path


@pytest.mark.parametrize(
    "who", [ZEROS, pa.array(["7", "07"] * 20), pa.array(["é", "e\u0301"] * 20)]
)
def test_metrics_of_one_person_have_its_noise(place, who):
    """0.0 and −0.0 were two persons, and 40 rows had the sensitivity of 20."""
    labels = pa.array([0, 1] * 20)
    pq.write_table(
        pa.table({"returned": labels, "prediction": labels, "who": who}), place / "t.parquet"
    )
    words = [place / "s.yaml", place / "t.parquet", place / "t.parquet", "--release", "1", "--json"]
    words += ["--metric", "absolute error", "--person", "who"]
    done = labeldp("evaluate", *words, "--model", "prediction")
    assert done.exit_code == 0, done.stderr
    found = [json.loads(done.stdout)["exact"]["sensitivity"]]
    one = pa.table({"returned": labels, "prediction": labels, "who": pa.array([0] * 40)})
    pq.write_table(one, place / "t.parquet")
    found.append(
        json.loads(labeldp("evaluate", *words, "--model", "prediction").stdout)["exact"][
            "sensitivity"
        ]
    )
    assert found[0] == found[1] >= 20 * UNITS


def test_labels_of_one_person_are_bounded_in_every_format(place):
    """A person of a Parquet file is the same in an earlier CSV file, however written."""
    pa_csv.write_csv(pa.table({"customer": ["07", " 8"], "returned": [0, 0]}), place / "e.csv")
    table = {"customer": pa.array([7.0, 7.0, 8.0]), "returned": [0, 0, 0]}
    pq.write_table(pa.table(table), place / "t.parquet")
    words = ["randomize", place / "orders.onnx", place / "t.parquet", "-o", place / "o.parquet"]
    words += ["--earlier", place / "e.csv"]
    done = labeldp(*words)
    assert done.exit_code == 2 and "1 of 2 persons" in done.stderr
    assert labeldp(*words, "--beyond", "null").exit_code == 0
    assert [label is None for label in drawn(place / "o.parquet")] == [False, True, False]
