"""The definition of a dialect: how its database writes each expression, and how steps are held.

Every string of an artifact becomes hexadecimal digits before it reaches SQL, unless it is of plain
letters, digits and blanks. So there is nothing to escape.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args


def interval(value: str, bounds: Sequence[str], leaves: Sequence[str]) -> str:
    """``leaves[i]`` [n], where i is how many of the increasing ``bounds`` [n − 1] are ≤ ``value``.

    Neighbours with equal leaves become one. What NULL gives is the last leaf.
    """
    kept = [i for i in range(len(leaves)) if i == 0 or leaves[i] != leaves[i - 1]]
    return _tree(value, [bounds[i - 1] for i in kept[1:]], [leaves[i] for i in kept])


def by_number(value: str, leaves: Sequence[str]) -> str:
    """``leaves[value]`` of a whole number from 0."""
    return interval(value, [str(i) for i in range(1, len(leaves))], leaves)


def listed(value: str, places: Mapping[str, str], default: str) -> str:
    """The place of a value among keys, which are literals in the order of the database.

    NULL, and what is not among them, has the default.
    """
    keys = list(places)
    branches = [f"CASE WHEN {value} = {key} THEN {places[key]} ELSE {default} END" for key in keys]
    return _tree(value, keys[1:], branches)


def _tree(value: str, bounds: Sequence[str], leaves: Sequence[str]) -> str:
    if len(leaves) == 1:
        return leaves[0]
    middle = len(leaves) // 2
    below = _tree(value, bounds[: middle - 1], leaves[:middle])
    above = _tree(value, bounds[middle:], leaves[middle:])
    return f"CASE WHEN {value} < {bounds[middle - 1]} THEN {below} ELSE {above} END"


Type = Literal["integer", "number", "text", "bytes"]
KEY_BYTES, BLOCK = 32, 64  # of a key, and of SHA-256
Write = Callable[[str], str]
"""Writes what is done with an expression, ``e``."""
_PLAIN = re.compile(r"[A-Za-z0-9 _.,+-]*", re.ASCII)


def typed(*names: str) -> dict[Type, str]:
    """Something for each type, in their order."""
    return dict(zip(get_args(Type), names, strict=True))


@dataclass(frozen=True)
class Argument:
    """An argument of the function, or a column of the query's input.

    Steps read it as ``given``, a name of their own, which the first of them gives it. So they read
    nothing of the user's table, even where its columns have such names.
    """

    name: str
    type: Type

    @property
    def given(self) -> str:
        """Its name among the steps."""
        return f"given_{self.name}"


KEY = Argument("key", "bytes")


@dataclass(frozen=True)
class Step:
    """A column that an expression over earlier columns gives."""

    name: str
    type: Type
    expression: str


@dataclass(frozen=True)
class Routine:
    """The parts of a function or a query.

    Attributes:
        name: of the function; letters, digits and ``_``.
        arguments: the columns of the label, the id, the columns of the group; then comes the key.
        pads: from the key alone; they may be computed once for all rows.
        steps: from the arguments and the pads to the column ``answer``.
        digest: the step that is NULL where the id or the key cannot be used.
        outputs: the private columns, as expressions over the steps.
        failure: what is said then.
    """

    name: str
    arguments: Sequence[Argument]
    pads: Sequence[Step]
    steps: Sequence[Step]
    digest: str
    outputs: Sequence[Step]
    failure: str


class Dialect(ABC):
    """One database. Expressions are texts; ``e`` is always one of them."""

    name: ClassVar[str]
    types: ClassVar[dict[Type, str]]
    literal: ClassVar[str]
    """How bytes are written, with ``{}`` for their hexadecimal digits."""
    decoded: Write
    """The text of which bytes are the UTF-8."""
    utf8: Write
    """The bytes of a text."""
    unsigned: Write
    """The whole number in four bytes, the highest first."""
    length: Write
    """The number of bytes."""
    has_nul: ClassVar[bool] = True
    """Whether a text can hold the character NUL."""

    @abstractmethod
    def routine(self, routine: Routine) -> str:
        """The statement."""

    @abstractmethod
    def usage(self, routine: Routine) -> list[str]:
        """How it gets labels, ids and the key: lines of a comment."""

    @abstractmethod
    def rights(self, routine: Routine) -> list[str]:
        """Who should be allowed what: lines of a comment."""

    def declared(self, columns: Sequence[Argument]) -> str:
        """Columns with their types."""
        return ", ".join(f"{column.name} {self.types[column.type]}" for column in columns)

    # Literals

    def integer(self, value: int) -> str:
        """A whole number of 64 bits."""
        return str(value) if value >= 0 else f"({value})"

    def number(self, value: float) -> str:
        """A float64, read from text by its shortest decimal form."""
        return f"CAST('{value!r}' AS {self.types['number']})"

    def data(self, value: bytes) -> str:
        """Bytes."""
        return self.literal.format(value.hex())

    def text(self, value: str) -> str:
        """A text; decoded from bytes unless it is plain."""
        return f"'{value}'" if _PLAIN.fullmatch(value) else self.decoded(self.data(value.encode()))

    # Conversions

    def decimal(self, e: str) -> str:
        """The bytes of the decimal digits of a whole number."""
        return self.utf8(f"CAST({e} AS {self.types['text']})")

    def as_number(self, e: str) -> str:
        """The float64 of a whole number below 2^53."""
        return f"CAST({e} AS {self.types['number']})"

    def floor(self, e: str) -> str:
        """The whole number that is at most this float64, which is not negative."""
        return f"CAST(FLOOR({e}) AS {self.types['integer']})"

    # Bytes and bits

    def join(self, *parts: str) -> str:
        """Bytes, one after the other; NULL if one is."""
        return " || ".join(parts)

    def part(self, e: str, start: str, length: int) -> str:
        """Some of the bytes, from ``start``, an expression; the first is 1."""
        return f"SUBSTR({e}, {start}, {length})"

    def shift_right(self, e: str, bits: int) -> str:
        """A whole number that is not negative, without its low bits."""
        return f"({e} >> {bits})" if bits else e

    def low_bits(self, e: str, bits: int) -> str:
        """The low bits of a whole number."""
        return f"({e} & {(1 << bits) - 1})"

    # Secret bits

    @abstractmethod
    def pads(self) -> list[Step]:
        """The key as HMAC uses it, NULL unless it has 32 bytes."""

    @abstractmethod
    def hmac(self, message: str) -> list[Step]:
        """The steps to ``digest``, which is HMAC-SHA-256(key, message); NULL if either is."""

    # What an argument means

    def argument(self, column: Argument, *, rounded: bool = False) -> str:
        """A column of the input, or NULL where its value is not of its type.

        ``rounded``: where types are not declared, numbers with a fraction go to the nearest
        integer, as labels do.
        """
        return column.given

    def is_missing(self, e: str) -> str:
        """Whether a float64 is NULL or NaN."""
        return f"({e} IS NULL OR {e} = CAST('NaN' AS {self.types['number']}))"


class WithHash(Dialect):
    """A database that has SHA-256, but no HMAC (RFC 2104)."""

    sha256: Write
    """The 32 bytes of the hash of bytes."""

    @abstractmethod
    def key_xor(self, byte: int) -> str:
        """The 32 bytes of the key, each by exclusive or with ``byte``."""

    def pads(self) -> list[Step]:
        """Two blocks."""
        steps = []
        for name, byte in (("inner_pad", 0x36), ("outer_pad", 0x5C)):
            rest = self.data(bytes([byte]) * (BLOCK - KEY_BYTES))
            pad = self.join(self.key_xor(byte), rest)
            is_key = f"{self.length(KEY.given)} = {KEY_BYTES}"
            steps.append(Step(name, "bytes", f"CASE WHEN {is_key} THEN {pad} END"))
        return steps

    def hmac(self, message: str) -> list[Step]:
        """The inner digest, and the outer one."""
        return [
            Step("inner_digest", "bytes", self.sha256(self.join("inner_pad", message))),
            Step("digest", "bytes", self.sha256(self.join("outer_pad", "inner_digest"))),
        ]


def nested_query(routine: Routine) -> str:
    """Nested queries without a table, the arguments innermost, each step around those before it."""
    columns = [*routine.arguments, KEY]
    query = f"SELECT {', '.join(f'{one.name} AS {one.given}' for one in columns)}"
    for number, step in enumerate([*routine.pads, *routine.steps]):
        inside = f"(\n{query}\n) AS step_{number}"
        query = f"SELECT *, {step.expression} AS {step.name}\nFROM {inside}"
    return query


def guarded_outputs(routine: Routine, failure: str) -> list[Step]:
    """The outputs, or ``failure``, an expression, where there are no secret bits."""
    return [
        Step(
            output.name,
            output.type,
            f"CASE WHEN {routine.digest} IS NULL THEN {failure} ELSE {output.expression} END",
        )
        for output in routine.outputs
    ]
