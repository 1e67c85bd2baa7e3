"""Which rows are beyond the bound: held against a count by hand, and never decided by a label."""

import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from labeldp_verify.forms import IntegerDomain

from labeldp_compile.errors import DataError
from labeldp_compile.tabular import persons
from labeldp_compile.tabular.formats import PLAIN
from labeldp_compile.tabular.persons import PersonBound, PersonCounts
from labeldp_compile.tabular.reader import open_table

DOMAIN = IntegerDomain(0, 2)


def by_hand(customers, most, earlier=(), order=None):
    """Whether each row is within the bound, counted one by one."""
    seen, within = Counter(earlier), [False] * len(customers)
    rows = range(len(customers))
    for i in rows if order is None else sorted(rows, key=lambda i: (order[i], i)):
        seen[customers[i]] += 1
        within[i] = seen[customers[i]] <= most
    return within


def kept(bound, table):
    """What the bound says of all rows of a table, batch by batch."""
    bound.measure(table)
    found = [bound.within(file, batch) for file in table.files for batch in file.batches()]
    return np.concatenate(found).tolist()


def opened(path):
    return open_table(path, "returned", DOMAIN, all_columns=True)


@pytest.mark.parametrize("form", ["parquet", "csv", "parts"])
@pytest.mark.parametrize("ordered", [False, True])
def test_random_tables(form, ordered, tmp_path, monkeypatch):
    generator = random.Random(f"{form} {ordered}")
    monkeypatch.setattr(persons, "_HELD_ROWS", 7)
    for number in range(12):
        names = [generator.choice(["é", "b", "", "17", "x" * 40]) or "c" for _ in range(60)]
        if number % 2:
            names = [generator.randrange(-3, 9) for _ in range(60)]
        order = [generator.randrange(20) for _ in range(60)]
        earlier = [generator.choice(names) for _ in range(generator.randrange(9))]
        rows = pa.table({"customer": names, "day": order, "returned": [1] * 60})
        path = tmp_path / (f"t{number}" if form == "parts" else f"t{number}.{form}")
        if form == "csv":
            pa_csv.write_csv(rows, path)
        elif form == "parts":
            path.mkdir()
            for i in range(3):
                pq.write_table(rows.slice(20 * i, 20), path / f"{i}.parquet")
        else:
            pq.write_table(rows, path, row_group_size=9)
        counts = PersonCounts()
        if earlier:
            pa_csv.write_csv(pa.table({"customer": earlier}), tmp_path / "earlier.csv")
            counts.seed(tmp_path / "earlier.csv", "customer", PLAIN)
        by = {"order": "day"} if ordered else {}
        bound = PersonBound("customer", 4, beyond="null", earlier=counts, **by)
        expected = by_hand(names, 4, earlier, order if ordered else None)
        assert kept(bound, opened(path)) == expected
        assert bound.extra == expected.count(False)
        if bound.extra:
            refusing = PersonBound("customer", 4, earlier=counts)
            with pytest.raises(DataError, match=f"{bound.extra} rows too many"):
                refusing.measure(opened(path))


def test_days_without_an_order_are_refused(tmp_path):
    rows = pa.table({"customer": [1, 1, 1], "day": [3, None, 1], "returned": [0, 0, 0]})
    pq.write_table(rows, tmp_path / "t.parquet")
    bound = PersonBound("customer", 2, beyond="drop", order="day")
    with pytest.raises(DataError, match="'day' is empty in a row"):
        bound.measure(opened(tmp_path / "t.parquet"))
    kept_all = PersonBound("customer", 3, beyond="drop", order="day")
    assert kept(kept_all, opened(tmp_path / "t.parquet")) == [True] * 3  # nobody asked for an order


def test_text_of_numbers_is_ordered_as_numbers_and_dates_as_dates(tmp_path):
    for days, expected in [
        (["10", "9", "100"], [True, True, False]),
        (["2026-02-01", "2025-12-31", "2026-01-01"], [False, True, True]),
    ]:
        rows = pa.table({"customer": ["a"] * 3, "day": days, "returned": [0, 0, 0]})
        pa_csv.write_csv(rows, tmp_path / "t.csv")
        bound = PersonBound("customer", 2, beyond="drop", order="day")
        assert kept(bound, opened(tmp_path / "t.csv")) == expected
