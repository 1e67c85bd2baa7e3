"""No label moves a byte of the private file but its own cell.

Two inputs that differ in labels, and in how a writer cut them, give the same bytes where the
private labels are the same.
"""

import gzip
from decimal import Decimal
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from labeldp_runtime import Key, Randomizer
from labeldp_verify.forms import CategoricalDomain, GroupColumn, JointDomain

from labeldp_compile.tabular import csv_file, parquet_file, writer
from labeldp_compile.tabular.parquet_file import row_bytes
from labeldp_compile.tabular.reader import open_table
from labeldp_compile.tabular.writer import Rewriting
from tests.fixtures.compiled import compile_text
from tests.fixtures.specs import spec

N = 3_000
DOMAIN = CategoricalDomain(("no", "yes"), "no")
TEXT_SPEC = spec(values=["no", "yes"])


@pytest.fixture(autouse=True)
def _small(cut):
    """Batches, row groups and blocks of a few hundred rows."""
    cut(parquet_file, BATCH_BYTES=40_000)
    cut(parquet_file, BATCH_ROWS=(64, 1_000))
    cut(parquet_file, GROUP_BYTES=150_000)
    cut(csv_file, BLOCK_BYTES=20_000)
    cut(writer, WAITING_BYTES=50_000)


def public():
    """Columns of every kind: with nulls at the end only, and with dictionaries of all sorts."""
    random = np.random.default_rng(3)
    words = np.array([f"word {i}" * (1 + i % 3) for i in range(200)])
    few = words[np.minimum(random.integers(0, 200, N), np.arange(N) // 10)]
    late = [None if i > N - 500 and i % 7 == 0 else i for i in range(N)]
    pairs = [{"l": i, "r": f"{i % 9}"} for i in range(N)]
    ranks = pa.DictionaryArray.from_arrays(
        pa.array(np.arange(N) % 3, pa.int8()), ["low", "none", "high"], ordered=True
    )
    return {
        "id": pa.array(np.arange(N)),
        "x": pa.array(random.normal(size=N)),
        "late": pa.array(late, pa.int32()),
        "flag": pa.array(np.arange(N) % 5 == 0),
        "cost": pa.array([Decimal(i) / 100 for i in range(N)], pa.decimal128(9, 2)),
        "text": pa.array([None if i % 11 == 0 else "t" * (i % 40) for i in range(N)]),
        "tags": pa.array([[f"{i % 5}"] * (i % 4) if i % 6 else None for i in range(N)]),
        "pair": pa.array(pairs),
        "map": pa.array([[("k", i)] * (i % 3) for i in range(N)], pa.map_("string", "int64")),
        "vector": pa.array([[i, 1] for i in range(N)], pa.list_(pa.int16(), 2)),
        "few": pa.array(few.tolist()).dictionary_encode(),
        "rank": ranks,
        "nothing": pa.nulls(N),
    }


COLUMNS = public()
SHORT = ["no"] * N
LONG = [("no" + "!" * 3_000) if i in (5, 700, 2_000) else "no" for i in range(N)]
LONGER = ["no" + " " * (i % 97) for i in range(N)]
LABELS = {"long": LONG, "longer": LONGER}


def cut_table(labels, cuts, names, columns):
    """The row groups of a table, each with a dictionary of its own entries, as met."""
    given = list(columns.items())
    table = pa.table(dict([*given[:2], *((name, pa.array(labels)) for name in names), *given[2:]]))
    for start, end in zip([0, *cuts], [*cuts, N], strict=True):
        part = table.slice(start, end - start)
        if "few" in columns:
            own = part["few"].cast(pa.string()).combine_chunks().dictionary_encode()
            part = part.set_column(part.column_names.index("few"), "few", own)
        yield part


def write(path, labels, cuts, names=("y",), columns=COLUMNS, **options):
    parts = list(cut_table(labels, cuts, names, columns))
    with pq.ParquetWriter(path, parts[0].schema, **options) as writer:
        for part in parts:
            writer.write_table(part, row_group_size=N)


def constant(labels, **_):
    """The same private labels whatever the true ones are."""
    if isinstance(labels, dict):
        return {name: constant(column) for name, column in labels.items()}
    return np.full(len(labels), "yes", dtype=object)


def rewritten(source, output, label="y", domain=DOMAIN, randomize=constant, **options):
    opened = open_table(source, label, domain, all_columns=True, **options)
    Rewriting(opened, output, randomize).run()
    return output.read_bytes()


def sizes(path):
    metadata = pq.read_metadata(path)
    return [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("codec", ["snappy", "zstd"])
@pytest.mark.parametrize("cuts", [[], [1_000, 2_000], [7, 900, 901, 2_999], [*range(64, N, 64)]])
def test_parquet(tmp_path, labels, codec, cuts):
    """Also where the input's row groups end by bytes that include the label's."""
    write(tmp_path / "a.parquet", SHORT, [1_500], compression=codec)
    write(tmp_path / "b.parquet", LABELS[labels], cuts, compression=codec)
    first = rewritten(tmp_path / "a.parquet", tmp_path / "out.parquet")
    assert len(sizes(tmp_path / "out.parquet")) == 3
    assert rewritten(tmp_path / "b.parquet", tmp_path / "out.parquet") == first


def test_what_is_public_does_not_change(tmp_path):
    """The same columns come out, of the same types but for the width of indices."""
    write(tmp_path / "a.parquet", SHORT, [900, 1_700])
    rewritten(tmp_path / "a.parquet", tmp_path / "out.parquet")
    before, after = (pq.read_table(tmp_path / name) for name in ("a.parquet", "out.parquet"))
    for name in COLUMNS:
        assert after[name].to_pylist() == before[name].to_pylist()
    few = after.schema.field("few").type
    assert (few.index_type, few.value_type) == (pa.int32(), pa.string())
    rank = after["rank"].chunk(0)
    assert rank.type.ordered and rank.dictionary.to_pylist() == ["low", "none", "high"]


@pytest.mark.parametrize("cuts", [[], [400, 410]])
def test_labels_of_several_columns(tmp_path, cuts):
    domain = JointDomain.of((DOMAIN, DOMAIN))
    write(tmp_path / "a.parquet", SHORT, [], ["y", "z"])
    write(tmp_path / "b.parquet", LONG, cuts, ["y", "z"])
    out = tmp_path / "out.parquet"
    files = [rewritten(tmp_path / f"{n}.parquet", out, ["y", "z"], domain) for n in "ab"]
    assert files[0] == files[1]


@pytest.mark.parametrize("labels", LABELS)
def test_with_a_key_and_public_groups(tmp_path, labels):
    """The real randomizer: labels outside the domain are drawn as the default is."""
    Key.create(tmp_path / "key")
    drawn = Randomizer(compile_text(TEXT_SPEC).model, key=Key.load(tmp_path / "key"), context="y")
    randomize = lambda y, ids, columns: drawn(y, ids=ids)  # noqa: E731
    write(tmp_path / "a.parquet", SHORT, [1_500])
    write(tmp_path / "b.parquet", LABELS[labels], [80, 1_000])
    given = {"id_column": "id", "group_columns": (GroupColumn("late", bands=(10.0,)),)}
    make = partial(rewritten, output=tmp_path / "out.parquet", randomize=randomize, **given)
    assert make(tmp_path / "a.parquet") == make(tmp_path / "b.parquet")


def test_a_folder_of_parts(tmp_path):
    out = []
    for labels, cuts in ((SHORT, []), (LONG, [100, 2_000])):
        folder = tmp_path / f"in{len(out)}"
        folder.mkdir()
        for part in range(2):
            write(folder / f"{part}.parquet", labels, cuts)
        opened = open_table(folder, "y", DOMAIN, all_columns=True)
        Rewriting(opened, tmp_path / f"out{len(out)}", constant).run()
        out.append([(tmp_path / f"out{len(out)}" / f"{p}.parquet").read_bytes() for p in range(2)])
    assert out[0] == out[1]


FLAT = {name: COLUMNS[name] for name in ("id", "x", "late", "flag", "text")}


@pytest.mark.parametrize("labels", [*LABELS, "blanks"])
@pytest.mark.parametrize("source", ["in.csv", "in.csv.gz", "in.parquet"])
@pytest.mark.parametrize("output", ["out.parquet", "out.csv", "out.csv.gz", "out.tsv.gz"])
def test_csv(tmp_path, labels, source, output):
    """Blocks of CSV end by bytes that include the label's: two blanks are enough to move them."""
    found = []
    for given in (SHORT, {**LABELS, "blanks": ["no", "no  ", *SHORT[2:]]}[labels]):
        path = tmp_path / source
        if source.endswith("parquet"):
            write(path, given, [1_234] if given is SHORT else [], columns=FLAT)
        else:
            (table,) = cut_table(given, [], ["y"], FLAT)
            opened = gzip.open if source.endswith("gz") else open
            with opened(path, "wb") as file:
                pa_csv.write_csv(table, file)
        found.append(rewritten(path, tmp_path / output))
    assert found[0] == found[1]


def test_row_groups_end_by_the_bytes_of_the_columns_that_are_written(tmp_path):
    """And memory stays bounded: no row group has more than a row beyond its bytes."""
    write(tmp_path / "a.parquet", LONG, [])
    rewritten(tmp_path / "a.parquet", tmp_path / "out.parquet")
    with pq.ParquetFile(tmp_path / "out.parquet") as file:
        for group in range(file.num_row_groups):
            (batch,) = file.read_row_group(group).combine_chunks().to_batches()
            each = sum(np.broadcast_to(row_bytes(column), len(batch)) for column in batch.columns)
            assert each[:-1].sum() < 150_000
            assert each.sum() >= 150_000 or group == file.num_row_groups - 1


@pytest.mark.parametrize("name", COLUMNS)
def test_bytes_of_rows_do_not_depend_on_the_pieces(name):
    """A slice has those of its rows; masks and dictionaries are not counted."""
    column = COLUMNS[name]
    every = np.broadcast_to(row_bytes(column), N)
    for start, end in ((0, 1), (5, 700), (2_600, N)):
        part = column.slice(start, end - start)
        again = pa.concat_arrays([part.slice(0, 1), part.slice(1)])
        for piece in (part, again):
            assert np.array_equal(np.broadcast_to(row_bytes(piece), len(part)), every[start:end])
