"""Read a CSV file as the text that it is: nothing is inferred, and a row may be long."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv

from labeldp_compile.tabular.csv_rows import RowForm, row_form
from labeldp_compile.tabular.formats import format_of
from labeldp_compile.tabular.text_stream import TextSource, TextStream
from labeldp_compile.text_form import LIKELY, PLAIN, UTF8, TextForm

BLOCK_BYTES = 1 << 22  # parsed at once, but for rows that are longer
# Each holds before the work: a few kilobytes of gzip can become gigabytes.
MAX_ROW_BYTES = 1 << 26
MAX_HEADER_BYTES = 1 << 22
MAX_COLUMNS = 100_000
_HEAD_BYTES = 1 << 13


class LongRowError(Exception):
    """A row has more than ``MAX_ROW_BYTES``."""


class BadRowError(Exception):
    """A row is not what the header says; the message quotes no cell."""

    def __init__(self, line: int, reason: str) -> None:
        """``line`` counts from 1, as rows end."""
        super().__init__(f"line {line:,}: {reason}")


@dataclass(frozen=True)
class CsvFile:
    """A CSV file with a header.

    Attributes:
        names: of its columns.
        delimiter: between cells.
        start: the byte of the UTF-8 where the first row begins.
        lines: ends of rows before that.
        header: its bytes, in UTF-8.
    """

    path: Path
    names: list[str]
    delimiter: str
    start: int
    lines: int
    header: bytes
    source: TextSource = field(repr=False)

    @classmethod
    def open(cls, path: Path, form: TextForm = PLAIN) -> CsvFile:
        """Read the header.

        Raises OSError, LongRowError, BadRowError, WideTextError or ArrowException.
        """
        said = format_of(path, stream=True)
        assert said is not None
        delimiter = form.delimiter or said.delimiter or ","
        rows = row_form(delimiter)
        source = TextSource(path, said.gzipped, form.encoding or UTF8)
        head, header = b"", None
        with source.open_head() as stream:
            while header is None and (data := stream.read(max(_HEAD_BYTES, len(head)))):
                head += data
                header = rows.first_row(head)
                if len(head if header is None else header) > MAX_HEADER_BYTES:
                    raise BadRowError(1, f"the header has more than {MAX_HEADER_BYTES:,} bytes")
            header = head if header is None else header
            if not _few_columns(header, delimiter):
                raise BadRowError(1, f"the header has more than {MAX_COLUMNS:,} columns")
            stream.unread(head[len(header) :])
        lines = rows.end_of_rows(header)[1]
        try:
            names = _names(header, delimiter)
        except UnicodeDecodeError:
            raise BadRowError(max(lines, 1), f"the header holds {_no_text(source)}") from None
        return cls(path, names, delimiter, len(header), lines, header, source)

    def other_delimiter(self, column: str) -> str | None:
        """The delimiter with which the header has this column, or else more columns than one."""
        try:
            others = [mark for mark in LIKELY if mark != self.delimiter]
            few = [mark for mark in others if _few_columns(self.header, mark)]
            found = {mark: _names(self.header, mark) for mark in few}
        except (pa.ArrowException, UnicodeDecodeError):
            return None
        for mark, names in found.items():
            if column in names:
                return mark
        more = [mark for mark, names in found.items() if len(names) > 1]
        return more[0] if more and len(self.names) == 1 else None

    def batches(self, columns: list[str], labels: str | Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The batches of ``blocks``."""
        return (batch for _, batch in self.blocks(columns, labels))

    def blocks(
        self, columns: list[str], labels: str | Sequence[str]
    ) -> Iterator[tuple[bytes, pa.RecordBatch]]:
        """Whole rows in UTF-8, and some of their columns, all as text.

        Bytes of the labels that are no UTF-8 become U+FFFD in the columns.

        Raises BadRowError for a row of another length, and for bytes of other columns that are no
        text; LongRowError; OSError; ArrowException; ReadTwiceError.
        """
        rows = row_form(self.delimiter)
        true = {labels} if isinstance(labels, str) else {*labels}
        convert = pa_csv.ConvertOptions(
            column_types={name: pa.binary() if name in true else pa.string() for name in columns},
            include_columns=columns,
            strings_can_be_null=False,
        )
        line = self.lines + 1
        with self.source.open_rows(self.start) as stream:
            for block, ends in _blocks(stream, rows):
                try:
                    table = pa_csv.read_csv(
                        pa.BufferReader(block),
                        read_options=pa_csv.ReadOptions(
                            column_names=self.names, block_size=len(block) + 1
                        ),
                        parse_options=_parse(self.delimiter, len(self.names)),
                        convert_options=convert,
                    )
                except pa.ArrowException:
                    read = {*columns} - true
                    fault = rows.find_fault(block, self.names, read, _no_text(self.source))
                    if fault is None:
                        raise
                    raise BadRowError(line + fault[0], fault[1]) from None
                line += ends
                for batch in table.combine_chunks().to_batches():
                    yield block, _as_text(batch)


def empty_is_null(cells: pa.Array) -> pa.Array:
    """Ids or categories [n] of cells [n]: an empty cell is missing."""
    import pyarrow.compute as pc  # noqa: PLC0415  # which looks up all functions

    return pc.if_else(pc.equal(cells, ""), None, cells)


def _no_text(source: TextSource) -> str:
    """What is wrong with bytes, and the way out."""
    if source.encoding != UTF8:
        return f"bytes that {source.encoding} does not have: give the encoding of the file"
    return (
        "bytes that are no UTF-8: if the file is in Latin-1, say --encoding latin-1 (in a spec or "
        "a config: encoding: latin-1)"
    )


def _few_columns(header: bytes, delimiter: str) -> bool:
    return header.count(delimiter.encode()) < MAX_COLUMNS


def _names(header: bytes, delimiter: str) -> list[str]:
    names: list[str] = pa_csv.read_csv(
        pa.BufferReader(header),
        read_options=pa_csv.ReadOptions(block_size=len(header) + 1),  # it is one block
        parse_options=_parse(delimiter, 0),
    ).column_names
    return names


def _blocks(stream: TextStream, rows: RowForm) -> Iterator[tuple[bytes, int]]:
    """The rest of a file in parts of whole rows, with the number of their ends.

    What follows the last end is the last part.
    """
    pending = b""
    while data := stream.read(max(BLOCK_BYTES, min(len(pending), MAX_ROW_BYTES - len(pending)))):
        pending += data
        end, ends = rows.end_of_rows(pending)
        if end:
            yield pending[:end], ends
            pending = pending[end:]
        elif len(pending) > MAX_ROW_BYTES:
            raise LongRowError
    if pending:
        yield pending, 0


def _as_text(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = [_text(c) if pa.types.is_binary(c.type) else c for c in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _text(values: pa.Array) -> pa.Array:
    with contextlib.suppress(pa.ArrowInvalid):
        return values.cast(pa.string())
    encoded = values.dictionary_encode()  # few cells differ, mostly: each is decoded once
    cells = [cell.decode(errors="replace") for cell in encoded.dictionary.to_pylist()]
    return pa.array(cells, pa.string()).take(encoded.indices)


def _parse(delimiter: str, columns: int) -> pa_csv.ParseOptions:
    # In a file of one column an empty line is a row whose cell is empty.
    return pa_csv.ParseOptions(
        delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=columns != 1
    )
