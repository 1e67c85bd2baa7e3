"""Functionals of a label that outputs estimate linearly, and the variance of such estimates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from labeldp_compile.estimate.intervals import Target, Variance
from labeldp_compile.estimate.inversion import Inverse
from labeldp_compile.estimate.private_counts import GroupCounts

Floats = NDArray[np.float64]
_TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class Spread:
    """How much g varies, as a functional of the label, which the outputs estimate too.

    Attributes:
        of_label: [c, f] Var[g | y] if labels are fixed, E[g² | y] if they are drawn.
        of_output: [m, f] unbiased estimators s of it.
        with_g: [c, f] E[s·g | y].
    """

    of_label: Floats
    of_output: Floats
    with_g: Floats


@dataclass(frozen=True)
class LinearEstimators:
    """Unbiased estimators g [m, f] of functionals [c, f] of the classes, for an inverted table."""

    inverse: Inverse
    functionals: Floats
    of_output: Floats

    def estimate(self, group: GroupCounts) -> Floats:
        """Estimates [f] of the functionals' means."""
        result: Floats = group.counts @ self.of_output[group.outputs] / group.rows
        return result

    def variance(self, group: GroupCounts, target: Target, shares: Floats) -> Variance:
        """The variance of g(o), of one row.

        It is estimated without bias. That estimate is off where the functional's is, and by how
        much for each unit is the regression of the one on the other, by which it is corrected for
        every value of the functional. In randomized response that gives the variance exactly.

        Args:
            group: the outputs.
            target: what is random, the noise alone or the labels too.
            shares: [c] of the classes, a distribution, for the regression.
        """
        value = self.estimate(group)
        spread, f = self._of_rows if target == "rows" else self._of_population, self.functionals
        squares, mean = shares @ spread.of_label, shares @ f
        if target == "rows":
            common, random = shares @ (spread.with_g - spread.of_label * f), squares
        else:
            common, random = shares @ spread.with_g - squares * mean, squares - mean**2
        slope = common / np.maximum(random, _TINY)
        # At the nearest value of the functional that is possible, it is one that labels can have.
        beyond = np.clip(value, f.min(axis=0), f.max(axis=0)) - value
        found = group.counts @ spread.of_output[group.outputs] / group.rows + slope * beyond
        found = np.clip(found, spread.of_label.min(axis=0), spread.of_label.max(axis=0))
        found = found - slope * beyond
        if target == "rows":
            return Variance(found, slope, 0.0)
        return Variance(found - value**2, slope - 2 * value, 1.0)

    @cached_property
    def _of_rows(self) -> Spread:
        f, scale = self.functionals, np.maximum(np.abs(self.of_output).max(axis=0), _TINY)
        scaled = self.inverse.table @ (self.of_output / scale) ** 2 - (f / scale) ** 2
        return self._spread(np.maximum(scaled, 0.0) * scale**2)

    @cached_property
    def _of_population(self) -> Spread:
        return self._spread(self.inverse.table @ self.of_output**2)

    def _spread(self, of_label: Floats) -> Spread:
        of_output = self.inverse.weights @ of_label
        return Spread(of_label, of_output, self.inverse.table @ (of_output * self.of_output))
