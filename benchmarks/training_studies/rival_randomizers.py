"""Randomizers of 2025 and 2026, from the descriptions in their papers: BlockRR, RPWithPrior, VLP.

Probabilities are integers, and that they keep ε is checked in integers; draws use fresh secret
bits. Priors are estimated from ε₁, a part of ε, with the compiler's exact noise. ε₁ = √(k/n), or
half of ε where that is less.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from labeldp_runtime.entropy import random_words
from labeldp_verify.analysis import exp_lower

from labeldp_compile.prior.discrete_laplace import noisy_histogram

BITS = 32
_LESS = Fraction(1, 1 << 16)  # of ε, so that rounding to integers does not exceed it


@dataclass(frozen=True)
class IntegerTable:
    """Pr[output | label] = lines[label, output]/2^BITS."""

    lines: np.ndarray

    @classmethod
    def of(cls, weights, epsilon):
        """Lines in proportion to weights [k, m]. Raises ValueError unless they are ε-DP."""
        shares = weights / weights.sum(axis=1, keepdims=True)
        lines = np.floor(shares * 2**BITS).astype(np.int64)
        rows = np.arange(len(lines))
        lines[rows, shares.argmax(axis=1)] += 2**BITS - lines.sum(axis=1)
        table = cls(lines)
        if not table.keeps(epsilon):
            raise ValueError("the table is not ε-DP")
        return table

    def keeps(self, epsilon):
        """Whether no output is more than e^ε times as likely under one label as under another."""
        bound = exp_lower(epsilon)
        most, least = self.lines.max(axis=0).tolist(), self.lines.min(axis=0).tolist()
        pairs = zip(most, least, strict=True)
        return all(a * bound.denominator <= b * bound.numerator for a, b in pairs)

    @property
    def chances(self):
        """Pr[output | label], [k, m]."""
        return self.lines / 2**BITS

    def drawn(self, labels):
        """An output for each label [n]."""
        words = (random_words(len(labels)) >> np.uint64(64 - BITS)).astype(np.int64)
        ends = np.cumsum(self.lines, axis=1)
        found = np.empty(len(labels), np.int64)
        for label, own in enumerate(ends):
            rows = np.flatnonzero(labels == label)
            found[rows] = np.searchsorted(own, words[rows], side="right")
        return found


def split_for_prior(epsilon, classes, rows):
    """(ε₁, ε₂)."""
    first = min(Fraction((classes / rows) ** 0.5).limit_denominator(10**6), epsilon / 2)
    return first, epsilon - first


def private_shares(labels, classes, epsilon):
    """[k] shares of labels, ε-DP."""
    counts = np.bincount(labels, minlength=classes).astype(np.int64)
    found = np.maximum(np.array(noisy_histogram(counts, epsilon).counts, float), 0)
    return (found + 1e-9) / (found + 1e-9).sum()


def block_rr(prior, epsilon, sigma=1.0, chosen=1):
    """BlockRR: Pr[output | class] in blocks of frequent and of rare classes.

    A class is frequent if its share is at least e^(−1/σ) of the largest one. Of a rare class, each
    of the ``chosen`` most frequent ones is an output with probability 1/k. If all are frequent,
    this is randomized response.
    """
    k, grown = len(prior), np.exp(float(epsilon * (1 - _LESS)))
    frequent = prior >= np.exp(-1 / sigma) * prior.max()
    common, rare = int(frequent.sum()), int((~frequent).sum())
    chosen = min(chosen, common)
    top = np.argsort(-np.where(frequent, prior, -1), kind="stable")[:chosen]
    # the sums of a frequent and of a rare class's line are 1
    sums = [[grown + common - 1, rare], [common - chosen, grown + rare - 1]]
    beta, gamma = np.linalg.solve(sums, [1.0, 1 - chosen / k]) if rare else (1 / sums[0][0], 0.0)
    lines = np.empty((k, k))
    lines[:, frequent], lines[:, ~frequent] = beta, gamma
    lines[np.ix_(~frequent, top)] = 1 / k
    own = np.arange(k)
    lines[own, own] = np.where(frequent, grown * beta, grown * gamma)
    return IntegerTable.of(lines, epsilon)


def rp_with_prior(prior, epsilon, near):
    """RPWithPrior on labels 0 … k − 1: outputs [m], and Pr[output | label].

    A label is moved into [a, b]. Outputs of a − near … b + near that are at most ``near`` away from
    it are e^ε times as likely as the others. Of all intervals, this has the largest chance of an
    output near its label, for a prior [k].
    """
    k, grown = len(prior), np.exp(float(epsilon * (1 - _LESS)))
    below = np.concatenate([[0.0], np.cumsum(prior)])
    first, last = np.triu_indices(k)
    inside = below[last + 1] - below[first]
    best = (inside / (2 * near + 1 + (last - first) / grown)).argmax()
    low, high = int(first[best]), int(last[best])
    outputs = np.arange(low - near, high + near + 1)
    moved = np.clip(np.arange(k), low, high)
    close = np.abs(outputs[None, :] - moved[:, None]) <= near
    return outputs, IntegerTable.of(np.where(close, grown, 1.0), epsilon)


def vector_labels(labels, classes, epsilon):
    """VLP: a bit for each class, 1 for the label's own, each flipped alone.

    Returns unbiased one-hot targets [n, k]. Two labels differ in two bits, so each bit has ε/2.
    """
    flips = int(np.ceil(2**BITS / (1 + np.exp(float(epsilon * (1 - _LESS)) / 2))))
    odds = Fraction(2**BITS - flips, flips)
    if odds * odds > exp_lower(epsilon):
        raise ValueError("the bits are not ε-DP")
    words = random_words(len(labels), classes) >> np.uint64(64 - BITS)
    bits = (labels[:, None] == np.arange(classes)[None, :]) ^ (words < np.uint64(flips))
    share = flips / 2**BITS
    return (bits - share) / (1 - 2 * share)
