"""Rows for artifacts with tables by group, and the table of each."""

import itertools
import math

from runtime.tests.helpers import file

BANDS, LISTED_WORKS, LISTED_CODES = (18.0, 25.0, 65.0), ("private", "", "é"), (7, -2, 2**53 + 1)
OTHER = 4  # the table of all that is not listed; the 36 cells share four others
TABLE_OF_CELL = tuple(min(i, i * 7 % 5) for i in range(36))
AGES = [None, float("nan"), -0.0, 17.999, 18.0, 24.0, 64.5, 65.0, float("inf"), float("-inf")]
WORKS = [None, "private", "", "é", "e\u0301", "Private", "private ", "other", "\x7f"]
CODES = [None, 7, -2, 2**53 + 1, 2**53, 0, -1, 2**31 + 7, 2**32 + 7, 2**63 - 1, -(2**63)]
ROWS = list(itertools.product(AGES, WORKS, CODES))


def model(name):
    """The bytes of one of the artifacts by group."""
    return file(f"groups, {name}")


def grouped():
    """Windows of four kinds, by the columns age, work and code."""
    return model("three columns")


def named():
    """Every table is a constant, its own number."""
    return model("three columns, constants")


def tables(rows):
    """The table of each row (age, work, code), null or not; ``named`` answers with its number."""
    return [float(_table(*row)) for row in rows]


def _table(age, work, code):
    if age is None or math.isnan(age) or work not in LISTED_WORKS or code not in LISTED_CODES:
        return OTHER
    band = sum(age >= edge for edge in BANDS)
    return TABLE_OF_CELL[(band * 3 + LISTED_WORKS.index(work)) * 3 + LISTED_CODES.index(code)]
