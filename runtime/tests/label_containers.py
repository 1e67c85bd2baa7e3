"""Every container that labels come in, and what one label in it may be replaced by."""

from __future__ import annotations

import datetime
import math
import uuid
from array import array
from collections import UserList, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc


class Hostile:
    """An object whose every method raises."""

    def _raise(self, *_: Any) -> Any:
        raise RuntimeError("a label ran code")

    __float__ = __int__ = __index__ = __str__ = __repr__ = __len__ = __bool__ = __iter__ = _raise
    __array__ = __getitem__ = __round__ = __ge__ = __lt__ = _raise
    __class__ = property(_raise)  # type: ignore[assignment]


class HostileKey(Hostile):
    """The same, but for what a dictionary needs of a key."""

    __hash__ = object.__hash__
    __eq__ = object.__eq__


class HostileEqual(Hostile):
    """Raises even when it is compared."""

    __hash__ = None  # type: ignore[assignment]
    __eq__ = Hostile._raise


class HostileText(str):
    """Text with methods of its own."""

    __slots__ = ()
    encode = isascii = __str__ = Hostile._raise


class HostileInt(int):
    """A number with methods of its own."""

    __float__ = __int__ = __index__ = __round__ = Hostile._raise


@dataclass(frozen=True)
class Container:
    """A kind of column: how it is made of Python values, and values that it can hold.

    Attributes:
        text: whether its type is one of text; None if it declares none.
    """

    name: str
    text: bool | None
    make: Callable[[list[Any]], Any]
    values: tuple[Any, ...] = field(repr=False)

    def fits(self, element_type: str) -> bool:
        """Whether labels of an artifact's element type may come in it."""
        return self.text is None or self.text == (element_type == "string")


_WHOLE = (0, 1, 3, 7, 100, -20, 300)
_INTEGERS = (*_WHOLE, 2**53, 2**53 + 1, 2**63 - 1, -(2**63))
_SIGNALLING = np.array([0x7FF0000000000001], np.uint64).view(np.float64)[0]
_FLOATS = (0.0, 1.0, 2.5, 3.5, 7.0, -0.0, 5e-324, 1e300, math.nan, math.inf, -math.inf, _SIGNALLING)
_DECIMALS = (*map(Decimal, ("0.00", "2.50", "3.50", "7.00", "9007199254740993.00", "-1e12")), None)
_TEXTS = ("red", "green", "blue", "grün", "", "red\0", "mauve", "3", "x" * 70_000, "\ufffd", "NaN")
_KEYS = (
    *(*_INTEGERS[:9], *_FLOATS, *_DECIMALS, *_TEXTS),
    *(None, True, 10**400, -(10**400), 10**5000, b"red", (1, 2), 1j, "\ud800"),
    *(Decimal("1e999999"), Decimal("Infinity"), Fraction(5, 2), Fraction(10**400, 3)),
    *(np.float32(2.5), np.float16(1), np.int8(3), np.uint64(2**64 - 1), np.bool_(True)),
    *(np.longdouble(2) ** 62 + 1, np.datetime64("2020-01-01"), np.timedelta64(3), np.str_("red")),
    *(pd.NA, pd.NaT, pd.Timestamp(0), datetime.date(2020, 1, 1), uuid.UUID(int=3), int, len),
    *(HostileKey(), HostileText("red"), HostileInt(3), frozenset([1]), range(3)),
)
_OBJECTS = (
    *_KEYS,
    *(Decimal("sNaN"), Decimal("NaN"), HostileEqual(), [1, 2], ["red"], [], {}, {1}, bytearray(2)),
    *(np.array(3), np.array([1.0, 2.0]), np.array(["red"]), [[[]]], pd.Series([1])),
)


def _array_of_objects(values: list[Any]) -> Any:
    result = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        result[place] = value
    return result


def _numpy(kind: Any, values: tuple[Any, ...], text: bool = False) -> Container:
    dtype = np.dtype(kind)

    def make(chosen: list[Any]) -> Any:
        with np.errstate(all="ignore"):
            return np.array(chosen, dtype=dtype)

    return Container(f"numpy {dtype!r}", text, make, values)


def _masked(kind: Any, values: tuple[Any, ...], text: bool = False) -> Container:
    def make(chosen: list[Any]) -> Any:
        filled = [values[0] if value is None else value for value in chosen]
        return np.ma.array(np.array(filled, kind), mask=[value is None for value in chosen])

    return Container(f"numpy masked {kind}", text, make, (*values, None))


def _pandas(kind: Any, values: tuple[Any, ...], text: bool | None = False) -> Container:
    return Container(f"pandas {kind}", text, lambda chosen: pd.Series(chosen, dtype=kind), values)


def _polars(kind: Any, values: tuple[Any, ...], text: bool | None = False) -> Container:
    return Container(
        f"polars {kind}", text, lambda chosen: pl.Series("y", chosen, dtype=kind), values
    )


def _arrow(kind: Any, values: tuple[Any, ...], text: bool = False) -> Container:
    return Container(f"arrow {kind}", text, lambda chosen: pa.array(chosen, kind), values)


def _raw_text(kind: Any) -> Callable[[list[Any]], Any]:
    """Arrow text of bytes that need be no UTF-8."""

    def make(chosen: list[Any]) -> Any:
        cells = [value.encode() if isinstance(value, str) else value for value in chosen]
        wide = pa.large_binary() if kind == pa.large_string() else pa.binary()
        raw = pa.array(cells, wide)
        return pa.Array.from_buffers(kind, len(raw), raw.buffers(), raw.null_count)

    return make


def _chunked(kind: Any) -> Callable[[list[Any]], Any]:
    def make(chosen: list[Any]) -> Any:
        third = len(chosen) // 3
        parts = [chosen[:third], [], chosen[third:]]
        return pa.chunked_array([pa.array(part, kind) for part in parts])

    return make


def _sliced(kind: Any) -> Callable[[list[Any]], Any]:
    return lambda chosen: pa.array([None, None, None, *chosen, None], kind)[3:-1]


def _vendor(storage: Any) -> Any:
    return pa.ExtensionArray.from_storage(pa.opaque(storage.type, "any", "vendor"), storage)


def _dictionary(values: tuple[Any, ...], kind: Any) -> Callable[[list[Any]], Any]:
    """A dictionary that may hold nulls and repetitions, with nulls among its indices, too."""

    def make(chosen: list[Any]) -> Any:
        entries = [None, *(v for v in values if v is not None), values[0]]
        codes = [
            None if value is None else next(i for i, e in enumerate(entries) if e is value)
            for value in chosen
        ]
        return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int16()), pa.array(entries, kind))

    return make


_SMALL = (0, 1, 3, 7, 100)
_NULLS = (*_INTEGERS, None)
_FLOATS_OR_NULL = (*_FLOATS, None)
_TEXTS_OR_NULL = (*_TEXTS, None)
_RAW = (*_TEXTS, None, b"\xff\xfe", b"red\xc3", b"\xed\xa0\x80", b"\xf8" * 9)
_HALVES = tuple(np.float16(v) for v in (0, 2.5, 3.5, 65504, math.nan, math.inf, -math.inf))
_SHORT = ("red", "green", "blue", "", "grün", "mauve", "3")

NUMBERS = (
    *(_numpy(kind, _SMALL) for kind in ("?", "i1", "u1", "i2", "u2", "i4", "u4")),
    *(_numpy(kind, _INTEGERS) for kind in ("i8", ">i8")),
    *(_numpy(kind, (*_SMALL, 2**53 + 1, 2**63, 2**64 - 1)) for kind in ("u8", ">u8")),
    *(_numpy(kind, _FLOATS) for kind in ("f2", "f4", ">f4", "f8", ">f8", "g")),
    *(_masked("i8", _INTEGERS), _masked("f4", _FLOATS)),
    Container("array of d", False, lambda v: array("d", v), _FLOATS),
    Container("array of q", False, lambda v: array("q", v), _INTEGERS),
    Container("bytearray", False, bytearray, _SMALL),
    Container("memoryview", False, lambda v: memoryview(array("f", v))[:], (0.0, 2.5, math.nan)),
    *(_pandas(kind, _INTEGERS) for kind in ("int64",)),
    *(_pandas(kind, _FLOATS) for kind in ("float64", "float32", "Sparse[float64]")),
    *(_pandas(kind, (*_SMALL, None)) for kind in ("Int8", "UInt64")),
    *(_pandas(kind, (0.5, 2.5, 3.0, 1e300, math.inf, None)) for kind in ("Float64",)),
    *(_pandas(kind, _NULLS) for kind in ("Int64", "int64[pyarrow]")),
    _pandas("boolean", (True, False, None)),
    _pandas(pd.ArrowDtype(pa.decimal128(30, 2)), _DECIMALS),
    Container("pandas index of floats", False, lambda v: pd.Index(v, dtype="float64"), _FLOATS),
    Container("pandas array Int64", False, lambda v: pd.array(v, dtype="Int64"), _NULLS),
    *(_arrow(kind, (*_SMALL, None)) for kind in (pa.int8(), pa.uint16(), pa.uint64())),
    *(_arrow(kind, _FLOATS_OR_NULL) for kind in (pa.float32(), pa.float64())),
    _arrow(pa.int64(), _NULLS),
    _arrow(pa.float16(), (*_HALVES, None)),
    _arrow(pa.bool_(), (True, False, None)),
    _arrow(pa.decimal32(9, 2), (*_DECIMALS[:4], None)),
    *(_arrow(kind, _DECIMALS) for kind in (pa.decimal64(18, 2), pa.decimal128(38, 2))),
    _arrow(pa.decimal256(76, 2), (*_DECIMALS, Decimal(10**70))),
    _arrow(pa.null(), (None,)),
    Container("arrow chunked", False, _chunked(pa.int64()), _NULLS),
    Container("arrow run ends", False, lambda v: pc.run_end_encode(pa.array(v)), _NULLS),
    Container("arrow of a vendor", False, lambda v: _vendor(pa.array(v, pa.int64())), _NULLS),
    Container("arrow sliced", False, _sliced(pa.float64()), _FLOATS_OR_NULL),
    Container("arrow sliced booleans", False, _sliced(pa.bool_()), (True, False, None)),
    Container("arrow dictionary", False, _dictionary(_NULLS, pa.int64()), _NULLS),
    Container("arrow decimals", False, _dictionary(_DECIMALS, pa.decimal128(30, 2)), _DECIMALS),
    *(_polars(kind, (*_SMALL, None)) for kind in (pl.Int8, pl.UInt64)),
    *(_polars(kind, _NULLS) for kind in (pl.Int64, pl.Int128)),
    *(_polars(kind, _FLOATS_OR_NULL) for kind in (pl.Float32, pl.Float64)),
    _polars(pl.Boolean, (True, False, None)),
    _polars(pl.Decimal(30, 2), _DECIMALS),
)
TEXTS = (
    _numpy("U9", _SHORT, text=True),
    _numpy(np.dtypes.StringDType(), _TEXTS, text=True),
    _numpy(np.dtypes.StringDType(na_object=None), _TEXTS_OR_NULL, text=True),
    _masked("U9", _SHORT, text=True),
    *(_pandas(k, _TEXTS_OR_NULL, text=True) for k in ("str", "string[python]", "string[pyarrow]")),
    _pandas(pd.ArrowDtype(pa.large_string()), _TEXTS_OR_NULL, text=True),
    Container("pandas index of text", True, lambda v: pd.Index(v, dtype="str"), _TEXTS_OR_NULL),
    _arrow(pa.string_view(), _TEXTS_OR_NULL, text=True),
    Container("arrow raw text", True, _raw_text(pa.string()), _RAW),
    Container("arrow raw large text", True, _raw_text(pa.large_string()), _RAW),
    Container("arrow chunked text", True, _chunked(pa.string()), _TEXTS_OR_NULL),
    Container("arrow sliced text", True, _sliced(pa.string()), _TEXTS_OR_NULL),
    Container(
        "arrow dictionary of text", True, _dictionary(_TEXTS_OR_NULL, pa.string()), _TEXTS_OR_NULL
    ),
    *(_polars(kind, _TEXTS_OR_NULL, text=True) for kind in (pl.String, pl.Categorical)),
    _polars(pl.Enum([*_TEXTS]), _TEXTS_OR_NULL, text=True),
)
UNDECLARED = (
    Container("list", None, list, _OBJECTS),
    Container("tuple", None, tuple, _OBJECTS),
    Container("deque", None, deque, _OBJECTS),
    Container("user list", None, UserList, _OBJECTS),
    Container("numpy objects", None, _array_of_objects, _OBJECTS),
    Container(
        "numpy masked objects",
        None,
        lambda v: np.ma.array(_array_of_objects(v), mask=[value is None for value in v]),
        _OBJECTS,
    ),
    Container(
        "pandas objects", None, lambda v: pd.Series(_array_of_objects(v), dtype=object), _OBJECTS
    ),
    Container(
        "pandas index of objects",
        None,
        lambda v: pd.Index(_array_of_objects(v), dtype=object),
        _KEYS,
    ),
    # Polars itself asks an object for its class.
    _polars(pl.Object, tuple(v for v in _OBJECTS if not issubclass(type(v), Hostile)), text=None),
    Container(
        "pandas categories", None, lambda v: pd.Series(v, dtype="category"), (*_SMALL, None, 0.5)
    ),
    Container(
        "pandas categories of text", None, lambda v: pd.Series(v, dtype="category"), _TEXTS_OR_NULL
    ),
    Container(
        "pandas categories of anything",
        None,
        lambda v: pd.Series(v, dtype="category"),
        (3, "red", None, b"red", 10**30, True, 2.5, Decimal(7), Fraction(5, 2)),
    ),
)
CONTAINERS = (*NUMBERS, *TEXTS, *UNDECLARED)
