"""A folder of ``--append`` has one history: the parts that its ledger has booked decide."""

import json
import shutil
from fractions import Fraction

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from labeldp_compile.ledger.book import create_ledger, drawn_labels, read_contents
from labeldp_compile.ledger.entries import next_entry
from labeldp_compile.tabular.provenance import MANIFEST, PartsFolder
from tests.fixtures.compiled import compile_text
from tests.ledger.conftest import BOTH_STORES
from tests.ledger.test_draws import draw
from tests.persons.made import spec

POLICY = (
    "version: 1\nmax_epsilon_person: 4\nmax_epsilon_dataset: 2\n"
    "max_epsilon_period: {epsilon: 2, days: 1}\ndraw_once: true\n"
)


@pytest.fixture
def shop(bench):
    """An artifact for two labels a person (ε = 4), two keys and a ledger."""
    assert bench.run("ledger", "init", bench.ledger).exit_code == 0
    for name, epsilon in (("a", "4"), ("b", "3")):
        (bench.folder / f"{name}.onnx").write_bytes(compile_text(spec(2, epsilon)).model)
    for name in ("k.key", "other.key"):
        assert bench.run("keygen", bench.folder / name).exit_code == 0
    return bench


def night(shop, folder, part, orders, *, key="k.key", ledger="", data_set="shop", artifact="a"):
    """One person's orders, appended as a part; no ``ledger`` (None), the bench's or another."""
    rows = {"customer": [7] * len(orders), "order": orders, "returned": [o % 3 for o in orders]}
    pq.write_table(pa.table(rows), shop.folder / "t.parquet")
    words = ["randomize", shop.folder / f"{artifact}.onnx", shop.folder / "t.parquet", "--append"]
    words += ["-o", shop.folder / folder, "--part", part, "--id-column", "order"]
    words += ["--key", shop.folder / key]
    if ledger is not None:
        words += ["--ledger", ledger or shop.ledger, "--data-set", data_set]
    return shop.run(*words)


def done(*arguments, **options):
    result = night(*arguments, **options)
    assert result.exit_code == 0, result.output
    return result


def refused(shop, words, folder, *arguments, **options):
    """A night that ends with exit code 2 and changes no file and no entry."""

    def state():
        files = {p: p.read_bytes() for p in (shop.folder / folder).rglob("*")}
        return files, [entry.hash for entry in shop.entries()]

    before, result = state(), night(shop, folder, *arguments, **options)
    assert result.exit_code == 2 and words in result.stderr, result.output
    assert state() == before


def totals(shop):
    found = json.loads(shop.run("ledger", "show", shop.ledger, "--json").stdout)["totals"]["shop"]
    return found["rows_drawn"], found["row"], found["person"]


def checked(shop):
    (shop.folder / "policy.yaml").write_text(POLICY)
    return shop.run("check", shop.ledger, "--policy", shop.folder / "policy.yaml").exit_code


def copy(shop, name="copy"):
    shutil.copytree(shop.folder / "private", shop.folder / name)
    return name


@BOTH_STORES
@pytest.mark.parametrize("part", ["tue", "wed"])  # the same name, and another
def test_a_copy_does_not_go_on_beside_the_folder(shop, part):
    done(shop, "private", "mon", [1])
    copy(shop)
    done(shop, "private", "tue", [2])
    refused(shop, "'tue.parquet' of this folder", "copy", part, [3])
    assert totals(shop) == (2, 2, 4) and checked(shop) == 0
    assert done(
        shop, "private", "wed", [1], artifact="a"
    )  # the folder itself goes on, without new rows


@BOTH_STORES
def test_two_copies_at_once_are_told_apart_when_they_book(shop, monkeypatch):
    done(shop, "private", "mon", [1])
    copy(shop)
    put, nights = PartsFolder.put, []

    def meanwhile(folder, name, part):
        if folder.path.name == "copy" and not nights:
            nights.append(done(shop, "private", "tue", [2]))
        put(folder, name, part)

    monkeypatch.setattr(PartsFolder, "put", meanwhile)
    result = night(shop, "copy", "tue", [3])
    assert nights and result.exit_code == 2 and "is a copy" in result.stderr
    assert {path.name for path in (shop.folder / "copy").iterdir()} == {"mon.parquet", MANIFEST}
    assert list(json.loads((shop.folder / "copy" / MANIFEST).read_text())["parts"]) == [
        "mon.parquet"
    ]
    assert totals(shop) == (2, 2, 4)


@BOTH_STORES
def test_a_folder_from_a_backup_goes_on_only_with_the_same_part(shop):
    done(shop, "private", "mon", [1])
    copy(shop, "backup")
    done(shop, "private", "tue", [2])
    lost = (shop.folder / "private" / "tue.parquet").read_bytes()
    shutil.rmtree(shop.folder / "private")
    shutil.move(shop.folder / "backup", shop.folder / "private")
    refused(shop, "restored from a backup", "private", "tue", [2], key="other.key")
    refused(shop, "restored from a backup", "private", "tue", [2], artifact="b")
    refused(shop, "restored from a backup", "private", "tue", [3])  # other rows
    refused(shop, "restored from a backup", "private", "wed", [3])
    assert "booked already" in done(shop, "private", "tue", [2]).stderr
    assert (shop.folder / "private" / "tue.parquet").read_bytes() == lost
    assert totals(shop) == (2, 2, 4) and checked(shop) == 0
    done(shop, "private", "wed", [1], key="other.key")


@BOTH_STORES
def test_a_folder_has_one_ledger_and_one_data_set(shop):
    other = shop.folder / "other.ledger"
    create_ledger(other)
    done(shop, "private", "mon", [1])
    refused(shop, "has not booked the part 'mon.parquet'", "private", "tue", [2], ledger=other)
    refused(shop, "give --ledger and --data-set shop", "private", "tue", [2], data_set="new")
    refused(shop, "give --ledger and --data-set shop", "private", "tue", [2], ledger=None)
    assert not drawn_labels(read_contents(other).entries)


def test_a_ledger_from_a_backup_is_refused(shop):
    done(shop, "private", "mon", [1])
    before = shop.ledger.read_bytes()
    done(shop, "private", "tue", [2])
    shop.ledger.write_bytes(before)
    refused(shop, "before it was restored from a backup", "private", "wed", [1])


@BOTH_STORES
def test_a_ledger_that_comes_later_books_all_parts(shop):
    done(shop, "private", "mon", [1], ledger=None)
    copy(shop)
    result = done(shop, "private", "tue", [2], key="other.key")
    assert "entry 1 books 1 rows" in result.stderr and "entry 2 books 1 rows" in result.stderr
    assert [e.facts["part"] for e in shop.entries("draw")] == ["mon.parquet", "tue.parquet"]
    assert totals(shop)[:2] == (2, 2)
    refused(shop, "'tue.parquet' of this folder", "copy", "wed", [3])
    refused(shop, "give --data-set shop", "copy", "wed", [3], data_set="new")


def test_a_kill_while_earlier_parts_are_booked_is_made_good(shop, monkeypatch):
    done(shop, "private", "mon", [1], ledger=None)
    with monkeypatch.context() as faults:
        faults.setattr(PartsFolder, "put", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        night(shop, "private", "tue", [2])
    assert len(shop.entries("draw")) == 1
    done(shop, "private", "tue", [2])
    assert totals(shop) == (2, 2, 4)


def test_a_part_with_two_digests_counts_as_two_histories():
    """No labeldp books this; somebody who may write to a database can."""
    person = {"unit": "person", "epsilon": Fraction(4), "folder": "f" * 32, "part": "mon"}
    entries = []
    for digest in ("a" * 16, "b" * 16, "a" * 16):
        facts = {**draw(**person, digest=digest).facts(), "rows": 5, "persons": 0}
        entries.append(next_entry(entries, "draw", facts))
    found = drawn_labels(entries)["shop"]
    assert (found.rows, found.row, found.person) == (10, 2, 8)
