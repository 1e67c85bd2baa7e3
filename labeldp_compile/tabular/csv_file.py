"""Read a CSV file as text: no type is inferred, and rows may be long.

A file with an error raises DataError, which quotes no cell.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from labeldp_compile.errors import refused
from labeldp_compile.tabular.csv_rows import BadRowError, Cells, Places, RowForm, row_form
from labeldp_compile.tabular.formats import format_of
from labeldp_compile.tabular.text_stream import TextSource, TextStream
from labeldp_compile.text_form import LIKELY, PLAIN, UTF8, TextForm

BLOCK_BYTES = 1 << 22  # parsed at once, but for rows that are longer
# Each limit is checked before the work: a few kilobytes of gzip can become gigabytes.
MAX_ROW_BYTES = 1 << 26
MAX_HEADER_BYTES = 1 << 22
MAX_COLUMNS = 100_000
_HEAD_BYTES = 1 << 13


# No more is said: the message of a library may quote a label.
DAMAGED = "is damaged, and cannot be read to the end"


@dataclass(frozen=True)
class CsvFile:
    """A CSV file with a header.

    Attributes:
        names: of its columns.
        delimiter: between cells.
        start: the byte of the UTF-8 where the first row begins.
        lines: ends of rows before that.
        header: its bytes, in UTF-8.
        decimal: the decimal mark of numbers.
    """

    path: Path
    names: list[str]
    delimiter: str
    start: int
    lines: int
    header: bytes
    source: TextSource = field(repr=False)
    decimal: str = "."

    @classmethod
    def open(cls, path: Path, form: TextForm = PLAIN) -> CsvFile:
        """Read the header. Raises DataError unless there is one."""
        said = format_of(path, stream=True)
        assert said is not None
        delimiter = form.delimiter or said.delimiter or ","
        source = TextSource(path, said.gzipped, form.encoding or UTF8)
        try:
            header = _header(source, row_form(delimiter))
            if not _few_columns(header, delimiter):
                raise BadRowError(1, f"the header has more than {MAX_COLUMNS:,} columns")
            lines = row_form(delimiter).count_rows(header)
            try:
                names = _names(header, delimiter)
            except UnicodeDecodeError:
                raise BadRowError(max(lines, 1), f"the header holds {_no_text(source)}") from None
        except BadRowError as error:
            raise refused(path, f"is not a CSV file in UTF-8: {error}") from None
        except OSError:
            names = []
        if not names:
            raise refused(path, "is empty, or not a CSV file in UTF-8 with commas and a header")
        decimal = form.decimal or "."
        return cls(path, names, delimiter, len(header), lines, header, source, decimal=decimal)

    def other_delimiter(self, column: str) -> str | None:
        """The delimiter with which the header has this column, or else more columns than one."""
        others = [mark for mark in LIKELY if mark != self.delimiter]
        found = {}
        for mark in others:
            if _few_columns(self.header, mark):
                with contextlib.suppress(BadRowError, UnicodeDecodeError):
                    found[mark] = _names(self.header, mark)
        for mark, names in found.items():
            if column in names:
                return mark
        more = [mark for mark, names in found.items() if len(names) > 1]
        return more[0] if more and len(self.names) == 1 else None

    def batches(self, columns: list[str], labels: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The batches of ``blocks``."""
        return (batch for _, batch in self.blocks(columns, labels))

    def blocks(
        self, columns: list[str], labels: Sequence[str]
    ) -> Iterator[tuple[Cells, pa.RecordBatch]]:
        """Whole rows in UTF-8, and some of their columns, all as text.

        Bytes of the labels that are no UTF-8 become U+FFFD in the columns.

        Raises DataError: also for a row of another length, and for bytes of other columns that are
        no text.
        """
        rows, line = row_form(self.delimiter), self.lines + 1
        places = {name: place for place, name in enumerate(self.names)}
        schema = pa.schema([(name, pa.string()) for name in columns])
        try:
            with self.source.open_rows(self.start) as stream:
                for text, ends in self._texts(stream):
                    cells = rows.cells(text, len(self.names), line, ends)
                    found = [
                        self._column(cells, places[name], line, replaced=name in labels)
                        for name in columns
                    ]
                    line += rows.count_rows(text, ends)
                    yield cells, pa.RecordBatch.from_arrays(found, schema=schema)
        except BadRowError as error:
            raise refused(self.path, str(error)) from None
        except OSError:
            raise refused(self.path, DAMAGED) from None

    def _texts(self, stream: TextStream) -> Iterator[tuple[bytes, Places]]:
        """The rest of a file in parts of whole rows, with the ends of their cells.

        What follows the last end is the last part.
        """
        rows, pending = row_form(self.delimiter), b""
        size = BLOCK_BYTES
        while data := stream.read(size):
            pending += data
            ends = rows.whole_rows(pending, rows.ends(pending))
            if len(ends):
                after = int(ends[-1]) + 1
                yield pending[:after], ends
                pending = pending[after:]
            elif len(pending) > MAX_ROW_BYTES:
                raise refused(self.path, f"has a row of more than {MAX_ROW_BYTES:,} bytes")
            size = max(BLOCK_BYTES, min(len(pending), MAX_ROW_BYTES - len(pending)))
        if pending:
            yield pending, rows.ends(pending)

    def _column(self, cells: Cells, place: int, line: int, *, replaced: bool) -> pa.Array:
        """The cells [n] of one column as text; with ``replaced``, what is no UTF-8 becomes U+FFFD.

        ``line`` is that of the first row.
        """
        values = cells.column(place)
        with contextlib.suppress(pa.ArrowInvalid):
            return values.cast(pa.string())
        if not replaced:
            row = next(i for i, cell in enumerate(values.to_pylist()) if _is_odd(cell))
            reason = f"the column {self.names[place]!r} holds {_no_text(self.source)}"
            raise BadRowError(line + int(cells.lines[row]), reason)
        encoded = values.dictionary_encode()  # few cells differ, mostly: each is decoded once
        texts = [cell.decode(errors="replace") for cell in encoded.dictionary.to_pylist()]
        return pa.array(texts, pa.string()).take(encoded.indices)


def empty_is_null(cells: pa.Array) -> pa.Array:
    """Ids or categories [n] of cells [n]: an empty cell is missing."""
    import pyarrow.compute as pc  # noqa: PLC0415  # which looks up all functions

    return pc.if_else(pc.equal(cells, ""), None, cells)


def _no_text(source: TextSource) -> str:
    """What is wrong with bytes, and what to do."""
    if source.encoding != UTF8:
        return f"bytes that are not in {source.encoding}: give the encoding of the file"
    return (
        "bytes that are not UTF-8: if the file is in Latin-1, use --encoding latin-1 (in a spec or "
        "a config: encoding: latin-1)"
    )


def _few_columns(header: bytes, delimiter: str) -> bool:
    return header.count(delimiter.encode()) < MAX_COLUMNS


def _header(source: TextSource, rows: RowForm) -> bytes:
    """The first row that is not empty, with the line ends around it, or all there is."""
    head, header = b"", None
    with source.open_head() as stream:
        while header is None and (data := stream.read(max(_HEAD_BYTES, len(head)))):
            head += data
            empty = len(head) - len(head.lstrip(b"\r\n"))
            text = head[empty:]
            ends = rows.whole_rows(text, rows.ends(text))
            lines = [int(end) for end in ends if text[end] in b"\r\n"][:1]
            header = head[: empty + lines[0] + 1] if lines else None
            if len(head if header is None else header) > MAX_HEADER_BYTES:
                raise BadRowError(1, f"the header has more than {MAX_HEADER_BYTES:,} bytes")
        header = head if header is None else header
        stream.unread(head[len(header) :])
    return header


def _names(header: bytes, delimiter: str) -> list[str]:
    """The cells of the first row that is not empty; none of a header without one."""
    rows, text = row_form(delimiter), header.strip(b"\r\n")
    if not text:
        return []
    ends = rows.ends(text)
    row = rows.cells(text, len(ends) + 1, ends=ends)
    each = Cells(text, row.begins.T, row.ends.T, np.zeros(len(ends) + 1, dtype=np.int64))
    return [cell.decode() for cell in each.column(0).to_pylist()]


def _is_odd(cell: bytes) -> bool:
    return cell != cell.decode(errors="ignore").encode()
