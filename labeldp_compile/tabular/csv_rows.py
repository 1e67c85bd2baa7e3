"""Where rows and cells of CSV begin and end, and the text in them.

A quote opens a quoted cell where a cell begins, and is an ordinary character elsewhere; inside, it
is doubled. Rows end with LF, CR LF or CR outside quotes. Lines are counted by ends of rows: a line
end inside quotes does not count, so that no label decides which line a message names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_QUOTE, _LINE_FEED, _RETURN = b'"\n\r'
# A quoted cell ends at a quote that is not doubled, or with the text.
_QUOTED = rb'"((?:[^"]++|"")*)(?:"(?!")|\Z)'
Places = NDArray[np.int64]


class BadRowError(Exception):
    """A row does not fit the header; the message quotes no cell."""

    def __init__(self, line: int, reason: str) -> None:
        """``line`` counts from 1, as rows end."""
        super().__init__(f"line {line:,}: {reason}")


@dataclass(frozen=True)
class Cells:
    """Whole rows, and where their cells stand, quotes included.

    Attributes:
        text: of the rows.
        begins, ends: [n, columns] places in the text.
        lines: [n] ends of rows before each row, those of empty lines too.
    """

    text: bytes
    begins: Places
    ends: Places
    lines: Places

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.lines)

    def column(self, place: int) -> pa.Array:
        """The cells [n] of one column as bytes, without their quotes."""
        begins, ends = self.begins[:, place], self.ends[:, place]
        data = np.frombuffer(self.text, dtype=np.uint8)
        quoted = (begins < ends) & (data[np.minimum(begins, len(data) - 1)] == _QUOTE)
        if not quoted.any():
            return between(self.text, begins, ends)
        closed = quoted & (ends - begins > 1) & (data[ends - 1] == _QUOTE)
        begins, ends = begins + closed, ends - closed
        plain = between(self.text, begins, ends)
        inside = np.searchsorted(self._quotes, [begins, ends])
        odd = np.flatnonzero(quoted & ((inside[0] < inside[1]) | ~closed))
        if not len(odd):
            return plain
        spans = zip(self.begins[odd, place].tolist(), self.ends[odd, place].tolist(), strict=True)
        read = pa.array([_unquoted(self.text[start:end]) for start, end in spans], plain.type)
        which = np.arange(len(self))
        which[odd] = len(self) + np.arange(len(odd))
        return pa.concat_arrays([plain, read]).take(pa.array(which))

    def rows(self, chosen: NDArray[np.bool_]) -> Cells:
        """Some of the rows, each with its end; the last one gets one if it has none."""
        following = np.append(self.begins[1:, 0], len(self.text))[: len(self)]
        starts, stops = self.begins[chosen, 0], following[chosen]
        text = bytes(text_of(between(self.text, starts, stops)))
        by = (starts - np.append(0, np.cumsum(stops - starts))[:-1])[:, None]
        text += b"" if not text or text.endswith((b"\n", b"\r")) else b"\n"
        return Cells(text, self.begins[chosen] - by, self.ends[chosen] - by, self.lines[chosen])

    @cached_property
    def _quotes(self) -> NDArray[np.intp]:
        return np.flatnonzero(np.frombuffer(self.text, dtype=np.uint8) == _QUOTE)


class RowForm:
    """The grammar of rows for one delimiter."""

    def __init__(self, delimiter: str) -> None:
        """``delimiter`` is one ASCII character."""
        self.delimiter = delimiter.encode()
        before = rb"(?<![^%s\r\n])".replace(b"%s", re.escape(self.delimiter))
        self._quoted = re.compile(before + _QUOTED)
        self._around = np.frombuffer(self.delimiter + b'"\r\n', dtype=np.uint8)

    def ends(self, text: bytes) -> Places:
        """Where delimiters and ends of rows stand outside quotes; of CR LF the LF.

        ``text`` begins with a row.
        """
        data = np.frombuffer(text, dtype=np.uint8)
        marks = (data == self.delimiter[0]) | (data == _LINE_FEED)
        has_returns, has_quotes = b"\r" in text, b'"' in text
        if has_returns:
            marks |= data == _RETURN
        if has_quotes:
            marks |= data == _QUOTE
        places = np.flatnonzero(marks)
        if has_quotes:
            quotes = data[places] == _QUOTE
            outside = ~quotes & ~self._quoted_at(text, data, places, quotes)
            places = places[outside]
        if has_returns:
            following = data[np.minimum(places + 1, len(data) - 1)]
            places = places[(data[places] != _RETURN) | (following != _LINE_FEED)]
        return places

    def whole_rows(self, text: bytes, ends: Places) -> Places:
        """Those ``ends`` that are of whole rows, where more text may follow."""
        data = np.frombuffer(text, dtype=np.uint8)
        if text.endswith(b"\r"):  # its LF may follow
            ends = ends[ends < len(data) - 1]
        lines = np.flatnonzero(data[ends] != self.delimiter[0])
        return ends[: lines[-1] + 1] if len(lines) else ends[:0]

    def count_rows(self, text: bytes, ends: Places | None = None) -> int:
        """How many ends of rows stand in a text."""
        ends = self.ends(text) if ends is None else ends
        return int(np.count_nonzero(np.frombuffer(text, np.uint8)[ends] != self.delimiter[0]))

    def cells(self, text: bytes, columns: int, line: int = 1, ends: Places | None = None) -> Cells:
        """The cells of whole rows, which ``ends`` end if they are known; the last row may have no
        end. An empty line is a row of one column, and else none.

        Raises BadRowError unless every row has ``columns`` cells; ``line`` is that of the first.
        """
        data = np.frombuffer(text, dtype=np.uint8)
        ends = self.ends(text) if ends is None else ends
        closing = data[ends] != self.delimiter[0]
        returns = (data[ends] == _LINE_FEED) & (ends > 0) & (data[ends - 1] == _RETURN)
        begins, stops = np.append(0, ends + 1), np.append(ends - returns, len(text))
        closing = np.append(closing, True)
        first = np.append(True, closing[:-1])
        if first[-1] and begins[-1] == len(text):  # the last row has its end
            begins, stops, closing, first = begins[:-1], stops[:-1], closing[:-1], first[:-1]
        rows = np.cumsum(first) - 1
        if columns > 1 and (empty := first & closing & (begins == stops)).any():
            begins, stops, closing = begins[~empty], stops[~empty], closing[~empty]
            rows = rows[~empty]
        whole, lasts = len(closing) % columns == 0, np.arange(columns - 1, len(closing), columns)
        if not whole or not np.array_equal(np.flatnonzero(closing), lasts):
            counts = np.diff(np.flatnonzero(closing), prepend=-1)
            wrong = int(np.argmax(counts != columns))
            row = int(rows[np.flatnonzero(closing)[wrong]])
            count = "1 cell" if counts[wrong] == 1 else f"{counts[wrong]:,} cells"
            raise BadRowError(line + row, f"has {count}, but the header has {columns:,}")
        shape = (-1, columns)
        return Cells(text, begins.reshape(shape), stops.reshape(shape), rows[::columns])

    def _quoted_at(
        self, text: bytes, data: NDArray[np.uint8], places: Places, quotes: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Which of the ``places`` are inside quotes."""
        opening = places[quotes][::2]
        usual = (opening == 0) | np.isin(data[opening - 1], self._around)
        if usual.all():  # no quote stands amid a cell, where it opens nothing
            odd = np.cumsum(quotes, dtype=np.uint8) & 1  # which may overflow: 256 is even
            return odd.astype(bool)
        inside = np.zeros(len(data), dtype=bool)
        for cell in self._quoted.finditer(text):
            inside[cell.start() : cell.end()] = True
        return inside[places]


@lru_cache(maxsize=16)
def row_form(delimiter: str) -> RowForm:
    """The grammar of one delimiter."""
    return RowForm(delimiter)


def between(text: bytes, begins: Places, ends: Places) -> pa.Array:
    """[n] the pieces of a text, in their order, as large_binary."""
    edges = np.stack([begins, ends], axis=1).ravel().astype(np.int64)
    turns = pa.Array.from_buffers(
        pa.large_binary(), max(len(edges) - 1, 0), [None, pa.py_buffer(edges), pa.py_buffer(text)]
    )
    return turns.take(pa.array(np.arange(0, len(turns), 2)))


def text_of(pieces: pa.Array) -> memoryview:
    """The bytes of all pieces [n], of large_binary, one after the other."""
    _, ends, data = pieces.buffers()
    if not len(pieces) or data is None:
        return memoryview(b"")
    places: NDArray[np.int64] = np.frombuffer(ends, dtype=np.int64)
    return memoryview(data)[places[pieces.offset] : places[pieces.offset + len(pieces)]]


def _unquoted(cell: bytes) -> bytes:
    """The text of a cell that begins with a quote."""
    found = re.match(_QUOTED, cell)
    assert found is not None
    return found[1].replace(b'""', b'"') + cell[found.end() :]
