"""Private labels that are sets of classes: which classes a set holds, as the certificate says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

_DIGITS = re.compile("[0-9a-f]+")
_MOST_LABELS = 2**53  # of a range


class Sets:
    """The sets of an artifact: numbered 0 … m − 1, or the labels themselves, each a set of one."""

    def __init__(self, stated: dict[str, Any]) -> None:
        """From a certificate with ``sets``; ValueError, TypeError or KeyError if it is damaged."""
        self.labels = _labels(stated["label"]["domain"])
        texts = stated["sets"]["blocks"]
        if texts is None:
            self.blocks = None
            return
        if not isinstance(texts, list) or len(texts) != stated["outputs"] or not texts:
            raise ValueError("not one set an output")
        # As many digits as labels need: there are no more labels than the file has room for.
        width = -(-len(self.labels) // 4)
        if not all(len(text) == width and _DIGITS.fullmatch(text) for text in texts):
            raise ValueError("a set that is no number of so many digits")
        self.blocks = [int(text, 16) for text in texts]
        if any(block >> len(self.labels) for block in self.blocks):
            raise ValueError("a set of more classes than there are")

    def members(self, output: object) -> list[object]:
        """The labels in a private label, in the order of the domain; ValueError if it is none."""
        if self.blocks is None:
            known = isinstance(output, str | int | float | np.generic)  # no array is compared
            if not known or output not in self.labels:
                raise ValueError("this is no private label of the artifact")
            return [self.labels[self.labels.index(output)]]
        try:
            number = index(output)  # type: ignore[arg-type]  # raises for what is no integer
        except TypeError:
            number = -1
        if isinstance(output, bool) or not 0 <= number < len(self.blocks):
            raise ValueError(f"private labels are the numbers of sets, 0 to {len(self.blocks) - 1}")
        block = self.blocks[number]
        return [label for i, label in enumerate(self.labels) if block >> i & 1]

    def matrix(self) -> NDArray[np.bool_]:
        """[m, k] whether a class is in a set."""
        k = len(self.labels)
        if self.blocks is None:
            return np.eye(k, dtype=bool)
        width = -(-k // 8)
        packed = b"".join(block.to_bytes(width, "little") for block in self.blocks)
        bits = np.frombuffer(packed, dtype=np.uint8).reshape(-1, width)
        return np.unpackbits(bits, axis=1, count=k, bitorder="little").astype(bool)


def _labels(domain: dict[str, Any]) -> Sequence[Any]:
    if domain["kind"] == "categorical":
        return list(domain["values"])
    if domain["max"] - domain["min"] >= _MOST_LABELS:
        raise ValueError("a range of too many labels")
    return range(domain["min"], domain["max"] + 1)
