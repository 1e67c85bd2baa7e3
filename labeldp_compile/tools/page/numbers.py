"""Numbers for people; pages also hold the exact number."""

import math
from fractions import Fraction

from labeldp_verify.forms import Output
from labeldp_verify.printable import clipped
from labeldp_verify.rounded import at_most
from markupsafe import Markup

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_LEAST, _MOST = 1e-4, 1e9  # outside this range, a power of ten is easier to read
_NAME_COLUMNS = 40


def plain(number: float | Fraction, digits: int = 5) -> str:
    """``1,234.5``, ``0.00123`` or ``3.1 × 10⁻¹⁵``, with at most ``digits`` significant digits."""
    value = float(number)
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    mantissa, exponent = f"{abs(value):.{digits - 1}e}".split("e")
    sign, power = "−" if value < 0 else "", int(exponent)
    if _LEAST <= abs(value) < _MOST:
        text = f"{abs(value):,.{max(digits - 1 - power, 0)}f}"
        return sign + (text.rstrip("0").rstrip(".") if "." in text else text)
    mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{sign}{mantissa} × 10{str(power).translate(_SUPERSCRIPTS)}"


def rounded_up(bound: Fraction, digits: int) -> str:
    """An upper bound ≥ 0 with at most ``digits`` significant digits, rounded up."""
    return plain(float(at_most(bound, digits)), digits)


def data(number: float | Fraction, digits: int = 5, field: str | None = None) -> Markup:
    """HTML: the number for people, and all its digits for machines.

    ``field`` is the path of the certificate's field with this number.
    """
    return _data(number, plain(number, digits), field)


def share_data(share: float, digits: int = 3) -> Markup:
    """HTML: a probability as a percentage, and all its digits for machines.

    It is 100% only where the probability is exactly 1.
    """
    texts = (plain(100 * share, more) for more in range(digits, 18))
    shown = plain(100 * share, digits)
    if share < 1:
        shown = next((text for text in texts if text != "100"), shown)
    return _data(share, f"{shown}%", None)


def data_above(bound: Fraction, digits: int = 5, field: str | None = None) -> Markup:
    """HTML: an upper bound ≥ 0, rounded up so that the shown number is also a bound."""
    return _data(bound, rounded_up(bound, digits), field)


def name(item: Output | float, columns: int = _NAME_COLUMNS) -> str | Markup:
    """A label or an output: a number for people and machines, or a category as clipped text."""
    return clipped(item, columns) if isinstance(item, str) else data(item, 6)


def _data(number: float | Fraction, text: str, field: str | None) -> Markup:
    value = number if isinstance(number, Fraction) else repr(number)
    named = "" if field is None else Markup(' data-field="{}"').format(field)
    return Markup('<data value="{}"{}>{}</data>').format(value, named, text)
