"""That a file is portable: it takes random words in limbs, with operators that old hosts have."""

from dataclasses import dataclass, replace

from labeldp_verify.claims.certificate import Certificate
from labeldp_verify.claims.claim import Claim, Evidence
from labeldp_verify.claims.declaration import Declaration
from labeldp_verify.claims.registry import all_claims
from labeldp_verify.claims.versions import formats_of
from labeldp_verify.claims.whole_file import field_lists
from labeldp_verify.forms import Integers
from labeldp_verify.graph.model import PORTABLE
from labeldp_verify.graph.word_graph import limbs_per_word


@dataclass(frozen=True)
class PortableClaims:
    """How many limbs hold a word (``graph/word_graph.py``)."""

    limbs_per_word: int


class PortableClaim(Claim[PortableClaims]):
    """That the graph takes words in limbs, and how many; the rebuilt file proves it."""

    part = PORTABLE
    record = PortableClaims
    proved = ("portable.limbs_per_word",)
    formats = ("1.8",)
    has_step = False  # the graph is checked with the whole file

    def derive(self, found: Evidence) -> PortableClaims:
        """As many as the integers need."""
        return _of(found.integers)

    def state(self, found: Evidence, declared: Declaration) -> PortableClaims | None:
        """Nothing: a file becomes portable afterwards (``as_portable``)."""
        return None


CLAIM = PortableClaim()


def as_portable(certificate: Certificate, integers: Integers) -> Certificate:
    """The certificate of the portable file with the same integers."""
    parts = {
        claim.part: claim.renewed(certificate.parts[claim.part])
        for claim in all_claims()
        if claim.part in certificate.parts
    }
    parts[PORTABLE] = _of(integers)
    stated = replace(certificate, parts=parts)
    return replace(stated, fields=field_lists(stated), format_version=formats_of(stated)[-1])


def _of(integers: Integers) -> PortableClaims:
    """As many limbs as hold the bits of every table."""
    return PortableClaims(max(limbs_per_word(one.word_bits) for one in integers.tables))
