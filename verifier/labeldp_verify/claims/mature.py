"""When a label no longer changes: a rule that its owner declares, and ``randomize`` follows."""

import re
from dataclasses import dataclass

from labeldp_verify.checks import demand
from labeldp_verify.claims.certificate import Certificate
from labeldp_verify.claims.claim import Claim, Evidence
from labeldp_verify.claims.declaration import Declaration
from labeldp_verify.forms import Domain

_SECONDS = {"W": 604_800, "D": 86_400, "H": 3_600, "M": 60, "S": 1}
_DURATION = re.compile(
    r"P(?:([0-9]{1,5})W|(?=.)(?:([0-9]{1,5})D)?"
    r"(?:T(?=.)(?:([0-9]{1,7})H)?(?:([0-9]{1,7})M)?(?:([0-9]{1,9})S)?)?)"
)


def seconds_of(duration: str) -> int:
    """A duration of ISO 8601 in seconds; ValueError for anything else.

    Weeks, or days, hours, minutes and seconds, as whole numbers. Years and months have no fixed
    length, so they are refused.
    """
    found = _DURATION.fullmatch(duration)
    if found is None:
        raise ValueError("expected a duration such as P30D, P4W or PT36H, without years or months")
    parts = zip(found.groups(), _SECONDS.values(), strict=True)
    return sum(int(number) * seconds for number, seconds in parts if number is not None)


@dataclass(frozen=True)
class MatureClaims:
    """A label is drawn once, this long ``after`` the time in the public column ``by``."""

    after: str
    by: str


class MatureClaim(Claim[MatureClaims]):
    """That labels are not drawn earlier; no file can prove it."""

    part = "mature"
    record = MatureClaims
    proved = ()
    declared = ("mature.after", "mature.by")
    formats = ("1.9",)
    has_step = False  # nothing follows from the integers

    def state(self, found: Evidence, declared: Declaration) -> MatureClaims | None:
        """The rule of the spec."""
        return declared.mature

    def require(self, certificate: Certificate, domain: Domain) -> None:
        """Demand a duration, and a column that is not the label."""
        stated = certificate.mature
        if stated is None:
            return
        try:
            seconds_of(stated.after)
        except ValueError:
            demand(False, "the time after which labels are mature is no duration")
        demand(stated.by != "", "the column by which labels are mature has no name")
        demand(stated.by not in certificate.label_columns, "labels are mature by themselves")

    def check(self, found: Evidence) -> str:
        """Nothing is left to check."""
        return "when labels are mature is declared"


CLAIM = MatureClaim()
