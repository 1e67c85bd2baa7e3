"""Which names are one user, in every kind of column."""

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from labeldp_trainer import DataError
from labeldp_trainer.data.labels import Cells, owner_codes, taken

E_ACUTE, E_AND_ACUTE = "\u00e9", "e\u0301"
DAY, TIME = datetime.datetime(2020, 2, 3), datetime.time(4, 5)


def codes(column):
    found = owner_codes(column, "train", "user")
    assert found.dtype == np.int64 and found.shape == (len(column),)
    return found.tolist()


def cells(*values):
    return Cells(pa.array(values, pa.large_string()))


@pytest.mark.parametrize(
    "column",
    [
        np.array([0.0, 3.0, -0.0]),
        pa.array([0.0, 3.0, -0.0]),
        pa.array([0.0, 3.0, -0.0], pa.float32()).dictionary_encode(),
        pa.chunked_array([[0.0, 3.0], [-0.0]]),
        pa.array([Decimal("0.00"), Decimal("3.00"), Decimal("-0.00")]),
        pa.array([E_ACUTE, "x", E_AND_ACUTE]),
        pa.array([E_ACUTE, "x", E_AND_ACUTE], pa.large_string()).dictionary_encode(),
        np.array([E_ACUTE, "x", E_AND_ACUTE]),
        pa.array(["7", "8", "7.0"]),
        np.array([" 7", "8", "07"]),
        cells("-0", "x", "0.0"),
        cells("7", "8", "7e0"),
        cells(" Ann", "Bob", "Ann\t"),
        np.array(["2020-02-03", "2021-02-03", "2020-02-03"], "M8[D]"),
        pa.array([DAY, DAY + datetime.timedelta(1), DAY], pa.timestamp("ns", "UTC")),
        pa.array([TIME, datetime.time(5), TIME]),
        pa.array([b"\xff", b"a", b"\xff"]),
        pa.array([True, False, True]),
        np.array([2**64 - 1, 3, 2**64 - 1], np.uint64),
    ],
)
def test_one_user_however_written(column):
    first, other, again = codes(column)
    assert first == again and {first, other} == {0, 1}
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks)
    if isinstance(column, pa.Array):
        turned = pa.concat_arrays([column[i : i + 1] for i in (2, 1, 0)])
    else:
        turned = taken(column, np.array([2, 1, 0]))
    assert codes(turned) == [first, other, again]


def test_users_are_numbered_by_their_names_as_text():
    assert codes(np.array([10, 9, 2])) == [0, 2, 1]
    assert codes(pa.array([10, 9, 2])) == codes(pa.array(["10", "9", "2"])) == [0, 2, 1]
    assert codes(np.array([10.5, 9.5, 2.0])) == [0, 2, 1]


@pytest.mark.parametrize(
    "column",
    [
        np.array([1.0, np.nan]),
        np.array(["2020-01-01", "NaT"], "M8[s]"),
        np.array(["a", ""]),
        pa.array([1, None]),
        pa.array([1.0, float("nan")]),
        pa.array(["a", None]).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None])),
        pa.array(["a", " \t"]),
        pa.array([DAY, None]),
        pa.nulls(2),
        cells("a", ""),
        cells("a", "  "),
    ],
)
def test_a_row_without_a_user_is_refused(column):
    with pytest.raises(DataError, match="train: 'user': a row names no person"):
        codes(column)
