"""Who a person is: the one rule by which rows belong to a person, in every command and format.

Two values are one person if they are equal

* as numbers, exactly: 3, 3.0 and the text "3", −0.0 and 0.0, but not 2^53 and 2^53 + 1;
* as text in Unicode form NFC without white space at either end. Text that is a number by the
  grammar of ``labeldp_runtime.labels`` is that number, so that Parquet, CSV and archives agree;
* as bytes, or as times.

A dictionary, an extension type or a run-end encoding is only how values are stored. All other
differences, such as upper and lower case, make two persons. Treating two persons as one only makes
a promise stronger than stated, because it then covers changes of both together. Treating one person
as two would break it. A row without a person (null, NaN, NaT, empty text) is refused.

``randomize``, private priors, ``evaluate`` and the trainer all call ``person_names``.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from labeldp_runtime.columns.arrow import is_number, is_text
from labeldp_runtime.elements import number_in
from numpy.typing import NDArray

from labeldp_compile.errors import DataError

# Text that is its own name: a whole number, or visible ASCII that is neither number nor word, for
# its first character is in none, or a later one is in none that begins like this.
_OWN_NAME = (
    r"^(0|[1-9][0-9]{0,18}|[!-*,/:-EGHJ-SU-eghj-su-~][!-~]*"
    r"|[0-9][0-9.eE+-]*[!-*,/:-DF-df-~][!-~]*|[fFiItT][!-~]*[0-9][!-~]*)$"
)
_MOST_PLACES = 20  # before the point, or zeros behind it, of a number without an exponent
_NANOSECONDS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
_DAY = 86_400 * 10**9
_BYTES = ("binary", "large_binary", "binary_view")


def person_names(values: Any, source: str, column: str) -> pa.Array:
    """[n] one name for each person, as ``large_binary``: equal for rows of one person.

    ``values`` are an Arrow array, chunked or not, or a numpy array; ``source`` and ``column`` are
    for messages. Raises DataError for a row without a person, and for a type that names nobody.
    """
    try:
        values = _as_stored(_of_numpy(values) if isinstance(values, np.ndarray) else values)
        kind = values.type
        if values.null_count or (pa.types.is_null(kind) and len(values)):
            raise _nobody(source, column)
        names = _names(values, kind)
    except (pa.ArrowException, ValueError, TypeError, SystemError):  # damaged text, odd types
        names, kind = None, values.dtype if isinstance(values, np.ndarray) else values.type
    if names is None:
        raise DataError(
            f"{source}: {column!r} has the type {kind}, "
            "which names no persons: expected numbers, text, bytes or times"
        )
    if names.null_count:
        raise _nobody(source, column)
    return names


def person_codes(names: pa.Array) -> NDArray[np.int64]:
    """The number 0 … u − 1 of the person of each row [n], in the order of the names.

    So the numbers depend neither on the order of rows nor on other columns.
    """
    encoded = names.dictionary_encode()
    distinct = encoded.dictionary.to_pylist()
    place = np.empty(len(distinct), np.int64)
    place[sorted(range(len(distinct)), key=distinct.__getitem__)] = np.arange(len(distinct))
    codes: NDArray[np.int64] = place[encoded.indices.to_numpy(zero_copy_only=False)]
    return codes


def _as_stored(values: Any) -> Any:
    """The values of a column in one array, without the way in which they are stored."""
    import pyarrow.compute as pc  # noqa: PLC0415  # which looks up all functions

    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.chunks else pa.array([], values.type)
    while True:
        if isinstance(values, pa.ExtensionArray):
            values = values.storage
        elif isinstance(values, pa.DictionaryArray):
            values = values.dictionary_decode()
        elif pa.types.is_run_end_encoded(values.type):
            values = pc.run_end_decode(values)
        else:
            return values


def _of_numpy(values: NDArray[Any]) -> pa.Array:
    kind = values.dtype.kind
    if kind not in "biufUSMm":
        raise TypeError(kind)
    if kind in "biuf":
        wide = np.float64 if kind == "f" else values.dtype.newbyteorder("=")
        return pa.array(values.astype(wide))
    if kind in "Mm" and np.datetime_data(values.dtype)[0] not in _NANOSECONDS:
        values = values.astype(f"{kind}8[s]")
    return pa.array(values)


def _names(values: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """[n] with nulls for nobody; None for a type that names nobody."""
    if is_text(kind):
        return _names_of_text(values)
    if is_number(kind):
        return _names_of_numbers(values, kind)
    if pa.types.is_fixed_size_binary(kind) or str(kind) in _BYTES:
        return _each_once(values.cast(pa.large_binary()), lambda value: value or None)
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        unit = _NANOSECONDS["ms"] if pa.types.is_date64(kind) else _DAY
        if not pa.types.is_date(kind):
            unit = _NANOSECONDS[kind.unit]
        whole = values.view(pa.int32() if kind.bit_width == 32 else pa.int64())
        return _each_once(whole, lambda value: b"%d" % (value * unit))
    return pa.array([], pa.large_binary()) if pa.types.is_null(kind) else None


def _names_of_numbers(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(kind):
        if kind.bit_width < 128:  # which has no dictionaries
            values = values.cast(pa.decimal128(38, kind.scale))
        return _each_once(values, _number_name)
    if pa.types.is_floating(kind):
        numbers = values.to_numpy(zero_copy_only=False).astype(np.float64)
        whole = (np.trunc(numbers) == numbers).all() and (np.abs(numbers) < 2**53).all()
        if not whole:
            return _each_once(pa.array(numbers), _number_name)
        values = pa.array(numbers.astype(np.int64))
    elif pa.types.is_boolean(kind):
        values = values.cast(pa.int8())
    return values.cast(pa.string()).cast(pa.large_binary())


def _each_once(values: pa.Array, name: Callable[[Any], bytes | None]) -> pa.Array:
    """[n] the name of each value, which is found once for equal ones."""
    encoded = values.dictionary_encode()
    names = [name(value) for value in encoded.dictionary.to_pylist()]
    return pa.array(names, pa.large_binary()).take(encoded.indices)


def _names_of_text(values: pa.Array) -> pa.Array:
    import pyarrow.compute as pc  # noqa: PLC0415  # which looks up all functions

    texts = values.cast(pa.large_binary())
    own = pc.match_substring_regex(texts, _OWN_NAME)
    if pc.all(own).as_py():
        return texts
    rest = _each_once(texts.filter(pc.invert(own)), _text_name)
    return pc.replace_with_mask(texts, pc.invert(own), rest)


def _text_name(cell: bytes) -> bytes | None:
    text = unicodedata.normalize("NFC", cell.decode("utf-8", "surrogateescape")).strip()
    name = text.encode("utf-8", "surrogateescape")
    number = number_in(name)
    return (name or None) if number is None else _number_name(number)


def _number_name(number: Decimal | float) -> bytes | None:
    """A number, exactly, in one form, which is its own name as text; None for NaN."""
    if isinstance(number, float):
        if not math.isfinite(number):
            return None if math.isnan(number) else str(number).encode()
        number = Decimal(number)
    if not number:
        return b"0"
    if abs(number.adjusted()) < _MOST_PLACES:
        text = format(number, "f")
        return (text.rstrip("0").rstrip(".") if "." in text else text).encode()
    sign, digits, exponent = number.as_tuple()
    whole = "".join(map(str, digits))
    short = whole.rstrip("0")
    return f"{'-' * sign}{short}e{int(exponent) + len(whole) - len(short)}".encode()


def _nobody(source: str, column: str) -> DataError:
    return DataError(
        f"{source}: {column!r}: a row names no person (null, NaN or empty): "
        "give every row a person, or remove the rows without one"
    )
