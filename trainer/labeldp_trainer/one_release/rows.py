"""The rows that a release is made of: public vectors, and whose they are."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from jaxtyping import Float32, Float64, Int32, Int64
from pydantic import BaseModel, ConfigDict, Field

from labeldp_trainer.config.data import MOST_EXAMPLES

DIGEST = r"^[0-9a-f]{64}$"
REHEARSED = 500
"""Rows on which a fit is tried with noise alone, before labels are asked for anything."""


class ReleaseText(BaseModel):
    """What is not stated here is refused as text that a release is not written with."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False, frozen=True)


class Users(ReleaseText):
    """Whose labels are protected together."""

    column: str
    max_examples_per_user: int = Field(gt=0, le=MOST_EXAMPLES)
    sha256: str = Field(pattern=DIGEST)


@dataclass(frozen=True, kw_only=True)
class RowOwners:
    """Whose labels the rows of a release have.

    Attributes:
        count: n rows.
        owners: [n] numbers of the users, or None if a label is on its own.
        users: what a release says of them.
    """

    count: int
    owners: Int64[np.ndarray, " n"] | None = None
    users: Users | None = None

    @property
    def units(self) -> int:
        """How many labels, or users."""
        return self.count if self.owners is None else int(self.owners.max()) + 1

    @property
    def most_rows(self) -> int:
        """Of a user; 1 if a label is on its own."""
        return 1 if self.owners is None else int(np.bincount(self.owners).max())

    def blocks(
        self, most: int, together: int
    ) -> Iterator[tuple[Int64[np.ndarray, " b"], Int64[np.ndarray, " b"]]]:
        """Rows in the order of their users, in blocks of at most ``most`` rows of one user.

        Yields the rows of some blocks, and the numbers 0, 1, … of these blocks.
        """
        assert self.owners is not None
        order = np.argsort(self.owners, kind="stable")
        counts = np.bincount(self.owners)
        place = np.arange(self.count) - (np.cumsum(counts) - counts)[self.owners[order]]
        begins = np.append(np.flatnonzero(place % most == 0), self.count)
        for first in range(0, len(begins) - 1, together):
            some = begins[first : first + together + 1]
            yield (
                order[some[0] : some[-1]],
                np.repeat(np.arange(len(some) - 1), np.diff(some)),
            )

    def sample(self, most: int = REHEARSED) -> Self:
        """At most this many of the rows, at regular distances."""
        step, owners = -(-self.count // most), self.owners
        if owners is not None:
            owners = np.unique(owners[::step], return_inverse=True)[1]
        return replace(self, count=len(range(0, self.count, step)), owners=owners)

    @cached_property
    def shares(self) -> Float32[np.ndarray, " n"] | None:
        """1/m for each of the m rows of a user."""
        if self.owners is None:
            return None
        counts = np.bincount(self.owners)
        return (1 / counts[self.owners]).astype(np.float32)


@dataclass(frozen=True, kw_only=True)
class PublicRows(RowOwners):
    """Public vectors, and whose rows they are.

    Attributes:
        vectors: [n, p].
        spectrum: [p] eigenvalues of the components that the columns are, if they are.
        sha256: of the vectors.
        groups: [p] numbers of the representations that columns are from, if several are joined.
    """

    vectors: Float32[np.ndarray, "n p"]
    spectrum: Float64[np.ndarray, " p"] | None
    sha256: str
    groups: Int32[np.ndarray, " p"] | None = None

    def sample(self, most: int = REHEARSED) -> Self:
        """At most this many of the rows, at regular distances."""
        step = -(-self.count // most)
        return replace(super().sample(most), vectors=self.vectors[::step])
