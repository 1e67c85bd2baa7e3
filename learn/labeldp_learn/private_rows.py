"""The rows of one table of an artifact: what their private labels say of the true ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from labeldp_verify.analysis import least_variance_inverse, matrix, value
from labeldp_verify.artifact import Artifact, Table
from labeldp_verify.forms import CategoricalDomain, JointDomain, sets_of
from numpy.typing import NDArray

from labeldp_learn.columns import PrivateLabelError
from labeldp_learn.inversion import MOST_ENTRIES, Floats, debiased_values, likeliest_shares

_FROM_UNIFORM = 0.01  # a share that starts at 0 stays there
_NEGLIGIBLE_BIAS = 1e-6  # of the range of labels
_DIGITS = 12  # so that classes with the same counts have the same share
_RESIDUAL, _LARGEST = 1e-6, 1e6  # beyond it, no number of rows brings the noise down
_RANK = 1e-10  # of the largest singular value
_LEAST = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class PrivateRows:
    """The rows that one table of an artifact randomizes.

    Attributes:
        artifact: verified.
        number: of the table.
        rows: [r] their numbers.
        codes: [r] the indices of their private labels among the m outputs.
        counts: [r] how many rows each stands for.
    """

    artifact: Artifact
    number: int
    rows: NDArray[np.int64]
    codes: NDArray[np.int64]
    counts: Floats

    @classmethod
    def empty(cls, artifact: Artifact, number: int) -> PrivateRows:
        """Without rows."""
        none = np.zeros(0, np.int64)
        return cls(artifact, number, none, none, none.astype(np.float64))

    @classmethod
    def by_table(
        cls,
        artifact: Artifact,
        tables: NDArray[np.int64],
        codes: NDArray[np.int64],
        counts: Floats,
    ) -> list[PrivateRows]:
        """All rows [n] by the number of their table; tables without rows are left out."""
        order = np.argsort(tables, kind="stable")
        numbers, starts = np.unique(tables[order], return_index=True)
        parts = zip(numbers.tolist(), np.split(order, starts[1:]), strict=True)
        return [cls(artifact, i, rows, codes[rows], counts[rows]) for i, rows in parts]

    def divided(self, folds: int) -> tuple[PrivateRows, PrivateRows]:
        """All rows but every ``folds``-th, and these."""
        held = np.arange(len(self.rows)) % folds == folds - 1
        rest, every = (
            PrivateRows(self.artifact, self.number, self.rows[i], self.codes[i], self.counts[i])
            for i in (~held, held)
        )
        return rest, every

    @cached_property
    def table(self) -> Table:
        """Randomizer and certificate."""
        return self.artifact.table(self.number)

    @property
    def count(self) -> float:
        """How many rows these stand for."""
        return float(self.counts.sum())

    @property
    def sample(self) -> float:
        """As how many rows their mean counts: what they stand for, and no fewer than they are.

        Weights may be scaled to any sum.
        """
        return max(self.count, float(np.count_nonzero(self.counts)), 1.0)

    @property
    def is_small(self) -> bool:
        """Whether Pr[output | label] is small enough to compute."""
        return self.table.domain.size * self.table.randomizer.outputs <= MOST_ENTRIES

    @cached_property
    def matrix(self) -> Floats:
        """[k, m] Pr[output | label]. Raises PrivateLabelError if it is too large."""
        if not self.is_small:
            raise PrivateLabelError(
                f"{self.table.certificate.name} has {self.table.randomizer.outputs:,} outputs for "
                f"{self.table.domain.size:,} labels, too many for a matrix"
            )
        return matrix(self.table.randomizer, range(self.table.domain.size))

    @cached_property
    def expected_shares(self) -> Floats:
        """[k] shares of the true labels in the artifact's prior, none of them 0."""
        weights = np.array([float(w) for w in self.table.certificate.prior.weights])
        even = _FROM_UNIFORM / len(weights)
        return np.asarray((1 - _FROM_UNIFORM) * weights / weights.sum() + even)

    @cached_property
    def shares(self) -> Floats:
        """[k] about the shares of the true labels behind these outputs: the likeliest ones.

        What they leave open is as in the artifact's prior.
        """
        if not self.is_small or not self.count:
            return self.expected_shares
        counts = np.bincount(self.codes, self.counts, minlength=self.matrix.shape[1])
        return np.round(likeliest_shares(self.matrix, counts, self.expected_shares), _DIGITS)

    @property
    def has_classes(self) -> bool:
        """Whether labels are classes, or private labels sets of labels."""
        sets = sets_of(self.table.randomizer) is not None
        return isinstance(self.table.domain, CategoricalDomain) or sets

    def goal(self, of: str | None = None) -> Floats:
        """[k, j] what the targets of each label are: its number, or its one-hot row.

        ``of`` is a column of a label of several columns.
        """
        domain = self.table.domain
        if of is None:
            if self.has_classes:
                return np.eye(domain.size)
            return np.asarray(list(domain.listed), np.float64)[:, None]
        if not isinstance(domain, JointDomain):
            raise PrivateLabelError("the label has one column: leave out its name")
        names = list(self.table.certificate.label_columns)
        if of not in names:
            raise PrivateLabelError(f"{of!r} is no column of the label")
        part = domain.parts[names.index(of)]
        index = np.asarray(domain.places_of(np.arange(domain.size))[names.index(of)])
        if isinstance(part, CategoricalDomain):
            return np.eye(part.size)[index]
        return np.asarray(list(part.listed), np.float64)[index][:, None]

    def values(self, of: str | None = None) -> Floats:
        """[r] or [r, j] the target of each row."""
        return self.output_values(of)[self.codes]

    def output_values(self, of: str | None = None) -> Floats:
        """[m] or [m, j] the target of each output.

        Raises PrivateLabelError if no useful weights remove the noise of classes.
        """
        if not self.has_classes:
            return self._numbers
        weights = least_variance_inverse(self.matrix)
        if weights is None:
            raise PrivateLabelError(
                f"{self.table.certificate.name}: different labels have nearly the same outputs, so "
                "no useful weights remove the noise; use a forward-corrected loss, or compile with "
                "a larger ε"
            )
        values = weights @ self.goal(of)
        is_number = of is not None and values.shape[1] == 1
        return np.asarray(values[:, 0] if is_number else values)

    def unbiased(self, goal: Floats) -> Floats:
        """[m, j] of least variance with the means ``goal`` [k, j] under the labels.

        With q the probabilities of the outputs and A = P/√q, the least u with A·u = goal is
        A⁺·goal, and values are u/√q. Raises PrivateLabelError if there is none, or only one that is
        too large to be useful.
        """
        # A constant needs no estimate; what is too large is judged by the rest of each column.
        middle = (goal.max(axis=0) + goal.min(axis=0)) / 2
        apart = goal - middle
        values: Floats = self._least_inverse @ apart
        size = np.maximum(np.abs(apart).max(axis=0), _LEAST)
        residual = np.abs(self.matrix @ values - apart).max(axis=0) / size
        if (residual > _RESIDUAL).any() or (np.abs(values).max(axis=0) > _LARGEST * size).any():
            raise PrivateLabelError(
                f"{self.table.certificate.name}: different labels have nearly the same outputs, so "
                "this cannot be estimated; a larger ε, or another mechanism, allows it"
            )
        return values + middle

    @cached_property
    def _least_inverse(self) -> Floats:
        """[m, k] A⁺/√q of ``unbiased``."""
        scale = np.sqrt(np.maximum(self.shares @ self.matrix, _LEAST))
        solved = np.linalg.pinv(self.matrix / scale, rcond=_RANK)
        return np.asarray(solved / scale[:, None])

    @cached_property
    def _numbers(self) -> Floats:
        """[m] the values of outputs that are numbers."""
        randomizer, domain = self.table.randomizer, self.table.domain
        outputs = np.array([value(randomizer, o) for o in range(randomizer.outputs)], np.float64)
        if not self.is_small:
            return outputs
        labels = np.asarray(list(domain.listed), np.float64)
        bias = self.table.certificate.utility.largest_bias
        if bias is not None and bias <= _NEGLIGIBLE_BIAS * float(np.ptp(labels)):
            return least_noisy(self.matrix, outputs, self.shares)
        # A bias may be far smaller than the noise of its removal from n rows.
        return debiased_values(self.matrix, labels, self.shares, 1 / self.sample)

    @cached_property
    def noise(self) -> float:
        """The mean variance of a target given the label; of classes, summed over the row."""
        if not self.is_small:  # the variance of private labels without that of labels in the prior
            labels = np.asarray(list(self.table.domain.listed), np.float64)
            spread = float(self.shares @ (labels - self.shares @ labels) ** 2)
            return max(float(self.values().var()) - spread, 0.0)
        values = self.output_values()
        values = values[:, None] if values.ndim == 1 else values
        means = self.matrix @ values
        return float(self.shares @ (self.matrix @ values**2 - means**2).sum(axis=1))

    @cached_property
    def squared_bias(self) -> float:
        """The mean squared bias of a target that is a number."""
        if not self.is_small or self.goal().shape[1] > 1:
            return 0.0
        off = self.matrix @ self.output_values() - self.goal()[:, 0]
        return float(self.shares @ off**2)

    def spreading(self) -> Floats | None:
        """[m, k] by which weights an output is spread over labels: over those in its set.

        An output that is a label has the weight 1 on itself. None if outputs are numbers that are
        no labels.
        """
        randomizer = self.table.randomizer
        sets = sets_of(randomizer)
        if sets is not None:
            return np.asarray(sets.matrix.T / np.array(sets.sizes)[:, None])
        if not self.is_small:
            return None
        domain = self.table.domain
        index = {label: i for i, label in enumerate(domain.listed)}
        labels = [index.get(value(randomizer, o), -1) for o in range(randomizer.outputs)]
        return None if min(labels) < 0 else np.eye(domain.size)[labels]

    def members(self, labels: list[Any]) -> list[tuple[Any, ...]]:
        """[m] the labels in the set of each output, or the output itself."""
        spread = self.spreading()
        if spread is None:
            outputs = (value(self.table.randomizer, o) for o in range(self.matrix.shape[1]))
            return [(output,) for output in outputs]
        return [tuple(labels[i] for i in np.flatnonzero(row)) for row in spread]


def least_noisy(table: Floats, outputs: Floats, shares: Floats) -> Floats:
    """[m] the values of least variance that have the means of ``outputs`` [m] under every label.

    ``table`` [k, m] is Pr[output | label], and the variance is that for labels with the shares [k].
    In u = √q·v, q the probabilities of the outputs, the means are A·u with A = table/√q, and the
    variance is |u|² less a constant. So u is the projection of √q·outputs to the row space of A.
    """
    scale = np.sqrt(np.maximum(shares @ table, _LEAST))
    _, sizes, rows = np.linalg.svd(table / scale, full_matrices=False)
    rows = rows[sizes > _RANK * sizes[0]]
    return np.asarray(rows.T @ (rows @ (scale * outputs)) / scale)
