"""Laplace and staircase noise (Definitions 17 to 20 of the unbiased paper, 2023)."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import partial

from labeldp_verify.artifact.additive_graph import MAX_PERIOD
from labeldp_verify.forms import CategoricalDomain, Domain

from labeldp_compile.mechanisms.problem import Problem, Solved
from labeldp_compile.rounding.additive_noise import (
    LabelLattice,
    Magnitudes,
    additive_noise,
    require_reachable,
)
from labeldp_compile.rounding.noise_magnitudes import laplace_magnitudes, staircase_magnitudes
from labeldp_compile.solve.staircase_width import staircase_width
from labeldp_compile.spec.mechanism import Laplace, Mechanism, Staircase


def build(problem: Problem) -> Solved:
    """The noise in whole counts, on the lattice that the spec asks for."""
    mechanism, epsilon = problem.mechanism, problem.epsilon
    if not isinstance(mechanism, Laplace | Staircase):
        raise ValueError(f"{mechanism.kind} adds no noise")
    if problem.loss == "poisson":
        raise ValueError("the poisson loss needs positive outputs, to which noise does not keep")
    require_feasible(mechanism, problem.domain, problem.loss, epsilon)
    lattice = label_lattice(problem.domain, mechanism.lattice)
    magnitudes: Magnitudes
    if isinstance(mechanism, Laplace):
        magnitudes = partial(laplace_magnitudes, period=lattice.period)
    else:
        width = staircase_width(
            lattice.period,
            lattice.spacing,
            problem.prior(),
            float(epsilon),
            problem.loss,
            mechanism.clip,
        )
        magnitudes = partial(staircase_magnitudes, period=lattice.period, width=width)
    return Solved(additive_noise(magnitudes, lattice, epsilon, mechanism.clip, problem.word_bits))


def require_feasible(mechanism: Mechanism, domain: Domain, loss: str, epsilon: Fraction) -> None:
    """Raise ValueError if the noise would need too large tables, or ε is too small."""
    if not isinstance(mechanism, Laplace | Staircase):
        return
    lattice = label_lattice(domain, mechanism.lattice)
    if lattice.period > MAX_PERIOD:
        raise ValueError(_too_large(lattice, domain))
    if not mechanism.clip:
        require_reachable(epsilon)


def label_lattice(domain: Domain, finest: Decimal | None) -> LabelLattice:
    """The lattice of a domain whose step is at most ``finest``; one step a label if None.

    A label is a power of two of steps, so that lattice points between integers are exact in
    float64. Raises ValueError for categories.
    """
    if isinstance(domain, CategoricalDomain):
        raise ValueError("additive noise needs labels that are numbers")
    step = (Fraction(domain.max) - Fraction(domain.min)) / (domain.size - 1)
    wanted = 1 if finest is None else math.ceil(step / Fraction(finest))
    spacing = 1 << (wanted - 1).bit_length() if wanted > 1 else 1
    origin = float(domain.min) + 0.0  # + 0.0 turns −0.0 into 0.0
    return LabelLattice(domain.size, spacing, origin, float(step / spacing))


def _too_large(lattice: LabelLattice, domain: Domain) -> str:
    too_many = f"additive noise on {lattice.period:,} lattice steps would need too large tables"
    if domain.size - 1 > MAX_PERIOD:
        return f"{too_many}; use at most {MAX_PERIOD + 1:,} labels"
    spacing = 1 << ((MAX_PERIOD // (domain.size - 1)).bit_length() - 1)
    finest = lattice.unit * lattice.spacing / spacing
    return f"{too_many}; use lattice: {_rounded_up(finest)} or coarser, or fewer labels"


def _rounded_up(number: float) -> str:
    """A hair above ``number``, with three digits."""
    return str(float(f"{number * 1.01:.3g}"))
