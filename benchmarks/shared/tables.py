"""The real tables of the studies: files, label, and how columns are to be taken."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.fixtures.learners import FEW, features_of


@dataclass(frozen=True)
class RealTable:
    """One file, or one to train on and one to test on.

    ``codes`` are numbers that are categories; numbers of at most ``few`` values are taken as both.
    """

    files: tuple[str, ...]
    label: str
    left_out: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    few: int = FEW

    def read(self, data):
        """All rows as one table, and how many of them may be trained on; None: any."""
        tables = [pq.read_table(data / name) for name in self.files]
        whole = pa.concat_tables(tables, promote_options="permissive")
        return whole, tables[0].num_rows if len(tables) > 1 else None

    def features(self, whole):
        """[n, p] of all rows."""
        return features_of(whole, (self.label, *self.left_out), self.codes, self.few)


CENSUS = RealTable(
    ("census_kdd_train.parquet", "census_kdd_test.parquet"),
    "weeks_worked_in_year",
    left_out=("instance_weight", "income_over_50k"),
    codes=("detailed_industry_code", "detailed_occupation_code", "own_business_or_self_employed",
           "veterans_benefits", "year"),
)  # fmt: skip
ADULT = RealTable(
    ("adult_train.parquet", "adult_test.parquet"),
    "hours_per_week",
    left_out=("fnlwgt", "income_over_50k"),
)
HOUSING = RealTable(("california_housing.parquet",), "median_house_value")
VISITS = RealTable(("randhie.parquet",), "mdvis")
DIGITS = RealTable(("digits.parquet",), "target", few=0)


def split_rows(count, trainable, generator, most):
    """Which rows to train on, at most ``most`` of a file of its own, and which to test on."""
    if trainable is None:
        order = generator.permutation(count)
        train, test = np.split(order, [count * 4 // 5])
        return train, test
    return generator.permutation(trainable)[:most], np.arange(trainable, count)
