"""What a certificate claims of sets of classes, held against the integers."""

from __future__ import annotations

from fractions import Fraction

from labeldp_verify.analysis.bounds import exp_bounds
from labeldp_verify.analysis.sets import least_share_noise, share_noise
from labeldp_verify.artifact import canonical_json
from labeldp_verify.certificate import Certificate, ExactSetsClaims, SetsClaims, rational
from labeldp_verify.forms import Domain, Randomizer, RealDomain, sets_of
from labeldp_verify.forms.joint import output_values
from labeldp_verify.report import CheckFailedError, agree, demand
from labeldp_verify.rounded import at_most


def state_sets(domain: Domain, randomizer: Randomizer, epsilon: Fraction) -> SetsClaims:
    """All that can be claimed; ValueError if the classes are not treated alike.

    ``epsilon`` is that of a label.
    """
    noise = share_noise(randomizer)
    least = least_share_noise(domain.size, exp_bounds(epsilon)[1])
    if noise < least:
        raise ValueError("the noise of shares is below the least: a theorem is wrong")
    sets = sets_of(randomizer)
    return SetsClaims(
        blocks=None if sets is None else sets.to_hex(),
        noise=float(noise),
        least_noise=float(least),
        gap=float(noise / least - 1),
        exact=ExactSetsClaims(str(noise), str(least)),
    )


def check_sets(certificate: Certificate, domain: Domain, randomizer: Randomizer) -> str:
    """Demand that exactly this is claimed, and say what was found in words."""
    demand(
        certificate.utility.loss == "zero_one" and not isinstance(domain, RealDomain),
        "sets are of classes, which have the zero_one loss",
    )
    sets = sets_of(randomizer)
    if sets is None:  # the labels themselves, in their order
        values = getattr(randomizer, "values", ())
        demand(
            canonical_json(list(values)) == canonical_json(output_values(domain)),
            "the outputs are neither sets nor the labels",
        )
    try:
        found = state_sets(domain, randomizer, rational(certificate.exact.epsilon_label))
    except ValueError as error:
        raise CheckFailedError(str(error)) from None
    for field in ("blocks", "noise", "least_noise", "gap"):
        agree(certificate, f"sets.{field}", getattr(found, field))
    for field in ("noise", "least_noise"):
        agree(certificate, f"sets.exact.{field}", getattr(found.exact, field))
    return f"{_in_words(domain, randomizer)}; {least_in_words(found.gap)}"


def least_in_words(gap: float) -> str:
    """How near to the least possible noise it is."""
    return f"an estimate of the shares has a noise {gap_in_words(gap)}"


def gap_in_words(gap: float) -> str:
    """The same in half a sentence."""
    near = (
        f"within {at_most(gap, 2)} (relatively) of" if gap < 1 else f"{at_most(1 + gap, 3)} times"
    )
    return f"{near} the least possible of all ε-DP randomizers, for uniform classes"


def _in_words(domain: Domain, randomizer: Randomizer) -> str:
    sets = sets_of(randomizer)
    if sets is None:
        return "the outputs are the labels, all treated alike"
    least, most = min(sets.sizes), max(sets.sizes)
    size = f"{most}" if least == most else f"{least} to {most}"
    return (
        f"each of the {len(sets.blocks):,} outputs is a set of {size} of {domain.size:,} labels; "
        "every label, and every pair of labels, is in equally many"
    )
