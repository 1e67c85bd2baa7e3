"""``labeldp randomize`` enforces the bound before it draws: over parts, days and folders."""

import json
from itertools import product

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from labeldp_compile.cli import randomize as randomize_module
from tests.cli.test_cli import labeldp
from tests.fixtures.compiled import compile_text
from tests.persons.made import drawn, orders, spec, table

CUSTOMERS = [1, 2, 1, 1, 2, 3]


@pytest.fixture
def place(tmp_path):
    """A folder with the artifact ``a.onnx``, two labels a person."""
    (tmp_path / "a.onnx").write_bytes(compile_text(spec(2)).model)
    assert labeldp("keygen", tmp_path / "k.key").exit_code == 0
    return tmp_path


def run(place, source, output, *options, artifact="a.onnx"):
    where = place / artifact, place / source, "-o", place / output
    return labeldp("randomize", *where, "--overwrite", *options)


def test_a_table_beyond_the_bound_is_refused_before_anything_is_drawn(place, monkeypatch):
    def never(*_, **__):
        raise AssertionError("a label was drawn")

    table(place / "t.parquet", CUSTOMERS)
    monkeypatch.setattr(randomize_module, "draw_function", lambda *_: never)
    result = run(place, "t.parquet", "o.parquet")
    assert result.exit_code == 2 and not (place / "o.parquet").exists()
    assert "1 of 3 persons in 'customer' have more than 2 rows (the most: 3)" in result.stderr
    assert "Nothing was drawn" in result.stderr and result.stdout == ""


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_rows_beyond_it_are_kept_without_a_label_or_dropped(place, form):
    days = [5, 1, 4, 3, 1, 1]
    table(place / "t.parquet", CUSTOMERS, day=days)
    if form == "csv":
        pa_csv.write_csv(pq.read_table(place / "t.parquet"), place / "t.csv")
    for options, rows, labelled in [
        (["--beyond", "null"], [0, 1, 2, 3, 4, 5], [0, 1, 2, 4, 5]),
        (["--beyond", "null", "--order-column", "day"], [0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5]),
        (["--beyond", "drop", "--order-column", "day"], [1, 2, 3, 4, 5], [1, 2, 3, 4, 5]),
    ]:
        result = run(place, f"t.{form}", f"o.{form}", *options)
        assert result.exit_code == 0, result.stderr
        out = place / f"o.{form}"
        found = pq.read_table(out) if form == "parquet" else pa_csv.read_csv(out)
        assert found["customer"].to_pylist() == [CUSTOMERS[i] for i in rows]
        assert found["day"].to_pylist() == [days[i] for i in rows]
        has = [value is not None for value in found["returned"].to_pylist()]
        assert has == [i in labelled for i in rows]
        assert "1 rows beyond that" in result.stderr and "no label decided which" in result.stderr


def test_no_label_decides_which_rows_are_beyond_the_bound(place):
    layouts = set()
    for labels in [*product([0, 2], repeat=3), (None, None, None), (9, None, -1)]:
        table(place / "t.parquet", [1, 1, 1], list(labels))
        assert run(place, "t.parquet", "o.parquet", "--beyond", "null").exit_code == 0
        layouts.add(tuple(value is None for value in drawn(place / "o.parquet")))
        refused = run(place, "t.parquet", "p.parquet")
        layouts.add((refused.exit_code, refused.stderr))
    assert len(layouts) == 2  # one mask, and one message


def test_rows_count_over_parts_of_a_folder(place):
    (place / "t").mkdir()
    for i in range(3):
        table(place / "t" / f"{i}.parquet", [1, i + 2])
    assert run(place, "t", "o").exit_code == 2 and not (place / "o").exists()
    assert run(place, "t", "o", "--beyond", "null").exit_code == 0
    assert [drawn(place / "o" / f"{i}.parquet")[0] is None for i in range(3)] == [0, 0, 1]


def test_an_earlier_output_is_not_replaced(place):
    """Its labels were drawn, and count."""
    table(place / "t.parquet", [1, 2])
    assert run(place, "t.parquet", "o.parquet").exit_code == 0
    before = (place / "o.parquet").read_bytes()
    result = run(place, "t.parquet", "o.parquet", "--earlier", place / "o.parquet")
    assert result.exit_code == 2 and "is the input: write to another file" in result.stderr
    (place / "days").mkdir()
    (place / "o.parquet").rename(place / "days" / "o.parquet")
    result = run(place, "t.parquet", "days/o.parquet", "--earlier", place / "days")
    assert result.exit_code == 2 and "is the input: write to another file" in result.stderr
    assert (place / "days" / "o.parquet").read_bytes() == before


def test_rows_of_earlier_tables_count(place):
    for day in range(3):
        table(place / f"{day}.parquet", [1, day + 5], day=[day, day])
    first = run(place, "0.parquet", "o0.parquet")
    assert first.exit_code == 0 and "at most 2 labels for each person" in first.stderr
    assert run(place, "1.parquet", "o1.parquet", "--earlier", place / "o0.parquet").exit_code == 0
    both = ["--earlier", place / "o0.parquet", "--earlier", place / "o1.parquet"]
    result = run(place, "2.parquet", "o2.parquet", *both)
    assert result.exit_code == 2 and "with those of earlier tables" in result.stderr
    assert run(place, "2.parquet", "o2.parquet", *both, "--beyond", "null").exit_code == 0
    assert [value is None for value in drawn(place / "o2.parquet")] == [True, False]


def test_rows_count_over_days_that_are_appended(place):
    keyed = ["--key", place / "k.key", "--id-column", "order"]
    for day in range(4):
        table(place / "t.parquet", [1, 2 + day], order=[2 * day, 2 * day + 1])
        options = ["--append", "--part", f"{day}", *keyed, "--beyond", "null"]
        where = place / "a.onnx", place / "t.parquet", "-o", place / "o"
        for _ in range(2):  # a repeated day stays as it is
            result = labeldp("randomize", *where, *options)
            assert result.exit_code == 0, result.stderr
    has = [drawn(place / "o" / f"{day}.parquet")[0] is not None for day in range(4)]
    assert has == [True, True, False, False]
    texts = [path.read_bytes() for path in (place / "o").iterdir() if path.suffix == ".json"]
    assert texts and all(b"customer" not in text for text in texts)  # persons are not listed
    table(place / "t.parquet", [1, 99], order=[50, 51])
    refused = labeldp("randomize", *where, "--append", "--part", "9", *keyed)
    assert refused.exit_code == 2 and not (place / "o" / "9.parquet").exists()


def test_labels_per_user_is_enforced_with_a_column_of_persons(place):
    """``labels_per_user: 2`` with 30 rows in the table: randomize returned 0 all the same."""
    (place / "u.onnx").write_bytes(compile_text(orders(labels_per_user=2)).model)
    table(place / "t.parquet", [7] * 30)
    result = run(place, "t.parquet", "o.parquet", "--person-column", "customer", artifact="u.onnx")
    assert result.exit_code == 2 and "more than 2 rows (the most: 30)" in result.stderr
    without = run(place, "t.parquet", "o.parquet", artifact="u.onnx")
    assert without.exit_code == 0 and "warning: give --person-column. " in without.stderr


def test_the_label_of_the_spec_decides_nothing_where_another_column_is_randomized(place):
    rows = {"customer": [1] * 3, "returned": [1, 0, 0], "copy": [1, 0, 0]}
    pq.write_table(pa.table(rows), place / "t.parquet")
    for options in (["--person-column"], ["--beyond", "drop", "--order-column"]):
        result = run(place, "t.parquet", "o.parquet", "--column", "copy", *options, "returned")
        assert result.exit_code == 2 and "'returned' is the label" in result.stderr
        assert not (place / "o.parquet").exists()


def booked(place):
    shown = labeldp("ledger", "export", place / "l.ledger", "--csv", place / "e.csv", "--overwrite")
    assert shown.exit_code == 0, shown.stderr
    rows = pa_csv.read_csv(place / "e.csv").to_pylist()
    return [(row["rows"], row["persons"]) for row in rows if row["kind"] == "draw"]


def test_other_rows_under_the_name_of_an_earlier_output_add_up_in_the_ledger(place):
    """A night's output may replace the last one, or have its name in another folder."""
    assert labeldp("ledger", "init", place / "l.ledger").exit_code == 0
    for ids in ([0, 1], [2, 3], [3, 2], [0, 1]):
        table(place / "t.parquet", [1, 1], order=ids)
        keyed = ["--key", place / "k.key", "--id-column", "order"]
        booking = ["--ledger", place / "l.ledger", "--data-set", "shop"]
        done = run(place, "t.parquet", "o.parquet", *keyed, *booking)
        assert done.exit_code == 0, done.stderr
    assert "booked already; nothing was added" in done.stderr
    assert booked(place) == [(2, 1), (2, 1)]
    shown = json.loads(labeldp("ledger", "show", place / "l.ledger", "--json").stdout)
    assert shown["totals"]["shop"]["person"] == 2.0 and shown["totals"]["shop"]["row"] == 0.5
