"""Which names are one user, in every kind of column."""

import datetime

import numpy as np
import pyarrow as pa
from labeldp_trainer.data.labels import Cells, owner_codes

E_ACUTE, E_AND_ACUTE = "\u00e9", "e\u0301"
DAY, TIME = datetime.datetime(2020, 2, 3), datetime.time(4, 5)


def codes(column):
    found = owner_codes(column, "train", "user")
    assert found.dtype == np.int64 and found.shape == (len(column),)
    return found.tolist()


def cells(*values):
    return Cells(pa.array(values, pa.large_string()))


def test_users_are_numbered_by_their_names_as_text():
    assert codes(np.array([10, 9, 2])) == [0, 2, 1]
    assert codes(pa.array([10, 9, 2])) == codes(pa.array(["10", "9", "2"])) == [0, 2, 1]
    assert codes(np.array([10.5, 9.5, 2.0])) == [0, 2, 1]
