"""Any Python object as a label: an element of a list or of an object column.

Such an element declares no type, so every object is read on its own, by
these rules:

| labels | the object | label |
|---|---|---|
| text | str | itself, with ``?`` for half a surrogate pair |
| numbers | bool, int, float, Decimal, Fraction, a real scalar of numpy | the number |
| both | anything else: None, NaN, other types, arrays, lists | missing |

A number becomes the nearest integer or float64 (halves to even), or the end of that type if it is
beyond it. No method of an object's own class runs, only those of the built-in type that it is or
inherits from: an object cannot raise, warn, or answer differently the second time.

A cell of a text file is a number by one grammar, for every row of every file:

    cell    = space* [+-] (digits [. digits*] | . digits) [e [+-] digits] space*
            | space* [+-] (inf | infinity) space*
            | space* (true | false) space*              which are 1 and 0
    space   = blank, tab, line feed, vertical tab, form feed or carriage return
    digits  = one or more of 0 to 9

Letters may be upper or lower case. Nothing else is a number: no empty cell, ``nan``, ``0x10``,
``1_000``, ``1,5``, or digits of other scripts. The value is that of the decimal number, however
long it is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
_BEYOND = 2**64  # of int64, on both sides

_Number = int | float | Decimal | Fraction


def text_of(value: Any) -> str | None:
    """The text of an object; None if it is none."""
    # issubclass and not isinstance, which would ask the object for its __class__.
    if type(value) is not str and not issubclass(type(value), str):
        return None
    plain = str.__str__(value)
    return plain if plain.isascii() else plain.encode(errors="replace").decode()


class Lookup:
    """The texts of a certificate, each with its place: what a graph of codes takes (``coded``).

    Attributes:
        texts: in their order, all different.
        other: their number, the code of other texts.
        null: the code of nulls, and of values that are no text.
    """

    def __init__(self, texts: Sequence[str], null: str | None = None) -> None:
        """``null`` is one of the texts; without it, nulls are like other texts.

        Raises ValueError if a text comes twice, or if ``null`` is no text.
        """
        self.texts, self.other = tuple(texts), len(texts)
        self.null = self.other if null is None else self.texts.index(null)
        self._places: dict[str | None, int] = {text: i for i, text in enumerate(self.texts)}
        if len(self._places) < len(self.texts):
            raise ValueError("a text is listed twice")
        self._places[None] = self.null

    def codes(self, values: Collection[Any]) -> NDArray[np.int64]:
        """Codes [n] of objects, each read on its own; never raises."""
        places, other = self._places, self.other

        def place(value: Any) -> int:
            found = places.get(value) if type(value) is str else None
            return places.get(text_of(value), other) if found is None else found

        return np.fromiter(map(place, values), np.int64, len(values))


def float64_of(value: Any) -> float:
    """The float64 nearest to an object; NaN if it is no number."""
    number = _number(value)
    return math.nan if number is None else _float64(number)


def int64_of(value: Any) -> int | None:
    """The int64 nearest to an object; None if it is no number."""
    if type(value) is int and INT64_MIN <= value <= INT64_MAX:
        return value  # as most are: five times as fast
    number = _number(value)
    nearest = None if number is None else _nearest_integer(number)
    return None if nearest is None else min(max(nearest, INT64_MIN), INT64_MAX)


def _float64(number: _Number) -> float:
    if type(number) is float:
        return number
    if type(number) is Decimal:
        return math.nan if number.is_nan() else float(number)
    assert not isinstance(number, float | Decimal)
    try:
        return number.numerator / number.denominator  # exactly rounded, for int too
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _nearest_integer(number: _Number) -> int | None:
    """The nearest integer, or one beyond int64 where the number is; None for NaN."""
    if type(number) is Decimal:
        return None if number.is_nan() else _of_decimal(number)
    if type(number) is float and not math.isfinite(number):
        return None if math.isnan(number) else _BEYOND * (1 if number > 0 else -1)
    assert not isinstance(number, Decimal)
    return round(number)


def _of_decimal(number: Decimal) -> int:
    """The nearest integer to a decimal, by no operation that heeds the caller's decimal context."""
    if number.is_infinite() or number.copy_abs() >= _BEYOND:  # or all its digits were written out
        return -_BEYOND if number.is_signed() else _BEYOND
    tiny = not number or number.adjusted() < -1
    return 0 if tiny else int(number.to_integral_value(ROUND_HALF_EVEN))


def _number(value: Any) -> _Number | None:
    """The number that an object is, as one of the built-in types; None if it is none."""
    kind = type(value)
    if kind is float or kind is int:
        return value
    # By identity: looking a type up in a dictionary would call its metaclass.
    read = _NUMPY.get(id(kind))
    if read is None:
        for base, of_base in _BASES:
            if type.__subclasscheck__(base, kind):
                read = of_base
                break
        else:
            return None
    return read(value)


def _longdouble(value: Any) -> _Number:
    """Exactly: it may have more digits than float64."""
    with np.errstate(all="ignore"):
        if not np.isfinite(value):
            return float(value)
    return Fraction(*value.as_integer_ratio())


def _fraction(value: Any) -> _Number | None:
    """A Fraction by its two slots, which a subclass may have filled with anything."""
    try:
        parts = [Fraction.__dict__[name].__get__(value) for name in ("_numerator", "_denominator")]
    except AttributeError:
        return None
    top, bottom = (_whole(part) for part in parts)
    return None if top is None or not bottom else Fraction(top, bottom)


def _whole(value: Any) -> int | None:
    kind = type(value)
    if type.__subclasscheck__(int, kind):
        return int.__int__(value)
    read = _NUMPY.get(id(kind))
    number = None if read is None else read(value)
    return number if type(number) is int else None


# id of a type that lives as long as this module → how its scalars are read.
_NUMPY: dict[int, Callable[[Any], _Number | None]] = {
    **{id(np.dtype(code).type): np.generic.item for code in "?bBhHiIlLqQefd"},
    id(np.longdouble): _longdouble,
}
_BASES: tuple[tuple[type, Callable[[Any], _Number | None]], ...] = (
    (int, int.__int__),  # bool and enumerations, too
    (float, float.__float__),
    (Decimal, Decimal),
    (Fraction, _fraction),
)


_NUMBER = re.compile(rb"([+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++))(?:[eE]([+-]?)([0-9]++))?")
_WHOLE = re.compile(rb"[+-]?[0-9]{1,19}")
SPACE = b" \t\n\v\f\r"
_WORDS = {b"true": 1.0, b"false": 0.0}
for _word in (b"inf", b"infinity"):
    _WORDS |= {_word: math.inf, b"+" + _word: math.inf, b"-" + _word: -math.inf}
_EXPONENT_DIGITS = 12  # a cell has too few digits to set against more


def number_in(cell: bytes) -> Decimal | float | None:
    """The number in one cell of text, exactly (its words as floats); None if it is not one."""
    cell = cell.strip(SPACE)
    found = _NUMBER.fullmatch(cell)
    if found is None:
        return _WORDS.get(cell.lower())
    exponent = (found[3] or b"").lstrip(b"0")[:_EXPONENT_DIGITS] or b"0"
    return Decimal((found[1] + b"e" + (found[2] or b"") + exponent).decode())


def float_in(cell: bytes) -> float | None:
    """The float64 nearest to the number in one cell of text; None if it is not one."""
    cell = cell.strip(SPACE)
    return float(cell) if _NUMBER.fullmatch(cell) else _WORDS.get(cell.lower())


def whole_number_in(cell: bytes) -> int | None:
    """An integer without a point or an exponent, if it has 64 bits at most."""
    number = int(cell) if _WHOLE.fullmatch(cell.strip(SPACE)) else None
    return number if number is not None and INT64_MIN <= number <= INT64_MAX else None
