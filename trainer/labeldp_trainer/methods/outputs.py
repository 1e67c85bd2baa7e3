"""Whether labels that are said to be private can be outputs of the artifact that is named for them.

That they are cannot be proved. That they are not can: true labels in the place of private ones must
not get a promise that their own artifact refutes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from labeldp_verify.artifact import Artifact
from labeldp_verify.forms import AdditiveRandomizer
from numpy.typing import NDArray

from labeldp_trainer.data.labels import Cells, as_numpy, places, taken
from labeldp_trainer.methods.row_tables import rows_by_table


def all_outputs(decoded: Artifact, table: NDArray[np.int64] | None, private: Any) -> bool:
    """Whether every private label [n] is an output of the table of its row.

    ``table`` [n] is the number of each row's table, None for an artifact without groups.
    """
    for one, rows in rows_by_table(decoded, table, len(private)):
        labels, randomizer = taken(private, rows), one.randomizer
        if isinstance(randomizer, AdditiveRandomizer):
            if not _on_lattice(randomizer, labels):
                return False
        elif (places(labels, randomizer.values) < 0).any():
            return False
    return True


def _on_lattice(randomizer: AdditiveRandomizer, labels: Any) -> bool:
    """The same of outputs that are too many to be listed."""
    array = labels.numbers() if isinstance(labels, Cells) else as_numpy(labels)
    if array.dtype.kind not in "buif":
        return False
    numbers = np.unique(array.astype(np.float64))
    if not np.isfinite(numbers).all():
        return False
    with np.errstate(over="ignore"):
        steps = np.rint((numbers - randomizer.origin) / randomizer.unit)
    points = np.clip(steps, randomizer.low, randomizer.high)
    # the graph's own two float64 operations; what division rounded away is looked for exactly
    left = numbers[points * randomizer.unit + randomizer.origin != numbers]
    return all(len(randomizer.points_of(number)) for number in left.tolist())
