"""Staircase noise (Definitions 19 and 20 of the optimal unbiased randomizers paper, 2023)."""

from functools import partial
from typing import Literal

from labeldp_compile.mechanisms.additive import AdditiveNoise
from labeldp_compile.mechanisms.problem import Problem
from labeldp_compile.rounding.additive_noise import LabelLattice, Magnitudes, staircase_magnitudes
from labeldp_compile.solve.staircase_width import staircase_width


class Staircase(AdditiveNoise):
    """Staircase noise of the width that is best for the loss (Definitions 19 and 20)."""

    kind: Literal["staircase"]
    method = "closed form, after a search for the best width"

    @property
    def follows_prior(self) -> bool:
        """Only where noise is clamped does its best width depend on the labels."""
        return self.clip

    def magnitudes(self, problem: Problem, lattice: LabelLattice) -> Magnitudes:
        """The magnitudes of the best width."""
        width = staircase_width(
            lattice.period,
            lattice.spacing,
            problem.prior(),
            float(problem.epsilon),
            problem.loss,
            self.clip,
        )
        return partial(staircase_magnitudes, period=lattice.period, width=width)
