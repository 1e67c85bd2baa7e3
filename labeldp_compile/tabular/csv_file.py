"""Read a CSV file as the text that it is: nothing is inferred, and a row may be long.

A quote opens a quoted cell where a cell begins, and is an ordinary character elsewhere; inside, it
is doubled. Rows end with LF, CR LF or CR outside quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

BLOCK_BYTES = 1 << 22  # parsed at once, but for rows that are longer
MAX_ROW_BYTES = 1 << 29  # so that a column of 32-bit offsets holds it, replacements included
_HEAD_BYTES = 1 << 13
_BOM = b"\xef\xbb\xbf"
# Text, a quote that opens nothing, or a quoted cell; then a line end. CR waits for its LF.
_ROW = rb"""(?: [^"\r\n]++ | (?<=[^,\r\n]) " | (?<![^,\r\n]) " (?: [^"]++ | "" )*+ " )*+
            (?: \r?\n | \r(?=[^\n]) )"""
_ROWS = re.compile(rb"(?:" + _ROW + rb")*+", re.VERBOSE)
_FIRST_ROW = re.compile(rb"[\r\n]*+" + _ROW, re.VERBOSE)


class LongRowError(Exception):
    """A row has more than ``MAX_ROW_BYTES``."""


@dataclass(frozen=True)
class CsvFile:
    """A CSV file in UTF-8 with a header.

    Attributes:
        names: of its columns.
        start: the byte where the first row begins.
    """

    path: Path
    names: list[str]
    start: int

    @classmethod
    def open(cls, path: Path) -> CsvFile:
        """Read the header. Raises OSError, UnicodeDecodeError, LongRowError or ArrowException."""
        head, skipped, row = b"", 0, None
        with path.open("rb") as file:
            while row is None and (data := file.read(max(_HEAD_BYTES, len(head)))):
                if not head and data.startswith(_BOM):
                    skipped, data = len(_BOM), data[len(_BOM) :]
                head += data
                row = _FIRST_ROW.match(head)
                if row is None and len(head) > MAX_ROW_BYTES:
                    raise LongRowError
        header = head if row is None else row[0]
        names = pa_csv.read_csv(pa.BufferReader(header), parse_options=_parse(0)).column_names
        return cls(path, names, skipped + len(header))

    def batches(self, columns: list[str], label: str) -> Iterator[pa.RecordBatch]:
        """Some columns, all as text; bytes of the label that are no UTF-8 become U+FFFD.

        Raises ArrowException for a row of another length, and for bytes of other columns that are
        no UTF-8; LongRowError; OSError.
        """
        convert = pa_csv.ConvertOptions(
            column_types={name: pa.binary() if name == label else pa.string() for name in columns},
            include_columns=columns,
            strings_can_be_null=False,
        )
        with self.path.open("rb") as file:
            file.seek(self.start)
            for block in _blocks(file):
                table = pa_csv.read_csv(
                    pa.BufferReader(block),
                    read_options=pa_csv.ReadOptions(
                        column_names=self.names, block_size=len(block) + 1
                    ),
                    parse_options=_parse(len(self.names)),
                    convert_options=convert,
                )
                for batch in table.to_batches():
                    yield _as_text(batch)


def empty_is_null(cells: pa.Array) -> pa.Array:
    """Ids or categories [n] of cells [n]: an empty cell is missing."""
    return pc.if_else(pc.equal(cells, ""), None, cells)


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    """The rest of a file in parts of whole rows; what follows the last line end is the last."""
    pending = b""
    while data := file.read(max(BLOCK_BYTES, len(pending))):
        pending += data
        end = _end_of_rows(pending)
        if end:
            yield pending[:end]
            pending = pending[end:]
        elif len(pending) > MAX_ROW_BYTES:
            raise LongRowError
    if pending:
        yield pending


def _end_of_rows(data: bytes) -> int:
    """Where the last whole row of bytes ends that begin with a row."""
    cells = np.frombuffer(data, dtype=np.uint8)
    quotes = np.flatnonzero(cells == ord('"'))
    opening = quotes[::2]
    before = cells[opening - 1]
    usual = (opening == 0) | np.isin(before, np.frombuffer(b',"\r\n', dtype=np.uint8))
    if not usual.all():  # a quote amid a cell, which opens nothing
        rows = _ROWS.match(data)
        return 0 if rows is None else rows.end()
    lines = np.flatnonzero((cells == ord("\n")) | (cells == ord("\r")))
    outside = lines[np.searchsorted(quotes, lines) % 2 == 0]
    if len(outside) and outside[-1] == len(data) - 1 and data.endswith(b"\r"):
        outside = outside[:-1]  # its LF may follow
    return int(outside[-1]) + 1 if len(outside) else 0


def _as_text(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = [_text(c) if pa.types.is_binary(c.type) else c for c in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _text(values: pa.Array) -> pa.Array:
    encoded = values.dictionary_encode()  # few cells differ, mostly: each is decoded once
    cells = [cell.decode(errors="replace") for cell in encoded.dictionary.to_pylist()]
    return pa.array(cells, pa.string()).take(encoded.indices)


def _parse(columns: int) -> pa_csv.ParseOptions:
    # In a file of one column an empty line is a row whose cell is empty.
    return pa_csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=columns != 1)
