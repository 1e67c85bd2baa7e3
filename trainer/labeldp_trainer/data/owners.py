"""Which rows belong to one user: integers from a column of names, however these are written.

Every method that protects users asks this one function. Two names are one user if they are equal

* as numbers, exactly: 3 and 3.0, −0.0 and 0.0, but not 2^53 and 2^53 + 1;
* as text in Unicode's form NFC, without white space at either end; text that is a number by the
  grammar of ``number_cells`` is that number, so that Parquet, CSV and archives agree;
* as bytes, or as times.

What differs otherwise, as in upper and lower case, is two users. To take two users for one only
makes a promise stronger than stated: whatever one of them may change, both together may. To take
one for two would break it. A row without a user (null, NaN, NaT, empty text) is refused.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Hashable
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Int64
from numpy.typing import NDArray

from labeldp_compile.tabular.number_cells import number_in
from labeldp_trainer.data.labels import Cells
from labeldp_trainer.errors import DataError

_MISSING = None
_TEXT_OR_BYTES = re.compile(r"(large_)?(string|binary)|fixed_size_binary\[.*\]")


def owner_codes(column: Any, source: str, name: str) -> Int64[np.ndarray, " n"]:
    """[n] the number 0 … u − 1 of the user who owns each row.

    column: a column [n] of ``DataPart.columns``; ``source`` and ``name`` are in messages. Users are
    numbered in the order of their names as text (of the first, if one has several), so that the
    numbers depend neither on the order of rows nor on other columns. Raises DataError if a row
    names no user, or the column holds what names nobody.
    """
    distinct, texts, place = _distinct(column, source, name)
    keys = [_key(value) for value in distinct]
    if any(key is _MISSING for key in keys):
        raise _nobody(source, name)
    numbers: dict[Hashable, int] = {}
    for index in sorted(range(len(keys)), key=texts.__getitem__):
        numbers.setdefault(keys[index], len(numbers))
    return np.array([numbers[key] for key in keys], np.int64)[place]


def _key(value: Any) -> Hashable:
    """Equal for names of one user; None if this names nobody. Python compares numbers exactly."""
    if isinstance(value, str):
        text = unicodedata.normalize("NFC", value).strip()
        number = number_in(text.encode("utf-8", "surrogatepass"))
        return (text or _MISSING) if number is None else number
    if isinstance(value, bytes):
        return value or _MISSING
    if isinstance(value, float) and math.isnan(value):
        return _MISSING
    key: Hashable = value
    return key


def _distinct(
    column: Any, source: str, name: str
) -> tuple[list[Any], list[str], NDArray[np.int64]]:
    """Values that differ (some may be equal as users), each as text, and each row's place there."""
    if isinstance(column, Cells):
        column = column.values
    if isinstance(column, pa.Array | pa.ChunkedArray):
        column = _plain(column, source, name)
    if isinstance(column, pa.Array):
        encoded = column.dictionary_encode()
        values = encoded.dictionary.to_pylist()
        return values, [_text(value) for value in values], encoded.indices.to_numpy()
    return _of_numpy(np.asarray(column), source, name)


def _plain(column: pa.Array | pa.ChunkedArray, source: str, name: str) -> Any:
    """Text, bytes and decimals as an array without nulls; other columns as numpy's."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    if pa.types.is_dictionary(column.type):
        return _plain(column.dictionary_decode(), source, name)
    if column.null_count or pa.types.is_null(column.type):
        raise _nobody(source, name)
    kind, wide = column.type, {"string_view": pa.large_string(), "binary_view": pa.large_binary()}
    if str(kind) in wide:
        return column.cast(wide[str(kind)])
    if _TEXT_OR_BYTES.fullmatch(str(kind)) or pa.types.is_decimal(kind):
        return column
    if pa.types.is_time(kind):
        column = column.view(pa.int32() if kind.bit_width == pa.int32().bit_width else pa.int64())
    elif not (pa.types.is_primitive(kind) and not pa.types.is_interval(kind)):
        raise _no_names(source, name, str(kind))
    return column.to_numpy(zero_copy_only=False)


def _of_numpy(
    column: NDArray[Any], source: str, name: str
) -> tuple[list[Any], list[str], NDArray[np.int64]]:
    kind = column.dtype.kind
    if kind not in "biufUSMm":
        raise _no_names(source, name, str(column.dtype))
    if kind in "Mm" and np.isnat(column).any():
        raise _nobody(source, name)
    distinct, place = np.unique(column, return_inverse=True)
    texts = [_text(value) for value in distinct.tolist()] if kind == "S" else distinct.astype(str)
    if kind in "Mm":
        distinct = distinct.view(np.int64)
    elif kind == "f":
        distinct = distinct.astype(np.float64)
    try:
        return distinct.tolist(), list(texts), place.astype(np.int64).reshape(-1)
    except (ValueError, SystemError):  # text of numbers that no character has
        raise _no_names(source, name, "damaged text") from None


def _text(value: Any) -> str:
    """By which users are ordered."""
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _nobody(source: str, name: str) -> DataError:
    return DataError(f"{source}: {name!r} does not name a user in every row")


def _no_names(source: str, name: str, kind: str) -> DataError:
    wanted = "expected whole numbers, text, bytes or times"
    return DataError(f"{source}: the user column {name!r} holds {kind}; {wanted}")
