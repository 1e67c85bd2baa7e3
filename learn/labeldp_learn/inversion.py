"""Weights that undo a randomizer on average, and the shares of labels behind its outputs.

For the table P [c, m] of Pr[output | class of labels], a private label o stands for the row W[o] of
weights W [m, c] with P·W = I: its expectation under class y is the y-th unit vector. Among all such
W the one of least variance under uniform labels is taken (``least_variance_inverse`` of the
verifier). Numbers have values v(o) instead, whose expectation under label y is y. Estimated shares
that are no distribution are projected to the nearest one, or replaced by the likeliest one.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from labeldp_verify.analysis import least_variance_inverse, matrix, set_weights
from labeldp_verify.artifact import Table
from labeldp_verify.forms import sets_of
from labeldp_verify.usefulness.shortcomings import row_keys
from numpy.typing import NDArray

from labeldp_learn.columns import PrivateLabelError

Floats = NDArray[np.float64]
MOST_ENTRIES = 1 << 24
"""Of Pr[output | label]; larger matrices are not computed."""
MOST_CLASSES = 4_000
"""Of a table that is inverted: it takes seconds."""
_STEPS = 1000  # of expectation and maximization
_BATCH = 1 << 14  # rows


@dataclass(frozen=True)
class LabelClasses:
    """The labels of a domain, in classes of equal rows of the table.

    Attributes:
        of_label: [k] class of each label; classes are numbered by their first label.
        first: [c] index of the first label of each class.
    """

    of_label: NDArray[np.int64]
    first: NDArray[np.int64]

    @classmethod
    def of(cls, table: Table) -> "LabelClasses":
        """The classes of a table of a verified artifact."""
        seen: dict[Hashable, int] = {}
        of_label = [seen.setdefault(key, len(seen)) for key in row_keys(table.randomizer)]
        array = np.array(of_label, np.int64)
        return cls(array, np.unique(array, return_index=True)[1])

    @property
    def count(self) -> int:
        """Number of classes c."""
        return len(self.first)

    @property
    def are_single(self) -> bool:
        """Whether every label is distinguished from all others."""
        return self.count == len(self.of_label)

    @property
    def are_intervals(self) -> bool:
        """Whether every class holds neighbouring labels only."""
        return bool((np.diff(self.of_label) >= 0).all())

    def matrix(self, table: Table) -> Floats:
        """Pr[output | class] [c, m]."""
        return matrix(table.randomizer, self.first.tolist())


class Inverse(NamedTuple):
    """A table and its weights.

    Attributes:
        table: [c, m] Pr[output | class].
        weights: [m, c] with table·weights = 1.
    """

    table: Floats
    weights: Floats


def invert(table: Table, classes: LabelClasses) -> Inverse:
    """Raises PrivateLabelError if no useful weights exist, or the table is too large."""
    c, m = classes.count, table.randomizer.outputs
    if c == 1:
        raise PrivateLabelError("all labels have the same output probabilities")
    if c > MOST_CLASSES or c * m > MOST_ENTRIES:
        raise PrivateLabelError(
            f"its table of {c:,} × {m:,} probabilities is too large to invert; the limits are "
            f"{MOST_CLASSES:,} distinguished labels and {MOST_ENTRIES:,} probabilities"
        )
    if m < c:
        raise PrivateLabelError(
            "for shares, compile with mechanism: randomized_response, because its "
            f"{m:,} outputs cannot distinguish the shares of {c:,} labels"
        )
    chances = classes.matrix(table)
    if sets_of(table.randomizer) is not None:
        # Two values per class, hit or no hit; their distribution is known even for few rows.
        return Inverse(chances, set_weights(table.randomizer))
    weights = least_variance_inverse(chances)
    if weights is None:
        raise PrivateLabelError(
            "several labels have nearly the same outputs, so no number of rows makes the noise of "
            "a histogram small; compile with a larger ε"
        )
    return Inverse(chances, weights)


def central_fourth_moments(table: Floats, values: Floats, means: Floats) -> Floats:
    """[y, j] E[(v − mean)⁴ | y] for values [m, j] with these means [y, j] under each label."""
    second, third, fourth = (table @ values**power for power in (2, 3, 4))
    central = fourth - 4 * means * third + 6 * means**2 * second - 3 * means**4
    return np.asarray(np.maximum(central, 0.0))


def debiased_values(
    table: Floats, labels: Floats, shares: Floats, variance_weight: float
) -> Floats:
    """v [m] of the outputs of P [k, m], for labels [k] with these shares [k].

    Minimizes Σ_y p_y·(Σ_o P[y, o]·v(o) − y)² + λ·Σ_y p_y·Var[v | y] for λ = ``variance_weight`` in
    (0, 1]. λ = 1 gives the mean of the labels behind an output. As λ goes to 0, v goes to the
    values of least bias, and among them to those of least variance. An output that no label has
    gets 0.
    """
    likely = shares @ table
    scale = np.sqrt(np.maximum(likely, 1e-300))
    # in u = √q·v the penalty is a multiple of the identity, however rare an output is
    scaled = table * np.sqrt(shares)[:, None] / scale[None, :]
    goal = np.sqrt(shares) * labels
    # ((1 − λ)·AᵀA + λ)⁻¹·Aᵀ·goal, for an A of norm 1 at most, singular or not
    left, values, right = np.linalg.svd(scaled, full_matrices=False)
    values = np.minimum(values, 1.0)
    stretched = (1 - variance_weight) * values**2 + variance_weight
    solved = right.T @ (values * (left.T @ goal) / stretched)
    return np.asarray(np.where(likely > 1e-15, solved / scale, 0.0))


def likeliest_shares(table: Floats, counts: Any, start: Floats) -> Floats:
    """[k] shares of the labels under which the outputs [m] that were seen are likeliest, about.

    ``counts`` may be [n, m], and the result is [n, k] then. Expectation and maximization from
    ``start`` [k]: the likelihood never falls, and labels with the same outputs keep their
    proportion.
    """
    seen = np.asarray(counts, np.float64)
    seen = seen / np.maximum(seen.sum(axis=-1, keepdims=True), 1)
    shares = np.broadcast_to(start, (*seen.shape[:-1], len(start)))
    for _ in range(_STEPS):
        shares = shares * ((seen / np.maximum(shares @ table, 1e-300)) @ table.T)
    return np.asarray(shares / shares.sum(axis=-1, keepdims=True))


def project_to_simplex(shares: Floats) -> Floats:
    """The Euclidean projection [..., c] of shares [..., c]: max(share − t, 0), t as it fits."""
    falling = -np.sort(-shares, axis=-1)
    levels = (falling.cumsum(axis=-1) - 1.0) / np.arange(1, shares.shape[-1] + 1)
    last = (falling > levels).cumsum(axis=-1).argmax(axis=-1)[..., None]
    return np.maximum(shares - np.take_along_axis(levels, last, axis=-1), 0.0)


def true_probabilities(fitted: Floats, mixing: Floats, shares: Floats, smoothing: float) -> Floats:
    """[n, k] probabilities of the true classes from those of the classes that were fitted [n, j].

    A model that is fitted to private labels learns q(x) = Tᵀp(x) for the known T [k, j] of Pr[what
    was fitted | class] (Patrini et al. 2017), ``mixing``. So p = qW with T·W = I. A model is never
    exactly right, and qW may leave the simplex: then the nearest point of the simplex is taken. If
    T has no such W, p is the likeliest one given q.

    A probability of 0 is worse than any noise for the log loss. So the result is mixed with a small
    share, ``smoothing``, of the estimated shares [k] of all classes.
    """
    weights = least_variance_inverse(mixing)
    if weights is not None:
        probabilities = project_to_simplex(fitted @ weights)
    else:
        starts = range(0, len(fitted), _BATCH)
        parts = [likeliest_shares(mixing, fitted[i : i + _BATCH], shares) for i in starts]
        probabilities = np.concatenate(parts) if parts else np.zeros((0, len(mixing)))
    return np.asarray((1 - smoothing) * probabilities + smoothing * shares)
