"""Vectors from a file, and several representations side by side. Neither learns anything itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, StrictInt, StrictStr

from labeldp_trainer.representations.kind import Kind, PrincipalKind, given_vectors, one_of


class FromFile(PrincipalKind):
    """Given vectors [n, d], with a row for each row of the data in the same order."""

    kind: Literal["file"]
    chunk: ClassVar[int] = 1024
    train: StrictStr
    test: StrictStr | None = None
    array: StrictStr = "embeddings"


def inner_rules(config: Kind) -> Iterator[tuple[bool, str]]:
    """Which rows are read, and how columns are scaled, is for the outermost to say."""
    for one in config.members:
        given = one.model_fields_set & {"unlabelled"}
        yield bool(given), "of: unlabelled belongs to the outer representation"
        yield not getattr(one, "whiten", True), "of: whiten must be true"
    inner = config.members
    files = [given_vectors(one) for one in inner]
    same = {None if file is None else (file.train, file.test, file.array) for file in files}
    yield len(same) > 1, "of: representations of files cannot be joined with others"
    again = {one.model_dump_json() for one in inner}
    yield len(again) < len(inner), "of: has the same representation twice"


if TYPE_CHECKING:
    Inner = Kind
else:
    Inner = one_of("joined")


class Joined(Kind):
    """Several representations side by side; how much each counts is found from the labels that a
    method releases."""

    kind: Literal["joined"]
    is_composed: ClassVar[bool] = True
    chunk: ClassVar[int] = 1024
    of: Annotated[tuple[Inner, ...], Field(min_length=2, max_length=8)] = Field(
        description="kinds, or representations with options"
    )
    unlabelled: tuple[StrictStr, ...] = Field(
        (), description="further files whose features to learn from; test means the test features"
    )
    seed: Annotated[StrictInt, Field(ge=0, lt=2**32)] | None = Field(
        None, description="seed of random choices; default: training.seed"
    )

    @property
    def whiten(self) -> bool:
        """All members are whitened."""
        return True

    def rules(self) -> Iterator[tuple[bool, str]]:
        """All members are made from the same features."""
        yield from inner_rules(self)

    @property
    def members(self) -> tuple[Kind, ...]:
        """Those that are side by side."""
        return self.of
