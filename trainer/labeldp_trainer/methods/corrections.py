"""What a private label says of classes, for a loss: k numbers for each output of its artifact.

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
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int32
from labeldp_learn.toolkit import PrivateRows, debiased_values
from labeldp_verify.analysis import least_variance_inverse
from labeldp_verify.artifact import Artifact
from labeldp_verify.forms import Domain

from labeldp_trainer.config.method import Correction
from labeldp_trainer.data.labels import Coded
from labeldp_trainer.errors import ArtifactError


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
    found, expected = part.shares, part.expected_shares
    weights = least_variance_inverse(part.matrix)
    apart = float(np.square(found - expected).sum())
    if weights is None or not apart:
        return found
    seen = np.bincount(part.codes, minlength=len(weights)) / len(part.codes)
    noise = float(seen @ np.square(weights - seen @ weights).sum(axis=1)) / len(part.codes)
    return expected + max(1 - noise / apart, 0.0) * (found - expected)


def _numbers(part: PrivateRows, correction: Correction) -> Float64[np.ndarray, "m k"]:
    if correction == "backward":
        return debiasing_weights(part.matrix, part.table.certificate.name)
    if correction == "forward":
        return np.asarray(np.log(np.maximum(part.matrix.T, np.finfo(float).tiny)))
    spread = part.spreading()
    assert spread is not None  # other private labels than sets are classes as they come
    return spread


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
    labels, found = np.array(list(domain.listed), np.float64), np.zeros(n)
    everywhere, squares = np.zeros(domain.size), 0.0
    for part in parts:
        shares, count = part.shares, len(part.rows)
        values = debiased_values(part.matrix, labels, shares, 1 / count)
        found[part.rows] = values[part.codes]
        everywhere += count * shares
        squares += count * float(shares @ (part.matrix @ values - labels) ** 2)
    shares = everywhere / n
    spread = float(shares @ (labels - shares @ labels) ** 2)
    return DebiasedNumbers(found, float(np.sqrt(squares / max(n * spread, 1e-300))))
