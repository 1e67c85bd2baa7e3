"""The additive randomizer of a file."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from labeldp_compile.randomizer import AdditiveRandomizer, Domain
from labeldp_compile.verify.additive import derive
from labeldp_compile.verify.additive.decode import read_additive
from labeldp_compile.verify.additive.execute import outputs_of, threshold_pairs
from labeldp_compile.verify.additive.ratio import worst_ratio
from labeldp_compile.verify.alias_layout import Entries, full_words
from labeldp_compile.verify.form import Bounds, Form, Rows, Words


class AdditiveForm(Form):
    """An additive randomizer and the entries of its alias tables."""

    def __init__(
        self, randomizer: AdditiveRandomizer, block_table: Entries, shape_tables: Entries
    ) -> None:
        """What ``read`` decoded."""
        self.randomizer: AdditiveRandomizer = randomizer
        self.block_table = block_table
        self.shape_tables = shape_tables

    @classmethod
    def read(cls, model: onnx.ModelProto, domain: Domain) -> AdditiveForm:
        """Decode the constants of the graph."""
        return cls(*read_additive(model, domain))

    def description(self) -> str:
        """The form and its sizes in plain words."""
        r = self.randomizer
        return (
            f"an additive randomizer: {r.labels:,} labels, noise of period {r.period:,} steps in "
            f"{len(r.blocks):,} blocks, words of {r.word_bits} bits"
        )

    def why_not_distributions(self) -> str | None:
        """What keeps the integers from being one distribution a label, or None."""
        r = self.randomizer
        for weights in (r.blocks, *r.shapes):
            if min(weights) < 1:
                return "a weight of the noise is not positive"
            if sum(weights) != r.words:
                return "the weights of the noise do not sum up"
        return None

    def worst_ratio(self) -> Fraction:
        """See ``ratio.worst_ratio``."""
        return worst_ratio(self.randomizer)

    def biases(self, labels: Sequence[Fraction]) -> list[Fraction]:
        """[k] E[lattice value of the output | y] − y, exact."""
        return derive.exact_biases(self.randomizer, labels)

    def loss_of_labels(
        self, labels: Sequence[Any], weights: Sequence[int], loss: str
    ) -> list[Bounds]:
        """[k] E[ℓ(lattice value of the output, y) | y], exact; ValueError for ``poisson``."""
        return derive.loss_of_labels(self.randomizer, labels, weights, loss)

    def output_rounding(self) -> Fraction:
        """See ``derive.output_rounding``."""
        return derive.output_rounding(self.randomizer)

    def critical_words(self) -> tuple[Rows, Words]:
        """Rows [n] and words [n, 2] around the thresholds and the clamps."""
        rows, *pair = threshold_pairs(self.randomizer, self.block_table, self.shape_tables)
        words = [full_words(u, self.randomizer.word_bits) for u in pair]
        return rows, np.column_stack(words)

    def outputs_of(self, rows: Rows, words: Words) -> NDArray[Any]:
        """[n] what the integers demand for rows [n] and words [n, 2]."""
        first, second = (words >> np.uint64(64 - self.randomizer.word_bits)).T
        return outputs_of(self.randomizer, self.block_table, self.shape_tables, rows, first, second)
