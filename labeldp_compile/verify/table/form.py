"""The table randomizer of a file."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from labeldp_compile.randomizer import Domain, TableRandomizer
from labeldp_compile.verify.alias_layout import Entries, full_words
from labeldp_compile.verify.form import Bounds, Form, Rows, Words
from labeldp_compile.verify.table import derive
from labeldp_compile.verify.table.decode import read_table
from labeldp_compile.verify.table.execute import outputs_of, threshold_pairs


class TableForm(Form):
    """A table randomizer and the entries of its alias tables, one table a label."""

    def __init__(self, randomizer: TableRandomizer, entries: Entries) -> None:
        """What ``read`` decoded."""
        self.randomizer: TableRandomizer = randomizer
        self.entries = entries

    @classmethod
    def read(cls, model: onnx.ModelProto, domain: Domain) -> TableForm:
        """Decode the constants of the graph."""
        return cls(*read_table(model, domain))

    def description(self) -> str:
        """The form and its sizes in plain words."""
        r = self.randomizer
        return (
            f"a table randomizer: {len(r.counts):,} labels, {len(r.values):,} outputs, "
            f"words of {r.word_bits} bits"
        )

    def why_not_distributions(self) -> str | None:
        """What keeps the integers from being one distribution a label, or None."""
        r = self.randomizer
        for row in r.counts:
            if min(row) < 1:
                return "an output has no word for some label"
            if sum(row) != r.words:
                return "the words of a label do not sum up"
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
        """Rows [n] and words [n, 1] around the thresholds."""
        rows, u = threshold_pairs(self.entries, self.randomizer.word_bits)
        return rows, full_words(u, self.randomizer.word_bits)[:, None]

    def outputs_of(self, rows: Rows, words: Words) -> NDArray[Any]:
        """[n] what the integers demand for rows [n] and words [n, 1]."""
        u = words[:, 0] >> np.uint64(64 - self.randomizer.word_bits)
        return outputs_of(self.entries, self.randomizer.values, rows, u)
