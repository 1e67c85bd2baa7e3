"""Targets with few distinct values: a row of numbers for each code, and a code for each example.

A private label is one of m outputs. Training needs k numbers that depend on the output alone, so n
examples take m × k numbers instead of n × k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int32


@dataclass(frozen=True)
class Coded:
    """n targets of k numbers. The target of example i is ``rows[codes[i]]``.

    Attributes:
        codes: [n] the code of each example.
        rows: [m, k] the target of each code.
    """

    codes: Int32[np.ndarray, " n"]
    rows: Float64[np.ndarray, "m k"]

    @classmethod
    def numbers(cls, values: Float64[np.ndarray, " n"]) -> Coded:
        """One number for each example."""
        return cls(np.arange(len(values), dtype=np.int32), values[:, None])

    @classmethod
    def one_hot(cls, classes: Int32[np.ndarray, " n"], count: int) -> Coded:
        """One-hot targets from the class of each example."""
        return cls(classes, np.eye(count))

    @classmethod
    def joined(cls, count: int, parts: Sequence[tuple[Int32[np.ndarray, " r"], Coded]]) -> Coded:
        """Targets of ``count`` examples from parts. Each part names its examples."""
        codes, before = np.empty(count, np.int32), 0
        for examples, part in parts:
            codes[examples] = part.codes + before
            before += len(part.rows)
        return cls(codes, np.concatenate([part.rows for _, part in parts]))

    def __len__(self) -> int:
        """The number of examples, n."""
        return len(self.codes)

    def each(self) -> Float64[np.ndarray, "n k"]:
        """The targets of all examples, [n, k]."""
        return self.rows[self.codes]
