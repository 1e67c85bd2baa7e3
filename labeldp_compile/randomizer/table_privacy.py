"""The exact privacy of a table randomizer."""

from __future__ import annotations

from fractions import Fraction

from labeldp_compile.randomizer.table import TableRandomizer


def table_ratio(randomizer: TableRandomizer) -> Fraction:
    """max over outputs of the largest count of any label over the smallest."""
    columns = zip(*randomizer.counts, strict=True)
    return max(Fraction(max(column), min(column)) for column in columns)
