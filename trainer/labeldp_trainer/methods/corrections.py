"""The targets of private labels of classes, for a loss: k numbers for each output of its artifact.

With P[o | c] = Pr[output o | class c] and a model's probabilities f,

| correction | loss of the output o                  | numbers of o                            |
|------------|---------------------------------------|-----------------------------------------|
| `forward`  | −ln Σ_c P[o given c]·f_c              | ln P[o given c]                         |
| `backward` | −Σ_c W[o, c]·ln f_c, where P·W = I    | W[o, c]                                 |
| `none`     | −ln f_o; of a set, the mean over it   | of a set of d classes 1/d for its own   |

Forward and backward correction are those of Patrini et al. (2017). The first is the likelihood of
what was seen, so that with enough rows the true probabilities are its minimum; it never falls below
0. The second has the loss on true labels for its expectation, and no lower bound: it is RR-Debiased
(LabelDP-Pro, Appendix D.1) for any P of full row rank, as Σ_o P[y, o]·W[o, c] is 1 if c = y and
else 0. For randomized response, W[o, c] = (1[o = c] − p/K)/(1 − p), and for sets Z of a balanced
design (1[c ∈ Z] − a)/s, with a = Pr[c ∈ Z] of all other classes and a + s of c. Where outputs are
sets of classes, the labels are partial ones (Feng et al. 2020): the likelihood knows how often the
true class is in its set. The mean over a set is the simple way of that field. Where each public
group has a table of its own, a label takes the numbers of its row's table.

Numbers that replace private labels. An output o becomes v(o). With the shares p of the labels, v
minimises Σ_y p_y·(Σ_o P[y, o]·v(o) − y)² + λ·Σ_y p_y·Var[v | y]: λ = 1 gives the mean of the labels
behind an output, which pulls every prediction towards the middle. A fit to sums over n rows
averages variance out and keeps bias, so λ is of the order of 1/n. Labels with the same outputs are
replaced by their mean. p is the likeliest one, given the private labels; what these leave open is
taken from the artifact's prior. All of this post-processes private labels. Where each public group
has a table of its own, this is done for the rows of each table alone.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64, Int32, Int64
from labeldp_learn.toolkit import PrivateRows, central_fourth_moments, debiased_values
from labeldp_verify.analysis import lattice_indices, least_variance_inverse
from labeldp_verify.artifact import Artifact
from labeldp_verify.forms import AdditiveRandomizer, Domain, Groups, Randomizer
from numpy.typing import NDArray

from labeldp_trainer.coefficients import PrivateTargets
from labeldp_trainer.config.method import Correction
from labeldp_trainer.data import DataPart
from labeldp_trainer.data.labels import Cells, Coded, numbers, places, taken
from labeldp_trainer.errors import ArtifactError

_DISTANCES = 32


def require_correction(decoded: Artifact, correction: Correction, source: str) -> None:
    """Raise ArtifactError unless every table has the numbers of a correction."""
    groups = decoded.groups
    for i in range(groups.tables):
        part, where = PrivateRows.empty(decoded, i), source
        if groups.columns:
            where += f": group {groups.name(i)}"
        if not part.is_small:
            outputs, labels = part.table.randomizer.outputs, part.table.domain.size
            raise ArtifactError(
                f"{where}: has {outputs:,} outputs for {labels:,} labels, too many to correct the "
                "loss; use correction: none, or compile another mechanism"
            )
        if correction == "backward":
            debiasing_weights(part.matrix, where)


def corrected(parts: Sequence[PrivateRows], order: Sequence[int], correction: Correction) -> Coded:
    """The numbers of private labels [n]; the columns are those of the labels ``order``.

    Raises ArtifactError as ``require_correction``.
    """
    coded: list[tuple[Int32[np.ndarray, " r"], Coded]] = []
    for part in parts:
        seen, codes = np.unique(part.codes, return_inverse=True)
        numbers = _numbers(part, correction)[seen][:, order]
        coded.append((part.rows, Coded(codes.astype(np.int32), numbers)))
    return Coded.joined(sum(len(part.rows) for part in parts), coded)


def class_shares(parts: Sequence[PrivateRows], order: Sequence[int]) -> Float64[np.ndarray, " k"]:
    """[k] about the shares of the classes ``order`` behind private labels [n].

    The likeliest ones, and the artifact's prior as far as noise may explain their distance (James
    and Stein 1961).
    """
    counts = np.sum([len(part.rows) * _steady_shares(part) for part in parts], axis=0)
    return np.asarray(counts[order] / counts.sum())


def _steady_shares(part: PrivateRows) -> Float64[np.ndarray, " k"]:
    likeliest, expected = part.shares, part.expected_shares
    weights = least_variance_inverse(part.matrix)
    apart = float(np.square(likeliest - expected).sum())
    if weights is None or not apart:
        return likeliest
    seen = np.bincount(part.codes, minlength=len(weights)) / len(part.codes)
    noise = float(seen @ np.square(weights - seen @ weights).sum(axis=1)) / len(part.codes)
    return expected + max(1 - noise / apart, 0.0) * (likeliest - expected)


def _numbers(part: PrivateRows, correction: Correction) -> Float64[np.ndarray, "m k"]:
    if correction == "backward":
        return debiasing_weights(part.matrix, part.table.certificate.name)
    if correction == "forward":
        return np.asarray(np.log(np.maximum(part.matrix.T, np.finfo(float).tiny)))
    spread = part.spreading()
    assert spread is not None  # other private labels than sets are classes as they come
    return spread


def kept_information(matrix: Float64[np.ndarray, "k m"]) -> float:
    """The share of what true classes say that outputs keep, for P[class, output].

    With the log odds t of two equally likely classes once an output is seen, the Fisher information
    on the log odds before it is E[tanh²(t/2)]/4; that of true classes is 1/4. This is the mean over
    pairs of classes; with many classes, over pairs of 32 distances.
    """
    k, found = len(matrix), []
    for distance in np.unique(np.linspace(1, k - 1, min(k - 1, _DISTANCES)).astype(int)):
        other = np.roll(matrix, distance, axis=0)
        ratio = np.square(matrix - other) / np.maximum(matrix + other, np.finfo(float).tiny)
        found.append(float(ratio.sum()) / (2 * k))
    return float(np.mean(found))


def debiasing_weights(
    matrix: Float64[np.ndarray, "k m"], source: str
) -> Float64[np.ndarray, "m k"]:
    """W with P·W = I and rows that sum to 1; the inverse of P where m = k.

    Among the solutions it takes the one of least variance under uniform labels: with D the
    probabilities of the outputs on its diagonal, W = D⁻¹Pᵀ(PD⁻¹Pᵀ)⁻¹. Raises ArtifactError if P
    has no such W, or only one that is too large to be useful.
    """
    k, m = matrix.shape
    if m < k:
        raise ArtifactError(
            f"{source}: has {m} outputs for {k} labels, so no weights remove its bias; "
            "train a network with correction: forward, or compile randomized_response"
        )
    weights = least_variance_inverse(matrix)
    if weights is None:
        raise ArtifactError(
            f"{source}: several labels have nearly the same outputs, so no useful weights "
            "remove its bias; train a network with correction: forward, or compile with a larger ε"
        )
    return weights


class DebiasedNumbers(NamedTuple):
    """Numbers for private ones.

    Attributes:
        values: [n].
        bias: √(Σ p_y·(E[v | y] − y)²) over the standard deviation of the labels, in the mean of all
            rows: what no choice of v takes away.
    """

    values: Float64[np.ndarray, " n"]
    bias: float


def debiased_numbers(domain: Domain, parts: Sequence[PrivateRows]) -> DebiasedNumbers | None:
    """The numbers for private labels [n] of a domain, or None if a table has too many outputs."""
    if not all(part.is_small for part in parts):
        return None
    n = sum(len(part.rows) for part in parts)
    labels, numbers = np.array(list(domain.listed), np.float64), np.zeros(n)
    everywhere, squares = np.zeros(domain.size), 0.0
    for part in parts:
        shares, count = part.shares, len(part.rows)
        values = debiased_values(part.matrix, labels, shares, 1 / count)
        numbers[part.rows] = values[part.codes]
        everywhere += count * shares
        squares += count * float(shares @ (part.matrix @ values - labels) ** 2)
    shares = everywhere / n
    spread = float(shares @ (labels - shares @ labels) ** 2)
    return DebiasedNumbers(numbers, float(np.sqrt(squares / max(n * spread, 1e-300))))


# Private labels as outputs of the artifact that is named for them, and what they say of labels.
#
# It cannot be proved that private labels are outputs of an artifact, but it can be disproved, or be
# far from likely. A run then says so. It is not refused: true labels must not decide an exit code.
#
# Where an artifact has several tables, public columns say which one randomizes a row: features,
# read as ``labeldp randomize`` reads them. Unlisted values and nulls have the table of all others.


def group_columns(groups: Groups, part: DataPart) -> dict[str, NDArray[Any]]:
    """The columns [n] of the groups by their names, as the artifact takes them. Raises DataError.

    Their types are as an artifact needs them, or a CSV file's, in which nothing has a type.
    """
    # It loads all mechanisms, which a label without groups does not need.
    from labeldp_compile.toolkit import group_array  # noqa: PLC0415

    columns = {}
    for column in groups.columns:
        given, cells = part.columns[column.name], False
        if isinstance(given, Cells):
            given, cells = given.values, True
        columns[column.name] = group_array(Path(part.source), column, given, cells=cells)
    return columns


def table_of_row(groups: Groups, part: DataPart) -> Int64[np.ndarray, " n"]:
    """[n] the number of each row's table. Raises DataError."""
    from labeldp_compile.toolkit import indexes_of_columns  # noqa: PLC0415

    columns = group_columns(groups, part)
    return indexes_of_columns(groups)([columns[column.name] for column in groups.columns])


def rows_by_table(
    artifact: Artifact, table: Int64[np.ndarray, " n"] | None, private: Any
) -> tuple[list[PrivateRows], bool]:
    """The private labels [n] by the table of their row, and whether all are outputs of it.

    ``table`` [n] is the number of each row's table, None where all rows have the first. Tables
    without rows are left out. What is no output has the code 0.
    """
    tables = np.zeros(len(private), np.int64) if table is None else table
    codes = np.empty(len(private), np.int64)
    for number in np.unique(tables).tolist():
        rows = np.flatnonzero(tables == number)
        own = private if len(rows) == len(private) else taken(private, rows)
        codes[rows] = _output_indices(artifact.tables[number], own)
    ones = np.ones(len(private))
    parts = PrivateRows.by_table(artifact, tables, np.maximum(codes, 0), ones)
    return parts, bool((codes >= 0).all())


def _output_indices(randomizer: Randomizer, private: Any) -> Int64[np.ndarray, " r"]:
    """The index of each private label among the outputs; −1 for what is not one."""
    if not isinstance(randomizer, AdditiveRandomizer):
        return places(private, randomizer.values)
    array = numbers(private)
    if array is None:
        return np.full(len(private), -1)
    with np.errstate(over="ignore"):
        return lattice_indices(randomizer, array.astype(np.float64))


def are_possible(artifact: Artifact, parts: Sequence[PrivateRows]) -> bool:
    """Whether the shares of private labels that are outputs can be as they are by chance."""
    if not all(part.is_small for part in parts):
        return True
    # Only private labels of a file need the estimators.
    from labeldp_learn.toolkit import OutputCounts, hardly_private  # noqa: PLC0415

    counts = {
        part.number: OutputCounts(*np.unique(part.codes, return_counts=True)) for part in parts
    }
    return not hardly_private(artifact, counts)


def added_variance(targets: Coded, parts: Sequence[PrivateRows], *, classes: bool) -> float:
    """About the mean variance of unbiased targets [n, k] that randomizing added; 0 if unknown."""
    count = np.bincount(targets.codes, minlength=len(targets.rows)) / len(targets)
    square = float(count @ np.square(targets.rows).sum(axis=1))
    if classes:  # the expectation of a target is a one-hot label
        return max((square - 1) / int(targets.rows.shape[1]), 0.0)
    expected, n = 0.0, sum(len(part.rows) for part in parts)
    for part in parts:
        if not part.is_small:
            return 0.0
        seen, first = np.unique(part.codes, return_index=True)
        values = targets.rows[targets.codes[part.rows[first]], 0]
        chances = part.matrix[:, seen]
        means = chances @ values / np.maximum(chances.sum(axis=1), np.finfo(float).tiny)
        expected += len(part.rows) / n * float(part.shares @ means**2)
    return max(square - expected, 0.0) if parts else 0.0


# Unbiased targets of private labels, and how much noise they have under each label.

_BIAS_WEIGHTS = (1e-12, 1e-9, 1e-6)
"""Of the variance in ``debiased_values``: about none."""
_EVENLY = 0.01  # share of labels spread over all labels
_MOST_BIAS = 0.05  # of the least standard error that a coefficient can have


class BiasedError(ValueError):
    """No targets are unbiased; the text says why."""


def private_targets(parts: Sequence[PrivateRows], order: Sequence[int] | None) -> PrivateTargets:
    """Of all rows of parts, for the classes ``order`` of an artifact, or for numbers (None).

    Raises BiasedError, or ArtifactError for classes whose outputs are nearly the same.
    """
    codes = np.empty(sum(len(part.rows) for part in parts), np.int64)
    targets = list[tuple[Float64[np.ndarray, "m k"], ...]]()
    before = 0
    for part in parts:
        if not part.is_small:
            raise BiasedError("its artifact has too many outputs")
        seen, own = np.unique(part.codes, return_inverse=True)
        whole = _unbiased_numbers(part) if order is None else _unbiased_classes(part, order)
        targets.append(tuple(numbers[seen] for numbers in whole))
        codes[part.rows] = own + before
        before += len(targets[-1][0])
    return PrivateTargets(codes, *(np.concatenate(own) for own in zip(*targets, strict=True)))


def _unbiased_classes(
    part: PrivateRows, order: Sequence[int]
) -> tuple[Float64[np.ndarray, "m k"], ...]:
    """W[o, c] has the mean 1[y = c], so that W² − W has the mean Var[W[o, c] | y]."""
    values = debiasing_weights(part.matrix, part.table.certificate.name)[:, order]
    means = np.eye(len(part.matrix))[:, order]
    variances = np.maximum(part.matrix @ values**2 - means, 0.0)
    fourth = central_fourth_moments(part.matrix, values, means)
    return _of_all(values, values**2 - values, variances, fourth)


def _unbiased_numbers(part: PrivateRows) -> tuple[Float64[np.ndarray, "m k"], ...]:
    """Of all values that are unbiased, those of least variance for the likeliest labels."""
    matrix = part.matrix
    # what no label seems to have must be unbiased, too
    shares = (1 - _EVENLY) * part.shares + _EVENLY / len(matrix)
    labels = np.array(list(part.table.domain.listed), np.float64)
    for weight in _BIAS_WEIGHTS:
        values = debiased_values(matrix, labels, shares, weight)
        means = matrix @ values
        variances = np.maximum(matrix @ values**2 - means**2, 0.0)
        bias = float(np.abs(means - labels).max())
        if bias <= _MOST_BIAS * np.sqrt(variances.min() / len(part.rows)):
            break
    else:
        raise BiasedError("its private labels are biased; goal: training in the spec avoids it")
    noise = debiased_values(matrix, variances, shares, _BIAS_WEIGHTS[-1])
    missed = max(float((variances - matrix @ noise).max()), 0.0)
    fourth = central_fourth_moments(matrix, values[:, None], means[:, None])
    return _of_all(values[:, None], noise[:, None] + missed, variances[:, None], fourth)


def _of_all(
    values: Float64[np.ndarray, "m k"],
    noise: Float64[np.ndarray, "m k"],
    variances: Float64[np.ndarray, "y k"],
    fourth: Float64[np.ndarray, "y k"],
) -> tuple[Float64[np.ndarray, "m k"], ...]:
    ends = (variances.min(axis=0), variances.max(axis=0), fourth.max(axis=0))
    return values, noise, *(np.repeat(end[None, :], len(values), axis=0) for end in ends)
