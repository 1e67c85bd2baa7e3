"""The loss in a spec: a name, or a mapping with the parameters of one loss, as {quantile: 0.9}.

A mapping may also name the file of a table or a tree of costs, which ``costs`` reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal

from labeldp_verify.analysis import FAMILIES, LossFamily
from pydantic import TypeAdapter, WithJsonSchema, WrapValidator

from labeldp_compile.solve.losses import LOSSES
from labeldp_compile.spec.costs import READERS, LossFile
from labeldp_compile.yaml_model import Number

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
