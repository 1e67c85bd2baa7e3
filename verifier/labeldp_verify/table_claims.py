"""What a certificate claims of one table, held against its integers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from labeldp_verify.analysis import analyse
from labeldp_verify.analysis.bounds import exp_bounds, least_log_bound
from labeldp_verify.analysis.range_bias import bias_in_words
from labeldp_verify.analysis.strays import strays
from labeldp_verify.certificate import Certificate, rational
from labeldp_verify.cost import charge_outputs
from labeldp_verify.forms import Domain, JointDomain, Randomizer, RealDomain, are_numbers
from labeldp_verify.forms.exact_numbers import ExactNumbers
from labeldp_verify.joint_claims import SUM, check_joint
from labeldp_verify.optimality import check_optimality
from labeldp_verify.report import CheckFailedError, agree, demand, short
from labeldp_verify.rounded import up_to
from labeldp_verify.sets_claims import check_sets

MAX_EPSILON = 60
LOSSES = ("squared", "absolute", "poisson", "zero_one", SUM)


@dataclass(frozen=True)
class Use:
    """Bias and loss of a table under its prior.

    Attributes:
        loss: bounds of the noisy label loss; equal, but for the Poisson loss.
        biases: [k], None for categories.
        mean_square: of the biases, under the prior.
    """

    loss: tuple[Fraction, Fraction]
    biases: ExactNumbers | None
    mean_square: Fraction

    @property
    def largest_bias(self) -> Fraction | None:
        """Max |bias|."""
        return None if self.biases is None else self.biases.largest()


class TableClaims:
    """The steps rows to optimality for a certificate of one table.

    Each raises CheckFailedError, or says what was found in words; ``ratio`` and ``use`` are there
    after the steps privacy and utility.
    """

    ratio: Fraction
    use: Use

    def __init__(self, certificate: Certificate, domain: Domain, randomizer: Randomizer) -> None:
        """Nothing is checked yet."""
        self.certificate, self.domain, self.randomizer = certificate, domain, randomizer
        self.analysis: Any = analyse(randomizer)

    def tables(self) -> str:
        """What the integers are."""
        return f"the graph's constants decode to {self.analysis.description()}"

    def rows(self) -> str:
        """The integers are one distribution a row."""
        reason = self.analysis.why_not_distributions()
        demand(reason is None, str(reason))
        bits = self.randomizer.word_bits * self.randomizer.words_per_label
        return f"every label's probabilities are whole counts that sum to exactly 2^{bits}"

    def privacy(self) -> str:
        """No output is more than e^ε₂ times as probable under one label as under another."""
        certificate = self.certificate
        ratio = self.ratio = self.analysis.worst_ratio()
        epsilon = rational(certificate.exact.epsilon_label)
        demand(0 <= epsilon <= MAX_EPSILON, f"ε must lie in 0 … {MAX_EPSILON}")
        demand(
            ratio <= exp_bounds(epsilon)[0],
            f"an output can be {float(ratio):.6g} times as probable under one label as under "
            f"another, more than e^{float(epsilon):g}",
        )
        bound = agree_on_ratio(certificate, ratio)
        return (
            f"whatever the two labels, no output is more than {up_to(ratio)} times as probable: "
            f"ε ≤ {decimals(bound)}, declared {float(epsilon):.12g}"
        )

    def utility(self) -> str:
        """Bias and loss under the stated prior."""
        certificate, domain, loss = self.certificate, self.domain, self.certificate.utility.loss
        weights = certificate.prior.weights
        counts = all(type(w) is int and 0 <= w < 2**200 for w in weights)
        demand(counts and len(weights) == domain.size and sum(weights) > 0, "the prior is wrong")
        uniform = certificate.prior.kind == "uniform"
        demand(not uniform or len(set(weights)) == 1, "the prior is not uniform, as it claims")
        demand(loss in LOSSES, f"the loss {short(loss)} is unknown")
        charge_outputs(self.randomizer, domain.size)
        biases: ExactNumbers | None = None
        square, astray, labels = Fraction(0), strays(domain), domain.exact_labels()
        if are_numbers(domain, self.randomizer):
            biases = self.analysis.biases(labels, astray)
            square = biases.mean_square(weights)
        if certificate.utility.biases is not None:
            if biases is None:
                raise CheckFailedError("categories and sets have no bias")
            agree(certificate, "utility.biases", biases.floats())
        agree(certificate, "utility.output_rounding", float(self.analysis.output_rounding()))
        if isinstance(domain, JointDomain) and loss == SUM:
            total = check_joint(certificate, domain, self.randomizer)
            bounds = total, total
        else:
            bounds = self.analysis.expected_loss(labels, weights, loss, astray)
        self.use = Use(bounds, biases, square)
        return agree_on_use(certificate, domain, bounds, self.use.largest_bias, square)

    def optimality(self) -> str:
        """The dual values prove the lower bound."""
        return check_optimality(self.certificate, self.domain, self.use.biases)

    def sets(self) -> str:
        """What is claimed of sets of classes, if anything is."""
        return check_sets(self.certificate, self.domain, self.randomizer)


def agree_on_ratio(certificate: Certificate, ratio: Fraction) -> Fraction:
    """Demand that the fields of privacy state what follows from a ratio; returns the ε."""
    agree(certificate, "exact.realised_ratio", str(ratio))
    bound = least_log_bound(ratio)
    agree(certificate, "exact.epsilon_label_bound", str(bound))
    agree(certificate, "privacy.epsilon_label_bound", float(bound))
    return bound


def agree_on_use(
    certificate: Certificate,
    domain: Domain,
    bounds: tuple[Fraction, Fraction],
    largest: Fraction | None,
    mean_square: Fraction,
) -> str:
    """Demand that the fields of utility state these numbers; in words."""
    low, high = bounds
    loss = certificate.utility.loss
    agree(certificate, "exact.largest_bias", None if largest is None else str(largest))
    agree(certificate, "utility.largest_bias", None if largest is None else float(largest))
    agree(certificate, "utility.rms_bias", None if largest is None else math.sqrt(mean_square))
    demand(float(low) == float(high), "the loss cannot be bounded tightly")
    agree(certificate, "exact.noisy_label_loss", None if loss == "poisson" else str(low))
    agree(certificate, "utility.noisy_label_loss", float(low))
    which = " of the grid points" if isinstance(domain, RealDomain) else ""
    text = f"the noisy label loss{which} under the stated prior is {float(low):.12g} ({loss})"
    if largest is None:
        return text
    rounding = Fraction(certificate.utility.output_rounding)
    return f"{text}; {bias_in_words(domain, largest, rounding)}"


def decimals(bound: Fraction) -> str:
    """A multiple of 10^-12 in full."""
    whole, part = divmod(int(bound * 10**12), 10**12)
    return f"{whole}.{part:012d}".rstrip("0").rstrip(".")
