"""Records of a certificate and their JSON, read strictly.

A field that the format does not know could claim anything, so there must be none: a record has
exactly the fields of its class, each of exactly its type.
"""

import dataclasses
import re
import types
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

RATIONAL = re.compile(r"-?[0-9]{1,1000}(/[0-9]{1,1000})?")
DECIMAL = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][-+]?[0-9]{1,3})?")

T = TypeVar("T")


class ShapeError(ValueError):
    """The JSON is not a certificate; the message names the first field that does not fit."""


def rational(text: str) -> Fraction:
    """A rational number "p/q" of bounded length; ValueError for anything else."""
    if not RATIONAL.fullmatch(text):
        raise ValueError("not a rational number")
    number = Fraction(text)
    if str(number) != text:
        raise ValueError("not a rational number in lowest terms")
    return number


def decimal(text: Any) -> Decimal:
    """A decimal number of bounded length and exponent, exact; ValueError for anything else."""
    if not isinstance(text, str) or not DECIMAL.fullmatch(text):
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
    """A field of an annotated type: texts of a ``Literal`` tell records of a union apart, and are
    checked where they are used otherwise."""
    if isinstance(hint, types.UnionType):
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
    if type(value) is not (str if found is Literal else found):
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
