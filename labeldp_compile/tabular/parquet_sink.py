"""Write Parquet as the input is written: its codecs, encodings and row groups."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Collection, Iterator
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

# What a row group may take in memory before it is written, though the input's be larger.
GROUP_BYTES = 1 << 28
_GROUP_ROWS = 1 << 20  # where the input has no row groups
_CODECS = {
    "UNCOMPRESSED": "NONE",
    "SNAPPY": "SNAPPY",
    "GZIP": "GZIP",
    "BROTLI": "BROTLI",
    "LZ4": "LZ4",
    "LZ4_RAW": "LZ4",
    "ZSTD": "ZSTD",
}
_DICTIONARIES = {"RLE_DICTIONARY", "PLAIN_DICTIONARY"}
_WIDTHS = {"INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8}  # bytes of a value without encoding
_LARGE = 1 << 20  # bytes of a chunk: in smaller ones a dictionary may be larger than the values
_ENCODINGS = {
    "BYTE_STREAM_SPLIT",
    "DELTA_BINARY_PACKED",
    "DELTA_BYTE_ARRAY",
    "DELTA_LENGTH_BYTE_ARRAY",
}


class ParquetSink:
    """Gathers batches until they fill a row group, and writes it.

    ``like`` is the metadata of the input (None: no Parquet): row groups end where its row groups
    end, and also where they have taken ``GROUP_BYTES`` in memory; leaf columns get the codec and
    the encoding that those of the input at the same place have in its first row group, but for a
    dictionary that its writer gave up. Levels of compression are not known from a file: they are
    those that pyarrow chooses.

    ``drawn`` are the columns that have no counterpart, or another one, in the input.
    """

    def __init__(
        self,
        file: BinaryIO,
        schema: pa.Schema,
        like: pq.FileMetaData | None,
        drawn: Collection[str],
    ) -> None:
        """Write nothing yet but the beginning of the file."""
        self._groups = _group_rows(like)
        self._missing = next(self._groups)
        self._pending: list[pa.RecordBatch] = []
        self._bytes = 0
        options = {} if like is None or not like.num_row_groups else _options(schema, like, drawn)
        self._writer = pq.ParquetWriter(file, schema, **options)

    def write(self, batch: pa.RecordBatch) -> None:
        """Take the batch, and write the row groups that are full."""
        while len(batch):
            part = batch.slice(0, self._missing)
            batch = batch.slice(len(part))
            self._pending.append(part)
            self._missing -= len(part)
            self._bytes += part.nbytes
            if not self._missing or self._bytes >= GROUP_BYTES:
                self._write_group()
            if not self._missing:
                self._missing = next(self._groups)

    def finish(self) -> None:
        """Write what is left, and the end of the file."""
        if self._pending:
            self._write_group()
        self._writer.close()

    def abandon(self) -> None:
        """Forget what is not written; pyarrow would write the end of the file when it can."""
        with contextlib.suppress(Exception):  # the disk may be full
            self._writer.close()
        self._writer.is_open = False

    def _write_group(self) -> None:
        table = pa.Table.from_batches(self._pending)
        self._pending, self._bytes = [], 0
        self._writer.write_table(table, row_group_size=len(table))
        del table
        pa.default_memory_pool().release_unused()


def _group_rows(like: pq.FileMetaData | None) -> Iterator[int]:
    """Rows of each row group: those of the input, then for ever the usual number."""
    if like is not None:
        for group in range(like.num_row_groups):
            if rows := like.row_group(group).num_rows:
                yield rows
    while True:
        yield _GROUP_ROWS


def _options(schema: pa.Schema, like: pq.FileMetaData, drawn: Collection[str]) -> dict[str, Any]:
    """Arguments of a ParquetWriter, so that it writes like the first row group of a file."""
    plain = _empty(schema).schema
    ours = [plain.column(i) for i in range(len(plain))]
    theirs = [like.schema.column(i) for i in range(len(like.schema))]
    group = like.row_group(0)
    chunks = [group.column(i) for i in range(group.num_columns)]
    codecs: dict[str, str] = {}
    encodings: dict[str, str] = {}
    dictionaries: list[str] = []
    for i, column in enumerate(ours):
        # Names of nested columns may be spelled in another way: what counts is the place.
        place = min(i, len(chunks) - 1)
        codecs[column.path] = _CODECS.get(chunks[place].compression, "SNAPPY")
        used = set(chunks[place].encodings)
        if column.path in drawn or (used & _DICTIONARIES and not _gave_up(chunks[place])):
            dictionaries.append(column.path)
        elif used & _ENCODINGS and column.physical_type == theirs[place].physical_type:
            encodings[column.path] = max(used & _ENCODINGS)
    options = {"compression": codecs, "use_dictionary": dictionaries, "column_encoding": encodings}
    try:
        _empty(schema, **options)
    except (pa.ArrowException, OSError):  # this version of pyarrow reads it, but cannot write it
        del options["column_encoding"]
    return options


def _gave_up(chunk: pq.ColumnChunkMetaData) -> bool:
    """Whether a column of numbers began with a dictionary, and is no smaller for it.

    A dictionary that has become too large is followed by values without one: to fill another one
    would cost more than all else that is done to such a column.
    """
    plain = _WIDTHS.get(chunk.physical_type, 0) * chunk.num_values
    return bool(plain > _LARGE and chunk.total_uncompressed_size >= plain)


def _empty(schema: pa.Schema, **options: Any) -> pq.FileMetaData:
    """The metadata of a file without rows."""
    file = io.BytesIO()
    pq.write_table(pa.Table.from_batches([], schema), file, **options)
    return pq.read_metadata(file)
