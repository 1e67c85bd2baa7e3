"""What many labels of one user pay together, from the integers alone (Theorem 12).

Read in this order: ``divergence.py`` (integers → hockey-stick divergences from above),
``dominating_pair.py`` (divergences → masses on an even lattice of privacy losses) and ``losses.py``
(their composition in integers).
"""

from labeldp_verify.analysis.composition.compose import (
    MAX_LABELS_PER_USER,
    Composed,
    Part,
    compose_parts,
    lattice_of,
)
from labeldp_verify.analysis.composition.divergence import divergences
from labeldp_verify.analysis.composition.dominating_pair import Lattice, dominating_masses

__all__ = [
    "MAX_LABELS_PER_USER",
    "Composed",
    "Lattice",
    "Part",
    "compose_parts",
    "divergences",
    "dominating_masses",
    "lattice_of",
]
