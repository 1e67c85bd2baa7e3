"""RRTop-k in exact integers (deep learning with label DP, NeurIPS 2021, Algorithm 1).

The m kept labels are outputs with base weight b and one extra segment of length X = 2^B − m·b
each, which only their own label's window covers. Behind those lies a second block of length X,
dealt evenly to all outputs: the window of every other label. With r ≤ e^ε and b = ⌈2^B/(r + m
− 1)⌉ no window covers more than X integers of one output, so no ratio exceeds (b + X)/b ≤ r,
as for randomized response.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from labeldp_verify.analysis import exp_lower
from labeldp_verify.forms import Output, Segment, WindowRandomizer, check_form, word_sizes

from labeldp_compile.rounding.randomized_response import base_weight, randomized_response


def rr_top_k(
    values: Sequence[Output], kept: Sequence[int], epsilon: Fraction, word_bits: int | None = None
) -> WindowRandomizer:
    """ε-DP randomized response over the labels ``kept``; every other label answers at random.

    ``values`` [k] is every label as an output (numbers in increasing order), ``kept`` [m] holds
    increasing indices into it. Raises ValueError if m outputs do not fit the word.
    """
    outputs, position = [values[y] for y in kept], {y: i for i, y in enumerate(kept)}
    if len(kept) == 1 or len(kept) == len(values):
        rows = [position.get(y, 0) for y in range(len(values))]
        return randomized_response(outputs, rows, epsilon, word_bits)
    m, ratio = len(kept), exp_lower(epsilon)
    for bits in word_sizes(word_bits):
        base = base_weight(1 << bits, m, ratio)
        window = (1 << bits) - m * base
        if window < 0 or m * base + (m + 1) * window >= 1 << 63:
            continue
        share, rest = divmod(window, m)
        even = [Segment(share + (i < rest), i) for i in range(m) if share + (i < rest)]
        own = [Segment(window, i) for i in range(m)] if window else []
        randomizer = WindowRandomizer(
            word_bits=bits,
            base=(base,) * m,
            extra=(*own, *even),
            offsets=tuple(position.get(y, m) * window for y in range(len(values))),
            values=tuple(outputs),
        )
        check_form(randomizer)
        return randomizer
    raise ValueError(f"{m} outputs do not fit a word of {word_bits} bits")
