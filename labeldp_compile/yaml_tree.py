"""YAML as a plain tree of texts with their lines, within limits that hold before any work is done.

Two readers build on it, each with its own idea of what the texts mean: that of specs and training
configs (``read_yaml``), and the verifier's. Anchors and aliases are refused, for a few of them
make gigabytes out of nothing; so are tags. Everything else is limited in bytes, nodes and depth.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml
from yaml.reader import Reader

MAX_BYTES = 4 * 1024 * 1024
MAX_NODES = 200_000
MAX_DEPTH = 12
_BREAK = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
_TEXT_TAG = "tag:yaml.org,2002:str"
# The one in C takes a fifteenth of the time; wheels of PyYAML have it.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NO_ALIAS = "no anchors (&) and aliases (*): write it out"
WAY_OUT = "keep what is large in a data file, as in prior: {kind: public, data: FILE}"


class YamlError(Exception):
    """The text is not YAML that may be used here; ``line`` counts from 1, ``column`` from 0."""

    def __init__(self, line: int, message: str, column: int = 0) -> None:
        """Keep the place beside the message."""
        super().__init__(message)
        self.line, self.column = line, column


@dataclass(frozen=True)
class Scalar:
    """A text; ``plain`` if it stands there without quotes, so that it may mean a number."""

    text: str
    plain: bool
    line: int
    column: int = 0


@dataclass(frozen=True)
class Listed:
    """A sequence."""

    items: list[Node]
    line: int
    column: int = 0


@dataclass(frozen=True)
class Mapped:
    """A mapping; keys are distinct texts, each with its own line."""

    items: list[tuple[Scalar, Node]]
    line: int
    column: int = 0


Node = Scalar | Listed | Mapped


def read_tree(text: str) -> Node:
    """Parse one document; raises YamlError with the line."""
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise YamlError(1, f"there are at most {MAX_BYTES:,} bytes of YAML: {WAY_OUT}")
    odd = Reader.NON_PRINTABLE.search(text)
    if odd:
        before = lines_of(text[: odd.start()])
        reason = f"not valid YAML: the character U+{ord(odd.group()):04X} is not allowed"
        raise YamlError(len(before), reason, len(before[-1]))
    try:
        return _Reader(text).document()
    except yaml.MarkedYAMLError as error:
        marks: tuple[Any, ...] = (error.problem_mark, error.context_mark)
        line, column = next(((m.line + 1, m.column) for m in marks if m is not None), (1, 0))
        raise YamlError(line, f"not valid YAML: {error.problem}", column) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise YamlError(1, f"not valid YAML: {' '.join(str(error).split())}") from error


class _Reader:
    """The events of a text, and what they add up to."""

    def __init__(self, text: str) -> None:
        self._events: Iterator[Any] = yaml.parse(text, Loader=_LOADER)
        self._nodes = 0

    def document(self) -> Node:
        next(self._events)  # the start of the stream
        event = next(self._events)
        if not isinstance(event, yaml.DocumentStartEvent):
            raise YamlError(1, "the file is empty")
        node = self._node(next(self._events), 0)
        next(self._events)  # the end of the document
        event = next(self._events)
        if isinstance(event, yaml.DocumentStartEvent):
            raise YamlError(_place(event)[0], "not valid YAML: but found another document")
        return node

    def _node(self, event: Any, depth: int) -> Node:
        line, column = _place(event)
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise YamlError(
                line, f"there are at most {MAX_NODES:,} items in YAML: {WAY_OUT}", column
            )
        if depth > MAX_DEPTH:
            raise YamlError(line, "not valid YAML here: nested too deeply", column)
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise YamlError(line, f"not valid YAML here: {_NO_ALIAS}", column)
        is_text = isinstance(event, yaml.ScalarEvent) and event.tag in (_TEXT_TAG, "!")
        if event.tag is not None and not is_text:
            raise YamlError(line, f"the tag {event.tag} is not allowed here", column)
        if isinstance(event, yaml.ScalarEvent):
            if any("\ud800" <= character <= "\udfff" for character in event.value):
                raise YamlError(line, "a lone surrogate is no text", column)
            return Scalar(event.value, event.implicit[0] and not is_text, line, column)
        if isinstance(event, yaml.SequenceStartEvent):
            items = []
            while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
                items.append(self._node(event, depth + 1))
            return Listed(items, line, column)
        return Mapped(list(self._pairs(depth)), line, column)

    def _pairs(self, depth: int) -> Iterator[tuple[Scalar, Node]]:
        seen = set()
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._node(event, depth + 1)
            if not isinstance(key, Scalar):
                raise YamlError(key.line, "a key must be text", key.column)
            if key.text in seen:
                raise YamlError(key.line, f"the key {key.text!r} stands here twice", key.column)
            seen.add(key.text)
            yield key, self._node(next(self._events), depth + 1)


def _place(event: Any) -> tuple[int, int]:
    """Line, from 1, and column, from 0."""
    return int(event.start_mark.line) + 1, int(event.start_mark.column)


def lines_of(text: str) -> list[str]:
    """The lines, as YAML counts them."""
    return _BREAK.split(text)
