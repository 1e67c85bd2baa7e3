"""Whether the arrays of an interrupted run fit: what a resumed run goes on with is looked at first.

An index beyond an array does not fail under JAX but takes its last entry: private labels of fewer
rows would train without a word.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from labeldp_trainer.errors import RunFolderError
from labeldp_trainer.methods.method import Stored


def require_kept(
    stored: Stored, expected: Mapping[str, tuple[str, tuple[int, ...]]], source: str
) -> None:
    """Raise RunFolderError unless these are the arrays that a run of this config has kept.

    ``expected`` has the kinds of dtype (as "iu") and the shape of each; ``source`` is in the
    message.
    """
    if set(stored) != set(expected) or not all(
        stored[name].dtype.kind in kinds and stored[name].shape == shape
        for name, (kinds, shape) in expected.items()
    ):
        raise unfit(source)


def require_inside(values: NDArray[Any], low: int, high: int, source: str) -> None:
    """Raise RunFolderError unless all integers are in low … high − 1."""
    if values.size and not low <= int(values.min()) <= int(values.max()) < high:
        raise unfit(source)


def unfit(source: str) -> RunFolderError:
    """What the run has kept is not of these rows and this config."""
    return RunFolderError(
        f"{source}: the run was started with other rows, or its kept.npz is damaged: start another "
        "run"
    )
