"""What a private label says of classes, for a loss: k numbers for each output of its artifact.

With P[o | c] = Pr[output o | class c] and a model's probabilities f,

| correction | loss of the output o                  | numbers of o                            |
|------------|---------------------------------------|-----------------------------------------|
| `forward`  | −ln Σ_c P[o given c]·f_c              | ln P[o given c]                         |
| `backward` | −Σ_c W[o, c]·ln f_c, where P·W = I    | W[o, c]                                 |
| `none`     | −ln f_o; of a set, the mean over it   | of a set of d classes 1/d for its own   |

Forward and backward correction are those of Patrini et al. (2017). The first is the likelihood of
what was seen, so that with enough rows the true probabilities are its minimum; it never falls below
0. The second has the loss on true labels for its expectation, and no lower bound. Where outputs are
sets of classes, the labels are partial ones (Feng et al. 2020): the likelihood knows how often the
true class is in its set. The mean over a set is the simple way of that field. Where each public
group has a table of its own, a label takes the numbers of its row's table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64
from labeldp_verify.artifact import Artifact, Table
from labeldp_verify.forms import sets_of

from labeldp_trainer.config.method import Correction
from labeldp_trainer.data.coded import Coded
from labeldp_trainer.data.labels import places, taken
from labeldp_trainer.errors import ArtifactError
from labeldp_trainer.methods.debias import debiasing_weights, matrix_of
from labeldp_trainer.methods.debiased_numbers import likeliest_shares, start_of
from labeldp_trainer.methods.row_tables import rows_by_table, tables_of

_MOST_ENTRIES = 1 << 24


def require_correction(decoded: Artifact, correction: Correction, source: str) -> None:
    """Raise ArtifactError unless every table has the numbers of a correction."""
    for table, name in tables_of(decoded):
        where = f"{source}: {name}" if name else source
        _require_few(table, where)
        if correction == "backward":
            debiasing_weights(matrix_of(table)[0], where)


def corrected(
    decoded: Artifact,
    table: Int64[np.ndarray, " n"] | None,
    private: Any,
    order: Sequence[int],
    correction: Correction,
) -> Coded | None:
    """The numbers of private labels [n], each by its row's ``table`` [n].

    The columns are those of the labels ``order``. None if an artifact never outputs one of them.
    Raises ArtifactError as ``require_correction``.
    """
    parts = []
    for one, rows in rows_by_table(decoded, table, len(private)):
        numbers, outputs = _numbers(one, correction)
        found = coded_labels(outputs, numbers[:, order], taken(private, rows))
        if found is None:
            return None
        parts.append((rows, found))
    return Coded.joined(len(private), parts)


def class_shares(
    decoded: Artifact,
    table: Int64[np.ndarray, " n"] | None,
    private: Any,
    order: Sequence[int],
) -> Float64[np.ndarray, " k"]:
    """[k] about the shares of the classes ``order`` behind private labels [n]: the likeliest.

    The labels are outputs, as ``corrected`` has found.
    """
    rows_of = np.zeros(decoded.label.size)
    for one, rows in rows_by_table(decoded, table, len(private)):
        matrix, outputs = matrix_of(one)
        seen = np.bincount(places(taken(private, rows), outputs), minlength=len(outputs))
        rows_of += len(rows) * likeliest_shares(matrix, seen, start_of(one))
    return np.asarray(rows_of[order] / rows_of.sum())


def coded_labels(
    outputs: Sequence[int | str | float], numbers: Float64[np.ndarray, "m k"], private: Any
) -> Coded | None:
    """The numbers of private labels [n], or None if one of them is no output of the artifact."""
    found = places(private, outputs)
    if (found < 0).any():
        return None
    seen, codes = np.unique(found, return_inverse=True)
    return Coded(codes.astype(np.int32), numbers[seen])


def _require_few(decoded: Table, source: str) -> None:
    if decoded.domain.size * decoded.randomizer.outputs > _MOST_ENTRIES:
        raise ArtifactError(
            f"{source}: has {decoded.randomizer.outputs:,} outputs for {decoded.domain.size:,} "
            "labels, too many to correct a loss for them: say correction: none, or compile another "
            "mechanism"
        )


def _numbers(
    decoded: Table, correction: Correction
) -> tuple[Float64[np.ndarray, "m k"], list[int | str | float]]:
    """Of each output, and the outputs."""
    sets = sets_of(decoded.randomizer)
    matrix, outputs = matrix_of(decoded)
    if correction == "backward":
        return debiasing_weights(matrix, decoded.certificate.name), outputs
    if correction == "forward":
        return np.log(np.maximum(matrix.T, np.finfo(float).tiny)), outputs
    assert sets is not None  # other private labels are classes as they come
    return sets.matrix.T / np.array(sets.sizes)[:, None], outputs
