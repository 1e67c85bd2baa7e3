"""The costs of the bins of RR-on-Bins for any loss that falls towards the label and is convex."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from labeldp_compile.solve.bin_costs import BinCosts, Floats, Ints

_TABLE = 4_000_000  # entries
_MOST_OUTPUTS, _FEWEST_OUTPUTS = 8192, 128
_SECTIONS = 70  # of a golden section, which leaves less than 1e-14 of the interval
_ROUNDS = 50
_GOLDEN = (5.0**0.5 - 1.0) / 2.0


class ConvexCosts(BinCosts):
    """Costs by table: the outputs are those of a grid, until ``settled`` moves the chosen ones.

    An entry is the loss of an output, summed from the output to a label. So the loss of a bin that
    holds the output is a sum of two numbers ≥ 0, and nothing cancels.
    """

    def __init__(
        self,
        labels: Floats,
        prior: Floats,
        epsilon: float,
        of: Callable[[Floats, Floats], Floats],
    ) -> None:
        """Of labels [n] with a positive prior [n], for the loss ``of`` outputs and labels.

        Raises ValueError if a loss is not finite.
        """
        super().__init__(labels.size, epsilon, 1.0)
        self._labels, self._prior, self._of = labels, prior, of
        self._grid = _grid(labels)
        costs = prior * of(self._grid[:, None], labels)
        if not np.isfinite(costs.sum()):
            raise ValueError("the losses of these labels are too large: use smaller units")
        above = labels >= self._grid[:, None]
        self._table = np.zeros((self._grid.size, labels.size + 1))
        np.cumsum(np.where(above, costs, 0.0), axis=1, out=self._table[:, 1:])
        below = np.where(above, 0.0, costs)[:, ::-1].cumsum(axis=1)[:, ::-1]
        self._table[:, :-1] -= below
        self._all = self._table[:, -1] - self._table[:, 0]
        self.base = float(self._all.min())

    def _costs(self, at: Ints, first: Ints, stop: Ints) -> Floats:
        inside = self._table[at, stop] - self._table[at, first]
        return np.asarray(self._stay * inside + self._outside * (self._all[at] - self.base))

    def _best(self, first: Ints, stop: Ints) -> Ints:
        """The best output on the grid: the costs are convex, so halving finds it."""
        low = np.zeros_like(first)
        high = np.full_like(first, self._grid.size - 1)
        while (low < high).any():
            middle = (low + high) // 2
            after = np.minimum(middle + 1, self._grid.size - 1)
            falls = self._costs(after, first, stop) < self._costs(middle, first, stop)
            low, high = np.where(falls, after, low), np.where(falls, high, middle)
        return low

    def excess(self, first: Ints, stop: Ints) -> Floats:
        """As of every loss."""
        return self._costs(self._best(first, stop), first, stop)

    def values(self, first: Ints, stop: Ints) -> Floats:
        """As of every loss, on the grid."""
        return np.asarray(self._grid[self._best(first, stop)])

    def settled(self, cuts: Ints) -> tuple[Ints, Floats, float]:
        """Bins near these, their best outputs of all numbers, and the loss of RR-on-Bins.

        Outputs and bins are improved in turns: each bin gets its best output, and each label the
        bin whose output is better for it.
        """
        for _ in range(_ROUNDS):
            values = self._outputs(cuts)
            kept = np.append(True, np.diff(values) > 0.0)
            losses = self._of(values[kept][:, None], self._labels)
            bins = np.maximum.accumulate(losses.argmin(axis=0))
            before, cuts = cuts, np.append(np.unique(bins, return_index=True)[1], self.size)
            if np.array_equal(before, cuts):
                break
        else:
            values = self._outputs(cuts)
        costs = (self._weights(cuts) * self._of(values[:, None], self._labels)).sum()
        return cuts, values, float(costs) / (1.0 + (values.size - 1) * self._outside)

    def _weights(self, cuts: Ints) -> Floats:
        """[d, n] of a label in the cost of a bin."""
        bins = np.searchsorted(cuts, np.arange(self.size), side="right") - 1
        inside = bins == np.arange(cuts.size - 1)[:, None]
        return np.asarray(self._prior * np.where(inside, 1.0, self._outside))

    def _outputs(self, cuts: Ints) -> Floats:
        """The best output of each bin, by golden sections around the one on the grid."""
        weights, at = self._weights(cuts), self._best(cuts[:-1], cuts[1:])
        low = self._grid[np.maximum(at - 1, 0)]
        high = self._grid[np.minimum(at + 1, self._grid.size - 1)]

        def cost(v: Floats) -> Floats:
            return np.asarray((weights * self._of(v[:, None], self._labels)).sum(axis=1))

        best, least = self._grid[at], cost(self._grid[at])
        for _ in range(_SECTIONS):
            wide = _GOLDEN * (high - low)
            left, right = high - wide, low + wide
            on_left, on_right = cost(left), cost(right)
            for value, found in ((left, on_left), (right, on_right)):
                best = np.where(found < least, value, best)
                least = np.minimum(found, least)
            falls = on_right < on_left
            low, high = np.where(falls, left, low), np.where(falls, high, right)
        return best


def _grid(labels: Floats) -> Floats:
    """Candidates for outputs: the labels and points between them, or some of very many labels."""
    most = min(max(_TABLE // labels.size, _FEWEST_OUTPUTS), _MOST_OUTPUTS)
    if labels.size >= most:
        return np.asarray(labels[np.linspace(0, labels.size - 1, most).astype(np.int64)])
    parts = max((most - 1) // max(labels.size - 1, 1), 1)
    steps = np.arange(parts) / parts
    inner = (labels[:-1, None] + np.diff(labels)[:, None] * steps).ravel()
    return np.append(inner, labels[-1])
