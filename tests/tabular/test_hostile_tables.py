"""Tables that once lost rows or columns, or whose errors quoted a label."""

import base64
import gzip
import io
import traceback
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from labeldp_verify.forms import IntegerDomain
from pyarrow.parquet.encryption import (
    CryptoFactory,
    EncryptionConfiguration,
    KmsClient,
    KmsConnectionConfig,
)

from labeldp_compile.errors import DataError
from labeldp_compile.prior.histogram import count_labels
from labeldp_compile.prior.obtain import require_rows
from labeldp_compile.tabular.formats import PLAIN, TextForm
from labeldp_compile.tabular.reader import open_table, read_header
from labeldp_compile.tabular.writer import Rewriting

DOMAIN = IntegerDomain(0, 2)


def counts(path, domain=DOMAIN):
    return count_labels(open_table(path, "y", domain, all_columns=False))[0].tolist()


def test_an_empty_label_in_a_file_of_one_column_is_a_row(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("y\n0\n\n1\n")
    assert counts(path) == [2, 1, 0]
    path.write_text("y\n0\n\n1\n\n")
    assert sum(counts(path)) == 4


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"y,a,a\n0,1,p\n", "several columns called 'a'"),
        (b"y,a,,\n0,1,,\n", "several columns called '': name each, or delete it"),
        (b"", "is empty, or not a CSV file"),
        (b"caf\xe9,y\n1,2\n", "not a CSV file in UTF-8"),
        (b"sep=;\ny;a\n1;2\n", "its first line is for Excel alone: remove it"),
        (b"y;a\n1;2\n", "has no column 'y'; its columns: 'y;a'; if another character"),
    ],
)
def test_unusable_csv(tmp_path, content, message):
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        open_table(path, "y", DOMAIN, all_columns=True)
    assert message in str(caught.value)


@pytest.mark.parametrize("form", [PLAIN, TextForm(encoding="cp1252")])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (gzip.compress(b"y\n1\n", mtime=0), "is compressed: decompress it first"),
        ("y\n1\n".encode("utf-16"), "is UTF-16"),
        (b"PAR1\x15\x04", "is Parquet and not text"),
        (b"PARE", "is encrypted Parquet"),
    ],
)
def test_what_is_no_text_is_named(tmp_path, monkeypatch, content, message, form):
    """In a file, and on standard input, whatever the encoding."""
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    for table in (path, Path("-")):
        with pytest.raises(DataError, match=message):
            open_table(table, "y", DOMAIN, all_columns=True, form=form, stream=True)


@pytest.mark.parametrize("plaintext_footer", [True, False])
def test_encrypted_parquet_is_called_encrypted(tmp_path, plaintext_footer):
    keys = CryptoFactory(lambda config: Keys())
    how = EncryptionConfiguration("k", column_keys={"k": ["y"]}, plaintext_footer=plaintext_footer)
    properties = keys.file_encryption_properties(KmsConnectionConfig(), how)
    table, path = pa.table({"y": [1], "z": [2]}), tmp_path / "a.parquet"
    with pq.ParquetWriter(path, table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)
    with pytest.raises(DataError, match="is encrypted: write it without encryption first"):
        read_header(path, "z")


class Keys(KmsClient):
    def wrap_key(self, key, master):
        return base64.b64encode(key)


HOSTILE = "\x1b]0;owned\x07\x00\u202e"


@pytest.mark.parametrize(
    "use",
    [lambda path: open_table(path, "y", DOMAIN, all_columns=True), lambda p: read_header(p, "y")],
)
@pytest.mark.parametrize("name", [f"{HOSTILE}.csv", f"{HOSTILE}.txt", f"{HOSTILE}/a.parquet"])
def test_a_path_is_shown_and_not_obeyed(tmp_path, use, name):
    with pytest.raises(DataError) as caught:
        use(tmp_path / name)
    assert "\N{REPLACEMENT CHARACTER}]0;owned" in str(caught.value)
    assert str(caught.value).isprintable()


def test_neither_are_names_in_a_file_that_is_there(tmp_path):
    path = tmp_path / "\x1b[2J.parquet"
    nested = pa.array([{"\x1b[31m": 1}])
    pq.write_table(pa.table({"y": nested, "z": [0], "\x1b[0m": nested}), path)
    for column, message in [("y", "needs numbers"), ("x", "has no column 'x'")]:
        with pytest.raises(DataError, match=message) as caught:
            open_table(path, column, DOMAIN, all_columns=True)
        assert str(caught.value).isprintable()
    table = open_table(path, "z", DOMAIN, all_columns=True)
    with pytest.raises(DataError, match="CSV cannot hold") as caught:
        Rewriting(table, tmp_path / "\x1b.csv", lambda labels: labels).run()
    assert str(caught.value).isprintable()
    with pytest.raises(DataError, match="has 1 rows") as caught:
        require_rows(path, 2, 1)
    assert str(caught.value).isprintable()


def test_a_ragged_row_is_an_error_that_quotes_nothing(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("y,a\n" + "0,1\n" * 9_000 + "secret\n")
    with pytest.raises(DataError) as caught:
        counts(path)
    assert "secret" not in "".join(traceback.format_exception(caught.value))
