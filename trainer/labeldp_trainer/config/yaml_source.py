"""YAML read safely, with exact decimals and the line of every key.

The scalars are those of YAML 1.2: only ``true`` and ``false`` are booleans, and a decimal number
stays the decimal that was written, so that ε = 0.1 is one tenth.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import yaml

KeyPath = tuple[str | int, ...]
MAX_DEPTH = 12
_NO_ALIAS = "not valid YAML for a config: no anchors (&) and aliases (*): write it out"
MAX_NODES = 20_000
MAX_INTEGER_DIGITS = 100


class YamlError(Exception):
    """The text is not YAML that a config may use; ``line`` counts from 1."""

    def __init__(self, line: int, message: str) -> None:
        """Keep the line beside the message."""
        super().__init__(message)
        self.line = line


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
    try:
        node = _Loader(text).get_single_node()
        if node is None:
            raise YamlError(1, "the file is empty")
        data = _construct(node, (), lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlError(mark.line + 1 if mark else 1, f"not valid YAML: {error.problem}") from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise YamlError(
            line, f"not valid YAML: the character U+{error.character:04X} is not allowed"
        ) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise YamlError(1, f"not valid YAML: {' '.join(str(error).split())}") from error
    return YamlSource(data, lines)


class _Loader(yaml.SafeLoader):
    """Counts nodes while it makes them, and refuses what makes much out of little."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  # PyYAML's own convention
    nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """The next node. Raises YamlError."""
        event = self.peek_event()  # type: ignore[no-untyped-call]
        line = event.start_mark.line + 1
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise YamlError(line, f"there are at most {MAX_NODES:,} items in a config")
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise YamlError(line, _NO_ALIAS)
        return super().compose_node(parent, index)


_TAG = "tag:yaml.org,2002:"
_DECIMAL = "tag:labeldp,2025:decimal"
_Loader.add_implicit_resolver(_TAG + "null", re.compile(r"^(~|null|)$"), ["~", "n", ""])
_Loader.add_implicit_resolver(_TAG + "bool", re.compile(r"^(true|false)$"), list("tf"))
_Loader.add_implicit_resolver(_TAG + "int", re.compile(r"^[-+]?\d+$"), list("-+0123456789"))
_Loader.add_implicit_resolver(
    _DECIMAL,
    re.compile(r"^([-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|[-+]?\.inf|\.nan)$"),
    list("-+.0123456789"),
)


def _construct(node: yaml.Node, path: KeyPath, lines: dict[KeyPath, int]) -> Any:
    line = node.start_mark.line + 1
    if len(path) > MAX_DEPTH:
        raise YamlError(line, "not valid YAML for a config: nested too deeply")
    lines.setdefault(path, line)
    if isinstance(node, yaml.MappingNode):
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key, key_line = _scalar(key_node), key_node.start_mark.line + 1
            if not isinstance(key, str):
                raise YamlError(key_line, f"the key {key!r} must be text")
            if key in result:
                raise YamlError(key_line, f"the key {key!r} stands here twice")
            lines[(*path, key)] = key_line
            result[key] = _construct(value_node, (*path, key), lines)
        return result
    if isinstance(node, yaml.SequenceNode):
        return [_construct(item, (*path, index), lines) for index, item in enumerate(node.value)]
    return _scalar(node)


def _scalar(node: yaml.Node) -> Any:
    line = node.start_mark.line + 1
    if not isinstance(node, yaml.ScalarNode):
        raise YamlError(line, "a key must be text")
    text = node.value
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise YamlError(line, "a lone surrogate is no text")
    if node.tag == _TAG + "null":
        return None
    if node.tag == _TAG + "bool":
        return text == "true"
    if node.tag == _TAG + "int":
        if len(text) > MAX_INTEGER_DIGITS:
            raise YamlError(line, "an integer of more digits than any number here needs")
        return int(text)
    if node.tag == _DECIMAL:
        return Decimal(text.replace(".inf", "Infinity").replace(".nan", "NaN"))
    if node.tag == _TAG + "str":
        return text
    raise YamlError(line, f"the tag {node.tag} is not allowed here")
