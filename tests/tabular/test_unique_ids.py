"""Ids that come twice in a table are found exactly, in memory and in files."""

import os
import stat
import tempfile
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labeldp_runtime import DuplicateIdError
from labeldp_runtime.columns import read_ids
from labeldp_runtime.ids import IntegerIds

from labeldp_compile.tabular import selection
from labeldp_compile.tabular.selection import UniqueIds
from runtime.tests.test_ids import agrees, columns_with_repeats

SIZES = {"HELD_ROWS": 5, "_COMPARED_ROWS": 3}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("ids")


def check_parts(values, size, folder):
    parts = [read_ids(values[i : i + size]) for i in range(0, len(values), size)]
    with closing(UniqueIds(folder)) as unique:
        for part in parts:
            unique.add(part)
        unique.check(lambda: parts)


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("on_disk", [False, True])
@settings(deadline=None, derandomize=True, max_examples=100)
@given(column=columns_with_repeats, size=st.integers(1, 7))
def test_duplicates_in_parts_are_found_exactly(folder, small, on_disk, column, size):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (SIZES if small else {}).items():
            patch.setattr(selection, name, value)
        agrees(column, lambda values: check_parts(values, size, folder if on_disk else None))


@pytest.mark.parametrize("order", ["shuffled", "increasing", "decreasing", "two by turns"])
@pytest.mark.parametrize("pair", [None, (0, 9_999), (4_999, 5_000), (7_000, 7_001)])
def test_one_pair_among_many(folder, cut, order, pair):
    cut(selection, HELD_ROWS=700, _COMPARED_ROWS=2_000)
    ids = np.arange(10_000) * 3 - 4_000
    if order == "shuffled":
        ids = np.random.default_rng(0).permutation(ids)
    elif order == "decreasing":
        ids = ids[::-1].copy()
    elif order == "two by turns":
        ids = ids.reshape(2, -1).T.reshape(-1).copy()
    if pair is None:
        return check_parts(ids, 512, folder)
    ids[pair[1]] = ids[pair[0]]
    with pytest.raises(DuplicateIdError, match=rf"rows {pair[0]:,} and {pair[1]:,} "):
        check_parts(ids, 512, folder)
    return None


def test_the_file_has_no_name_and_one_reader(folder, cut, monkeypatch):
    opened = []

    def temporary(**options):
        opened.append(plain(**options))
        return opened[-1]

    plain = tempfile.TemporaryFile
    cut(selection, HELD_ROWS=5)
    monkeypatch.setattr(tempfile, "TemporaryFile", temporary)
    with closing(UniqueIds(folder)) as unique:
        unique.add(IntegerIds(np.arange(100)))
        (file,) = opened
        there = os.fstat(file.fileno())
        assert not list(folder.iterdir())
        assert (stat.S_IMODE(there.st_mode), there.st_nlink) == (0o600, 0)
        assert there.st_dev == folder.stat().st_dev
        unique.check(list)
    assert file.closed
