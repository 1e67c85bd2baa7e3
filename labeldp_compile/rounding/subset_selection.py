"""Subset selection in exact integers: two counts for each block, with the class inside or outside.

Of the N = 2^B words of a label, each of its r blocks gets hi, and each of the other b − r blocks
gets lo. With a rational E ≤ e^ε, lo = ⌈N/(r·E + b − r)⌉ and hi = ⌊(N − (b − r)·lo)/r⌋,

    hi ≤ ((r·E + b − r)·lo − (b − r)·lo)/r = E·lo.                                    ∎

Fewer than r words are left over. They go to block 0 for every label, which lowers its ratio. All
blocks keep the same difference hi − lo, so the estimate of the shares is exactly unbiased.
"""

import math
from fractions import Fraction

import numpy as np
from labeldp_verify.analysis import exp_lower
from labeldp_verify.forms import TABLE_WORD_BITS as WORD_BITS
from labeldp_verify.forms import ClassSets, TableRandomizer, check_table
from numpy.typing import NDArray


def subset_selection(
    members: NDArray[np.bool_], epsilon: Fraction, word_bits: int | None = None
) -> TableRandomizer:
    """The ε-DP table that returns a block: e^ε times as often one that contains the label.

    ``members`` [b, k] says which class is in which block; every class is in equally many, and in
    fewer than all. Raises ValueError if the words are too few for b blocks or for this ε.
    """
    bits = WORD_BITS if word_bits is None else word_bits
    words, blocks, own = 1 << bits, len(members), int(members[:, 0].sum())
    ratio = exp_lower(epsilon)
    low = math.ceil(words / (own * ratio + blocks - own))
    high = (words - (blocks - own) * low) // own
    if high <= low:
        raise ValueError(f"{blocks:,} sets do not fit words of {bits} bits at this ε")
    counts = np.where(members.T, np.uint64(high), np.uint64(low))
    counts[:, 0] += np.uint64(words - own * high - (blocks - own) * low)
    randomizer = TableRandomizer(
        word_bits=bits,
        counts=tuple(map(tuple, counts.tolist())),
        values=tuple(range(blocks)),
        sets=ClassSets.of(members),
    )
    check_table(randomizer)
    return randomizer
