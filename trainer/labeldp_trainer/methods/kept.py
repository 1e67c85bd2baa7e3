"""Whether the arrays of an interrupted run fit: what a resumed run goes on with is looked at first.

An index beyond an array does not fail under JAX but takes its last entry: private labels of fewer
rows would train without a word.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from numpy.typing import NDArray

from labeldp_trainer.errors import RunFolderError
from labeldp_trainer.methods.method import Stored


class Fits(NamedTuple):
    """Arrays of a shape, whose dtype is of one of the kinds (as "iu").

    With ``ends`` (a, b) all entries are at least a and below b.
    """

    kinds: str
    shape: tuple[int, ...]
    ends: tuple[float, float] | None = None

    def holds(self, array: NDArray[Any]) -> bool:
        """Whether it is one of them."""
        if array.dtype.kind not in self.kinds or array.shape != self.shape:
            return False
        return self.ends is None or bool(((array >= self.ends[0]) & (array < self.ends[1])).all())


def require_kept(stored: Stored, expected: Mapping[str, Fits], source: str) -> None:
    """Raise RunFolderError unless these are the arrays that a run of this config has kept.

    ``source`` is in the message.
    """
    if set(stored) != set(expected) or not all(
        fits.holds(stored[name]) for name, fits in expected.items()
    ):
        raise unfit(source)


def unfit(source: str) -> RunFolderError:
    """What the run has kept is not of these rows and this config."""
    return RunFolderError(
        f"{source}: the run was started with other rows, or its kept.npz is damaged: start another "
        "run"
    )
