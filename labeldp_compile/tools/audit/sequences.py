"""Sequences of rows of one label: inside calls, from call to call, and from process to process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_compile.tools.audit.cells import Cells
from labeldp_compile.tools.audit.dependence import shared_between, shared_inside
from labeldp_compile.tools.audit.processes import drawn_in_children
from labeldp_compile.tools.audit.report import Finding
from labeldp_compile.tools.audit.sampling import Tally
from labeldp_compile.tools.audit.target import Draw, Target

Bits = NDArray[np.bool_]
_CALLS = 4  # one behind the other in a sequence
_PROCESS_ROWS = 1 << 15


def even_set(screened: Tally) -> tuple[int, Bits]:
    """The label, and the lower part [cells] of the outputs, for which chances are most even."""
    shares = screened.counts.cumsum(axis=1) / np.maximum(screened.samples, 1)[:, None]
    label, cell = np.unravel_index(np.abs(shares - 0.5).argmin(), shares.shape)
    return int(label), np.arange(shares.shape[1]) <= cell


class SequenceTests:
    """Tests of independence, on whether outputs of one label lie in a set of cells."""

    def __init__(
        self,
        target: Target,
        draw: Draw,
        label: Any,
        cells: Cells,
        chosen: Bits,
        progress: Callable[[int], None],
    ) -> None:
        """``draw`` is the opened target; ``chosen`` [cells] is the set."""
        self._target, self._draw, self._label = target, draw, label
        self._cells, self._chosen, self._progress = cells, chosen, progress

    def rows_and_calls(self, rows: int, error: float) -> Finding:
        """Whether rows, and calls, share their words; two sequences of so many rows are drawn."""
        first, second = (self._sequence(rows) for _ in range(2))
        shared = shared_inside(first, second, error)
        if shared is None:
            return Finding("independence", True, f"no dependence of rows up to {rows // 2:,} apart")
        return Finding(
            "independence",
            False,
            f"rows of one label that are {shared.distance:,} apart are not independent: both "
            f"outputs lie in one set with probability {shared.together:.4f}, not "
            f"{shared.independent:.4f}",
        )

    def processes(self, rows: int, error: float) -> Finding:
        """Whether a process repeats the words of another; each draws at most so many rows."""
        call = self._call(min(rows, _PROCESS_ROWS))
        drawn, failures = drawn_in_children(self._target, self._draw, call)
        self._progress(len(call) * len(drawn))
        bits = {name: self._bits(part) for name, part in drawn.items()}
        names = list(bits)
        pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
        for a, b in pairs:
            if shared_between(bits[a], bits[b], error / len(pairs)):
                return Finding("processes", False, f"{b} repeats the words of {a}")
        if failures:
            return Finding("processes", None, f"could not be tried: {failures[0]}")
        return Finding("processes", True, f"no dependence between {', '.join(names)}")

    def _sequence(self, rows: int) -> Bits:
        call = self._call(rows // _CALLS)
        drawn = [self._draw(call) for _ in range(_CALLS)]
        self._progress(rows)
        return np.concatenate([self._bits(part) for part in drawn])

    def _call(self, rows: int) -> NDArray[Any]:
        """The label, so many times."""
        label = np.array([self._label], dtype=object if isinstance(self._label, str) else None)
        return np.repeat(label, rows)

    def _bits(self, outputs: NDArray[Any]) -> Bits:
        return self._chosen[self._cells.indices(outputs)]
