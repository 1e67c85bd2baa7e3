"""Additive randomizers read as plainly as their definition: noise by noise, label by label."""

from collections import Counter
from fractions import Fraction


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
