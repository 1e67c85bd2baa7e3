"""Ids: the same values from every container, exact duplicates, refusals of what is no id."""

import uuid
from array import array
from collections import Counter, OrderedDict, UserList, deque
from collections.abc import Sequence

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labeldp_runtime import DuplicateIdError, IdError
from labeldp_runtime import ids as ids_module
from labeldp_runtime.columns import read_ids
from labeldp_runtime.ids import MAX_ID_BYTES, ByteIds, refuse_duplicates

from runtime.tests.label_containers import NUMBERS, TEXTS

NAMES = ["", "a", "Zoë", "user-0000000017", "日本" * 9, "x" * 40, "user-0000000018"]
BLOBS = [name.encode() + b"\0" for name in NAMES]
UUIDS = [uuid.UUID(int=i * 2**90 + 5) for i in range(4)]
SIXTEEN = [value.bytes for value in UUIDS]


def listed(ids):
    return [ids.value(row) for row in range(len(ids))]


NO_IDS = ("numpy dtype('bool')", "bytearray", "polars Int128")


def test_integers_and_text_are_the_same_ids_in_every_container():
    declared = [it for it in (*NUMBERS, *TEXTS) if "raw" not in it.name and it.name not in NO_IDS]
    for container in declared:
        for kind in (int, str):
            names = [value for value in container.values if type(value) is kind]
            names = [name for name in names if kind is int or len(name) < MAX_ID_BYTES]
            if names:
                found = listed(read_ids(container.make(names)))
                assert found == [n.encode() if kind is str else n for n in names], container.name


def test_bytes_and_uuids_from_every_container():
    columns = [
        BLOBS,
        pa.array(BLOBS, pa.binary()),
        pa.array([b"out", *BLOBS, b"out"], pa.large_binary())[1:-1],
        pa.array(BLOBS, pa.binary_view()),
        pl.Series(BLOBS),
        pd.Series(BLOBS),
    ]
    fixed = [
        UUIDS,
        SIXTEEN,
        np.array(SIXTEEN, "V16"),
        pa.array([b"x" * 16, *SIXTEEN], pa.binary(16))[1:],
        pa.array(SIXTEEN, pa.uuid()),
        pd.Series(UUIDS),
        pl.Series(SIXTEEN),
    ]
    for expected, group in ((BLOBS, columns), (SIXTEEN, fixed)):
        for column in group:
            ids = read_ids(column)
            assert isinstance(ids, ByteIds) and ids.kind == "binary"
            assert listed(ids) == expected


@pytest.mark.parametrize(
    "column",
    [
        [1, None],
        np.array(["a", None], object),
        np.array([1.0, np.nan]),
        np.ma.array([1, 2], mask=[False, True]),
        [pd.NA, 1],
        pa.array([1, None]),
        pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None])),
        pa.chunked_array([[1], [None]]),
        pd.Series([1, None], dtype="Int64"),
        pd.Series([1, np.nan]),
        pl.Series([1, None]),
    ],
)
def test_null_ids_are_refused(column):
    with pytest.raises(IdError, match=r"an id is null|not float64"):
        read_ids(column)


@pytest.mark.parametrize(
    "column",
    [
        [1.0, 2.0],
        [True, False],
        [1, "a"],
        [2**64],
        [-1, 2**63],
        ["\ud800"],
        ["x" * (MAX_ID_BYTES + 1)],
        [[1], [2]],
        "text",
        pytest.param(memoryview(b"bytes"), id="memoryview"),
        5,
        np.array([1.5]),
        np.array([b"a", b"b"]),
        np.array(["2024-01-01"], "datetime64[D]"),
        np.array(["\ud800"]),
        pa.array([1.5]),
        pa.array([1], pa.date32()),
        pd.Series([1.5]),
        pd.Series(pd.to_datetime(["2024-01-01"])),
        pl.Series([1.5]),
    ],
    ids=lambda column: f"{type(column).__module__}-{str(column)[:20]!r}",
)
def test_what_is_no_id_is_refused(column):
    with pytest.raises(IdError, match="id"):
        read_ids(column)


class Ordered(Sequence):
    """A sequence of one's own."""

    def __init__(self, values):
        self._values = list(values)

    def __len__(self):
        return len(self._values)

    def __getitem__(self, place):
        return self._values[place]


def test_ids_stand_in_every_container_that_has_an_order():
    names = {name: i for i, name in enumerate(NAMES)}
    for column in (
        names.keys(),
        OrderedDict(names).keys(),
        {i: name for name, i in names.items()}.values(),
        deque(NAMES),
        UserList(NAMES),
        Ordered(NAMES),
        pd.Index(NAMES),
    ):
        assert listed(read_ids(column)) == [name.encode() for name in NAMES]
    for column in (range(3), array("q", range(3)), array("B", range(3)), pd.RangeIndex(3)):
        assert listed(read_ids(column)) == [0, 1, 2]


@pytest.mark.parametrize(
    "column",
    [
        {"a", "b"},
        {"a": 1, "b": 2},
        {"a": 1, "b": 2}.items(),
        Counter("ab"),
        (name for name in "ab"),
        iter(["a", "b"]),
    ],
    ids=lambda column: type(column).__name__,
)
def test_containers_without_an_order_are_refused(column):
    with pytest.raises(IdError, match="in the order of the labels"):
        read_ids(column)


small = st.integers(0, 40)
columns_with_repeats = st.one_of(
    st.lists(small, max_size=30),
    st.lists(small.map(lambda i: 2**63 + i), max_size=30),
    st.lists(small.map(lambda i: "ü" * (i % 12) + str(i)), max_size=30),
    st.lists(small.map(bytes), max_size=30),
)


def agrees(column, check):
    twice = sorted({v for v in column if column.count(v) > 1}, key=column.index)
    if not twice:
        check(column)
        return
    with pytest.raises(DuplicateIdError, match="must name one label") as caught:
        check(column)
    rows = [int(word.replace(",", "")) for word in str(caught.value).split()[1:4:2]]
    assert rows[0] < rows[1] and column[rows[0]] == column[rows[1]]


@settings(deadline=None, derandomize=True, max_examples=100)
@given(columns_with_repeats)
def test_duplicates_are_found_exactly(column):
    agrees(column, lambda values: refuse_duplicates(read_ids(values)))


@pytest.mark.parametrize("bits", [0, 3])
@settings(deadline=None, derandomize=True, max_examples=100)
@given(column=columns_with_repeats)
def test_digests_that_collide_are_not_taken_for_duplicates(bits, column):
    keep = np.uint64(2**bits - 1)
    plain = ByteIds.digests
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ByteIds, "digests", lambda ids: plain(ids) & keep)
        patch.setattr(ids_module, "SUSPECTS", 2)
        agrees(column, lambda values: refuse_duplicates(read_ids(values)))
