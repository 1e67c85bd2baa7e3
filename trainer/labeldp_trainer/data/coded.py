"""Targets of which few differ: a row of numbers for each code, and the code of each example.

A private label is one of m outputs, and what training needs of it, k numbers, depends on the output
alone. For n examples that is m × k numbers, and not n × k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int32


@dataclass(frozen=True)
class Coded:
    """n targets of k numbers: that of example i is ``rows[codes[i]]``.

    Attributes:
        codes: [n].
        rows: [m, k].
    """

    codes: Int32[np.ndarray, " n"]
    rows: Float64[np.ndarray, "m k"]

    @classmethod
    def numbers(cls, values: Float64[np.ndarray, " n"]) -> Coded:
        """One number an example."""
        return cls(np.arange(len(values), dtype=np.int32), values[:, None])

    @classmethod
    def one_hot(cls, classes: Int32[np.ndarray, " n"], count: int) -> Coded:
        """The class of each example."""
        return cls(classes, np.eye(count))

    @classmethod
    def joined(cls, count: int, parts: Sequence[tuple[Int32[np.ndarray, " r"], Coded]]) -> Coded:
        """Of ``count`` examples in parts; each part says which of them it has the targets of."""
        codes, before = np.empty(count, np.int32), 0
        for examples, part in parts:
            codes[examples] = part.codes + before
            before += len(part.rows)
        return cls(codes, np.concatenate([part.rows for _, part in parts]))

    def __len__(self) -> int:
        """n."""
        return len(self.codes)

    def each(self) -> Float64[np.ndarray, "n k"]:
        """The numbers of every example: n × k of them."""
        found: Float64[np.ndarray, "n k"] = self.rows[self.codes]
        return found
