"""What labels spend is booked before an output is visible, once; totals of rows and persons."""

import json
from contextlib import closing
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from labeldp_verify import check_bytes

from labeldp_compile.errors import InputError
from labeldp_compile.ledger.book import (
    DataSet,
    Totals,
    add_up,
    drawn_labels,
    read_contents,
    read_entries,
)
from labeldp_compile.ledger.draw_account import Draw, Drawing
from labeldp_compile.ledger.entries import BrokenChainError, next_entry
from tests.fixtures.compiled import INTEGER_SPEC, compile_text
from tests.ledger.conftest import BOTH_STORES


@pytest.fixture
def shop(bench):
    """A ledger, an artifact, a key and a table of 40 labels."""
    bench.open_budget("1")
    (bench.folder / "a.onnx").write_bytes(compile_text(INTEGER_SPEC).model)
    table = pa.table({"id": np.arange(40), "y": np.arange(40) % 5})
    pq.write_table(table, bench.folder / "t.parquet")
    assert bench.run("keygen", bench.folder / "k.key").exit_code == 0
    return bench


def randomize(bench, output="out.parquet", *options, key=True, data_set="visits", ledger=True):
    words = ["randomize", bench.folder / "a.onnx", bench.folder / "t.parquet"]
    words += ["-o", bench.folder / output, *options]
    words += ["--key", bench.folder / "k.key", "--id-column", "id"] if key else []
    words += ["--ledger", bench.ledger, "--data-set", data_set] if ledger else []
    return bench.run(*words)


def epsilon(bench):
    report = check_bytes((bench.folder / "a.onnx").read_bytes(), run_graph=False)
    return Fraction(report.verified().certificate.exact.epsilon_label)


@BOTH_STORES
def test_a_keyed_output_is_booked_once(shop):
    first = randomize(shop, "out.parquet", "--note", "the nightly job, ticket 7")
    assert first.exit_code == 0 and "entry 2 books 40 rows, ε = " in first.stderr
    (entry,) = shop.entries("draw")
    assert entry.facts["note"] == "the nightly job, ticket 7" and entry.facts["column"] == "y"
    assert entry.facts["rows"] == 40 and entry.facts["part"] == "out.parquet"
    again = randomize(shop, "out.parquet", "--overwrite")
    assert again.exit_code == 0 and "booked already; nothing was added" in again.stderr
    assert len(shop.entries("draw")) == 1
    assert randomize(shop, "out.parquet", "--overwrite", "--version", "1").exit_code == 0
    shown = json.loads(shop.run("ledger", "show", shop.ledger, "--json").stdout)
    total = shown["totals"]["visits"]
    assert total["rows_drawn"] == 80 and total["person"] is None and not shown["priors_only"]
    assert Fraction(total["exact"]["row"]) == 2 * epsilon(shop)
    assert shop.run("ledger", "verify", shop.ledger).exit_code == 0


def test_every_run_without_a_key_is_booked(shop):
    for name in ("one.parquet", "two.parquet", "one.parquet"):
        assert randomize(shop, name, "--overwrite", key=False).exit_code == 0
    contents = read_contents(shop.ledger)
    assert contents.drawn["visits"].rows == 120
    assert contents.totals("visits").row == 3 * epsilon(shop)


def test_a_folder_that_is_booked_stays_so(shop):
    def night(part, *options):
        return randomize(shop, "night", "--append", "--part", part, *options, ledger=False)

    booked = ("--ledger", shop.ledger, "--data-set", "visits")
    assert night("one", *booked).exit_code == 0
    for options in ((), ("--ledger", shop.ledger, "--data-set", "other")):
        result = night("two", *options)
        assert result.exit_code == 2 and "give --ledger and --data-set visits" in result.stderr
    assert night("two", *booked).exit_code == 0 and len(shop.entries("draw")) == 2


def test_priors_and_labels_add_up_and_budgets_stay_those_of_priors(shop):
    assert shop.compile().exit_code == 0
    said = shop.run("ledger", "show", shop.ledger).stdout
    assert "priors only: no private labels are booked" in said
    assert (
        randomize(shop).exit_code == 0 and randomize(shop, "o.csv", data_set="new").exit_code == 0
    )
    contents = read_contents(shop.ledger)
    assert contents.accounts["visits"].spent == Fraction(1, 10)
    assert contents.totals("visits").row == Fraction(1, 10) + epsilon(shop)
    assert contents.totals("new").row == epsilon(shop) and "new" not in contents.accounts
    said = shop.run("ledger", "show", shop.ledger).stdout
    assert "priors only" not in said and "not bounded" in said
    assert shop.compile("two", last="2", data="labels.parquet").exit_code == 0  # as before


def test_labels_are_booked_before_they_are_visible(shop, monkeypatch):
    seen = []

    def refuse(drawing, rows, digest):
        seen.append((rows, (shop.folder / "out.parquet").exists()))
        raise InputError("the server is away")

    monkeypatch.setattr(Drawing, "book", refuse)
    result = randomize(shop)
    assert result.exit_code == 2 and "the server is away" in result.stderr
    assert seen == [(40, False)]
    assert not (shop.folder / "out.parquet").exists() and not list(shop.folder.glob(".*partial"))


def test_all_entries_as_a_table(shop):
    assert randomize(shop, "out.parquet", "--note", "=1+1").exit_code == 0
    out, parquet = shop.folder / "entries.csv", shop.folder / "entries.parquet"
    words = ["ledger", "export", shop.ledger, "--csv", out, "--parquet", parquet]
    assert shop.run(*words).exit_code == 0
    rows = pq.read_table(parquet).to_pylist()
    assert [row["kind"] for row in rows] == ["ledger", "budget", "draw"]
    assert rows[2]["note"] == "=1+1" and rows[2]["rows"] == 40 and rows[2]["unit"] == "label"
    assert [row["hash"] for row in rows] == [entry.hash for entry in shop.entries()]
    assert pa_csv.read_csv(out)["note"].to_pylist()[2] == "'=1+1"
    assert shop.run(*words).exit_code == 2 and shop.run(*words[:3]).exit_code == 2


def draw(**changes):
    usual = Draw(
        "shop", "y", "a" * 64, "b" * 16, "y", 0, "label", Fraction(1), Fraction(1), "", "p"
    )
    return replace(usual, **changes)


def totals(*draws):
    entries = []
    for rows, one in draws:
        facts = {**one.facts(), "rows": rows, "persons": 0, "time": "2024-01-01T00:00:00Z"}
        entries.append(next_entry(entries, "draw", facts))
    found = drawn_labels(entries)["shop"]
    return found.rows, found.row, found.person


def test_rows_of_a_folder_are_drawn_once_whichever_artifact_draws_them():
    folder, other = "f" * 32, "e" * 32
    parts = [(5, draw(folder=folder, part=name)) for name in ("mon", "tue", "mon")]
    assert totals(*parts) == (10, 1, None)
    rotated = (
        7,
        draw(folder=folder, part="wed", artifact_sha256="c" * 64, epsilon_label=Fraction(2)),
    )
    assert totals(*parts, rotated) == (17, 2, None)
    assert totals(*parts, (5, draw(folder=other, part="mon"))) == (15, 2, None)
    assert totals(*parts, (5, draw(folder=folder, column="z", part="mon"))) == (15, 2, None)


def test_a_person_pays_for_every_artifact_once():
    person = {"unit": "person", "epsilon": Fraction(30), "folder": "f" * 32}
    parts = [(5, draw(part=name, **person)) for name in ("mon", "tue")]
    assert totals(*parts) == (10, 1, 30)
    rotated = (5, draw(part="wed", **person, key="d" * 16))
    assert totals(*parts, rotated) == (15, 1, 60)
    assert totals(*parts, rotated, (1, draw())) == (16, 2, None)
    # Rows of a person are counted in one folder or one output: what is outside adds up.
    elsewhere = [(5, draw(part="mon", **{**person, "folder": name})) for name in ("e" * 32, "")]
    assert totals(*parts, *elsewhere) == (20, 3, 90)
    alone = [(5, draw(part=name, **{**person, "folder": ""})) for name in ("mon", "tue", "mon")]
    assert totals(*alone) == (10, 1, 60)
    priors = DataSet(Fraction(1), spent=Fraction(1, 4))
    drawn = drawn_labels([next_entry([], "draw", {**parts[0][1].facts(), "rows": 1, "persons": 0})])
    assert Totals.of(priors, drawn["shop"]) == Totals(Fraction(5, 4), Fraction(121, 4))
    priors.of_labels = Fraction(1, 4)
    assert Totals.of(priors, drawn["shop"]).person is None


@BOTH_STORES
def test_a_spend_of_a_person_is_told_from_one_of_a_label(used):
    (spend,) = used.entries("spend")
    entries = used.entries()
    facts = {**spend.facts, "epsilon": "1/100", "unit": "person"}
    used.insert(next_entry(entries, "spend", facts))
    accounts, _ = add_up(read_entries(used.ledger))
    assert accounts["visits"].spent == Fraction(11, 100)
    assert accounts["visits"].of_labels == Fraction(1, 10)


@pytest.mark.parametrize("store", ["postgres"])
@pytest.mark.parametrize("change", [{"rows": -1}, {"unit": "user"}, {"more": 1}, {"note": 1}])
def test_a_database_refuses_such_a_draw(shop, change):
    assert randomize(shop).exit_code == 0
    facts = {**shop.entries("draw")[0].facts, **change}
    entry = next_entry(shop.entries(), "draw", facts)
    values = (entry.number, entry.kind, entry.body, entry.previous, entry.hash)
    refused = pytest.raises(Exception, match="this is no draw of labeldp")
    with closing(shop.owner()) as connection, refused:
        connection.execute(shop._insert, values)


@pytest.mark.parametrize(
    "change", [{"rows": -1}, {"unit": "user"}, {"key": "x"}, {"epsilon": "-1"}]
)
def test_a_draw_that_no_labeldp_writes_is_refused(shop, change):
    assert randomize(shop).exit_code == 0
    facts = {**shop.entries("draw")[0].facts, **change}
    shop.force(next_entry(shop.entries(), "draw", facts))
    assert shop.run("ledger", "show", shop.ledger).exit_code == 1
    with pytest.raises(BrokenChainError):
        read_entries(shop.ledger)
