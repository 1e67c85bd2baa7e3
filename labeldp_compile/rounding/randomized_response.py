"""Randomized response over m outputs, in exact integers.

Proof of ε-DP. Every output has base weight b and one extra segment of length X = 2^B − m·b, and a
window of length X meets a segment in at most X integers, so the largest ratio of two probabilities
of one output is (b + X)/b whatever the offsets are. With a rational r ≤ e^ε and
b = ⌈2^B/(r + m − 1)⌉,

    b + X = 2^B − (m − 1)·b ≤ (r + m − 1)·b − (m − 1)·b = r·b ≤ e^ε·b.            ∎

The same form serves RR-on-Bins: several labels may share an output.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from labeldp_verify.analysis import exp_lower
from labeldp_verify.forms import (
    MAX_WORD_BITS,
    Output,
    Segment,
    WindowRandomizer,
    check_form,
    word_sizes,
)


def randomized_response(
    values: Sequence[Output],
    output_of_label: Sequence[int],
    epsilon: Fraction,
    word_bits: int | None = None,
) -> WindowRandomizer:
    """ε-DP randomized response: label y answers ``values[output_of_label[y]]`` most often.

    ``values`` [m] are distinct (numbers in increasing order), ``output_of_label`` [k] holds indices
    into them, ``epsilon`` ≥ 0 is exact. The word takes as many bits (at most 62) as keep the two
    lines below 2^63, or exactly ``word_bits``. Raises ValueError if m outputs do not fit that word.
    """
    m, ratio = len(values), exp_lower(epsilon)
    for bits in word_sizes(word_bits):
        words = 1 << bits
        if m == 1:  # a constant says nothing: no window, and a ratio of exactly one
            return _build(bits, words, 0, output_of_label, values)
        base = base_weight(words, m, ratio)
        window = words - m * base
        if window >= 0 and m * (base + window) < 1 << 63:
            return _build(bits, base, window, output_of_label, values)
    raise ValueError(f"{m} outputs do not fit a word of {word_bits or MAX_WORD_BITS} bits")


def base_weight(words: int, outputs: int, ratio: Fraction) -> int:
    """b = ⌈words/(ratio + outputs − 1)⌉."""
    return math.ceil(words / (ratio + outputs - 1))


def _build(
    bits: int, base: int, window: int, output_of_label: Sequence[int], values: Sequence[Output]
) -> WindowRandomizer:
    m = len(values)
    randomizer = WindowRandomizer(
        word_bits=bits,
        base=(base,) * m,
        extra=tuple(Segment(window, i) for i in range(m)) if window else (),
        offsets=tuple(int(i) * window for i in output_of_label),
        values=tuple(values),
    )
    check_form(randomizer)
    return randomizer
