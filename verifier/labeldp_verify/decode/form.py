"""What a file holds beside a randomizer's integers: how its tables are laid out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_verify.artifact import write_model
from labeldp_verify.forms import Domain, Randomizer

Rows = NDArray[np.int64]
Words = NDArray[np.uint64]
MAX_PAIRS = 1 << 18


class FileForm(ABC):
    """A randomizer as decoded from the constants of a graph."""

    randomizer: Randomizer

    @abstractmethod
    def critical_words(self) -> tuple[Rows, Words]:
        """Row indices [n] and words [n, w] on both sides of every threshold, or of many."""

    @abstractmethod
    def outputs_of(self, rows: Rows, words: Words) -> NDArray[Any]:
        """[n] what the integers demand for row indices [n] and words [n, w]."""

    def rebuild(self, domain: Domain, certificate: dict[str, Any]) -> bytes:
        """The file that these integers define."""
        return write_model(domain, self.randomizer, certificate)
