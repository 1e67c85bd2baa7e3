"""Artifacts with tables by group that several hosts are tested with, and rows for them."""

import itertools

from labeldp_verify.forms import GroupColumn, GroupedWindows, Groups

from labeldp_compile.rounding.randomized_response import randomized_response
from tests.group_helpers import some_windows, write_grouped

LABELS = (10, 11, 12, 13)
AGE = GroupColumn("age", bands=(18.0, 25.0, 65.0))
WORK = GroupColumn("work", ("private", "", "é"))
CODE = GroupColumn("code", (7, -2, 2**53 + 1))
# Bands, text and integers: 36 cells, which share four tables.
GROUPS = Groups((AGE, WORK, CODE), tuple(min(i, i * 7 % 5) for i in range(36)), 4)
WINDOWS = tuple(itertools.islice(itertools.cycle(some_windows(40)), GROUPS.tables))
GROUPED = write_grouped(GroupedWindows(GROUPS, WINDOWS))
# Every table is a constant, its own number.
NAMED = write_grouped(
    GroupedWindows(
        GROUPS,
        tuple(randomized_response([float(i)], [0] * 4, 1, 8) for i in range(GROUPS.tables)),
    )
)
AGES = [None, float("nan"), -0.0, 17.999, 18.0, 24.0, 64.5, 65.0, float("inf"), float("-inf")]
WORKS = [None, "private", "", "é", "e\u0301", "Private", "private ", "other", "\x7f"]
CODES = [None, 7, -2, 2**53 + 1, 2**53, 0, -1, 2**31 + 7, 2**32 + 7, 2**63 - 1, -(2**63)]
ROWS = list(itertools.product(AGES, WORKS, CODES))


def tables(rows):
    """The table of each row (age, work, code), as the certificate's map says, null or not."""
    lacking = [column.outside()[0] for column in GROUPS.columns]
    filled = (
        tuple(other if value is None else value for value, other in zip(row, lacking, strict=True))
        for row in rows
    )
    return [float(GROUPS.table(row)) for row in filled]
