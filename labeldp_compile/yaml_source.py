"""YAML read safely, with exact decimals and the line of every key.

The scalars are those of YAML 1.2: only ``true`` and ``false`` are booleans, and a decimal
number stays the decimal that was written, so that ε = 0.1 is one tenth.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from labeldp_verify.reading.numerals import DECIMAL, MAX_DIGITS, WHOLE

from labeldp_compile.yaml_tree import Listed, Mapped, Node, Scalar, YamlError, read_tree

KeyPath = tuple[str | int, ...]
_NOT_FINITE = re.compile(r"[-+]?\.inf|\.nan")


@dataclass(frozen=True)
class YamlSource:
    """The plain data of a YAML text, and where every key and item stands, by its path.

    A place is a line, from 1, and a column, from 0.
    """

    text: str
    data: Any
    places: dict[KeyPath, tuple[int, int]]

    def place(self, path: KeyPath) -> tuple[int, int]:
        """The place of a path, or of the nearest enclosing one."""
        while path not in self.places and path:
            path = path[:-1]
        return self.places.get(path, (1, 0))


def read_yaml(text: str) -> YamlSource:
    """Parse one YAML document; raises YamlError with the line."""
    places: dict[KeyPath, tuple[int, int]] = {}
    return YamlSource(text, _data(read_tree(text), (), places), places)


def _data(node: Node, path: KeyPath, places: dict[KeyPath, tuple[int, int]]) -> Any:
    places.setdefault(path, (node.line, node.column))
    if isinstance(node, Listed):
        return [_data(item, (*path, index), places) for index, item in enumerate(node.items)]
    if isinstance(node, Mapped):
        result: dict[str, Any] = {}
        for key, value in node.items:
            if not isinstance(_value(key), str):
                reason = f"the key {_value(key)!r} must be text"
                raise YamlError(key.line, reason, key.column)
            places[(*path, key.text)] = (key.line, key.column)
            result[key.text] = _data(value, (*path, key.text), places)
        return result
    return _value(node)


def _value(scalar: Scalar) -> Any:
    text = scalar.text
    if not scalar.plain:
        return text
    if text in ("~", "null", ""):
        return None
    if text in ("true", "false"):
        return text == "true"
    if _NOT_FINITE.fullmatch(text):
        return Decimal(text.replace(".inf", "Infinity").replace(".nan", "NaN"))
    is_integer = WHOLE.fullmatch(text)
    if not is_integer and not DECIMAL.fullmatch(text):
        return text
    if len(text) > (MAX_DIGITS if is_integer else 10 * MAX_DIGITS):
        reason = "a number of more digits than any number here needs"
        raise YamlError(scalar.line, reason, scalar.column)
    try:
        return int(text) if is_integer else Decimal(text)
    except ArithmeticError:
        reason = "a number with a larger exponent than any number here needs"
        raise YamlError(scalar.line, reason, scalar.column) from None
