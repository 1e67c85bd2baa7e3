"""Laplace noise (Definitions 17 and 18 of the optimal unbiased randomizers paper, 2023)."""

from functools import partial
from typing import Literal

from labeldp_compile.mechanisms.additive import AdditiveNoise
from labeldp_compile.mechanisms.problem import Problem
from labeldp_compile.rounding.additive_noise import LabelLattice, Magnitudes, laplace_magnitudes


class Laplace(AdditiveNoise):
    """Discrete Laplace noise (Definition 17), or on a fine lattice the continuous one (18)."""

    kind: Literal["laplace"]

    def magnitudes(self, problem: Problem, lattice: LabelLattice) -> Magnitudes:
        """The magnitudes of the definition."""
        return partial(laplace_magnitudes, period=lattice.period)
