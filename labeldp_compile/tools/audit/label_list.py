"""The labels of ``--labels``: a range of integers, or a list of numbers or of text."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_compile.errors import InputError

_RANGE = re.compile(r"(-?[0-9]{1,15})\.\.(-?[0-9]{1,15})")
_MOST = 10_000_000


def parse_labels(text: str) -> NDArray[Any]:
    """[n] distinct labels, n ≥ 2: int64, float64, or text as objects. Raises InputError."""
    whole = _RANGE.fullmatch(text.strip())
    if whole:
        low, high = map(int, whole.groups())
        if not 0 < high - low < _MOST:
            raise InputError(f"--labels {text}: expected a range of 2 to {_MOST:,} integers")
        return np.arange(low, high + 1, dtype=np.int64)
    parts = list(dict.fromkeys(part.strip() for part in text.split(",")))
    labels = _as_numbers(parts)
    if len(labels) < 2:
        raise InputError(f"--labels {text}: expected at least two labels, as 0..52 or as a,b,c")
    return labels


def _as_numbers(parts: list[str]) -> NDArray[Any]:
    for kind, dtype in ((int, np.int64), (float, np.float64)):
        try:
            numbers = [kind(part) for part in parts]
            if all(map(math.isfinite, numbers)):
                return np.array(sorted(set(numbers)), dtype=dtype)
        except (ValueError, OverflowError):
            continue
    return np.array(parts, dtype=object)
