"""A rewritten Parquet file keeps codecs and types, in memory that its rows do not decide."""

from functools import cache

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from labeldp_verify.forms import IntegerDomain

from labeldp_compile.tabular import parquet_file, writer
from labeldp_compile.tabular.reader import open_table
from labeldp_compile.tabular.writer import Rewriting

DOMAIN = IntegerDomain(0, 9)
N = 10_000


@cache
def table(rows=N):
    generator = np.random.default_rng(0)
    words = pa.array([f"word {i}" for i in range(7)])
    return pa.table(
        {
            "id": np.arange(rows),
            "a.b": generator.normal(size=rows),
            "tags": pa.array([[f"{i % 5}"] * (i % 3) for i in range(rows)]),
            "pair": pa.StructArray.from_arrays([pa.array(range(rows))] * 2, ["l", "r"]),
            "y": generator.integers(0, 10, rows),
            "word": pa.DictionaryArray.from_arrays(
                pa.array(generator.integers(0, 7, rows), pa.int8()), words
            ),
        }
    )


@cache
def values():
    return table().to_pylist()


def rewritten(source, output, add_as=None, randomize=lambda labels: labels):
    opened = open_table(source, "y", DOMAIN, all_columns=True)
    Rewriting(opened, output, randomize, add_as=add_as).run()
    return pq.read_metadata(output)


def chunks(metadata, group=0):
    columns = metadata.row_group(group)
    return {
        column.path_in_schema: column
        for column in (columns.column(i) for i in range(metadata.num_columns))
    }


def sizes(metadata):
    return [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]


def kept(output, added=()):
    """Whether the rows are what they were; indices of dictionaries are wider."""
    after = pq.read_table(output).drop_columns(added)
    kind = after.schema.field("word").type
    return after.to_pylist() == values() and kind == pa.dictionary("int32", "string")


def test_each_column_has_its_own_codec(tmp_path):
    """But not its encoding, which the rows of an input's row group may have decided."""
    source, output = tmp_path / "in.parquet", tmp_path / "out.parquet"
    leaves = ["id", "a.b", "tags.list.element", "pair.l", "pair.r", "y", "word"]
    codecs = dict(
        zip(leaves, ["ZSTD", "NONE", "GZIP", "SNAPPY", "BROTLI", "LZ4", "ZSTD"], strict=True)
    )
    plain = [leaf for leaf in leaves if leaf != "word"]
    encodings = dict.fromkeys(plain, "PLAIN") | {"a.b": "BYTE_STREAM_SPLIT"}
    pq.write_table(
        table(), source, compression=codecs, use_dictionary=["word"], column_encoding=encodings
    )
    for added in ([], ["z"]):
        after = chunks(rewritten(source, output, *added))
        expected = {leaf: "UNCOMPRESSED" if c == "NONE" else c for leaf, c in codecs.items()}
        assert {leaf: after[leaf].compression for leaf in leaves} == expected
        without = {leaf for leaf in after if not after[leaf].has_dictionary_page}
        assert without == {"id", "a.b"}  # numbers that do not repeat
        assert kept(output, added)


def test_row_groups_have_a_number_of_rows_or_of_bytes(tmp_path, cut):
    source, output = tmp_path / "in.parquet", tmp_path / "out.parquet"
    with pq.ParquetWriter(source, table().schema) as writer:
        for start, rows in ((0, 10), (10, 5_000), (5_010, 0), (5_010, 90), (5_100, 4_900)):
            writer.write_table(table().slice(start, rows), row_group_size=9_999)
    cut(parquet_file, GROUP_ROWS=4_000)
    assert sizes(rewritten(source, output)) == [4_000, 4_000, 2_000]
    assert kept(output)
    cut(parquet_file, GROUP_BYTES=100_000)
    found = sizes(rewritten(source, output))
    assert max(found) < 4_000 and kept(output)


def test_pandas_finds_its_index_and_the_type_of_the_private_column(tmp_path):
    source, output = tmp_path / "in.parquet", tmp_path / "out.parquet"
    frame = pd.DataFrame(
        {"y": pd.Categorical([1, 2, 1]), "x": pd.Categorical(["a", "b", "a"])},
        index=pd.Index(["p", "q", "r"], name="name"),
    )
    frame.attrs["labels"] = "1 is found twice"
    frame.to_parquet(source)
    for add_as in (None, "z"):
        for values in (np.array([1.5, 2, 1]), np.array([3, 2, 1])):
            rewritten(source, output, add_as, lambda labels, values=values: values)
            after = pd.read_parquet(output)
            expected = pd.read_parquet(source).assign(**{add_as or "y": values})
            pd.testing.assert_frame_equal(after, expected)
            assert not after.attrs and after.index.name == "name"


@pytest.mark.parametrize("text", [b"{", b"[]", b"{}", b'{"columns": 3}', b"[" * 100_000, b"\xff"])
def test_metadata_of_strangers_is_left_out(tmp_path, text):
    source, output = tmp_path / "in.parquet", tmp_path / "out.parquet"
    given = table().replace_schema_metadata({b"pandas": text, b"mean of y": b"4.5"})
    pq.write_table(given, source)
    rewritten(source, output)
    assert not pq.read_schema(output).metadata


def test_a_field_id_stays_and_other_words_on_the_label_do_not(tmp_path):
    source, output = tmp_path / "in.parquet", tmp_path / "out.parquet"
    y = pa.field("y", pa.int64(), metadata={"PARQUET:field_id": "7", "mean": "4.5"})
    x = pa.field("x", pa.int64(), metadata={"PARQUET:field_id": "8", "unit": "m"})
    pq.write_table(pa.table([[1, 2], [3, 4]], schema=pa.schema([y, x])), source)
    rewritten(source, output)
    schema = pq.read_schema(output)
    assert schema.field("y").metadata == {b"PARQUET:field_id": b"7"}
    assert schema.field("x").metadata == {b"PARQUET:field_id": b"8", b"unit": b"m"}


def allocated():
    """MB that Arrow holds in all its pools: readers do not ask the pool that Python has set."""
    names = pa.supported_memory_backends()
    return sum(getattr(pa, f"{name}_memory_pool")().bytes_allocated() for name in names) / 1e6


def left(source, output, batches):
    """MB of Arrow that no moment near the end of a table is without."""
    before, seen = allocated(), []
    opened = open_table(source, "y", DOMAIN, all_columns=True)
    Rewriting(opened, output, lambda y: y, progress=lambda n: seen.append(allocated())).run()
    assert len(seen) == batches
    return min(seen[-10:]) - before


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows(tmp_path, cut):
    """A file of which all that was read is kept would take 80 MB more for 4 million rows more. What
    waits between the threads is up to 15 MB at some moments, and much less at others."""
    cut(parquet_file, BATCH_ROWS=(20_000, 20_000))
    cut(writer, WAITING_BYTES=1 << 20)
    cut(parquet_file, GROUP_ROWS=100_000)
    found = []
    for rows in (500_000, 4_500_000):
        source, output = tmp_path / f"{rows}.parquet", tmp_path / "out.parquet"
        generator = np.random.default_rng(0)
        columns = {"y": generator.integers(0, 10, rows, np.int32), "x": np.arange(rows)}
        columns["z"] = generator.normal(size=rows)
        pq.write_table(pa.table(columns), source, row_group_size=100_000, use_dictionary=False)
        del columns
        found.append(left(source, output, rows // 20_000))
    assert found[1] < found[0] + 20, found
