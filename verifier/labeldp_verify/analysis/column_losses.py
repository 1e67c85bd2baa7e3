"""The losses of a label's columns: what each column's private label is off by, on average.

The columns of a combination are private together, so the loss of column j is that of its marginal:
under the prior π, with o_j the place of column j in an output o,

    L_j = Σ_y π_y Σ_o Pr[o | y] · ℓ_j(o_j, y_j).

The marginal of a window randomizer is one: the same windows over segments that belong to places.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_verify.analysis.analysis import Loss
from labeldp_verify.analysis.window import WindowAnalysis
from labeldp_verify.budget import charge
from labeldp_verify.forms import (
    CategoricalDomain,
    Domain,
    JointDomain,
    Part,
    Randomizer,
    Segment,
    WindowRandomizer,
)

_STEP = 4e-6  # seconds of a segment, or of a label, for each column
COLUMN_LOSSES: tuple[Loss, ...] = ("squared", "absolute", "zero_one")


@dataclass(frozen=True)
class ColumnLoss:
    """The loss of one column, and its public weight in the loss of the whole label."""

    loss: Loss
    weight: Fraction


def column_losses(
    domain: Domain, randomizer: Randomizer, losses: Sequence[Loss], weights: Sequence[int]
) -> list[Fraction]:
    """[c] E ℓ_j of each column, y drawn in proportion to ``weights`` [k] (integers ≥ 0); exact.

    Raises ValueError for a loss that a column has not, or outputs that are no combinations.
    """
    r = randomizer
    if not isinstance(domain, JointDomain) or not isinstance(r, WindowRandomizer):
        raise ValueError("only window randomizers of several columns have losses by column")
    for part, loss in zip(domain.parts, losses, strict=True):
        if loss not in COLUMN_LOSSES or (
            isinstance(part, CategoricalDomain) and loss != "zero_one"
        ):
            raise ValueError(f"a column of this kind has no {loss} loss")
    steps = len(domain.parts) * (len(r.extra) + len(r.offsets) + len(r.base))
    charge(f"the columns of {len(r.offsets):,} labels", seconds=steps * _STEP)
    places = zip(
        domain.places_of(np.arange(domain.size)),
        domain.places_of(np.array(r.values, dtype=np.int64)),
        strict=True,
    )
    found = []
    for part, loss, (own, drawn) in zip(domain.parts, losses, places, strict=True):
        seen: Any = part.labels()
        labels = seen.take(own) if loss != "zero_one" else [part.listed[i] for i in own]
        analysis = WindowAnalysis(_marginal(r, part, drawn))
        found.append(analysis.expected_loss(labels, weights, loss)[0])
    return found


def _marginal(r: WindowRandomizer, part: Part, places: NDArray[np.int64]) -> WindowRandomizer:
    """What a label's column becomes; ``places`` [m] are the column's in each output."""
    base = np.zeros(part.size, dtype=np.int64)
    np.add.at(base, places, np.array(r.base, dtype=np.int64))
    of_output = places.tolist()
    extra = tuple(Segment(own.length, of_output[own.output]) for own in r.extra)
    return WindowRandomizer(r.word_bits, tuple(base.tolist()), extra, r.offsets, tuple(part.listed))
