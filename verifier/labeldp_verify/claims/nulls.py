"""What becomes of a null: a label of its own rule, or a null that is public."""

from dataclasses import dataclass
from typing import Any, Literal

from labeldp_verify.checks import demand
from labeldp_verify.claims.certificate import Certificate
from labeldp_verify.claims.claim import Claim, Evidence
from labeldp_verify.claims.declaration import Declaration
from labeldp_verify.forms import Domain, columns_of, missing_label
from labeldp_verify.printable import one_line

NOT_PROTECTED = "which rows have no label is public, and not protected"


@dataclass(frozen=True)
class NullsClaims:
    """What nulls of the label become, and whether the pattern of nulls is protected.

    ``become`` has a label for each column of the label, or null where nulls stay null. ``pattern``
    is "protected" if a null is randomized like any other label; "public" says that nulls stay null,
    because anyone may know which rows have no label.
    """

    become: list[Any]
    pattern: Literal["protected", "public"]


class NullsClaim(Claim[NullsClaims]):
    """That nulls follow a rule of their own."""

    part = "nulls"
    record = NullsClaims
    proved = ("nulls.become",)
    declared = ("nulls.pattern",)

    def derive(self, found: Evidence) -> NullsClaims:
        """From the rules of the domain."""
        return _stated(found.integers.label)

    def state(self, found: Evidence, declared: Declaration) -> NullsClaims | None:
        """Where a column has such a rule."""
        return self.derive(found) if _has_rule(found.integers.label) else None

    def require(self, certificate: Certificate, domain: Domain) -> None:
        """Demand that it is claimed where there is such a rule, and nowhere else."""
        claims = certificate.parts.get(self.part)
        demand((claims is not None) == _has_rule(domain), "the rule for nulls is misstated")
        if claims is not None:
            own = _stated(domain).pattern
            demand(claims.pattern == own, "whether nulls are protected is misstated")

    def check(self, found: Evidence) -> str:
        """Say what nulls become."""
        super().check(found)
        return nulls_in_words(found.integers.label)


CLAIM = NullsClaim()


def _has_rule(domain: Domain) -> bool:
    return any(part.null is not None or part.keeps_nulls for part in columns_of(domain))


def _stated(domain: Domain) -> NullsClaims:
    parts = columns_of(domain)
    become = [None if part.keeps_nulls else missing_label(part) for part in parts]
    return NullsClaims(become, "public" if any(part.keeps_nulls for part in parts) else "protected")


def nulls_in_words(domain: Domain) -> str:
    """What nulls become, in one sentence that quotes labels in one line."""
    parts = columns_of(domain)
    if any(part.keeps_nulls for part in parts):
        return f"nulls stay null: {NOT_PROTECTED}"
    shown = one_line(" and ".join(_shown(missing_label(part)) for part in parts))
    if any(_takes_lowest(part) for part in parts):
        return (
            f"nulls become {shown}, the lowest label, because the spec has no rule for nulls; "
            "choose another with nulls: {default: LABEL}"
        )
    return f"nulls become {shown}, and are randomized like any other label"


def nulls_in_short(part: Domain) -> str:
    """The same of one column, in a few words."""
    if part.keeps_nulls:
        return "nulls stay null, which is public"
    became = f"nulls become {one_line(_shown(missing_label(part)))}"
    return (
        f"{became}, the lowest label (there is no rule for nulls)"
        if _takes_lowest(part)
        else became
    )


def nulls_counted_as(domain: Domain) -> str:
    """What nulls were when private labels were drawn, in a few words."""
    parts = columns_of(domain)
    if any(part.keeps_nulls for part in parts):
        return "rows without a label are left out"
    shown = one_line(" and ".join(_shown(missing_label(part)) for part in parts))
    return f"nulls were counted as {shown}{', the lowest label' * any(map(_takes_lowest, parts))}"


def _takes_lowest(part: Domain) -> bool:
    return part.null is None and part.default is None and not part.keeps_nulls


def _shown(label: Any) -> str:
    return f"{label:g}" if isinstance(label, float) else str(label)
