"""Read a CSV file as text: no type is inferred, and rows may be long.

Its bytes become UTF-8, from any encoding and from gzip; nothing is stored. A file with an error
raises DataError, which quotes no cell.
"""

from __future__ import annotations

import contextlib
import gzip
import sys
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import pyarrow as pa
from labeldp_verify.printable import one_line

from labeldp_compile.errors import refused
from labeldp_compile.tabular.csv_rows import (
    HIDDEN_ROWS,
    MAY_HIDE,
    UNCLOSED,
    BadRowError,
    Cells,
    Places,
    row_form,
)
from labeldp_compile.tabular.formats import (
    PLAIN,
    UTF8,
    TextForm,
    format_of,
    is_stream,
)

_BOM = b"\xef\xbb\xbf"
_OTHERS = {  # what begins with these bytes is no text
    b"\xff\xfe": "is UTF-16: save it as UTF-8",
    b"\xfe\xff": "is UTF-16: save it as UTF-8",
    b"PAR1\x15": "is Parquet and not text: give it as a file called NAME.parquet",
    b"PARE": "is encrypted Parquet: decrypt it, and give it as a file called NAME.parquet",
    b"\x1f\x8b": "is compressed: decompress it first (gunzip), or give a file called NAME.csv.gz",
}


class TextStream:
    """Reads UTF-8 from a file in UTF-8 or in an encoding of one byte per character.

    A byte that the encoding does not have becomes bytes that are not UTF-8.
    """

    def __init__(self, file: BinaryIO, source: TextSource) -> None:
        """``file`` stands at its beginning."""
        self._file, self._source = file, source
        self._pending, self._begun = b"", False

    def read(self, size: int) -> bytes:
        """Some of the next bytes, none at the end. Raises OSError, DataError for no text."""
        if self._pending:
            data, self._pending = self._pending[:size], self._pending[size:]
            return data
        try:  # what a file begins with has at most five bytes, which no short read may part
            data = self._file.read(size if self._begun else max(size, 5))
        except (EOFError, zlib.error) as error:
            raise OSError("the compressed file is damaged") from error
        is_first, self._begun = not self._begun, True
        if is_first:
            for magic, reason in _OTHERS.items():
                if data.startswith(magic):
                    raise refused(self._source.path, reason)
        if self._source.encoding != UTF8:
            text = data.decode(self._source.encoding, "surrogateescape")
            return text.encode(UTF8, "surrogatepass")
        return data if not is_first else data.removeprefix(_BOM) or self._file.read(size)

    def unread(self, data: bytes) -> None:
        """Bytes that the next ``read`` gives again."""
        self._pending = data + self._pending

    def skip(self, size: int) -> None:
        """Read as many bytes, and forget them.

        Bytes of the file may become more bytes of UTF-8: what is too many is read again.
        """
        while size and (data := self.read(size)):
            self.unread(data[size:])
            size -= len(data[:size])


@dataclass
class TextSource:
    """A text table that can be opened: a file any number of times, standard input once."""

    path: Path
    gzipped: bool = False
    encoding: str = UTF8
    _stream: TextStream | None = field(default=None, repr=False)

    @contextmanager
    def open(self) -> Iterator[TextStream]:
        """The table from its beginning. Raises OSError."""
        with self.path.open("rb") as file:
            if self.gzipped:
                with gzip.GzipFile(fileobj=file) as unpacked:
                    yield TextStream(cast(BinaryIO, unpacked), self)
            else:
                yield TextStream(file, self)

    @contextmanager
    def open_head(self) -> Iterator[TextStream]:
        """The open file for the header; rows that are put back are read by ``open_rows``."""
        if is_stream(self.path):
            self._stream = TextStream(sys.stdin.buffer, self)
            yield self._stream
        else:
            with self.open() as stream:
                yield stream

    @contextmanager
    def open_rows(self, start: int) -> Iterator[TextStream]:
        """The table from the byte ``start`` of its UTF-8, where ``open_head`` stopped.

        Raises OSError, and DataError for standard input the second time.
        """
        if is_stream(self.path):
            stream, self._stream = self._stream, None
            if stream is None:
                # Rows are only read again to find out which ids are the same.
                reason = "standard input cannot be read again to find them: give a file"
                raise refused(self.path, f"some rows have the same id, and {reason}")
            yield stream
            return
        with self.open() as stream:
            stream.skip(start)
            yield stream


BLOCK_BYTES = 1 << 22  # parsed at once, but for rows that are longer
# Each limit is checked before the work: a few kilobytes of gzip can become gigabytes.
MAX_ROW_BYTES = 1 << 26
MAX_HEADER_BYTES = 1 << 22
MAX_COLUMNS = 100_000
_HEAD_BYTES = 1 << 13
_NAMED_LINES = 5  # in a warning


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
        multiline_cells: whether quoted cells may contain line ends without a word.
    """

    path: Path
    names: list[str]
    delimiter: str
    start: int
    lines: int
    header: bytes
    source: TextSource = field(repr=False)
    decimal: str = "."
    multiline_cells: bool = False
    _warned: list[str] = field(default_factory=list, repr=False)

    @classmethod
    def open(cls, path: Path, form: TextForm = PLAIN) -> CsvFile:
        """Read the header. Raises DataError unless there is one."""
        said = format_of(path, stream=True)
        assert said is not None
        delimiter = form.delimiter or said.delimiter or ","
        source = TextSource(path, said.gzipped, form.encoding or UTF8)
        try:
            header = _header(source, delimiter)
            if header.count(delimiter.encode()) >= MAX_COLUMNS:
                raise BadRowError(1, f"the header has more than {MAX_COLUMNS:,} columns")
            names, lines = _names(header, delimiter, source)
            if not form.multiline_cells and any("\n" in name or "\r" in name for name in names):
                raise BadRowError(
                    max(lines, 1), f"the header has a cell with line ends: {MAY_HIDE}"
                )
        except BadRowError as error:
            raise refused(path, f"is not a CSV file in UTF-8: {error}") from None
        except OSError:
            names = []
        if not names:
            raise refused(path, "is empty, or not a CSV file in UTF-8 with commas and a header")
        mark, meant = form.decimal or ".", form.multiline_cells
        return cls(path, names, delimiter, len(header), lines, header, source, mark, meant)

    def batches(self, columns: list[str], labels: Collection[str]) -> Iterator[pa.RecordBatch]:
        """The batches of ``blocks``."""
        return (batch for _, batch in self.blocks(columns, labels))

    def blocks(
        self, columns: list[str], labels: Collection[str]
    ) -> Iterator[tuple[Cells, pa.RecordBatch]]:
        """Whole rows in UTF-8, and some of their columns, all as text.

        Bytes of the labels that are no UTF-8 become U+FFFD in the columns. A line on stderr names
        rows whose other cells contain line ends; a cell of a label, read or not, decides nothing.

        Raises DataError: also for a malformed row, or one of another length, for a cell that may
        hide rows, and for bytes of other columns that are no text. The first row at fault is
        named, wherever blocks end: the bytes of labels move these.
        """
        rows, width = row_form(self.delimiter), len(self.names)
        places = {name: place for place, name in enumerate(self.names)}
        hidden = {places[name] for name in labels if name in places}
        schema = pa.schema([(name, pa.string()) for name in columns])
        named: list[int] = []
        try:
            with self.source.open_rows(self.start) as stream:
                for text, ends, inside, line in self._texts(stream):
                    cells, ragged = rows.cells(text, width, ends, line)
                    found, faults = [], [ragged] if ragged else []
                    if len(inside) and not self.multiline_cells:
                        odd, hiding = rows.multiline(cells, inside, hidden)
                        named += (line + cells.lines[np.setdiff1d(odd, hiding)]).tolist()
                        faults += [
                            BadRowError(line + int(cells.lines[row]), HIDDEN_ROWS)
                            for row in hiding[:1]
                        ]
                    for name in columns:
                        try:
                            replaced = name in labels
                            found.append(self._column(cells, places[name], line, replaced=replaced))
                        except BadRowError as error:
                            faults.append(error)
                    if faults:
                        first = min(faults, key=lambda fault: fault.line)
                        named = [row for row in named if row < first.line]
                        raise first
                    yield cells, pa.RecordBatch.from_arrays(found, schema=schema)
        except BadRowError as error:
            raise refused(self.path, str(error)) from None
        except OSError:
            raise refused(self.path, DAMAGED) from None
        finally:
            self._warn(named)

    def _warn(self, lines: list[int]) -> None:
        """Say once which rows have cells with line ends."""
        if not lines or self._warned:
            return
        more = len(lines) - _NAMED_LINES
        shown = ", ".join(f"{line:,}" for line in lines[:_NAMED_LINES])
        self._warned.append(
            f"labeldp: {self.path}: line{'s' * (len(lines) > 1)} {shown}"
            + (f" and {more:,} more" if more > 0 else "")
            + ": quoted cells contain line ends. Check that no stray quote hides rows, with their "
            "labels, in them; with --multiline-cells this is not said (in a spec or a config: "
            "multiline_cells: true)"
        )
        sys.stderr.write(one_line(self._warned[0]) + "\n")

    def _texts(self, stream: TextStream) -> Iterator[tuple[bytes, Places, Places, int]]:
        """The rest of a file in parts of whole rows: the ends of their cells, delimiters and line
        ends inside cells, and the line of the first row.

        What follows the last end is the last part. Raises BadRowError for a malformed row.
        """
        rows, pending, line = row_form(self.delimiter), b"", self.lines + 1
        size = BLOCK_BYTES
        while data := stream.read(size):
            pending += data
            marks = rows.marks(pending)
            if after := rows.whole_rows(pending, marks):
                ends = marks.ends[: np.searchsorted(marks.ends, after)]
                yield pending[:after], ends, marks.inside[marks.inside < after], line
                pending, line = pending[after:], line + rows.count_rows(pending, ends)
            if marks.fault:
                raise BadRowError(line, marks.fault)
            if len(pending) > MAX_ROW_BYTES:
                why = UNCLOSED if marks.is_open else "the row is too long"
                raise BadRowError(line, f"has more than {MAX_ROW_BYTES:,} bytes: {why}")
            size = max(BLOCK_BYTES, min(len(pending), MAX_ROW_BYTES - len(pending)))
        if pending:
            marks = rows.marks(pending)
            if marks.is_open:
                raise BadRowError(line, UNCLOSED)
            yield pending, marks.ends, marks.inside, line

    def _column(self, cells: Cells, place: int, line: int, *, replaced: bool) -> pa.Array:
        """The cells [n] of one column as text; with ``replaced``, what is no UTF-8 becomes U+FFFD.

        ``line`` is that of the first row.
        """
        values = cells.column(place)
        with contextlib.suppress(pa.ArrowInvalid):
            return values.cast(pa.string())
        if not replaced:
            cells_in = enumerate(values.to_pylist())
            row = next(i for i, cell in cells_in if cell.decode(errors="ignore").encode() != cell)
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
    """The fault of bytes that are no text, and its remedy."""
    if source.encoding != UTF8:
        return f"bytes that are not in {source.encoding}: give the encoding of the file"
    return (
        "bytes that are not UTF-8: if the file is in Latin-1, use --encoding latin-1 (in a spec or "
        "a config: encoding: latin-1)"
    )


def _header(source: TextSource, delimiter: str) -> bytes:
    """The first row that is not empty, with the line ends around it, or all there is."""
    rows, head, header = row_form(delimiter), b"", None
    with source.open_head() as stream:
        while header is None and (data := stream.read(max(_HEAD_BYTES, len(head)))):
            head += data
            empty = len(head) - len(head.lstrip(b"\r\n"))
            text = head[empty:]
            marks = rows.marks(text)
            whole = marks.ends[marks.ends < rows.whole_rows(text, marks)]
            lines = [int(end) for end in whole if text[end] in b"\r\n"][:1]
            header = head[: empty + lines[0] + 1] if lines else head if marks.fault else None
            if len(head if header is None else header) > MAX_HEADER_BYTES:
                raise BadRowError(1, f"the header has more than {MAX_HEADER_BYTES:,} bytes")
        header = head if header is None else header
        stream.unread(head[len(header) :])
    return header


def _names(header: bytes, delimiter: str, source: TextSource) -> tuple[list[str], int]:
    """The cells of the first row that is not empty, none of a header without one; and how many
    rows end in the header. Raises BadRowError."""
    rows, text = row_form(delimiter), header.strip(b"\r\n")
    if not text:
        return [], 0
    before = header[: header.index(text)]
    line = rows.count_rows(before, rows.marks(before).ends) + 1
    marks = rows.marks(text)
    if marks.fault or marks.is_open:
        hint = "if another character separates the cells, use --delimiter"
        raise BadRowError(line, f"{marks.fault or UNCLOSED}; {hint}")
    row, _ = rows.cells(text, len(marks.ends) + 1, marks.ends)
    each = Cells(text, row.begins.T, row.ends.T, row.lines.repeat(len(marks.ends) + 1))
    try:
        names = [cell.decode() for cell in each.column(0).to_pylist()]
    except UnicodeDecodeError:
        raise BadRowError(line, f"the header holds {_no_text(source)}") from None
    return names, line - header.endswith(text)
