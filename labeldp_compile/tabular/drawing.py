"""What randomizes a table: an artifact, and how its columns are called here. It can be pickled."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from labeldp_runtime import Key, Randomizer

from labeldp_compile.tabular.one_file import Randomize


@dataclass(frozen=True)
class Drawing:
    """How labels are drawn.

    Attributes:
        data: the artifact, verified.
        source: its name, for errors.
        names: the artifact's label columns by the table's names for them.
        groups: the table's columns of groups by the artifact's names for them, if it takes groups.
        key: that makes the draws repeatable, or None; of it the path is pickled, and no secret.
        context: with a key, what is randomized.
        version: with a key, that of the labels.
    """

    data: bytes = field(repr=False)
    source: str
    names: dict[str, str]
    groups: dict[str, str]
    key: Key | None = None
    context: str | None = None
    version: int = 0

    def open(self) -> Randomize:
        """The function. Raises a RuntimeArtifactError, MissingExtraError or KeyFileError."""
        randomize: Randomize = Randomizer(
            self.data, self.source, key=self.key, context=self.context
        )
        if len(self.names) > 1:
            randomize = partial(_of_columns, randomize, self.names)
        if self.key is not None:
            randomize = partial(randomize, version=self.version)
        return partial(_of_groups, randomize, self.groups) if self.groups else randomize


def _of_columns(randomize: Randomize, names: dict[str, str], labels: Any, **others: Any) -> Any:
    """Private columns of a joint label, where the table's may have names of their own."""
    drawn = randomize({name: labels[column] for column, name in names.items()}, **others)
    if not isinstance(drawn, dict):
        return drawn
    return {column: drawn[name] for column, name in names.items()}


def _of_groups(
    randomize: Randomize, names: dict[str, str], labels: Any, columns: Any, **others: Any
) -> Any:
    """Private labels, where the table's columns of groups may have names of their own."""
    groups = {name: columns[column] for name, column in names.items()}
    return randomize(labels, columns=groups, **others)
