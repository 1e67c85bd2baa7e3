"""Columns of every library: the same labels mean the same, and the same kind comes back."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from labeldp_runtime import LabelError, Randomizer
from labeldp_runtime.columns import read_labels
from pandas.tests.extension.decimal import DecimalArray

from runtime.tests.helpers import file, values

# At ε = 40 the private label is the label's own bin, but for a chance below 1e-16.
NUMBERS = Randomizer(file("integers, ε = 40"))
REALS = Randomizer(file("reals, ε = 40"))
TEXT = Randomizer(file("text, ε = 40"))
BINS = NUMBERS(list(range(10)))
NUMBER_COLUMNS = [
    [3, None, 99],
    np.array([3.0, np.nan, 99], np.float32),
    pa.array([3, None, 99]),
    pa.chunked_array([pa.array([3, None], pa.int16()), pa.array([], pa.int16()), [99]]),
    pd.Series([3, np.nan, 99], index=[5, 6, 6], name="y"),
    pl.Series("y", [3, None, 99], dtype=pl.Int128),
]


def same_kind(before, after):
    assert len(after) == len(before)
    if isinstance(before, list | tuple | np.ndarray):
        assert type(after) is np.ndarray
    elif isinstance(before, pd.Series):
        assert type(after) is pd.Series
        assert after.index.equals(before.index) and after.name == before.name
        assert not after.isna().any()
    elif isinstance(before, pl.Series):
        assert type(after) is pl.Series and after.name == before.name
        assert after.null_count() == 0
    elif isinstance(before, pa.ChunkedArray):
        assert type(after) is pa.ChunkedArray  # whose chunks are no matter of the labels
        assert after.num_chunks == min(len(before), 1)
    else:
        assert isinstance(after, pa.Array) and after.null_count == 0


@pytest.mark.parametrize("column", NUMBER_COLUMNS, ids=lambda c: f"{type(c).__module__}")
def test_numbers(column):
    for randomizer in (NUMBERS, REALS):
        private = randomizer(column)
        same_kind(column, private)
        assert values(private) == values(randomizer(np.array([3, 0, 9])))


TEXT_COLUMNS = [
    np.array(["red", "green", "mauve"]),
    pa.array(["red", None, "mauve"]).dictionary_encode(),
    pd.Series(["red", None, "mauve"], dtype="category"),
    pl.Series("y", ["red", None, "mauve"], dtype=pl.Enum(["mauve", "red"])),
]


@pytest.mark.parametrize("column", TEXT_COLUMNS, ids=lambda c: f"{type(c).__module__}")
def test_text(column):
    private = TEXT(column)
    same_kind(column, private)
    assert values(private) == ["red", "green", "green"]  # the default is green
    if isinstance(column, pd.Series):  # whatever pandas took the labels for
        assert private.dtype == pd.Series(["red"]).dtype


@pytest.mark.parametrize(
    "column",
    [
        np.array([(1, 2)] * 3, dtype="i4,i4"),
        pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])]),
        pd.Series(DecimalArray([Decimal(3)])),
        pl.Series([3]).ext.to(pl.Extension("any.vendor", pl.Int64)),
    ],
    ids=lambda column: type(column).__module__,
)
def test_a_type_that_is_not_known_is_an_error(column):
    for randomizer in (NUMBERS, TEXT):
        with pytest.raises(LabelError, match="is not known here: convert"):
            randomizer(column)


NOT_A_NUMBER = float("nan")
FRAMES = {
    "pandas": lambda labels: pd.DataFrame([{"y": y} for y in labels])["y"],
    "pandas, nullable": lambda labels: pd.DataFrame([{"y": y} for y in labels]).convert_dtypes()[
        "y"
    ],
    "pandas, sparse": lambda labels: pd.Series(pd.arrays.SparseArray(labels)),
    "Polars": lambda labels: pl.DataFrame([{"y": y} for y in labels], strict=False)["y"],
    "Arrow": lambda labels: pa.Table.from_pylist([{"y": y} for y in labels])["y"],
    "numpy": np.array,
    "list": list,
}


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize(
    ("artifact", "labels"),
    [
        (TEXT, [NOT_A_NUMBER] * 3),
        (TEXT, [3, 4, 5]),
        (TEXT, ["mauve"] * 3),
        (NUMBERS, ["n/a"] * 3),
        (NUMBERS, [NOT_A_NUMBER] * 3),
        (NUMBERS, [datetime.date(2024, 1, 1)] * 3),
        (NUMBERS, [[1], [2]]),
    ],
)
def test_an_inferred_type_is_no_declared_one(frame, artifact, labels):
    """What a library takes the labels for decides neither an error nor a type."""
    if frame == "numpy" and labels == [[1], [2]]:
        return  # that is an array of two dimensions
    private = artifact(FRAMES[frame](labels))
    default = "green" if artifact is TEXT else BINS[0]
    assert values(private) == [default] * len(labels)
    usual = artifact(FRAMES[frame](["red"] * 3 if artifact is TEXT else [1, 2, 3]))
    assert getattr(private, "dtype", type(private)) == getattr(usual, "dtype", type(usual))


def test_the_given_column_is_not_changed():
    for column in (pa.array([3, None, 99]), pd.Series([3, None, 99], dtype="Int64")):
        before = column.to_pandas() if isinstance(column, pa.Array) else column.copy()
        read_labels(column, "int64", 0)
        after = column.to_pandas() if isinstance(column, pa.Array) else column
        pd.testing.assert_series_equal(before, after)
