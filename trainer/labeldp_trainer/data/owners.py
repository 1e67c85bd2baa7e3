"""Numbers the users of rows from a column of names, in any format.

Every method that protects users calls this one function. Two names are one user if they are equal

* as numbers, exactly: 3 and 3.0, −0.0 and 0.0, but not 2^53 and 2^53 + 1;
* as text in Unicode form NFC without white space at either end. Text that is a number by the
  grammar of ``number_cells`` is that number, so that Parquet, CSV and archives agree;
* as bytes, or as times.

All other differences, such as upper and lower case, make two users. Treating two users as one only
makes the promise stronger than stated, because it then covers changes of both together. Treating
one user as two would break it. A row without a user (null, NaN, NaT, empty text) is refused.
"""

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
from labeldp_trainer.data.labels import Cells, plain
from labeldp_trainer.errors import DataError

_MISSING = None
_TEXT_OR_BYTES = re.compile(r"(large_)?(string|binary)|fixed_size_binary\[.*\]")


def owner_codes(column: Any, source: str, name: str) -> Int64[np.ndarray, " n"]:
    """The number 0 … u − 1 of the user of each row, [n].

    ``column`` is a column [n] of ``DataPart.columns``; ``source`` and ``name`` are for messages.
    Users are numbered in the order of their names as text (the first name, if there are several).
    So the numbers depend neither on the order of rows nor on other columns. Raises DataError if a
    row has no user, or the type of the column cannot name users.
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
    """A key that is equal for names of one user; None for no user. Numbers compare exactly."""
    if isinstance(value, str):
        text = unicodedata.normalize("NFC", value).strip()
        number = number_in(text.encode("utf-8", "surrogatepass"))
        return (text or _MISSING) if number is None else number
    if isinstance(value, bytes):
        return value or _MISSING
    if isinstance(value, float) and math.isnan(value):
        return _MISSING
    return value


def _distinct(
    column: Any, source: str, name: str
) -> tuple[list[Any], list[str], NDArray[np.int64]]:
    """Distinct values (some may be the same user), their texts, and each row's index."""
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
    """Text, bytes and decimals as an Arrow array without nulls; other columns as numpy arrays."""
    column = plain(column)
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
    except (ValueError, SystemError):  # text with invalid code points
        raise _no_names(source, name, "damaged text") from None


def _text(value: Any) -> str:
    """The text by which users are ordered."""
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _nobody(source: str, name: str) -> DataError:
    return DataError(
        f"{source}: {name!r} does not name a user in every row; fill in or drop the other rows"
    )


def _no_names(source: str, name: str, kind: str) -> DataError:
    wanted = "expected numbers, text, bytes or times"
    return DataError(f"{source}: the user column {name!r} holds {kind}; {wanted}")
