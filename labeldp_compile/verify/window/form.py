"""The window randomizer of a file."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from labeldp_compile.artifact import BucketGrid, write_model
from labeldp_compile.randomizer import Domain, WindowRandomizer
from labeldp_compile.verify.form import Bounds, Form, Rows, Words
from labeldp_compile.verify.window import derive
from labeldp_compile.verify.window.decode import read_window
from labeldp_compile.verify.window.execute import boundary_pairs, outputs_of


class WindowForm(Form):
    """A window randomizer and the layout of its lookup grid."""

    def __init__(self, randomizer: WindowRandomizer, grid: BucketGrid) -> None:
        """What ``read`` decoded."""
        self.randomizer: WindowRandomizer = randomizer
        self.grid = grid

    @classmethod
    def read(cls, model: onnx.ModelProto, domain: Domain) -> WindowForm:
        """Decode the constants of the graph."""
        return cls(*read_window(model, domain))

    def description(self) -> str:
        """The form and its sizes in plain words."""
        r = self.randomizer
        return (
            f"a window randomizer: {len(r.offsets):,} labels, {len(r.values):,} outputs, "
            f"words of {r.word_bits} bits"
        )

    def why_not_distributions(self) -> str | None:
        """What keeps the integers from being one distribution a label, or None."""
        r = self.randomizer
        if min(r.base) < 1:
            return "an output has no base weight"
        if r.base_total + r.window != r.words or r.window < 0:
            return "the window is wrong"
        if max(r.offsets) + r.window > r.extra_total or min(r.offsets) < 0:
            return "a window leaves the extra line"
        return None

    def worst_ratio(self) -> Fraction:
        """See ``derive.worst_ratio``."""
        return derive.worst_ratio(self.randomizer)

    def biases(self, labels: Sequence[Fraction]) -> list[Fraction]:
        """[k] E[output | y] − y, exact."""
        return derive.exact_biases(self.randomizer, labels)

    def loss_of_labels(
        self, labels: Sequence[Any], weights: Sequence[int], loss: str
    ) -> list[Bounds]:
        """[k] bounds of E[ℓ(ŷ, y) | y]."""
        return derive.loss_of_labels(self.randomizer, labels, weights, loss)

    def critical_words(self) -> tuple[Rows, Words]:
        """Rows [n] and words [n, 1] on both sides of the boundaries."""
        rows, u = boundary_pairs(self.randomizer)
        low = np.uint64(64 - self.randomizer.word_bits)
        words = u.astype(np.uint64) << low
        words[1::2] |= (np.uint64(1) << low) - np.uint64(1)  # bits below u must not matter
        return rows, words[:, None]

    def outputs_of(self, rows: Rows, words: Words) -> NDArray[Any]:
        """[n] what the integers demand for rows [n] and words [n, 1]."""
        u = (words[:, 0] >> np.uint64(64 - self.randomizer.word_bits)).astype(np.int64)
        return outputs_of(self.randomizer, rows, u)

    def rebuild(self, domain: Domain, certificate: dict[str, Any]) -> bytes:
        """The file that these integers and this grid define."""
        return write_model(domain, self.randomizer, certificate, self.grid)
