"""The conditions of a gate on an artifact, in addition to verifying: one record for each.

Both commands make their options from ``LIMITS``, and an attestation lists the limits that were
given. A new condition is one entry.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from labeldp_verify.analysis.grid_labels import bias_in_range
from labeldp_verify.claims import Certificate, person_epsilon, rational
from labeldp_verify.errors import InputError, short
from labeldp_verify.forms import Integers
from labeldp_verify.strict import read_decimal, read_whole

Limited = Callable[[Certificate, Integers, Any], str | None]
"""From a verified file's certificate and integers, and a limit, to how it is exceeded, in words."""


@dataclass(frozen=True)
class Limit:
    """One condition.

    Attributes:
        metavar: of the option; the option's name is that of the limit.
        help: what fails, in a sentence without its end.
        read: the value of a text; ValueError if it is none, or below 0.
        exceeded: the reason why a verified file fails, or None.
    """

    metavar: str
    help: str
    read: Callable[[str], Any]
    exceeded: Limited


def _number(text: str) -> Fraction:
    return Fraction(_not_negative(read_decimal(text)))


def _whole(text: str) -> int:
    return int(_not_negative(read_whole(text)))


def _not_negative(value: Decimal | int) -> Decimal | int:
    if value < 0:
        raise ValueError("expected a number of 0 or more")
    return value


def _above(value: Fraction, most: Fraction, text: str) -> str | None:
    if value <= most:
        return None
    return f"{text.format(float(value))}, more than the {float(most):g} allowed"


def _label(certificate: Certificate, _: Integers, most: Fraction) -> str | None:
    bound = rational(certificate.exact.epsilon_label_bound)
    return _above(bound, most, "the integers give ε ≤ {:.6g} per label")


def _total(certificate: Certificate, _: Integers, most: Fraction) -> str | None:
    text = (
        "a label that the prior was also counted from spends at least ε = {:.6g} in total "
        "(declared)"
    )
    return _above(rational(certificate.exact.epsilon_total), most, text)


def _person(certificate: Certificate, _: Integers, most: Fraction) -> str | None:
    person = person_epsilon(certificate)
    if person is None:
        return "its certificate does not say how many labels a person has"
    text = "a person with all labels, and the prior, spends ε = {:.6g} (declared)"
    return _above(person.total, most, text)


def _name(certificate: Certificate, _: Integers, name: str) -> str | None:
    if certificate.name == name:
        return None
    return f"its name is {short(certificate.name)}, not {short(name)}"


def _outputs(certificate: Certificate, _: Integers, least: int) -> str | None:
    if certificate.outputs >= least:
        return None
    return f"it has {certificate.outputs:,} outputs, fewer than {least:,}"


def _bias(certificate: Certificate, integers: Integers, most: Fraction) -> str | None:
    largest = certificate.exact.largest_bias
    if largest is None:
        return "its private labels are not numbers, so they have no bias"
    rounding = Fraction(certificate.utility.output_rounding)
    bias = bias_in_range(integers.label, rational(largest), rounding)
    return _above(bias, most, "a label in the range may be off by {:.6g} on average")


LIMITS: dict[str, Limit] = {
    "max_epsilon": Limit("E", "fail if a label may spend more (proved)", _number, _label),
    "max_total_epsilon": Limit(
        "E",
        "fail if a label that was also counted for the prior may spend more in total (declared)",
        _number,
        _total,
    ),
    "max_epsilon_per_person": Limit(
        "E",
        "fail if a person with all labels, and the prior, may spend more, or if FILE does not say "
        "how many labels a person has (declared)",
        _number,
        _person,
    ),
    "name": Limit("NAME", "fail if FILE has another name (declared)", str, _name),
    "min_outputs": Limit("M", "fail if FILE has fewer outputs (proved)", _whole, _outputs),
    "max_bias": Limit("B", "fail if a label is off by more on average (proved)", _number, _bias),
}
"""Each limit by its name. ``max_bias`` is for all labels in the range, those between the points of
a grid included. What a prior cost, and how many labels a person has, no file can prove."""


def option_of(name: str) -> str:
    """The option of a limit, in both commands."""
    return f"--{name.replace('_', '-')}"


class Limits(dict[str, Any]):
    """Conditions by their names in ``LIMITS``; each one given must hold.

    >>> from fractions import Fraction
    >>> Limits(max_epsilon=Fraction(1), name="ratings")["name"]
    'ratings'
    """

    @classmethod
    def read(cls, options: Mapping[str, str | None]) -> "Limits | None":
        """The limits of a command line, None if there are none; InputError for a wrong number."""
        given = cls()
        for name, text in options.items():
            if text is not None:
                try:
                    given[name] = LIMITS[name].read(text)
                except ValueError as error:
                    option = option_of(name)
                    raise InputError(f"{option}: expected a number of 0 or more") from error
        return given or None

    def exceeded(self, certificate: Certificate, integers: Integers) -> list[str]:
        """The conditions that a verified file does not meet, in plain words."""
        reasons = (LIMITS[name].exceeded(certificate, integers, self[name]) for name in self)
        return [reason for reason in reasons if reason is not None]
