"""Draw from a randomizer and count: calls with one label only, and calls with all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_compile.observer import Observer
from labeldp_compile.tools.audit.cells import OutputCells
from labeldp_compile.tools.audit.target import Draw

Counts = NDArray[np.int64]
CALL = 1 << 16  # labels in a call


@dataclass(frozen=True)
class Tally:
    """Counts [labels, cells] of outputs, and how many samples each label has [labels]."""

    counts: Counts
    samples: Counts

    def __add__(self, other: Tally) -> Tally:
        """Both together."""
        return Tally(self.counts + other.counts, self.samples + other.samples)


class CountedDraw:
    """The opened target, which tells an observer how many labels it has randomized."""

    def __init__(self, opened: Draw, observer: Observer) -> None:
        """``opened`` itself is what other processes inherit."""
        self.opened, self._observer, self.labels = opened, observer, 0

    def __call__(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Outputs [n] of labels [n]."""
        outputs = self.opened(labels)
        self.count(len(labels))
        return outputs

    def count(self, labels: int) -> None:
        """So many more are randomized, here or elsewhere."""
        self.labels += labels
        self._observer.rows(labels)


class Sampler:
    """Draws from one randomizer and counts outputs by label and cell."""

    def __init__(self, draw: Draw, labels: NDArray[Any], cells: OutputCells) -> None:
        """``labels`` [L] are what the randomizer takes; they are named by their indices here."""
        self._draw, self._labels, self._cells = draw, labels, cells

    def alone(self, chosen: Sequence[int], samples: int) -> Tally:
        """So many samples of each chosen label, in calls with no other label."""
        tally = self._empty()
        for label in chosen:
            for size in _calls(samples):
                outputs = self._draw(np.repeat(self._labels[label : label + 1], size))
                cells = self._cells.indices(outputs)
                tally.counts[label] += np.bincount(cells, minlength=self._cells.count)
                tally.samples[label] += size
        return tally

    def mixed(self, samples: int) -> Tally:
        """About so many samples of each label, in calls with all labels in random order."""
        tally, generator = self._empty(), np.random.default_rng()
        L, M = tally.counts.shape
        for size in _calls(samples * L):
            rows = generator.integers(0, L, size)
            cells = self._cells.indices(self._draw(self._labels[rows]))
            tally.counts[:] += np.bincount(rows * M + cells, minlength=L * M).reshape(L, M)
            tally.samples[:] += np.bincount(rows, minlength=L)
        return tally

    def _empty(self) -> Tally:
        L = len(self._labels)
        return Tally(np.zeros((L, self._cells.count), np.int64), np.zeros(L, np.int64))


def _calls(samples: int) -> list[int]:
    """Sizes of calls that add up to so many samples."""
    whole, rest = divmod(samples, CALL)
    return [CALL] * whole + ([rest] if rest else [])
