"""The claims of a certificate, a file each: its fields, how they are stated, and how checked.

``certificate.py`` is what every file claims, ``registry.py`` finds the claims that only some make.
"""

from labeldp_verify.claims.certificate import (
    Certificate,
    Optimality,
    Prior,
    PrivatePriorClaims,
    RadiusOptimality,
    Witness,
)
from labeldp_verify.claims.composition import DELTAS, CompositionClaims, EpsilonAtDelta
from labeldp_verify.claims.declaration import Declaration
from labeldp_verify.claims.groups import DECLARED_BY, GroupsClaims
from labeldp_verify.claims.lower_bound import OVER
from labeldp_verify.claims.mature import MatureClaims, seconds_of
from labeldp_verify.claims.nulls import nulls_counted_as, nulls_in_short, nulls_in_words
from labeldp_verify.claims.person import PersonClaims, PersonEpsilon, person_epsilon
from labeldp_verify.claims.portable import as_portable
from labeldp_verify.claims.record import rational
from labeldp_verify.claims.sets import gap_in_words
from labeldp_verify.claims.tables import decimals
from labeldp_verify.claims.use import use_of
from labeldp_verify.claims.whole_file import TableStatement, field_lists, state_certificate

__all__ = [
    "DECLARED_BY",
    "DELTAS",
    "OVER",
    "Certificate",
    "CompositionClaims",
    "Declaration",
    "EpsilonAtDelta",
    "GroupsClaims",
    "MatureClaims",
    "Optimality",
    "PersonClaims",
    "PersonEpsilon",
    "Prior",
    "PrivatePriorClaims",
    "RadiusOptimality",
    "TableStatement",
    "Witness",
    "as_portable",
    "decimals",
    "field_lists",
    "gap_in_words",
    "nulls_counted_as",
    "nulls_in_short",
    "nulls_in_words",
    "person_epsilon",
    "rational",
    "seconds_of",
    "state_certificate",
    "use_of",
]
