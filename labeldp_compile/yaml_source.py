"""YAML read safely, with exact decimals and the line of every key.

The scalars are those of YAML 1.2: only ``true`` and ``false`` are booleans, and a decimal number
stays the decimal that was written, so that ε = 0.1 is one tenth.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from labeldp_compile.yaml_tree import Listed, Mapped, Node, Scalar, YamlError, read_tree

__all__ = ["KeyPath", "YamlError", "YamlSource", "read_yaml"]

KeyPath = tuple[str | int, ...]
MAX_DIGITS = 100
_INTEGER = re.compile(r"[-+]?\d+")
_DECIMAL = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|[-+]?\.inf|\.nan")


@dataclass(frozen=True)
class YamlSource:
    """The plain data of a YAML text, and the line (from 1) of every key and item by its path."""

    data: Any
    lines: dict[KeyPath, int]

    def line(self, path: KeyPath) -> int:
        """The line of a path, or of the nearest enclosing one."""
        while path not in self.lines and path:
            path = path[:-1]
        return self.lines.get(path, 1)


def read_yaml(text: str) -> YamlSource:
    """Parse one YAML document; raises YamlError with the line."""
    lines: dict[KeyPath, int] = {}
    return YamlSource(_data(read_tree(text), (), lines), lines)


def _data(node: Node, path: KeyPath, lines: dict[KeyPath, int]) -> Any:
    lines.setdefault(path, node.line)
    if isinstance(node, Listed):
        return [_data(item, (*path, index), lines) for index, item in enumerate(node.items)]
    if isinstance(node, Mapped):
        result: dict[str, Any] = {}
        for key, value in node.items:
            if not isinstance(_value(key), str):
                raise YamlError(key.line, f"the key {_value(key)!r} must be text")
            lines[(*path, key.text)] = key.line
            result[key.text] = _data(value, (*path, key.text), lines)
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
    is_integer = _INTEGER.fullmatch(text)
    if not is_integer and not _DECIMAL.fullmatch(text):
        return text
    if len(text) > (MAX_DIGITS if is_integer else 10 * MAX_DIGITS):
        raise YamlError(scalar.line, "a number of more digits than any number here needs")
    if is_integer:
        return int(text)
    return Decimal(text.replace(".inf", "Infinity").replace(".nan", "NaN"))
