"""Numbers as people write them: ASCII digits, and nothing else that Python would read as a number.

``int("1_0")`` is 10 in Python, ``Decimal("١")`` is 1, and ``float`` takes blanks, "inf" and "nan".
An ε that is read differently from how it looks is a privacy bug, so options, YAML and policies are
all read here. A certificate is read more strictly still (``certificate.decimal``, ``rational``).
"""

import re
from decimal import Decimal
from typing import Any

WHOLE = re.compile(r"[-+]?[0-9]+")
DECIMAL = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
MAX_DIGITS = 100
MAX_EXPONENT = 100
_MAX_CHARACTERS = 1_000


def read_whole(text: Any) -> int:
    """The integer that a text of at most 100 digits states. Raises ValueError for anything else."""
    if not isinstance(text, str) or not WHOLE.fullmatch(text) or len(text) > MAX_DIGITS:
        raise ValueError("expected a whole number")
    return int(text)


def read_decimal(text: Any) -> Decimal:
    """The decimal number that a text states, exactly. Raises ValueError for anything else.

    Zero, or between 1e-100 and 1e100 in size, of at most 100 digits: a fraction of it stays small.
    """
    if not isinstance(text, str) or not DECIMAL.fullmatch(text):
        raise ValueError("expected a number")
    try:
        number = Decimal(text) if len(text) <= _MAX_CHARACTERS else None
    except ArithmeticError:  # an exponent of 19 digits
        number = None
    if number is None or not is_moderate(number):
        raise ValueError(f"expected a number between 1e-{MAX_EXPONENT} and 1e{MAX_EXPONENT}")
    return number


def is_moderate(number: Decimal) -> bool:
    """Whether a finite number has at most 100 digits, and is zero or 1e-100 … 1e100 in size."""
    few = len(number.as_tuple().digits) <= MAX_DIGITS
    return few and (not number or abs(number.adjusted()) <= MAX_EXPONENT)
