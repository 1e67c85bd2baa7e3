"""A night that is killed between two steps: each label is drawn once, booked, and right."""

import datetime as dt
import os
import pkgutil
import signal
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from labeldp_compile.cli import main
from labeldp_compile.ledger.book import create_ledger, read_contents
from tests.cli.test_cli import labeldp
from tests.fixtures.compiled import compile_text
from tests.fixtures.specs import spec

NIGHTS, WAIT, ORDERS = 3, 1, 20
"""Days of orders, days in which an order may come back, and orders of a day."""
RETURNED = spec(name="returned", column="returned", values=["no", "yes"])
START = dt.datetime(2024, 1, 1)  # as in a table, without a zone


def forked(said, *words, dies_at=""):
    """The exit code of ``labeldp`` in a fork, which writes into a file what it says. It is killed
    when a method (MODULE:CLASS.METHOD) has returned, or with a ``-`` in front when it is called."""
    child = os.fork()
    if not child:
        with pytest.MonkeyPatch.context() as patch, said.open("w") as file:
            patch.setattr(sys, "stderr", file)
            if dies_at:
                module, _, name = dies_at.lstrip("-").partition(":")
                whole = pkgutil.resolve_name(dies_at.lstrip("-"))

                def last(*given):
                    if not dies_at.startswith("-"):
                        whole(*given)
                    os.kill(os.getpid(), signal.SIGKILL)

                patch.setattr(f"{module}.{name}", last)
            try:
                main([str(word) for word in words], prog_name="labeldp")
            except SystemExit as error:
                file.flush()
                os._exit(error.code or 0)
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


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


@pytest.mark.parametrize(
    ("dies_at", "booked", "is_listed"),
    [
        ("-labeldp_compile.tabular.provenance:PartsFolder.put", 0, False),
        ("labeldp_compile.tabular.provenance:PartsFolder.put", 0, True),
        ("labeldp_compile.ledger.draw_account:Drawing.book", 20, True),
    ],
)
@pytest.mark.parametrize("next_night", [0, 1])
def test_a_kill_between_two_steps_is_made_good(place, dies_at, booked, is_listed, next_night):
    shop, folder = Shop(np.random.default_rng(0)), place / "private"
    table, ledger = place / "orders.parquet", place / "budget.ledger"
    command = ["randomize", place / "a.onnx", table, "-o", folder, "--append", "--ledger", ledger]
    command += ["--data-set", "shop", "--key", place / "k.key", "--id-column", "order_id"]

    def night(day, **dies):
        shop.write(table, day)
        date = (START + dt.timedelta(days=day)).date()
        return forked(place / "said", *command, "--part", date, **dies)

    assert night(WAIT, dies_at=dies_at) == -signal.SIGKILL
    assert not list(folder.glob("*.parquet"))
    drawn_rows = read_contents(ledger).drawn
    assert (drawn_rows["shop"].rows if drawn_rows else 0) == booked
    partial = next(folder.glob(".*labeldp-partial"))
    left = partial.read_bytes()
    assert not partial.stat().st_mode & 0o077  # only the owner may see what is not booked
    # A part that is booked gets its name from the run of any night.
    assert night(WAIT + next_night) == 0
    said = (place / "said").read_text(encoding="utf-8")
    assert ("was complete when a run was killed" in said) == bool(booked)
    assert ("was not booked when a run was killed" in said) == (is_listed and not booked)
    first = folder / f"{(START + dt.timedelta(days=WAIT)).date()}.parquet"
    if booked or not next_night:
        assert first.read_bytes() == left
    assert bool(list(folder.glob(".*labeldp-partial"))) == (not is_listed and next_night == 1)
    assert read_contents(ledger).drawn["shop"].rows == len(drawn(folder, ".parquet"))
