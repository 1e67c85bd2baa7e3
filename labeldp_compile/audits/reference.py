"""What a verified artifact certifies: the probabilities of the cells, and which outputs exist."""

from typing import Any

import numpy as np
from labeldp_verify.analysis import at_most, lattice_indices, matrix
from labeldp_verify.artifact import Table
from labeldp_verify.forms import AdditiveRandomizer, output_array
from numpy.typing import NDArray

from labeldp_compile.audits.cells import (
    MAX_VALUES,
    IntervalCells,
    OutputCells,
    ValueCells,
    edges_of,
)

Floats = NDArray[np.float64]


class Reference:
    """The certified side of an audit."""

    def __init__(self, decoded: Table, labels: list[int]) -> None:
        """``labels`` are the indices of the audited labels."""
        self._r, self._rows, self._domain = decoded.randomizer, labels, decoded.domain
        self._values = None
        if not isinstance(self._r, AdditiveRandomizer):
            self._values = output_array(self._r.values)
        elif self._r.outputs <= MAX_VALUES:
            points = range(self._r.low, self._r.high + 1)
            self._values = np.array([self._r.value(t) for t in points])

    def inputs(self) -> NDArray[Any]:
        """[L] the audited labels, as the randomizer takes them."""
        return output_array([self._domain.listed[y] for y in self._rows])

    def cells(self, pilot: NDArray[Any]) -> OutputCells:
        """A cell for each output if they are few, else intervals (categories: the audited ones)."""
        if self._values is None:
            assert isinstance(self._r, AdditiveRandomizer)
            known = pilot[self.known(pilot)].astype(float)
            first = np.array([self._r.value(self._r.low)])
            return IntervalCells(edges_of(known if len(known) else first))
        if len(self._values) <= MAX_VALUES:
            return ValueCells(self._values)
        if self._values.dtype == np.float64:
            # The outputs of the audited labels reveal most, so they keep cells of their own.
            own = np.searchsorted(self._values, np.asarray(self.inputs(), dtype=float))
            spread = np.arange(0, len(self._values), len(self._values) // (MAX_VALUES // 4))
            edges = np.unique(np.concatenate([spread, own, own + 1]))
            return IntervalCells(self._values[edges[edges < len(self._values)]])
        audited = [y for y in self.inputs().tolist() if y in set(self._values.tolist())]
        return ValueCells(output_array(audited or self._values[:1].tolist()))

    def known(self, outputs: NDArray[Any]) -> NDArray[np.bool_]:
        """[n] whether each value is an output of the file."""
        if self._values is not None:
            cells = ValueCells(self._values)
            return cells.indices(outputs) < cells.count - 1
        assert isinstance(self._r, AdditiveRandomizer)
        if outputs.dtype == object:
            return np.zeros(len(outputs), dtype=bool)
        return lattice_indices(self._r, outputs) >= 0

    def probabilities(self, cells: OutputCells) -> Floats:
        """[L, cells] certified probabilities, correct to a few units in the last place."""
        result = np.zeros((len(self._rows), cells.count))
        if self._values is None:
            assert isinstance(cells, IntervalCells) and isinstance(self._r, AdditiveRandomizer)
            before = lattice_indices(self._r, cells.edges) - 1
            for position, label in enumerate(self._rows):
                cumulated = at_most(self._r, label, before)
                result[position, :-1] = np.diff(cumulated, prepend=0.0, append=1.0)
            return result
        places = cells.indices(self._values)
        for position, label in enumerate(self._rows):
            row = matrix(self._r, [label])[0]
            result[position] = np.bincount(places, weights=row, minlength=cells.count)
        return result
