"""Where rows and cells of CSV begin and end, and the text in them.

A quote may only stand around a whole cell, and inside such a cell only doubled: where it stands
elsewhere, readers disagree on which line ends it hides (docs/tables.md). Rows end with LF, CR LF
or CR outside quotes. Lines are counted by ends of rows: a line end inside quotes does not count,
so that no label decides which line a message names.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_QUOTE, _LINE_FEED, _RETURN = b'"\n\r'
_NO_OPENING = (
    "a quote stands inside a cell that does not begin with one: write the cell in quotes, and "
    "each quote in it twice"
)
_NO_END = "text follows the quote that closes a cell: inside a quoted cell, write each quote twice"
UNCLOSED = "a quote opens a cell, and no quote closes it"
MAY_HIDE = (
    "a stray quote may hide rows, with their labels, in such a cell. If it is meant, use "
    "--multiline-cells (in a spec or a config: multiline_cells: true)"
)
HIDDEN_ROWS = (
    "quoted cells contain line ends, and their lines as many delimiters as two rows have: "
    + MAY_HIDE
)
Places = NDArray[np.int64]


class BadRowError(Exception):
    """A row does not fit the header; the message quotes no cell."""

    def __init__(self, line: int, reason: str) -> None:
        """``line`` counts from 1, as rows end."""
        self.line = line
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
        import pyarrow.compute as pc  # noqa: PLC0415  # which looks up all functions

        begins, ends = self.begins[:, place], self.ends[:, place]
        data = np.frombuffer(self.text, dtype=np.uint8)
        quoted = (begins < ends) & (data[np.minimum(begins, len(data) - 1)] == _QUOTE)
        if not quoted.any():
            return between(self.text, begins, ends)
        cells = between(self.text, begins + quoted, ends - quoted)
        return pc.replace_substring(cells, '""', '"') if b'""' in self.text else cells

    def rows(self, chosen: NDArray[np.bool_]) -> Cells:
        """Some of the rows, each with its end; the last one gets one if it has none."""
        following = np.append(self.begins[1:, 0], len(self.text))[: len(self)]
        starts, stops = self.begins[chosen, 0], following[chosen]
        text = bytes(text_of(between(self.text, starts, stops)))
        by = (starts - np.append(0, np.cumsum(stops - starts))[:-1])[:, None]
        text += b"" if not text or text.endswith((b"\n", b"\r")) else b"\n"
        return Cells(text, self.begins[chosen] - by, self.ends[chosen] - by, self.lines[chosen])


@dataclass(frozen=True)
class Marks:
    """Delimiters and line ends in a text that begins with a row; of CR LF outside quotes the LF.

    Attributes:
        ends: places outside quotes, which end cells; none after a ``fault``.
        inside: places inside quotes.
        fault: why the row after the last whole one is malformed, if a quote in it says so.
        is_open: whether the text ends inside quotes.
    """

    ends: Places
    inside: Places
    fault: str | None = None
    is_open: bool = False


class RowForm:
    """The grammar of rows for one delimiter."""

    def __init__(self, delimiter: str) -> None:
        """``delimiter`` is one ASCII character."""
        self.delimiter = delimiter.encode()
        self._around = np.zeros(256, dtype=bool)  # bytes beside a quote that opens or closes
        self._around[list(self.delimiter + b'"\r\n')] = True

    def marks(self, text: bytes) -> Marks:
        """The delimiters and line ends of a text that begins with a row."""
        data = np.frombuffer(text, dtype=np.uint8)
        marks = (data == self.delimiter[0]) | (data == _LINE_FEED)
        has_returns, has_quotes = b"\r" in text, b'"' in text
        if has_returns:
            marks |= data == _RETURN
        if has_quotes:
            marks |= data == _QUOTE
        places = np.flatnonzero(marks)
        inside, fault, is_open = places[:0], None, False
        if has_quotes:
            quotes = data[places] == _QUOTE
            at = places[
                quotes
            ]  # they open and close in turn; a doubled one closes, and opens again
            begins, stops = at[::2], at[1::2]
            wrong = [
                begins[~self._around[data[begins - 1]] & (begins > 0)][:1],
                stops[~self._around[data[np.minimum(stops + 1, len(data) - 1)]]][:1],
            ]
            is_open = len(at) % 2 == 1
            is_inside = (np.cumsum(quotes, dtype=np.uint8) & 1).astype(bool)  # 256 is even, too
            if len(faults := np.concatenate(wrong)):
                fault = _NO_OPENING if faults.min() in wrong[0] else _NO_END
                before = int(np.searchsorted(places, faults.min()))
                places, quotes, is_inside = places[:before], quotes[:before], is_inside[:before]
            inside, places = places[is_inside & ~quotes], places[~is_inside & ~quotes]
        if has_returns:
            following = data[np.minimum(places + 1, len(data) - 1)]
            places = places[(data[places] != _RETURN) | (following != _LINE_FEED)]
        return Marks(places, inside, fault, is_open)

    def whole_rows(self, text: bytes, marks: Marks) -> int:
        """How many bytes of a text are whole rows, where more text may follow."""
        data, ends = np.frombuffer(text, dtype=np.uint8), marks.ends
        if text.endswith(b"\r"):  # its LF may follow
            ends = ends[ends < len(data) - 1]
        lines = np.flatnonzero(data[ends] != self.delimiter[0])
        return int(ends[lines[-1]]) + 1 if len(lines) else 0

    def count_rows(self, text: bytes, ends: Places) -> int:
        """How many of the ``ends`` of cells in a text are ends of rows."""
        return int(np.count_nonzero(np.frombuffer(text, np.uint8)[ends] != self.delimiter[0]))

    def cells(
        self, text: bytes, columns: int, ends: Places, line: int = 1
    ) -> tuple[Cells, BadRowError | None]:
        """The cells of whole rows, which ``ends`` end; the last row may have no end. An empty line
        is a row of one column, and else none.

        If a row has not as many cells as ``columns``, the cells of the rows before it, and the
        error; ``line`` is that of the first row.
        """
        data, fault = np.frombuffer(text, dtype=np.uint8), None
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
            fault = BadRowError(line + row, f"has {count}, but the header has {columns:,}")
            kept = wrong * columns
            begins, stops, rows = begins[:kept], stops[:kept], rows[:kept]
        shape = (-1, columns)
        return Cells(text, begins.reshape(shape), stops.reshape(shape), rows[::columns]), fault

    def multiline(
        self, cells: Cells, inside: Places, labels: Collection[int]
    ) -> tuple[Places, Places]:
        """Rows [m] with line ends inside cells, and those of them whose cells may hide rows.

        ``inside`` are places of delimiters and line ends in quotes. Cells of the columns ``labels``
        decide nothing: the line in which such a cell stands counts as a whole row. A row may hide
        rows if its lines have as many delimiters as two rows. Proof for a row that stray quotes
        join of rows whose texts have no line end: its first and its last line are those of two
        rows, with all their delimiters, unless a label joins them.
        """
        columns = cells.begins.shape[1]
        separators = columns - 1
        inside = inside[inside < cells.ends[-1, -1]] if len(cells) else inside[:0]
        cell = np.searchsorted(cells.begins.ravel(), inside, side="right") - 1
        chosen = ~np.isin(cell % columns, list(labels))
        inside, cell = inside[chosen], cell[chosen]
        is_mark = np.frombuffer(cells.text, np.uint8)[inside] == self.delimiter[0]
        odd, lines = np.unique(cell[~is_mark] // columns, return_counts=True)
        begins, ends = cells.begins[odd], cells.ends[odd]
        starts = np.sort(np.append(begins[:, 0], inside[~is_mark]))
        first = np.append(0, np.cumsum(lines + 1))[:-1]  # of each row's lines
        stops = np.roll(starts, -1)
        stops[first + lines] = ends[:, -1] + 1
        marks, labelled = (
            np.diff(np.searchsorted(places, [starts, stops]), axis=0)[0]
            for places in (
                np.sort(np.append(inside[is_mark], ends[:, :-1])),
                np.sort(begins[:, list(labels)].ravel()),
            )
        )
        counts = np.where(labelled > 0, np.maximum(marks, separators), marks)
        total = np.add.reduceat(counts, first) if len(first) else first
        return odd, odd[total >= 2 * separators]


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
