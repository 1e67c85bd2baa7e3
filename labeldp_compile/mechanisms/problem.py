"""The problem that a mechanism solves, and its solution."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from labeldp_verify.analysis import BiasRule, Loss
from labeldp_verify.forms import Domain, Randomizer, WindowRandomizer
from labeldp_verify.graph import bucket_grid
from numpy.typing import NDArray

from labeldp_compile.observer import QUIET, Observer


@dataclass(frozen=True)
class Problem:
    """What a mechanism must build.

    Attributes:
        domain: of the labels.
        weights: [k] integers in proportion to the prior.
        epsilon: ε₂, exact.
        loss: to be minimized under the prior.
        word_bits: size of the random word; None for the largest that fits (tests enumerate small
            ones).
        observer: gets the steps of a long solve.
        fits: whether a file with this randomizer is small enough.
        entries: of the lookup grid, if a mechanism has a choice.
    """

    domain: Domain
    weights: Sequence[int]
    epsilon: Fraction
    loss: Loss
    word_bits: int | None = None
    observer: Observer = QUIET
    fits: Callable[[WindowRandomizer], bool] = lambda randomizer: True
    entries: int = bucket_grid.COMFORTABLE_ENTRIES

    def prior(self) -> NDArray[np.float64]:
        """[k] the prior as float64, summing to about one."""
        total = sum(self.weights)
        return np.array([weight / total for weight in self.weights])


@dataclass(frozen=True)
class DualBound:
    """Dual values α, β [k] of the squared loss, and the class of randomizers that they bound.

    With them, optimality can be proved without the solver.
    """

    alpha: Sequence[float]
    beta: Sequence[float]
    rule: BiasRule


@dataclass(frozen=True)
class RadiusBound:
    """Radii [n] at some labels, the knots [n]: a bound on the loss of every ε-DP randomizer.

    They replace the dual values if there are very many labels (``analysis/radii.py``).
    """

    knots: Sequence[int]
    radii: Sequence[float]


@dataclass(frozen=True)
class Solved:
    """A randomizer in exact integers, and a proof of how much better another one could be.

    The proof is a bound on the loss, or that the randomizer treats all ``classes`` alike. Then the
    certificate states the noise of their shares.
    """

    randomizer: Randomizer
    bound: DualBound | RadiusBound | None = None
    classes: bool = False
