"""Where rows and cells of CSV end, and where a row is not what the header says.

A quote opens a quoted cell where a cell begins, and is an ordinary character elsewhere; inside, it
is doubled. Rows end with LF, CR LF or CR outside quotes. Lines are counted as rows end: a line end
inside quotes counts for nothing, so that no label decides which line a message names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

# A quoted cell ends at a quote that is not doubled, so there is one way to read it. No group is
# possessive: before Python 3.11.5 one that fails at its end does not give back what it took.
_QUOTED = rb""" " (?: [^"]++ | "" )* "(?!") """
# Text, a quote that opens nothing, or a quoted cell; then a line end. CR waits for its LF.
_ROW = rb"""(?: [^"\r\n]++ | (?<=[^%s\r\n]) " | (?<![^%s\r\n]) QUOTED )*
            (?: \r?\n | \r(?=[^\n]) )""".replace(b"QUOTED", _QUOTED)
_CELL = _QUOTED + rb"[^%s\r\n]*+ | [^%s\r\n]*+"


class RowForm:
    """The grammar of rows for one delimiter."""

    def __init__(self, delimiter: str) -> None:
        """``delimiter`` is one ASCII character."""
        self.delimiter = delimiter.encode()
        mark = re.escape(self.delimiter)
        row = _ROW.replace(b"%s", mark)
        self._row = re.compile(row, re.VERBOSE)
        self._first_row = re.compile(rb"[\r\n]*+" + row, re.VERBOSE)
        self._quoted = re.compile(rb'(?<![^%s\r\n])"(?:[^"]++|"")*("(?!")|\Z)'.replace(b"%s", mark))
        self._cell = re.compile(_CELL.replace(b"%s", mark), re.VERBOSE)
        self._around = np.frombuffer(self.delimiter + b'"\r\n', dtype=np.uint8)

    def first_row(self, data: bytes) -> bytes | None:
        """The first row that is not empty, with the line ends around it; None if it is cut."""
        found = self._first_row.match(data)
        return None if found is None else found[0]

    def end_of_rows(self, data: bytes) -> tuple[int, int]:
        """Where the last whole row of bytes ends that begin with a row, and how many ends of rows
        stand before that.
        """
        cells = np.frombuffer(data, dtype=np.uint8)
        if b'"' not in data and b"\r" not in data:
            return data.rfind(b"\n") + 1, int(np.count_nonzero(cells == ord("\n")))
        quotes = np.flatnonzero(cells == ord('"'))
        if not self._are_usual(cells, quotes):
            end = rows = 0
            while row := self._row.match(data, end):
                end, rows = row.end(), rows + 1
            return end, rows
        ends = cells == ord("\n")
        if b"\r" in data:
            ends |= cells == ord("\r")
        lines = np.flatnonzero(ends)
        outside = lines[np.searchsorted(quotes, lines) % 2 == 0]
        if len(outside) and outside[-1] == len(data) - 1 and data.endswith(b"\r"):
            outside = outside[:-1]  # its LF may follow
        if not len(outside):
            return 0, 0
        feeds = cells[outside] == ord("\n")
        alone = cells[np.minimum(outside + 1, len(data) - 1)] != ord("\n")
        return int(outside[-1]) + 1, int(np.count_nonzero(feeds | alone))

    def spans(self, block: bytes, columns: int, place: int) -> NDArray[np.int64]:
        """[n, 2] where the cells of one column begin and end, quotes included, in whole rows.

        Raises ValueError unless every row has so many ``columns``.
        """
        cells = np.frombuffer(block, dtype=np.uint8)
        ends = self._ends_of_cells(cells, block)
        closing = cells[ends] != self.delimiter[0]
        after = ends + 1  # where the next cell begins
        if b"\r\n" in block:
            after += (cells[ends] == ord("\r")) & (
                cells[np.minimum(after, len(cells) - 1)] == ord("\n")
            )
        if len(cells) > (after[-1] if len(ends) and closing[-1] else 0):  # no line end at the end
            ends, closing = np.append(ends, len(cells)), np.append(closing, True)
            after = np.append(after, len(cells))
        starts = np.empty_like(ends)
        starts[:1], starts[1:] = 0, after[:-1]
        if columns > 1:  # an empty line is no row
            empty = closing & (starts == ends)
            empty[1:] &= closing[:-1]
            if empty.any():
                starts, ends, closing = starts[~empty], ends[~empty], closing[~empty]
        if len(ends) % columns:
            raise ValueError("a row has another length")
        by_row = closing.reshape(-1, columns)
        if by_row[:, :-1].any() or not by_row[:, -1].all():
            raise ValueError("a row has another length")
        return np.stack([starts[place::columns], ends[place::columns]], axis=1)

    def _ends_of_cells(self, cells: NDArray[np.uint8], block: bytes) -> NDArray[np.int64]:
        """Where delimiters and the first bytes of ends of rows stand, outside quotes."""
        ends = (cells == self.delimiter[0]) | (cells == ord("\n"))
        if b"\r" in block:
            back = cells == ord("\r")
            ends[1:] &= ~((cells[1:] == ord("\n")) & back[:-1])
            ends |= back
        if b'"' in block:
            quotes = cells == ord('"')
            if not self._are_usual(cells, np.flatnonzero(quotes)):
                quotes = np.zeros(len(cells), bool)
                for cell in self._quoted.finditer(block):
                    quotes[cell.start()] = True
                    quotes[cell.start(1) :][: len(cell[1])] = True  # none, if it is not closed
            ends &= ~np.logical_xor.accumulate(quotes)
        return np.flatnonzero(ends)

    def _are_usual(self, cells: NDArray[np.uint8], quotes: NDArray[np.intp]) -> bool:
        """Whether no quote stands amid a cell, where it opens nothing."""
        opening = quotes[::2]
        usual = (opening == 0) | np.isin(cells[opening - 1], self._around)
        return bool(usual.all())

    def find_fault(
        self, block: bytes, names: Sequence[str], read: Collection[str], no_text: str
    ) -> tuple[int, str] | None:
        """The first row of a block that no reader takes: ends of rows before it, and the reason.

        ``read`` are the columns that must be UTF-8; ``no_text`` says of bytes that they are not.
        What stands in other columns decides nothing, but for their number.
        """
        data, place, line = block + b"\n", 0, 0
        while place < len(block) and (row := self._row.match(data, place)):
            place = row.end()
            cells = self._cells(row[0])
            if cells != [b""] or len(names) == 1:
                if len(cells) != len(names):
                    return line, f"has {_counted(len(cells))}, but the header has {len(names):,}"
                for name, cell in zip(names, cells, strict=True):
                    if name in read and not _is_text(cell):
                        return line, f"the column {name!r} holds {no_text}"
            line += 1
        return None

    def _cells(self, row: bytes) -> list[bytes]:
        cells, place = [], 0
        while True:
            cell = self._cell.match(row, place)
            assert cell is not None
            cells.append(cell[0])
            place = cell.end()
            if row[place : place + 1] != self.delimiter:
                return cells
            place += 1


@lru_cache(maxsize=16)
def row_form(delimiter: str) -> RowForm:
    """The grammar of one delimiter."""
    return RowForm(delimiter)


def _is_text(cell: bytes) -> bool:
    try:
        cell.decode()
    except UnicodeDecodeError:
        return False
    return True


def _counted(count: int) -> str:
    return "1 cell" if count == 1 else f"{count:,} cells"
