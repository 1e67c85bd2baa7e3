"""That a file is portable: it takes random words in limbs, with operators that old hosts have."""

from dataclasses import dataclass, replace

from labeldp_verify.claims.certificate import Certificate
from labeldp_verify.claims.claim import Claim, Evidence
from labeldp_verify.claims.declaration import Declaration
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
    stated = replace(certificate, parts=certificate.parts | {PORTABLE: _of(integers)})
    return replace(stated, fields=field_lists(stated))


def _of(integers: Integers) -> PortableClaims:
    """As many limbs as hold the bits of every table."""
    return PortableClaims(max(limbs_per_word(one.word_bits) for one in integers.tables))
