"""Where private columns stand in a table: in place of the label's, or behind the last one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from labeldp_runtime.inputs import PRIVATE_SET

from labeldp_compile.errors import refused
from labeldp_compile.tabular.reader import TableReader


@dataclass(frozen=True)
class Placement:
    """The private columns of a rewritten table.

    Attributes:
        names: of the private columns.
        replaced: of each the label column whose place it takes; None behind the last column.
        dropped: label columns that nothing replaces, and that may not stay.
    """

    names: tuple[str, ...]
    replaced: tuple[str | None, ...]
    dropped: tuple[str, ...] = ()

    @classmethod
    def of(cls, labels: Sequence[str], add_as: str | None, *, one_answer: bool) -> Placement:
        """For these label columns: ``add_as`` keeps them, and names what is added beside them.

        Of several labels each has a private column, NAME_COLUMN where it is added; with
        ``one_answer`` there is one for all of them, ``private_label``.
        """
        if add_as is None:
            if len(labels) == 1 or not one_answer:
                return cls(tuple(labels), tuple(labels))
            return cls((PRIVATE_SET,), (labels[0],), tuple(labels[1:]))
        if len(labels) == 1 or one_answer:
            return cls((add_as,), (None,))
        return cls(tuple(f"{add_as}_{label}" for label in labels), (None,) * len(labels))

    @property
    def keeps_labels(self) -> bool:
        """Whether the true labels stay in the table."""
        return self.replaced[0] is None

    def goes(self, column: str) -> bool:
        """Whether a column of the input is not in the output."""
        return column in self.replaced or column in self.dropped

    def require_free(self, file: TableReader) -> None:
        """Raise DataError if a private column would be called like another one of the file."""
        for name in self.names:
            if name in file.schema.names and not self.goes(name):
                raise refused(file.path, f"has a column {name!r} already")
