"""The loss in a spec: a name, or a mapping with the parameters of one loss, as {quantile: 0.9}.

A mapping may also name a file of costs beside the spec: a table as CSV, or a tree of labels as
YAML.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from io import StringIO
from math import lcm
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from labeldp_verify.analysis import (
    FAMILIES,
    MAX_COST,
    CostMatrix,
    Costs,
    LossFamily,
    require_few_labels,
)
from labeldp_verify.errors import read_at_most
from labeldp_verify.printable import one_line
from labeldp_verify.strict import read_decimal
from pydantic import TypeAdapter, WithJsonSchema, WrapValidator

from labeldp_compile.errors import DataError, refused
from labeldp_compile.solve.losses import LOSSES
from labeldp_compile.yaml_model import Number
from labeldp_compile.yaml_source import MAX_BYTES, YamlError, read_yaml

Rows = list[list[Fraction]]
_MOST_BYTES = 4 * MAX_BYTES


class LossFile(str):
    """A loss whose file is not read yet, as in ``{matrix: costs.csv}``."""

    kind: str
    path: str

    def __new__(cls, stated: Mapping[str, Any]) -> LossFile:
        """From the mapping of a spec. Raises ValueError if that names no file."""
        ((kind, path),) = stated.items()
        if kind not in READERS or not isinstance(path, str) or not path:
            raise ValueError(f"{kind}: expected the name of a file")
        loss = super().__new__(cls, f"{{{kind}: {path}}}")
        loss.kind, loss.path = kind, path
        return loss

    def read(self, directory: Path, labels: Sequence[str | int]) -> CostMatrix:
        """The costs of these labels; the path is relative to ``directory``. Raises DataError."""
        path = directory / self.path
        try:
            require_few_labels(len(labels))
            data = read_at_most(path, _MOST_BYTES + 1, DataError)
            if len(data) > _MOST_BYTES:
                raise ValueError(f"a file of costs has at most {_MOST_BYTES:,} bytes")
            costs = READERS[self.kind](data.decode("utf-8-sig"), [str(label) for label in labels])
            unit = lcm(*(cost.denominator for row in costs for cost in row))
            rows = [[int(cost * unit) for cost in row] for row in costs]
            return CostMatrix(Costs(list(labels), unit, rows))
        except UnicodeDecodeError:
            raise refused(path, "is not UTF-8 text") from None
        except YamlError as error:
            raise refused(path, f"line {error.line}: {error}") from None
        except (ValueError, csv.Error) as error:
            raise refused(path, str(error)) from None


def _matrix(text: str, labels: Sequence[str]) -> Rows:
    """A row for each label, a column for each output, in any order, both with names."""
    lines = [line for line in csv.reader(StringIO(text, newline=""), strict=True) if line]
    header, *table = lines or [[]]
    outputs = _order(header[1:], labels, "column")
    order = _order([line[0] for line in table], labels, "row")
    found = []
    for line in (table[i] for i in order):
        if len(line) != len(header):
            raise ValueError(
                f"the row {_shown(line[0])} has {len(line) - 1:,} costs: expected {len(labels):,}"
            )
        where = f"row {_shown(line[0])}, column "
        found.append([_cost(line[1 + i], where + _shown(header[1 + i])) for i in outputs])
    return found


def _order(names: Sequence[str], labels: Sequence[str], what: str) -> list[int]:
    """[k] where each label is among the names. Raises ValueError unless each is there once."""
    place = {name: i for i, name in enumerate(names)}
    for name in names:
        if name not in labels:
            raise ValueError(f"the {what} {_shown(name)} is not a label of the spec")
    if len(place) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the label {_shown(twice)} has two {what}s")
    if missing := [label for label in labels if label not in place]:
        raise ValueError(f"the label {_shown(missing[0])} has no {what}")
    return [place[label] for label in labels]


def _cost(cell: str, where: str) -> Fraction:
    try:
        cost = Fraction(read_decimal(cell))
    except ValueError:
        cost = Fraction(-1)
    if not 0 <= cost <= MAX_COST:
        raise ValueError(f"{where}: expected a cost from 0 to 10^12, found {_shown(cell)}")
    return cost


def _tree(text: str, labels: Sequence[str]) -> Rows:
    """The edges between two labels, which are leaves; the keys of mappings name groups."""
    leaves = list(_leaves(read_yaml(text, lambda event: event.value).data, ()))
    paths = [leaves[i] for i in _order([leaf[-1][0] for leaf in leaves], labels, "place")]

    def edges(one: Sequence[Any], other: Sequence[Any]) -> Fraction:
        pairs = enumerate(zip(one, other, strict=False))
        shared = next((i for i, (a, b) in pairs if a != b), len(one))
        return Fraction(len(one) + len(other) - 2 * shared)

    return [[edges(one, other) for other in paths] for one in paths]


def _leaves(node: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """The groups around each leaf, from the root; the leaf itself is last, alone in a tuple."""
    if isinstance(node, dict):
        for key, child in node.items():
            yield from _leaves(child, (*path, key))
    elif isinstance(node, list):
        for i, child in enumerate(node):
            yield from _leaves(child, (*path, i) if isinstance(child, list) else path)
    else:
        yield (*path, (node,))


def _shown(text: str) -> str:
    return one_line(repr(text), 60)


READERS: dict[str, Callable[[str, Sequence[str]], Rows]] = {"matrix": _matrix, "tree": _tree}


_NAMES = tuple(LOSSES)
_NUMBER: TypeAdapter[Decimal] = TypeAdapter(Number)


def loss_of_mapping(stated: Mapping[str, Any], number: Callable[[Any], Decimal]) -> str:
    """The name of the loss that a mapping of a spec states; ``number`` reads a value.

    Raises ValueError, in words for the spec, if it states none.
    """
    if len(stated) == 1 and {*stated} & {*READERS}:
        return LossFile(stated)
    family = next((f for f in FAMILIES.values() if {*f.parameters} & {*stated}), None)
    if family is None:
        files = (f"{{{kind}: FILE}}" for kind in READERS)
        raise ValueError(f"expected one of {', '.join([*map(example, FAMILIES.values()), *files])}")
    if {*family.parameters} != {*stated}:
        raise ValueError(f"expected only {example(family)}: one loss, with all its numbers")
    values = []
    for key in family.parameters:
        try:
            values.append(Fraction(number(stated[key])))
        except ValueError:
            raise ValueError(f"{key}: expected a number, as in {example(family)}") from None
    return family.name_of(values)


def example(family: LossFamily) -> str:
    """The mapping to write for a family."""
    return f"{{{', '.join(f'{key}: NUMBER' for key in family.parameters)}}}"


def _read(value: Any, named: Callable[[Any], str]) -> str:
    if isinstance(value, dict):
        return loss_of_mapping(value, _NUMBER.validate_python)
    if isinstance(value, str) and value.partition("(")[0] in READERS:
        raise ValueError(f"{value!r} needs a mapping: write loss: {{{value}: FILE}}")
    for family in FAMILIES.values():
        if isinstance(value, str) and value.partition("(")[0] in (family.name, *family.parameters):
            raise ValueError(f"{value!r} needs a mapping: write loss: {example(family)}")
    return named(value)


def _mapping(kind: str, *keys: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {key: {"type": kind} for key in keys},
        "required": [*keys],
        "additionalProperties": False,
    }


_MAPPINGS = (
    *(_mapping("number", *family.parameters) for family in FAMILIES.values()),
    *(_mapping("string", kind) for kind in READERS),
)
_SCHEMA = {"anyOf": [{"enum": [*_NAMES], "type": "string"}, *_MAPPINGS]}

if TYPE_CHECKING:
    StatedLoss = str
else:
    StatedLoss = Annotated[Literal[_NAMES], WrapValidator(_read), WithJsonSchema(_SCHEMA)]
