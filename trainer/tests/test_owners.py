"""Which names are one user, in every kind of column."""

import datetime

import numpy as np
import pyarrow as pa
from labeldp_trainer.data.labels import Cells
from labeldp_trainer.data.users import owner_digests

E_ACUTE, E_AND_ACUTE = "\u00e9", "e\u0301"
DAY, TIME = datetime.datetime(2020, 2, 3), datetime.time(4, 5)


def codes(column):
    found = owner_digests(column, "train", "user")
    assert found.shape == (len(column),)
    return found.tolist()


def cells(*values):
    return Cells(pa.array(values, pa.large_string()))


def test_users_are_told_apart_by_their_names_as_text():
    found = codes(np.array([10, 9, 2]))
    assert len({*found}) == 3
    assert codes(pa.array([10, 9, 2])) == codes(pa.array(["10", "9", "2"])) == found
    assert codes(np.array([10.5, 9.5, 2.0]))[2] == found[2]
