"""Texts as the numbers that a graph of codes takes in their place (see ``coded``)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_runtime import elements


class Lookup:
    """The texts of a certificate, each with its place.

    Attributes:
        texts: in their order, each another.
        other: their number, which stands for nulls and for all that is not among them.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        """Raises ValueError if a text comes twice."""
        self.texts, self.other = tuple(texts), len(texts)
        places: dict[str | None, int] = {text: i for i, text in enumerate(self.texts)}
        if len(places) < len(self.texts):
            raise ValueError("a text stands there twice")
        self._place = elements.place_or(places, self.other)

    def codes(self, values: Collection[Any]) -> NDArray[np.int64]:
        """Codes [n] of objects, each read on its own; never raises."""
        return np.fromiter(map(self._place, values), np.int64, len(values))
