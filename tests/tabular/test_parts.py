"""Folders of parts: which files are read, and what is refused."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from labeldp_runtime import Key, Randomizer
from labeldp_verify.forms import GroupColumn, Groups, IntegerDomain

from labeldp_compile.errors import DataError
from labeldp_compile.ledger.client_key import keyed_digest
from labeldp_compile.prior.histogram import count_labels, count_tables
from labeldp_compile.prior.obtain import DataStamp
from labeldp_compile.tabular.formats import PLAIN, parts_of
from labeldp_compile.tabular.provenance import Provenance
from labeldp_compile.tabular.reader import open_table, read_columns, read_header
from labeldp_compile.tabular.writer import Rewriting
from tests.fixtures.compiled import INTEGER_SPEC, compile_text

DOMAIN = IntegerDomain(0, 9)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    for i in (2, 0, 1):
        table = pa.table({"id": np.arange(10 * i, 10 * i + 10), "y": [i] * 10})
        pq.write_table(table, folder / f"part-{i}.snappy.parquet")
    for name in ("_SUCCESS", ".part-0.crc", ".hidden.parquet", "_metadata"):
        (folder / name).write_bytes(b"junk")
    (folder / "_temporary").mkdir()
    return folder


def opened(folder, **options):
    return open_table(folder, "y", DOMAIN, all_columns=True, **options)


def message(folder, **options):
    with pytest.raises(DataError) as caught:
        list(opened(folder, **options).batches())
    assert str(caught.value).isprintable()
    return str(caught.value)


def test_parts_are_read_in_the_order_of_their_names(folder):
    table = opened(folder)
    assert table.rows == 30 == read_header(folder, "y").rows
    assert [v for b in table.batches() for v in b["y"].to_pylist()] == [0] * 10 + [1] * 10 + [
        2
    ] * 10
    assert count_labels(table)[0].tolist()[:4] == [10, 10, 10, 0]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda f: (f / "z.csv").write_text("y\n1\n"), "holds both Parquet and CSV parts"),
        (lambda f: (f / "\x1b[2J.txt").write_text("y\n1\n"), "is not a part of a table"),
        (lambda f: (f / "2020").mkdir(), "2020: is a folder inside a folder of parts"),
        (lambda f: in_folder(f, "year=2020"), "parts at different depths"),
        (lambda f: in_folder(f, "year=%1b"), "expected a folder called NAME=VALUE"),
        (lambda f: in_folder(f, "a=1", "a=2"), "expected a folder called NAME=VALUE"),
        (lambda f: (f / "z.parquet").symlink_to(f / "part-0.snappy.parquet"), "is a link"),
        (lambda f: (f / "z.parquet").symlink_to("/nowhere"), "is a link"),
        (lambda f: os.mkfifo(f / "z.parquet"), "is not a regular file"),
        (lambda f: (f / "_delta_log").mkdir(), "is a Delta table"),
        (lambda f: pq.write_table(pa.table({"y": ["a"]}), f / "z.parquet"), "z.parquet: the label"),
        (
            lambda f: pq.write_table(pa.table({"y": [1.0]}), f / "z.parquet"),
            "z.parquet: 'y' has the type double, but int64 in part-0.snappy.parquet",
        ),
        (lambda f: pq.write_table(pa.table({"x": [1]}), f / "z.parquet"), "z.parquet: has no col"),
        (lambda f: (f / "z.parquet").write_bytes(b"junk"), "z.parquet: is empty, or not a Parq"),
    ],
)
def test_what_is_no_part_is_refused_and_not_left_out(folder, make, said):
    make(folder)
    assert said in message(folder)


def in_folder(folder, *names):
    place = folder.joinpath(*names)
    place.mkdir(parents=True)
    pq.write_table(pa.table({"id": [99], "y": [3]}), place / "a.parquet")


HIVE = {"day=2026-11-26": ("2026-11-26", 0), "day=__HIVE_DEFAULT_PARTITION__": (None, 1)}
HIVE |= {"day=7": ("7", 2), "day=a%3Db": ("a=b", 3)}


@pytest.fixture(params=["parquet", "csv"])
def hive(tmp_path, request):
    """Ten labels y for each day; the days stand in the names of folders alone."""
    for name, (_, label) in HIVE.items():
        place = tmp_path / "hive" / name
        place.mkdir(parents=True)
        rows = pa.table({"id": [f"{name} {i}" for i in range(10)], "y": [label] * 10})
        path = place / f"part.{request.param}"
        pq.write_table(rows, path) if path.suffix == ".parquet" else pa_csv.write_csv(rows, path)
    return tmp_path / "hive"


def test_names_of_folders_are_columns(hive):
    table = open_table(hive, "y", DOMAIN, all_columns=True)
    assert table.schema.names == ["id", "y", "day"]
    rows = [r for b in table.columns(["day", "y"]) for r in b.to_pylist()]
    assert {(r["day"], int(r["y"])) for r in rows} == set(HIVE.values()) and len(rows) == 40
    assert sum(map(len, table.columns(["day"]))) == 40
    group = GroupColumn("day", (7, 8))
    table = open_table(hive, "y", DOMAIN, all_columns=False, group_columns=(group,))
    assert count_tables(table, Groups((group,), (0, 1), 2)) == [10, 0, 30]


def test_a_table_in_named_folders_keeps_them(hive, tmp_path):
    assert Rewriting(opened(hive), tmp_path / "out", lambda y: y + 1).run() == 40
    there = open_table(tmp_path / "out", "y", DOMAIN, all_columns=True)
    assert [p.path.relative_to(tmp_path / "out") for p in there.files] == [
        p.path.relative_to(hive) for p in opened(hive).files
    ]
    rows = [r for b in there.columns(["day", "y"]) for r in b.to_pylist()]
    assert {(r["day"], int(r["y"]) - 1) for r in rows} == set(HIVE.values())
    assert there.files[0].csv is None or there.files[0].csv.names == ["id", "y"]
    for output in ("one.csv", "one.parquet"):  # which has no folders
        assert Rewriting(opened(hive), tmp_path / output, lambda y: y, as_one=True).run() == 40
        one = open_table(tmp_path / output, "y", DOMAIN, all_columns=True)
        rows = [r for b in one.columns(["day", "y"]) for r in b.to_pylist()]
        assert {(r["day"] or None, int(r["y"])) for r in rows} == set(HIVE.values())


def test_no_label_is_the_name_of_a_folder(hive):
    for read in (
        lambda: open_table(hive, "day", DOMAIN, all_columns=True),
        lambda: open_table(hive, ("y", "day"), DOMAIN, all_columns=True),
        lambda: read_header(hive, "day"),
        lambda: list(read_columns(parts_of(hive)[0], ["y"], PLAIN, ["day"])),
        lambda: read_header(hive, "Day"),  # the same column for Spark
    ):
        with pytest.raises(DataError, match=r"names of folders state the label '[dD]ay'"):
            read()


def test_a_column_that_the_file_has_itself_is_read_from_there(tmp_path):
    (tmp_path / "day=1").mkdir()  # as Polars writes
    pq.write_table(pa.table({"day": [1], "y": [3]}), tmp_path / "day=1" / "a.parquet")
    assert opened(tmp_path).schema.field("day").type == pa.int64()
    assert [b.to_pylist() for b in opened(tmp_path).batches()] == [[{"day": 1, "y": 3}]]


def test_a_part_whose_labels_are_all_null_fits(folder):
    pq.write_table(pa.table({"id": [99], "y": pa.nulls(1)}), folder / "z.parquet")
    assert count_labels(opened(folder))[0].tolist()[:3] == [11, 10, 10]


def test_a_folder_becomes_a_folder_of_the_same_names(folder, tmp_path):
    output = tmp_path / "out"
    note = Provenance("a" * 64, 1.0, None)
    assert Rewriting(opened(folder), output, lambda y: y + 1, provenance=note).run() == 30
    names = [f"part-{i}.snappy.parquet" for i in range(3)]
    assert sorted(path.name for path in output.iterdir()) == names
    for i, name in enumerate(names):
        part = pq.read_table(output / name)
        assert part["y"].to_pylist() == [i + 1] * 10
        assert part["id"].equals(pq.read_table(folder / name)["id"])
        assert b"labeldp" in part.schema.metadata


def test_it_is_whole_or_not_there(folder, tmp_path):
    data = (folder / "part-2.snappy.parquet").read_bytes()
    pq.write_table(pa.table({"id": [7], "y": [3]}), folder / "z.parquet")
    key = Randomizer(compile_text(INTEGER_SPEC).model, key=Key(b"k" * 32), context="y")
    for cause in ("damage", "an id that two parts have"):
        if cause == "damage":
            middle = bytearray(data)
            middle[4:60] = b"\0" * 56
            (folder / "part-2.snappy.parquet").write_bytes(bytes(middle))
            said = "part-2.snappy.parquet: is damaged"
        else:
            (folder / "part-2.snappy.parquet").write_bytes(data)
            said = "parts: 'id': rows 7 and 30"
        with pytest.raises(DataError, match=said):
            Rewriting(opened(folder, id_column="id"), tmp_path / "out", key).run()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["parts"]


def test_ids_have_one_type_in_all_parts(folder):
    pq.write_table(pa.table({"id": ["a"], "y": [3]}), folder / "z.parquet")
    assert "z.parquet: 'id' has the type string, but int64" in message(folder, id_column="id")


def test_a_change_of_a_part_is_another_stamp_and_digest(folder):
    stamp, digest = DataStamp.of("parts", folder), keyed_digest(b"k", folder)
    (folder / "_SUCCESS").write_bytes(b"more")
    assert keyed_digest(b"k", folder) == digest
    pq.write_table(pa.table({"id": [1], "y": [1]}), folder / "part-1.snappy.parquet")
    assert DataStamp.of("parts", folder) != stamp and keyed_digest(b"k", folder) != digest
