"""Put private labels into the text of a CSV block, and leave every other byte as it is."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from labeldp_compile.tabular.csv_rows import RowForm


def spliced(
    block: bytes, rows: RowForm, columns: int, place: int | None, private: pa.Array
) -> list[memoryview]:
    """The block with private labels [n], in pieces.

    They stand in the cells of the column ``place``, or (None) behind the last one of ``columns``.
    Raises ValueError unless the block has n rows of so many cells.
    """
    if place is None:
        block = _as_utf8(block)
    spans = rows.spans(block, columns, columns - 1 if place is None else place)
    if len(spans) != len(private):
        raise ValueError("the block has another number of rows")
    cells = _cells(private, rows)
    if place is None:
        spans[:, 0] = spans[:, 1]
        cells = _joined(pa.scalar(rows.delimiter, pa.large_binary()), cells)
    # What stands between labels, and the labels, take turns in one array over the block's bytes.
    ends = np.concatenate([[0], spans.ravel(), [len(block)]]).astype(np.int64)
    turns = pa.Array.from_buffers(
        pa.large_binary(), len(ends) - 1, [None, pa.py_buffer(ends), pa.py_buffer(block)]
    )
    rest = turns.take(pa.array(np.arange(0, len(turns), 2)))
    return [_bytes_of(_joined(rest[:-1], cells)), _bytes_of(rest[-1:])]


def header_with(header: bytes, rows: RowForm, name: str | None) -> bytes:
    """The header, with one more name (if it is one) and with an end of its row."""
    text = header.rstrip(b"\r\n")
    end = header[len(text) :] or b"\n"
    return text + end if name is None else text + rows.delimiter + quoted(name, rows) + end


def quoted(text: str, rows: RowForm) -> bytes:
    """A cell: in quotes if it needs them."""
    cell = text.encode("utf-8", "replace")
    if not any(mark in cell for mark in (rows.delimiter, b'"', b"\r", b"\n")):
        return cell
    return b'"' + cell.replace(b'"', b'""') + b'"'


def _joined(left: pa.Array | pa.Scalar, right: pa.Array) -> pa.Array:
    """Two of large_binary, side by side."""
    # No constant of the module: Arrow imports pandas, where there is one, to make any scalar.
    return pc.binary_join_element_wise(left, right, pa.scalar(b"", pa.large_binary()))


def _cells(private: pa.Array, rows: RowForm) -> pa.Array:
    """[n] as Arrow writes numbers, and text in quotes if it needs them."""
    if not pa.types.is_string(private.type):
        return private.cast(pa.string()).cast(pa.large_binary())
    encoded = private.dictionary_encode()
    cells = [quoted(text, rows) for text in encoded.dictionary.to_pylist()]
    return pa.array(cells, pa.large_binary()).take(encoded.indices)


def _as_utf8(block: bytes) -> bytes:
    """The same; bytes of a true label that is kept, and are no UTF-8, become U+FFFD."""
    try:
        block.decode()
    except UnicodeDecodeError:
        return block.decode(errors="replace").encode()
    return block


def _bytes_of(array: pa.Array) -> memoryview:
    """The bytes of all elements."""
    if not len(array):
        return memoryview(b"")
    _, ends, data = array.buffers()
    places = np.frombuffer(ends, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
    return memoryview(b"") if data is None else memoryview(data)[places[0] : places[-1]]
