"""That a file is portable: it takes random words in limbs, with operators that old hosts have."""

from __future__ import annotations

from dataclasses import dataclass

from labeldp_verify.claims.claim import Claim, Evidence
from labeldp_verify.claims.declaration import Declaration
from labeldp_verify.graph.model import PORTABLE
from labeldp_verify.graph.word_graph import limbs_per_word


@dataclass(frozen=True)
class PortableClaims:
    """How many limbs hold a word (``graph/word_graph.py``)."""

    limbs_per_word: int


class PortableClaim(Claim[PortableClaims]):
    """That the graph takes words in so many limbs; the rebuilt file proves that it does."""

    part = PORTABLE
    record = PortableClaims
    proved = ("portable.limbs_per_word",)
    formats = ("1.8",)
    has_step = False  # the graph is checked with the whole file

    def derive(self, found: Evidence) -> PortableClaims:
        """As many as hold the bits of every table."""
        return PortableClaims(max(limbs_per_word(one.word_bits) for one in found.integers.tables))

    def state(self, found: Evidence, declared: Declaration) -> PortableClaims | None:
        """Only where it is asked for."""
        return self.derive(found) if declared.portable else None


CLAIM = PortableClaim()
