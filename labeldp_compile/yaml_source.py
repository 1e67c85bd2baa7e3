"""YAML read safely, with exact decimals and the place of every key.

The scalars are those of YAML 1.2: only ``true`` and ``false`` are booleans. A decimal number stays
the decimal that was written, so ε = 0.1 is one tenth. Limits are checked before any work is done.
Anchors and aliases are refused, because a few of them can expand to gigabytes. Tags are refused
too. Everything else is limited in bytes, nodes and depth.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import yaml
from labeldp_verify.strict import DECIMAL, MAX_DIGITS, WHOLE
from yaml.reader import Reader

MAX_BYTES = 4 * 1024 * 1024
MAX_NODES = 200_000
MAX_DEPTH = 12
_BREAK = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
_NOT_FINITE = re.compile(r"[-+]?\.inf|\.nan")
# The one in C takes a fifteenth of the time; wheels of PyYAML have it.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
WAY_OUT = "put large data into a file, as in prior: {kind: public, data: FILE}"

KeyPath = tuple[str | int, ...]
Place = tuple[int, int]  # a line, from 1, and a column, from 0


class YamlError(Exception):
    """The text is not valid YAML for labeldp; ``line`` counts from 1, ``column`` from 0."""

    def __init__(self, message: str, line: int = 1, column: int = 0) -> None:
        """Keep the place beside the message."""
        super().__init__(message)
        self.line, self.column = line, column


@dataclass(frozen=True)
class YamlSource:
    """The plain data of a YAML text, and the place of every key and item, by path."""

    text: str
    data: Any
    places: dict[KeyPath, Place]

    def place(self, path: KeyPath) -> Place:
        """The place of a path, or of the nearest enclosing one."""
        while path not in self.places and path:
            path = path[:-1]
        return self.places.get(path, (1, 0))


def scalar_value(event: yaml.ScalarEvent) -> Any:
    """The value of a scalar in specs and configs. Raises ValueError for too long a number."""
    text = event.value
    if event.tag is not None or not event.implicit[0]:  # it is quoted
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
        raise ValueError("a number with too many digits")
    try:
        return int(text) if is_integer else Decimal(text)
    except ArithmeticError:
        raise ValueError("a number with too large an exponent") from None


def read_yaml(text: str, scalar: Callable[[yaml.ScalarEvent], Any] = scalar_value) -> YamlSource:
    """Parse one document, whose scalars are what ``scalar`` says; raises YamlError."""
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise YamlError(f"a YAML text has at most {MAX_BYTES:,} bytes: {WAY_OUT}")
    odd = Reader.NON_PRINTABLE.search(text)
    if odd:
        before = lines_of(text[: odd.start()])
        reason = f"not valid YAML: the character U+{ord(odd.group()):04X} is not allowed"
        raise YamlError(reason, len(before), len(before[-1]))
    try:
        reader = _Reader(text, scalar)
        return YamlSource(text, reader.document(), reader.places)
    except yaml.MarkedYAMLError as error:
        marks: tuple[Any, ...] = (error.problem_mark, error.context_mark)
        place = next(((m.line + 1, m.column) for m in marks if m is not None), (1, 0))
        raise YamlError(f"not valid YAML: {_reason(str(error.problem))}", *place) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise YamlError(f"not valid YAML: {_reason(str(error))}") from error


def _reason(text: str) -> str:
    """A reason on one line; too much nesting gives the same text in every version of PyYAML."""
    return "nested too deeply" if "nesting depth" in text else " ".join(text.split())


class _Reader:
    """Reads the events of a text into plain data."""

    def __init__(self, text: str, scalar: Callable[[yaml.ScalarEvent], Any]) -> None:
        self._events: Iterator[Any] = yaml.parse(text, Loader=_LOADER)
        self._scalar, self._nodes = scalar, 0
        self.places: dict[KeyPath, Place] = {}

    def document(self) -> Any:
        next(self._events)  # the start of the stream
        if not isinstance(next(self._events), yaml.DocumentStartEvent):
            raise YamlError("the file is empty")
        data = self._node(next(self._events), ())
        next(self._events)  # the end of the document
        event = next(self._events)
        if isinstance(event, yaml.DocumentStartEvent):
            raise YamlError(
                "not valid YAML here: expected one document, found another", *_place(event)
            )
        return data

    def _node(self, event: Any, path: KeyPath) -> Any:
        self.places.setdefault(path, _place(event))
        self._nodes += 1
        try:
            self._require_harmless(event, len(path))
            if isinstance(event, yaml.ScalarEvent):
                return self._scalar(event)
        except ValueError as error:
            raise YamlError(str(error), *_place(event)) from None
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(path)
        items: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(event, (*path, len(items))))
        return items

    def _require_harmless(self, event: Any, depth: int) -> None:
        if self._nodes > MAX_NODES:
            raise ValueError(f"a YAML text has at most {MAX_NODES:,} items: {WAY_OUT}")
        if depth > MAX_DEPTH:
            raise ValueError("not valid YAML here: nested too deeply")
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise ValueError(
                "not valid YAML here: anchors (&) and aliases (*) are not allowed: write it out"
            )
        is_scalar = isinstance(event, yaml.ScalarEvent)
        if event.tag is not None and not (
            is_scalar and event.tag in ("tag:yaml.org,2002:str", "!")
        ):
            raise ValueError(f"the tag {event.tag} is not allowed here")
        if is_scalar and any("\ud800" <= character <= "\udfff" for character in event.value):
            raise ValueError("the text has a lone surrogate, which is not valid Unicode")

    def _mapping(self, path: KeyPath) -> dict[str, Any]:
        data: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key, place = self._node(event, path), _place(event)
            if not isinstance(key, str):
                what = f"the key {key!r}" if isinstance(event, yaml.ScalarEvent) else "a key"
                raise YamlError(f"{what} must be text", *place)
            if key in data:
                raise YamlError(f"the key {key!r} is given twice", *place)
            self.places[(*path, key)] = place
            data[key] = self._node(next(self._events), (*path, key))
        return data


def _place(event: Any) -> Place:
    return int(event.start_mark.line) + 1, int(event.start_mark.column)


def lines_of(text: str) -> list[str]:
    """The lines, as YAML counts them."""
    return _BREAK.split(text)
