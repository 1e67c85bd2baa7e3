"""What an artifact says of a table: its columns under the table's names, and its outputs."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from labeldp_verify.artifact import Artifact
from labeldp_verify.forms import (
    AdditiveRandomizer,
    GroupColumn,
    IntegerDomain,
    JointDomain,
    Randomizer,
)

from labeldp_compile.errors import InputError
from labeldp_compile.tabular.writer import Randomize

ONLY = ""  # stands for the name of an only column
_EXACT_IN_FLOAT64 = 2**53  # whole numbers up to here


def renamed(
    columns: tuple[GroupColumn, ...], given: Mapping[str, str], labels: Collection[str]
) -> tuple[GroupColumn, ...]:
    """The same columns under the names that a table has for them.

    ``given`` has the table's name by the certificate's, or by ``ONLY``; ``labels`` are columns of
    true labels, which are no groups. Raises InputError.
    """
    if given and not columns:
        raise InputError("a group column needs an artifact with a table for each group")
    names = [column.name for column in columns]
    if len(names) == 1 and ONLY in given:
        given = {names[0]: given[ONLY]}
    if unknown := [name for name in given if name not in names]:
        way = "say which, as NAME=COLUMN" if unknown == [ONLY] else f"not {unknown[0]!r}"
        raise InputError(f"the artifact's group columns are {', '.join(map(repr, names))}: {way}")
    found = tuple(replace(column, name=given.get(column.name, column.name)) for column in columns)
    if len({column.name for column in found}) != len(found):
        raise InputError("two group columns cannot be the same column of the table")
    for column in found:
        if column.name in labels:
            raise InputError(
                f"{column.name!r} cannot be both the label and its group: groups are public"
            )
    return found


def drawn_by(
    randomizer: Callable[..., Any], labels: dict[str, str], groups: dict[str, str], version: int
) -> Randomize:
    """The function that ``Rewriting`` takes.

    ``labels`` has the artifact's label columns by the table's names, ``groups`` the table's columns
    of groups by the artifact's names; ``version`` is that of the labels, with a key.
    """

    def randomize(given: Any, columns: Any = None, ids: Any = None) -> Any:
        if len(labels) > 1:
            given = {name: given[column] for column, name in labels.items()}
        if columns is not None:
            columns = {name: columns[column] for name, column in groups.items()}
        drawn: Any = randomizer(given, columns=columns, ids=ids, version=version)
        if not isinstance(drawn, dict):
            return drawn
        return {column: drawn[name] for column, name in labels.items()}

    return randomize


def has_whole_outputs(artifact: Artifact) -> list[bool]:
    """Of each private column whether all outputs are whole numbers that float64 and int64 hold."""
    domain = artifact.label
    if artifact.answers_with_sets or not isinstance(domain, JointDomain):
        return [all(map(_is_whole, artifact.tables))]
    return [isinstance(part, IntegerDomain) for part in domain.parts]


def _is_whole(randomizer: Randomizer) -> bool:
    if isinstance(randomizer, AdditiveRandomizer):
        parts = randomizer.origin, randomizer.unit
        reach = max(abs(randomizer.low), abs(randomizer.high)) * abs(parts[1]) + abs(parts[0])
        return all(part.is_integer() for part in parts) and reach <= _EXACT_IN_FLOAT64
    return all(
        not isinstance(value, str) and value == int(value) and abs(value) <= _EXACT_IN_FLOAT64
        for value in randomizer.values
    )
