"""Text that is read strictly: numbers as people write them, JSON, and records of a certificate."""

import dataclasses
import json
import re
import types
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

# ---- Numbers as people write them: ASCII digits, and nothing else that Python would read as a
# number.
#
# ``int("1_0")`` is 10 in Python, ``Decimal("١")`` is 1, and ``float`` takes blanks, "inf" and
# "nan". An ε that is read differently from how it looks is a privacy bug, so options, YAML and
# policies are all read here. A certificate is read more strictly still (``certificate.decimal``,
# ``rational``).


WHOLE = re.compile(r"[-+]?[0-9]+")
DECIMAL = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
MAX_DIGITS = 100
MAX_EXPONENT = 100
_MAX_CHARACTERS = 1_000


def read_whole(text: Any) -> int:
    """The integer that a text of at most 100 digits states. Raises ValueError for anything else."""
    if not isinstance(text, str) or not WHOLE.fullmatch(text) or len(text) > MAX_DIGITS:
        raise ValueError("expected a whole number")
    return int(text)


def read_decimal(text: Any) -> Decimal:
    """The decimal number that a text states, exactly. Raises ValueError for anything else.

    Zero, or between 1e-100 and 1e100 in size, of at most 100 digits: a fraction of it stays small.
    """
    if not isinstance(text, str) or not DECIMAL.fullmatch(text):
        raise ValueError("expected a number")
    try:
        number = Decimal(text) if len(text) <= _MAX_CHARACTERS else None
    except ArithmeticError:  # an exponent of 19 digits
        number = None
    if number is None or not is_moderate(number):
        raise ValueError(f"expected a number between 1e-{MAX_EXPONENT} and 1e{MAX_EXPONENT}")
    return number


def is_moderate(number: Decimal) -> bool:
    """Whether a finite number has at most 100 digits, and is zero or 1e-100 … 1e100 in size."""
    few = len(number.as_tuple().digits) <= MAX_DIGITS
    return few and (not number or abs(number.adjusted()) <= MAX_EXPONENT)


# ---- JSON that all readers read alike.


def parse_json(text: str) -> Any:
    """The value that a JSON text has: an object, a list, or any other.

    Raises ValueError for anything else, for a name that an object has twice (readers differ in
    which of them they take), and for what is nested too deeply.
    """
    try:
        return json.loads(text, object_pairs_hook=_object)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def canonical_json(value: Any) -> str:
    """JSON with sorted keys, no blanks and no NaN: equal values give equal text."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found


# ---- Records of a certificate and their JSON, read strictly.
#
# A field that the format does not know could claim anything, so there must be none: a record has
# exactly the fields of its class, each of exactly its type.


_RATIONAL = re.compile(r"-?[0-9]{1,1000}(/[0-9]{1,1000})?")
_EXACT_DECIMAL = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][-+]?[0-9]{1,3})?")

T = TypeVar("T")


class ShapeError(ValueError):
    """The JSON is not a certificate; the message names the first field that does not fit."""


def rational(text: str) -> Fraction:
    """A rational number "p/q" of bounded length; ValueError for anything else."""
    if not _RATIONAL.fullmatch(text):
        raise ValueError("not a rational number")
    number = Fraction(text)
    if str(number) != text:
        raise ValueError("not a rational number in lowest terms")
    return number


def decimal(text: Any) -> Decimal:
    """A decimal number of bounded length and exponent, exact; ValueError for anything else."""
    if not isinstance(text, str) or not _EXACT_DECIMAL.fullmatch(text):
        raise ValueError("not a decimal number")
    return Decimal(text)


def plain(value: Any) -> Any:
    """Records as mappings, in containers of their own; ``asdict`` copies every number, too."""
    if dataclasses.is_dataclass(value):
        return {
            field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        records = bool(value) and dataclasses.is_dataclass(value[0])  # all of them are, or none
        return list(map(plain, value)) if records else list(value)
    return value


def read_record(kind: Callable[..., T], value: Any, where: str) -> T:
    """A record of a kind, whose annotations are the JSON types of its fields. Raises ShapeError."""
    hints = _hints_of(kind)
    if type(value) is not dict or set(value) != set(hints):
        raise ShapeError(where)
    return kind(
        **{name: read_field(hint, value[name], f"{where}.{name}") for name, hint in hints.items()}
    )


def read_field(hint: Any, value: Any, where: str) -> Any:
    """A field of an annotated type; texts of a ``Literal`` tell records of a union apart."""
    if get_origin(hint) in (types.UnionType, Union):
        if value is None and type(None) in get_args(hint):
            return None
        kinds = [kind for kind in get_args(hint) if kind is not type(None)]
        if len(kinds) > 1:
            kinds = [kind for kind in kinds if _fits(kind, value)]
            if len(kinds) != 1:
                raise ShapeError(where)
        return read_field(kinds[0], value, where)
    if dataclasses.is_dataclass(hint):
        return read_record(hint, value, where)  # type: ignore[arg-type]  # a class, no instance
    found: Any = get_origin(hint) or hint
    one_of = get_args(hint) if found is Literal else (value,)
    if type(value) is not (str if found is Literal else found) or value not in one_of:
        raise ShapeError(where)
    if hint == dict[str, str]:
        texts: Any = value
        return {key: read_field(str, text, f"{where}.{key}") for key, text in texts.items()}
    if found is list and dataclasses.is_dataclass(record := get_args(hint)[0]):
        return [read_record(record, row, where) for row in value]  # type: ignore[arg-type]
    return value


@cache
def _hints_of(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _fits(kind: Any, value: Any) -> bool:
    """Whether a mapping has the fields of a record, and its texts where they are listed."""
    hints = _hints_of(kind)
    return (
        type(value) is dict
        and set(value) == set(hints)
        and all(
            value[name] in get_args(hint)
            for name, hint in hints.items()
            if get_origin(hint) is Literal
        )
    )
