"""Put private labels into the text of CSV rows, and leave every other byte as it is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from labeldp_compile.tabular.csv_rows import Cells, RowForm


def spliced(
    cells: Cells,
    rows: RowForm,
    places: Sequence[int],
    private: Sequence[pa.Array],
    dropped: Sequence[int] = (),
) -> list[memoryview]:
    """The text of the rows with private columns [n], in pieces.

    Private labels stand in the cells of the columns ``places``, one each, or (none) behind the last
    column. Cells of ``dropped`` columns, of which there are none without places, go with a
    delimiter.
    """
    columns = cells.begins.shape[1]
    if not places:
        cells = _as_utf8(cells, rows)
    if places:
        nothing = pa.repeat(pa.scalar(b"", pa.large_binary()), len(private[0]))
        drawn = {place: _cells(y, rows) for place, y in zip(places, private, strict=True)}
        edited = sorted({**drawn, **dict.fromkeys(dropped, nothing)}.items())
        first = min(set(range(columns)) - {*dropped})
        spans = np.hstack([_span(cells.spans(place), place, dropped, first) for place, _ in edited])
        new = [column for _, column in edited]
    else:
        spans = cells.spans(columns - 1)
        spans[:, 0] = spans[:, 1]
        delimiter = pa.scalar(rows.delimiter, pa.large_binary())
        added = [_joined(delimiter, _cells(column, rows)) for column in private]
        new = [reduce(_joined, added)]
    turn = np.arange(len(spans) * len(new)).reshape(len(new), -1).T.ravel()
    row_by_row = new[0] if len(new) == 1 else pa.concat_arrays(new).take(pa.array(turn))
    # What stands between labels, and the labels, take turns in one array over the bytes.
    ends = np.concatenate([[0], spans.ravel(), [len(cells.text)]]).astype(np.int64)
    turns = pa.Array.from_buffers(
        pa.large_binary(), len(ends) - 1, [None, pa.py_buffer(ends), pa.py_buffer(cells.text)]
    )
    rest = turns.take(pa.array(np.arange(0, len(turns), 2)))
    return [_bytes_of(_joined(rest[:-1], row_by_row)), _bytes_of(rest[-1:])]


def _span(
    spans: NDArray[np.int64], place: int, dropped: Sequence[int], first: int
) -> NDArray[np.int64]:
    """[n, 2] the bytes of a column that are replaced: of a dropped one with the delimiter before
    it, or behind it if it stands before the ``first`` that is kept."""
    if place in dropped:
        spans += (0, 1) if place < first else (-1, 0)
    return spans


def header_with(
    header: bytes,
    rows: RowForm,
    columns: int,
    places: Sequence[int],
    names: Sequence[str],
    dropped: Sequence[int] = (),
) -> bytes:
    """The header with other names, as ``spliced`` places them."""
    text = ended(header)
    row = text.lstrip(b"\r\n")
    given = [pa.array([name]) for name in names]
    pieces = spliced(rows.cells(row, columns), rows, places, given, dropped)
    return b"".join([text[: -len(row)], *pieces])


def ended(header: bytes) -> bytes:
    """The header with an end of its row."""
    text = header.rstrip(b"\r\n")
    return text + (header[len(text) :] or b"\n")


def quoted(text: str, rows: RowForm) -> bytes:
    """A cell: in quotes if it needs them."""
    cell = text.encode("utf-8", "replace")
    if not any(mark in cell for mark in (rows.delimiter, b'"', b"\r", b"\n")):
        return cell
    return b'"' + cell.replace(b'"', b'""') + b'"'


def _joined(left: pa.Array | pa.Scalar, right: pa.Array) -> pa.Array:
    """Two of large_binary, side by side."""
    # No constant of the module: Arrow imports pandas, where there is one, to make any scalar.
    import pyarrow.compute as pc  # noqa: PLC0415  # which looks up all functions

    return pc.binary_join_element_wise(left, right, pa.scalar(b"", pa.large_binary()))


def _cells(private: pa.Array, rows: RowForm) -> pa.Array:
    """[n] as Arrow writes numbers, and text in quotes if it needs them."""
    if not pa.types.is_string(private.type):
        return private.cast(pa.string()).cast(pa.large_binary())
    encoded = private.dictionary_encode()
    cells = [quoted(text, rows) for text in encoded.dictionary.to_pylist()]
    return pa.array(cells, pa.large_binary()).take(encoded.indices)


def _as_utf8(cells: Cells, rows: RowForm) -> Cells:
    """The same; bytes of a true label that is kept, and are no UTF-8, become U+FFFD."""
    try:
        cells.text.decode()
    except UnicodeDecodeError:
        return rows.cells(cells.text.decode(errors="replace").encode(), cells.begins.shape[1])
    return cells


def _bytes_of(array: pa.Array) -> memoryview:
    """The bytes of all elements."""
    if not len(array):
        return memoryview(b"")
    _, ends, data = array.buffers()
    places = np.frombuffer(ends, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
    return memoryview(b"") if data is None else memoryview(data)[places[0] : places[-1]]
