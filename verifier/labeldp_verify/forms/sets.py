"""Outputs that are sets of classes: which classes each of them holds.

Subset selection answers with the number of a block, 0 … m − 1. A certificate writes a block as a
whole number in hexadecimal, of which bit i is set if class i, the i-th label of the domain, is in
it: ``"05"`` holds classes 0 and 2 of five to eight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
from numpy.typing import NDArray

from labeldp_verify.forms.domain import CategoricalDomain, Domain, IntegerDomain, RealDomain

if TYPE_CHECKING:
    from labeldp_verify.forms import Randomizer


@dataclass(frozen=True)
class ClassSets:
    """m sets of k classes: bit i of ``blocks[o]`` [m] says whether class i is in output o."""

    classes: int
    blocks: tuple[int, ...]

    @classmethod
    def of(cls, members: NDArray[np.bool_]) -> ClassSets:
        """From membership [m, k]."""
        packed = np.packbits(members, axis=1, bitorder="little")
        blocks = tuple(int.from_bytes(row.tobytes(), "little") for row in packed)
        return cls(members.shape[1], blocks)

    @classmethod
    def from_hex(cls, classes: int, texts: Sequence[str]) -> ClassSets:
        """From what ``to_hex`` gives; ValueError for anything else."""
        read = cls(classes, tuple(int(text, 16) for text in texts))
        if any(block >> classes for block in read.blocks) or read.to_hex() != list(texts):
            raise ValueError("not sets of classes")
        return read

    def to_hex(self) -> list[str]:
        """[m] each block in lower case, of as many digits as the classes need."""
        width = -(-self.classes // 4)
        return [f"{block:0{width}x}" for block in self.blocks]

    @cached_property
    def matrix(self) -> NDArray[np.bool_]:
        """[k, m] whether a class is in an output."""
        width = -(-self.classes // 8)
        packed = b"".join(block.to_bytes(width, "little") for block in self.blocks)
        rows = np.frombuffer(packed, dtype=np.uint8).reshape(len(self.blocks), width)
        bits = np.unpackbits(rows, axis=1, count=self.classes, bitorder="little")
        return np.ascontiguousarray(bits.T.astype(bool))

    @cached_property
    def sizes(self) -> list[int]:
        """[m] the number of classes in each output."""
        return [block.bit_count() for block in self.blocks]

    def members(self, output: int) -> list[int]:
        """The classes in an output, increasing."""
        block = self.blocks[output]
        return [i for i in range(self.classes) if block >> i & 1]


def sets_of(randomizer: Randomizer) -> ClassSets | None:
    """The sets that a randomizer answers with; None if its outputs are labels."""
    return getattr(randomizer, "sets", None)


def are_numbers(domain: Domain, randomizer: Randomizer) -> TypeGuard[IntegerDomain | RealDomain]:
    """Whether private labels are numbers, so that they have a mean and a bias."""
    return not isinstance(domain, CategoricalDomain) and sets_of(randomizer) is None
