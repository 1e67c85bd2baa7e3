"""Additive randomizers read as plainly as their definition: noise by noise, label by label."""

from collections import Counter
from fractions import Fraction
from itertools import pairwise

from hypothesis import strategies as st
from labeldp_verify.forms import AdditiveRandomizer
from labeldp_verify.forms.randomizers import check_additive


def weight(r, n):
    """2^(2B)·Pr[n]."""
    block, i = divmod(n, r.period)
    return r.blocks[block + r.reach + 1] * r.shapes[block >= 0][i]


def probability(r, n):
    return Fraction(weight(r, n), r.words**2)


def noises(r):
    return range(-(r.reach + 1) * r.period, (r.reach + 1) * r.period)


def rows(r):
    """[k] counters: lattice point → 2^(2B)·Pr[point | label]."""
    weights = [(n, weight(r, n)) for n in noises(r)]
    table = []
    for label in range(r.labels):
        row = Counter()
        for n, w in weights:
            row[min(max(label * r.spacing + n, r.low), r.high)] += w
        table.append(row)
    return table


def ratio_of_outputs(r):
    """The largest ratio of an output's probabilities under two labels."""
    table = rows(r)
    return max(
        Fraction(max(row[t] for row in table), min(row[t] for row in table))
        for t in range(r.low, r.high + 1)
    )


def ratio_of_windows(r):
    """What ``additive_ratio`` promises: every window of D + 1 inner noises, and both ends."""
    D, inner = r.period, r.reach * r.period
    w = {n: weight(r, n) for n in noises(r)}
    windows = [[w[n] for n in range(a, a + D + 1)] for a in range(-inner, inner - D)]
    top = [sum(w[n] for n in w if n >= r.high - p) for p in (0, D)]
    bottom = [sum(w[n] for n in w if n <= r.low - p) for p in (D, 0)]
    pairs = [*windows, top, bottom]
    return max(Fraction(max(pair), min(pair)) for pair in pairs)


def split(draw, parts, total):
    """``parts`` numbers ≥ 1 with the sum ``total``."""
    cuts = draw(st.sets(st.integers(1, total - 1), min_size=parts - 1, max_size=parts - 1))
    ends = [0, *sorted(cuts), total]
    return tuple(b - a for a, b in pairwise(ends))


@st.composite
def any_additive(draw):
    """Any additive randomizer of 6 bits: no symmetry, no order, no privacy."""
    labels, spacing = draw(st.integers(2, 5)), draw(st.integers(1, 3))
    period, reach = (labels - 1) * spacing, draw(st.integers(1, 3))
    low = draw(st.integers(period - reach * period, reach * period))
    r = AdditiveRandomizer(
        word_bits=6,
        labels=labels,
        spacing=spacing,
        blocks=split(draw, 2 * reach + 2, 64),
        shapes=(split(draw, period, 64), split(draw, period, 64)),
        low=low,
        high=draw(st.integers(low, reach * period)),
        origin=draw(st.integers(-20, 20)) / 4,
        unit=draw(st.integers(1, 20)) / 8,
    )
    check_additive(r)
    return r
