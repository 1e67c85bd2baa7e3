"""The conditions of a gate on an artifact, in addition to verifying."""

from dataclasses import dataclass
from fractions import Fraction

from labeldp_verify.analysis.grid_labels import bias_in_range
from labeldp_verify.claims import Certificate, person_epsilon, rational
from labeldp_verify.errors import InputError, short
from labeldp_verify.forms import Domain
from labeldp_verify.strict import read_decimal


@dataclass(frozen=True)
class Limits:
    """Conditions on an artifact; each one given must hold.

    Attributes:
        max_epsilon: of one randomization of a label, compared with the proved bound.
        name: of the spec. A declared field: it tells artifacts apart and proves nothing.
        min_outputs: number of different outputs, proved.
        max_bias: of |E[output | label] − label| for all labels in the range, those between the
            points of a grid included; proved. Private labels that are no numbers have no bias
            and fail.
        max_total_epsilon: of one randomization and the prior together, for a label in the prior's
            table, too. A declared field: what a prior cost, no file can prove.
        max_epsilon_per_person: of all labels of a person and the prior together, without δ. How
            many labels a person has, and what the prior cost, is declared. A file that does not say
            how many fails.
    """

    max_epsilon: Fraction | None = None
    name: str | None = None
    min_outputs: int | None = None
    max_bias: Fraction | None = None
    max_total_epsilon: Fraction | None = None
    max_epsilon_per_person: Fraction | None = None

    @property
    def any(self) -> bool:
        """Whether there is any limit."""
        return self != Limits()

    def exceeded(self, certificate: Certificate, domain: Domain) -> list[str]:
        """The conditions that a verified file does not meet, in plain words."""
        exact, found, bias = certificate.exact, [], Fraction(0)
        if exact.largest_bias is not None:
            rounding = Fraction(certificate.utility.output_rounding)
            bias = bias_in_range(domain, rational(exact.largest_bias), rounding)
        elif self.max_bias is not None:
            found.append("its private labels are not numbers, so they have no bias")
        person = person_epsilon(certificate)
        if person is None and self.max_epsilon_per_person is not None:
            found.append("its certificate does not say how many labels a person has")
        label = "the integers give ε ≤ {:.6g} per label"
        total = (
            "a label that the prior was also counted from spends at least ε = {:.6g} in total "
            "(declared)"
        )
        for limit, value, text in (
            (self.max_epsilon, rational(exact.epsilon_label_bound), label),
            (self.max_total_epsilon, rational(exact.epsilon_total), total),
            (
                self.max_epsilon_per_person,
                Fraction(0) if person is None else person.total,
                "a person with all labels, and the prior, spends ε = {:.6g} (declared)",
            ),
            (self.max_bias, bias, "a label in the range may be off by {:.6g} on average"),
        ):
            if limit is not None and value > limit:
                found.append(f"{text.format(float(value))}, more than the {float(limit):g} allowed")
        if self.name is not None and certificate.name != self.name:
            found.append(f"its name is {short(certificate.name)}, not {short(self.name)}")
        if self.min_outputs is not None and certificate.outputs < self.min_outputs:
            found.append(f"it has {certificate.outputs:,} outputs, fewer than {self.min_outputs:,}")
        return found


def number(option: str, text: str) -> Fraction:
    """A decimal ≥ 0 of a command line, exactly; InputError if it is not one."""
    try:
        value = read_decimal(text)
    except ValueError:
        value = None
    if value is None or value < 0:
        raise InputError(f"{option}: expected a number of 0 or more")
    return Fraction(value)
