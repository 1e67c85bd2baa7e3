"""What one bin of RR-on-Bins costs when the loss is given as a function.

The best output of every bin is found by golden section, between the smallest and the largest
label, to 3e-13 of their distance. For a smooth loss, or one whose kinks are at the labels, the cost
is then exact up to rounding. A kink elsewhere costs up to 3e-13·e^ε relative to the loss.
A smooth loss is flat at its minimum, so outputs have about eight digits.
"""

from __future__ import annotations

import numpy as np

from labeldp_compile.solve.range_moments import Floats, Ints, LossFunction

_BATCH = 1 << 19  # loss evaluations at a time
_GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0
_STEPS = 60


class ConvexCosts:
    """Any loss convex in the prediction; the attributes and methods of `BinCosts`.

    All bins are minimised at once in the constructor, with about 30·n³ evaluations of the loss.
    """

    def __init__(self, labels: Floats, prior: Floats, epsilon: float, loss: LossFunction) -> None:
        """Prepare for labels [n], their prior [n] and ε, as in `bin_costs.bin_costs`."""
        self.size = labels.size
        self.unit = 1.0
        self._labels, self._prior, self._loss = labels, prior, loss
        self._at_label = self._evaluate(labels, labels)
        self.shift = float(prior @ self._at_label)
        self._outside = float(np.exp(-epsilon))
        self._stay = float(-np.expm1(-epsilon))
        base, _ = self._minimise(prior[None, :])
        self.base = float(base[0])
        first, stop = np.triu_indices(self.size)
        self._excess = np.zeros((self.size, self.size + 1))
        self._values = np.zeros((self.size, self.size + 1))
        every = np.arange(self.size)
        step = max(1, _BATCH // self.size)
        for at in range(0, first.size, step):
            r, i = first[at : at + step, None], stop[at : at + step, None] + 1
            weights = prior * np.where((every >= r) & (every < i), 1.0, self._outside)
            total, value = self._minimise(weights)
            self._excess[r[:, 0], i[:, 0]] = np.maximum(total - self._outside * self.base, 0.0)
            self._values[r[:, 0], i[:, 0]] = value

    def _evaluate(self, prediction: Floats, label: Floats) -> Floats:
        loss = np.asarray(self._loss(prediction, label), dtype=np.float64)
        if loss.shape != np.broadcast_shapes(prediction.shape, label.shape):
            raise ValueError(
                "the loss must return one number for each pair of prediction and label"
            )
        if not np.isfinite(loss).all():
            raise ValueError("the loss must be finite for predictions between the labels")
        return loss

    def _objective(self, value: Floats, weights: Floats) -> Floats:
        loss = self._evaluate(value[:, None], self._labels[None, :]) - self._at_label
        return np.asarray((weights * loss).sum(axis=1))

    def _minimise(self, weights: Floats) -> tuple[Floats, Floats]:
        """Smallest weighted loss and where it is attained, for each row of weights [rows, n]."""
        low = np.full(len(weights), self._labels[0])
        high = np.full(len(weights), self._labels[-1])
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        at_left, at_right = self._objective(left, weights), self._objective(right, weights)
        for _ in range(_STEPS):
            down = at_left <= at_right
            low, high = np.where(down, low, left), np.where(down, right, high)
            probe = np.where(down, high - _GOLDEN * (high - low), low + _GOLDEN * (high - low))
            at_probe = self._objective(probe, weights)
            left, right = np.where(down, probe, right), np.where(down, left, probe)
            at_left, at_right = (
                np.where(down, at_probe, at_right),
                np.where(down, at_left, at_probe),
            )
        # Kinks are most likely at the labels: try the two nearest.
        after = np.clip(np.searchsorted(self._labels, left), 1, self.size - 1)
        candidates = np.stack([left, self._labels[after - 1], self._labels[after]])
        totals = np.stack([self._objective(value, weights) for value in candidates])
        best = totals.argmin(axis=0)
        rows = np.arange(len(weights))
        return totals[best, rows], candidates[best, rows]

    def excess(self, first: Ints, stop: Ints) -> Floats:
        """See `bin_costs.BinCosts`."""
        return self._excess[first, stop]

    def values(self, first: Ints, stop: Ints) -> Floats:
        """See `bin_costs.BinCosts`."""
        return self._values[first, stop]
