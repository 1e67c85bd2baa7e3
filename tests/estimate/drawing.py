"""Releases without a file: labels of given shares, and how often each output comes."""

import numpy as np
from labeldp_learn.estimators import OutputCounts
from labeldp_verify import check_bytes
from labeldp_verify.analysis.probabilities import matrix

from tests.fixtures.compiled import compile_text, integer_spec


def shares_of(counts):
    """The outputs that occur."""
    outputs = np.flatnonzero(counts)
    return OutputCounts(outputs, np.asarray(counts)[outputs])


class Drawn:
    """An artifact with labels 0 … k − 1."""

    def __init__(self, mechanism, epsilon, k):
        model = compile_text(integer_spec(k, mechanism, epsilon=epsilon)).model
        self.artifact = check_bytes(model).verified()
        table = matrix(self.artifact.tables[0], list(range(k)))
        self.table = table / table.sum(axis=1, keepdims=True)

    def labels(self, shares, size, target, generator):
        """[k] how many rows have each label: as many as fit, or a sample of a population."""
        if target == "population":
            return generator.multinomial(size, shares)
        counts = np.floor(shares * size + 1e-9).astype(int)
        counts[0] += size - counts.sum()
        return counts

    def outputs(self, labels, generator):
        pairs = zip(labels, self.table, strict=True)
        return shares_of(sum(generator.multinomial(n, row) for n, row in pairs))
