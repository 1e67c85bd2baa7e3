"""Randomized response over m outputs, in exact integers.

Proof of ε-DP. Every output has base weight b and one extra segment of length X = 2^B − m·b. A
window of length X meets a segment in at most X integers. So for any offsets, the largest ratio of
two probabilities of one output is (b + X)/b. With a rational r ≤ e^ε and b = ⌈2^B/(r + m − 1)⌉,

    b + X = 2^B − (m − 1)·b ≤ (r + m − 1)·b − (m − 1)·b = r·b ≤ e^ε·b.            ∎

RR-on-Bins has the same form: several labels may share an output. In RRTop-k (deep learning with
label DP, NeurIPS 2021, Algorithm 1) only the m kept labels have their own output. After their
segments comes a second block of length X, which is divided evenly among all outputs. It is the
window of every other label. No window covers more than X integers of one output, so the proof is
the same.
"""

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
    into them, or m for a label that answers at random; ``epsilon`` ≥ 0 is exact. The word takes as
    many bits (at most 62) as keep the two lines below 2^63, or exactly ``word_bits``. Raises
    ValueError if m outputs do not fit that word.
    """
    m, ratio = len(values), exp_lower(epsilon)
    has_even = max(output_of_label) == m
    for bits in word_sizes(word_bits):
        words = 1 << bits
        base = math.ceil(words / (ratio + m - 1))
        if m == 1:  # a constant: no window, and a ratio of exactly one
            base = words
        window = words - m * base
        if window < 0 or m * base + (m + has_even) * window >= 1 << 63:
            continue
        lengths = [window] * m
        if has_even:
            lengths += [(window + m - 1 - i) // m for i in range(m)]
        randomizer = WindowRandomizer(
            word_bits=bits,
            base=(base,) * m,
            extra=tuple(Segment(n, i % m) for i, n in enumerate(lengths) if n),
            offsets=tuple(int(i) * window for i in output_of_label),
            values=tuple(values),
        )
        check_form(randomizer)
        return randomizer
    raise ValueError(f"{m} outputs do not fit a word of {word_bits or MAX_WORD_BITS} bits")


def rr_top_k(
    values: Sequence[Output], kept: Sequence[int], epsilon: Fraction, word_bits: int | None = None
) -> WindowRandomizer:
    """ε-DP randomized response over the labels ``kept``; every other label answers at random.

    ``values`` [k] is every label as an output (numbers in increasing order), ``kept`` [m] holds
    increasing indices into it. Raises ValueError if m outputs do not fit the word.
    """
    position = {y: i for i, y in enumerate(kept)}
    others = 0 if len(kept) == 1 else len(kept)
    rows = [position.get(y, others) for y in range(len(values))]
    return randomized_response([values[y] for y in kept], rows, epsilon, word_bits)
