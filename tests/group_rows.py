"""The integers of two artifacts by group; rows for them stand with the runtime's tests."""

import itertools

from labeldp_verify.forms import GroupColumn, GroupedWindows, Groups

from labeldp_compile.rounding.windows import randomized_response
from runtime.tests.group_files import AGES, CODES, ROWS, TABLE_OF_CELL, WORKS, tables
from verifier.tests.files import DOMAIN, file_of
from verifier.tests.integers import some_windows

__all__ = ["AGES", "CODES", "GROUPED", "GROUPS", "NAMED", "ROWS", "WORKS", "tables"]
AGE = GroupColumn("age", bands=(18.0, 25.0, 65.0))
WORK = GroupColumn("work", ("private", "", "é"))
CODE = GroupColumn("code", (7, -2, 2**53 + 1))
GROUPS = Groups((AGE, WORK, CODE), TABLE_OF_CELL, 4)
WINDOWS = tuple(itertools.islice(itertools.cycle(some_windows(40)), GROUPS.tables))
GROUPED = file_of(DOMAIN, GroupedWindows(GROUPS, WINDOWS))
# Every table is a constant, its own number.
NAMED = file_of(
    DOMAIN,
    GroupedWindows(
        GROUPS,
        tuple(randomized_response([float(i)], [0] * 4, 1, 8) for i in range(GROUPS.tables)),
    ),
)
