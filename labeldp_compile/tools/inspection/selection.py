"""Which labels and outputs to show where there are too many."""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence

from labeldp_verify.forms import CategoricalDomain, Domain, IntegerDomain, RealDomain
from labeldp_verify.forms.domain import Category

from labeldp_compile.errors import InputError


def sample(count: int, most: int) -> list[int]:
    """All of 0 … count − 1, or ``most`` ≥ 2 of them evenly spaced, both ends included."""
    if count <= most:
        return list(range(count))
    return [round(i * (count - 1) / (most - 1)) for i in range(most)]


def label_at(domain: Domain, index: int) -> Category | float:
    """The label of this index: a category, an integer, or the float64 of a grid point."""
    if isinstance(domain, CategoricalDomain):
        return domain.values[index]
    if isinstance(domain, IntegerDomain):
        return domain.min + index
    return float(domain.labels()[index])


def find_labels(domain: Domain, asked: Sequence[str]) -> list[int]:
    """The indices of labels as they were typed; InputError if one is no label of the domain.

    A real number stands for the grid point that is nearest to it.
    """
    return [_find(domain, text) for text in asked]


def _find(domain: Domain, text: str) -> int:
    if isinstance(domain, CategoricalDomain):
        names = [str(category) for category in domain.values]
        if text not in names:
            close = difflib.get_close_matches(text, names, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise InputError(f"--label {text}: is not one of the {len(names):,} categories{hint}")
        return names.index(text)
    try:
        number = float(text)
    except ValueError:
        raise InputError(f"--label {text}: expected a number") from None
    if not math.isfinite(number) or not domain.min <= number <= domain.max:
        raise InputError(f"--label {text}: the labels lie in {domain.min} … {domain.max}")
    if isinstance(domain, RealDomain):
        return math.floor(domain.position(number) + 0.5)
    if number != int(number):
        raise InputError(f"--label {text}: the labels are integers")
    return int(number) - domain.min
