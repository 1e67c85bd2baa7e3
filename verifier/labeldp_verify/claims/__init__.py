"""The claims of a certificate, a file each: its fields, how they are stated, and how checked.

``certificate.py`` is what every file claims, ``registry.py`` finds the claims that only some make.
"""

from labeldp_verify.claims.certificate import (
    ADJACENCY,
    Certificate,
    ExactTableClaims,
    FieldLists,
    Optimality,
    Prior,
    PriorClaims,
    PrivatePriorClaims,
    RadiusOptimality,
    TableClaims,
    UtilityClaims,
    Witness,
)
from labeldp_verify.claims.composition import DELTAS, CompositionClaims, EpsilonAtDelta
from labeldp_verify.claims.groups import DECLARED_BY, GroupColumnClaims, GroupsClaims
from labeldp_verify.claims.joint import JointClaims, JointColumnClaims
from labeldp_verify.claims.lower_bound import OVER
from labeldp_verify.claims.provenance import Provenance
from labeldp_verify.claims.record import ShapeError, decimal, rational
from labeldp_verify.claims.sets import SetsClaims, gap_in_words
from labeldp_verify.claims.tables import decimals
from labeldp_verify.claims.use import use_of
from labeldp_verify.claims.whole_file import TableStatement, field_lists, state_certificate

__all__ = [
    "ADJACENCY",
    "DECLARED_BY",
    "DELTAS",
    "OVER",
    "Certificate",
    "CompositionClaims",
    "EpsilonAtDelta",
    "ExactTableClaims",
    "FieldLists",
    "GroupColumnClaims",
    "GroupsClaims",
    "JointClaims",
    "JointColumnClaims",
    "Optimality",
    "Prior",
    "PriorClaims",
    "PrivatePriorClaims",
    "Provenance",
    "RadiusOptimality",
    "SetsClaims",
    "ShapeError",
    "TableClaims",
    "TableStatement",
    "UtilityClaims",
    "Witness",
    "decimal",
    "decimals",
    "field_lists",
    "gap_in_words",
    "rational",
    "state_certificate",
    "use_of",
]
