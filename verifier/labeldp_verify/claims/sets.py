"""Claims about sets of classes, checked against the integers."""

from labeldp_verify.analysis.share_noise import least_share_noise, share_noise
from labeldp_verify.claims.claim import Claim, Evidence
from labeldp_verify.claims.records import Declaration, ExactSetsClaims, SetsClaims
from labeldp_verify.claims.utility import OVER, near_least
from labeldp_verify.errors import CheckFailedError, demand
from labeldp_verify.forms import Domain, Randomizer, RealDomain, output_values, sets_of
from labeldp_verify.forms.exact_numbers import exp_bounds
from labeldp_verify.graph import canonical_json
from labeldp_verify.strict import rational


class SetsClaim(Claim[SetsClaims]):
    """That private labels reveal this about the classes."""

    part = "sets"
    record = SetsClaims
    proved = ("sets.blocks", "sets.noise", "sets.least_noise", "sets.gap", "sets.exact")

    def derive(self, found: Evidence) -> SetsClaims:
        """The sets of the only table, and their noise; ValueError if classes are not alike."""
        (randomizer,) = found.integers.tables
        noise = share_noise(randomizer)
        ratio = exp_bounds(rational(found.certificate.exact.epsilon_label))[1]
        least = least_share_noise(found.integers.label.size, ratio)
        if noise < least:
            raise ValueError("the noise of shares is below the proved minimum")
        sets = sets_of(randomizer)
        return SetsClaims(
            blocks=None if sets is None else sets.to_hex(),
            noise=float(noise),
            least_noise=float(least),
            gap=float(noise / least - 1),
            exact=ExactSetsClaims(str(noise), str(least)),
        )

    def state(self, found: Evidence, declared: Declaration) -> SetsClaims | None:
        """Where the mechanism asks for it."""
        return self.derive(found) if declared.sets else None

    def check(self, found: Evidence) -> str:
        """Demand that exactly this is claimed."""
        domain, (randomizer,) = found.integers.label, found.integers.tables
        demand(
            found.certificate.utility.loss == "zero_one" and not isinstance(domain, RealDomain),
            "sets need the zero_one loss",
        )
        if sets_of(randomizer) is None:  # the labels themselves, in their order
            values = getattr(randomizer, "values", ())
            demand(
                canonical_json(list(values)) == canonical_json(output_values(domain)),
                "the outputs are neither sets nor the labels",
            )
        try:
            super().check(found)
        except ValueError as error:
            raise CheckFailedError(str(error)) from None
        assert found.certificate.sets is not None
        gap = gap_in_words(found.certificate.sets.gap)
        return f"{_in_words(domain, randomizer)}; the noise of estimated shares is {gap}"


def gap_in_words(gap: float) -> str:
    """How near to the least possible noise it is, in half a sentence."""
    return f"{near_least(gap, OVER['any'])}, for uniform classes"


def _in_words(domain: Domain, randomizer: Randomizer) -> str:
    sets = sets_of(randomizer)
    if sets is None:
        return "the outputs are the labels, all treated alike"
    least, most = min(sets.sizes), max(sets.sizes)
    size = f"{most}" if least == most else f"{least} to {most}"
    return (
        f"each of the {len(sets.blocks):,} outputs is a set of {size} of {domain.size:,} labels; "
        "every label is in the same number of sets, and so is every pair of labels"
    )
