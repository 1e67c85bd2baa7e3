"""Draw from a randomizer and count, in calls with one label only and in calls with all labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_compile.audits.cells import OutputCells
from labeldp_compile.audits.target import Draw
from labeldp_compile.observer import Observer

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

    def seen(self, label: int, cells: NDArray[np.bool_]) -> tuple[int, int]:
        """How often a label gave one of the cells, and in how many samples."""
        return int(self.counts[label][cells].sum()), int(self.samples[label])


class Sampler:
    """Draws from one randomizer, counts outputs by label and cell, and informs an observer.

    Attributes:
        opened: the randomizer itself, which forked processes inherit.
        labels: [L] its labels; methods name them by their indices.
        drawn: how many labels it has randomized.
        cells: of the outputs; they are chosen after a pilot was drawn.
    """

    cells: OutputCells

    def __init__(self, opened: Draw, labels: NDArray[Any], observer: Observer) -> None:
        """Nothing is drawn yet."""
        self.opened, self.labels, self._observer, self.drawn = opened, labels, observer, 0

    def draw(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Outputs [n] of labels [n]."""
        outputs = self.opened(labels)
        self.count(len(labels))
        return outputs

    def count(self, labels: int) -> None:
        """Add to the number of randomized labels; another process may have randomized them."""
        self.drawn += labels
        self._observer.rows(labels)

    def rows(self, label: int, size: int) -> NDArray[Any]:
        """[size] one label."""
        return np.repeat(self.labels[label : label + 1], size)

    def pilot(self, each: int) -> NDArray[Any]:
        """Outputs of all labels: ``each`` from calls with one label, as many from one with all."""
        parts = [self.draw(self.rows(y, each)) for y in range(len(self.labels))]
        every = np.random.default_rng().permutation(np.repeat(self.labels, each))
        return np.concatenate([*parts, self.draw(every)])

    def alone(self, chosen: Sequence[int], samples: int) -> Tally:
        """Count ``samples`` samples of each chosen label, in calls with no other label."""
        tally = self._empty()
        for label in chosen:
            for size in _calls(samples):
                cells = self.cells.indices(self.draw(self.rows(label, size)))
                tally.counts[label] += np.bincount(cells, minlength=self.cells.count)
                tally.samples[label] += size
        return tally

    def mixed(self, samples: int) -> Tally:
        """Count about ``samples`` samples of each label, in calls with labels in random order."""
        tally, generator = self._empty(), np.random.default_rng()
        L, M = tally.counts.shape
        for size in _calls(samples * L):
            rows = generator.integers(0, L, size)
            cells = self.cells.indices(self.draw(self.labels[rows]))
            tally.counts[:] += np.bincount(rows * M + cells, minlength=L * M).reshape(L, M)
            tally.samples[:] += np.bincount(rows, minlength=L)
        return tally

    def _empty(self) -> Tally:
        L = len(self.labels)
        return Tally(np.zeros((L, self.cells.count), np.int64), np.zeros(L, np.int64))


def _calls(samples: int) -> list[int]:
    """Sizes of calls that add up to ``samples``."""
    whole, rest = divmod(samples, CALL)
    return [CALL] * whole + ([rest] if rest else [])
