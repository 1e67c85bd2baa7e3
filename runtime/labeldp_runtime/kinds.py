"""What goes into a randomizer and comes out of it, as type checkers see it."""

from collections.abc import Callable, Collection
from typing import Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Labels = Collection[object]
"""Arrays of numpy, lists and other sequences."""


class Columns(Protocol):
    """A frame of pandas or Polars, a table of pyarrow, or a mapping: columns by their names."""

    def __getitem__(self, name: str, /) -> object:
        """The column of a name."""


class Frame(Columns, Protocol):
    """A frame of pandas or Polars, or a table of pyarrow."""

    @property
    def columns(self) -> object:
        """The columns, or their names."""


class Column(Protocol):
    """An array of pyarrow, or a Series of pandas or Polars."""

    @property
    def to_numpy(self) -> Callable[..., object]:
        """A method that they all have, and sequences have not."""


ColumnLike = TypeVar("ColumnLike", bound=Column)
Private: TypeAlias = "dict[str, NDArray[np.generic] | Column] | NDArray[np.generic] | Column"
"""Private labels of several columns: by the columns' names; of sets, one column of numbers."""
