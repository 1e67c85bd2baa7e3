"""Thirty nights with kills at random moments: each label is drawn once, booked, and right."""

import datetime as dt
import json
import os
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from labeldp_compile.ledger.book import create_ledger, read_contents
from labeldp_compile.ledger.entries import Entry
from tests.cli.forked import Forks
from tests.cli.test_cli import labeldp
from tests.fixtures.compiled import compile_text
from tests.fixtures.specs import spec

LONG = bool(os.environ.get("LABELDP_LONG"))
REPETITIONS, NIGHTS, WAIT, ORDERS = (20, 30, 5, 20) if LONG else (1, 3, 1, 20)
"""Days of orders, days in which an order may come back, and orders of a day."""
RETURNED = spec(name="returned", column="returned", values=["no", "yes"])
START = dt.datetime(2024, 1, 1)  # as in a table, without a zone


@pytest.fixture(scope="module")
def forks(tmp_path_factory):
    found = Forks(tmp_path_factory.mktemp("forks"))
    yield found
    found.close()


@pytest.fixture
def place(tmp_path):
    (tmp_path / "a.onnx").write_bytes(compile_text(RETURNED).model)
    create_ledger(tmp_path / "budget.ledger")
    assert labeldp("keygen", tmp_path / "k.key").exit_code == 0
    return tmp_path


class Shop:
    """Orders of some days; each may come back within some days, and is "no" until then."""

    def __init__(self, generator):
        count = NIGHTS * ORDERS
        self.days = np.repeat(np.arange(NIGHTS), ORDERS)
        self.returned = self.days + generator.integers(0, WAIT, count)  # on which day
        self.comes_back = generator.random(count) < 0.4
        self.order = generator.permutation(count)

    def write(self, path, night):
        """The orders that can no longer come back on a night, as a query selects them."""
        rows = self.order[self.days[self.order] + WAIT <= night]
        known = self.comes_back[rows] & (self.returned[rows] <= night)
        table = pa.table(
            {
                "order_id": [f"order-{row}" for row in rows],
                "ordered_at": [START + dt.timedelta(days=int(d)) for d in self.days[rows]],
                "returned": np.where(known, "yes", "no"),
            }
        )
        (pa_csv.write_csv if path.suffix == ".csv" else pq.write_table)(table, path)


def read(path):
    """The private labels of a file by their ids."""
    table = pa_csv.read_csv(path) if path.suffix == ".csv" else pq.read_table(path)
    return list(zip(*(table[name].to_pylist() for name in ("order_id", "returned")), strict=True))


def drawn(folder, kind):
    return [row for path in sorted(folder.glob(f"*{kind}")) for row in read(path)]


def require_booked(place, folder, kind):
    """Nothing is visible that is not in the ledger and in the manifest."""
    parts = {path.name: len(read(path)) for path in folder.glob(f"*{kind}")}
    entries: list[Entry] = read_contents(place / "budget.ledger").entries
    booked = {e.facts["part"]: e.facts["rows"] for e in entries if e.kind == "draw"}
    assert all(booked.get(name, -1) >= rows for name, rows in parts.items())
    if parts:
        listed = json.loads((folder / "_labeldp.json").read_text(encoding="utf-8"))["parts"]
        assert parts.keys() <= listed.keys()


@pytest.mark.slow
@pytest.mark.parametrize("repetition", range(REPETITIONS))
def test_killed_nights_draw_each_label_once(place, forks, repetition):
    """With LABELDP_LONG=1, thirty nights twenty times."""
    generator, kind = np.random.default_rng(repetition), (".parquet", ".csv")[repetition % 2]
    shop, table, folder = Shop(generator), place / f"orders{kind}", place / "private"
    last = NIGHTS + WAIT - 1
    keyed = ("--key", place / "k.key", "--id-column", "order_id", "--context", "returned")
    seconds, kills = 0.0, 0
    for night in range(WAIT, last + 1):  # before, the query selects no row
        shop.write(table, night)
        day = (START + dt.timedelta(days=night)).date()
        command = ["randomize", place / "a.onnx", table, "-o", folder, "--append", *keyed]
        command += ["--part", day, "--quiet"]
        command += ["--ledger", place / "budget.ledger", "--data-set", "shop", "--note", "night"]
        for _ in range(int(generator.integers(1, 4)) if seconds else 0):
            done = forks(*command, dies_after=generator.uniform(0.1, 1.0) * seconds)
            assert done.was_killed or done.code == 0, done.said
            kills += done.was_killed
            require_booked(place, folder, kind)
        done = forks(*command)
        assert done.code == 0, done.said
        seconds = seconds or done.seconds
        before = {path: path.read_bytes() for path in folder.iterdir()}
        if night % 5 == 1:  # a night that is repeated although it was done
            shop.write(table, last)
            assert forks(*command).code == 0
        assert {path: path.read_bytes() for path in folder.iterdir()} == before
    assert kills >= NIGHTS // 3
    rows = drawn(folder, kind)
    assert max(Counter(name for name, _ in rows).values()) == 1
    once = place / f"once{kind}"
    shop.write(table, last)
    command = ["randomize", place / "a.onnx", table, "-o", once, *keyed]
    assert forks(*command).code == 0
    assert sorted(rows) == sorted(read(once)) and len(rows) == NIGHTS * ORDERS
    contents = read_contents(place / "budget.ledger")
    assert contents.drawn["shop"].rows == len(rows) and contents.totals("shop").row == 1
    parts = [e.facts["part"] for e in contents.entries if e.kind == "draw"]
    assert len(parts) == len(set(parts)) == NIGHTS
    if LONG:
        print(  # noqa: T201  # what the long run is for
            f"\n{kind} {repetition}: {kills} kills in {NIGHTS} nights, {len(rows)} labels"
        )


@pytest.mark.parametrize(
    ("dies_at", "booked", "is_listed"),
    [
        ("-labeldp_compile.tabular.provenance:PartsFolder.put", 0, False),
        ("labeldp_compile.tabular.provenance:PartsFolder.put", 0, True),
        ("labeldp_compile.ledger.draw_account:DrawAccount.book", 20, True),
    ],
)
@pytest.mark.parametrize("next_night", [0, 1])
def test_a_kill_between_two_steps_is_made_good(
    place, forks, dies_at, booked, is_listed, next_night
):
    shop, folder = Shop(np.random.default_rng(0)), place / "private"
    table, ledger = place / "orders.parquet", place / "budget.ledger"
    command = ["randomize", place / "a.onnx", table, "-o", folder, "--append", "--ledger", ledger]
    command += ["--data-set", "shop", "--key", place / "k.key", "--id-column", "order_id"]

    def night(day, **dies):
        shop.write(table, day)
        date = (START + dt.timedelta(days=day)).date()
        return forks(*command, "--part", date, **dies)

    assert night(WAIT, dies_at=dies_at).was_killed
    assert not list(folder.glob("*.parquet"))
    drawn_rows = read_contents(ledger).drawn
    assert (drawn_rows["shop"].rows if drawn_rows else 0) == booked
    partial = next(folder.glob(".*labeldp-partial"))
    left = partial.read_bytes()
    assert not partial.stat().st_mode & 0o077  # only the owner may see what is not booked
    # A part that is booked gets its name from the run of any night.
    done = night(WAIT + next_night)
    assert done.code == 0
    assert ("was complete when a run was killed" in done.said) == bool(booked)
    assert ("was not booked when a run was killed" in done.said) == (is_listed and not booked)
    first = folder / f"{(START + dt.timedelta(days=WAIT)).date()}.parquet"
    if booked or not next_night:
        assert first.read_bytes() == left
    assert bool(list(folder.glob(".*labeldp-partial"))) == (not is_listed and next_night == 1)
    assert read_contents(ledger).drawn["shop"].rows == len(drawn(folder, ".parquet"))
