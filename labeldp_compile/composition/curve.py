"""One label: its dominating pair, and the hockey-stick curve that bounds all pairs of labels."""

from __future__ import annotations

from fractions import Fraction

from labeldp_verify.analysis import analyse
from labeldp_verify.analysis.composition import Part, divergences, dominating_masses, lattice_of
from labeldp_verify.forms import Randomizer


def hockey_stick(randomizer: Randomizer) -> list[tuple[float, float]]:
    """(ε, bound on δ(ε)) of one label, from ε = 0 to the ε at which δ is 0, for a picture."""
    lattice = lattice_of(Part(randomizer, analyse(randomizer).worst_ratio(), 1))
    bounds, _ = divergences(randomizer, lattice)
    return [(float(j * lattice.step), float(bound)) for j, bound in enumerate(bounds)]


def dominating_pair(randomizer: Randomizer) -> list[tuple[Fraction, Fraction, Fraction]]:
    """(privacy loss, probability under P, probability under Q) of one label, by increasing loss.

    P and Q dominate any two labels: no test tells those apart better. Both sum to 1; the losses are
    those of a lattice, ln(P/Q) to within 2^-95.
    """
    lattice = lattice_of(Part(randomizer, analyse(randomizer).worst_ratio(), 1))
    masses = dominating_masses(divergences(randomizer, lattice)[0], lattice)
    ratios = {j: lattice.ratio(abs(j)) ** (1 if j >= 0 else -1) for j in masses}
    return [(j * lattice.step, mass, mass / ratios[j]) for j, mass in masses.items()]
