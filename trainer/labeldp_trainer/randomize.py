"""The trainer's own randomizers: RRWithPrior with one prior an example, and noisy one-hot labels.

RRWithPrior (deep learning with label DP, NeurIPS 2021, Algorithms 1 and 2). Of 2^B equally likely
words (B = 62), the first m·b are dealt evenly to the m kept labels; the other X = 2^B − m·b go to
the true label if it is kept, else again evenly to the kept ones. With a rational r ≤ e^ε and
b = ⌈2^B/(r + m − 1)⌉, every kept label gets between b and b + X ≤ r·b words for any true label:
ε-DP (Theorem 9 in docs/privacy.md). The floats of a prior only choose which labels are kept,
and in which order.

NoisyOneHot: discrete Laplace noise on one-hot labels (ALIBI, Malek et al. 2021). A one-hot label
has L1 sensitivity 2, so Laplace noise of scale 2/ε on each entry is ε-DP. Here one unit is S
lattice steps and the noise is discrete Laplace, Pr[n] ∝ e^(−ε·|n|/(2S)). What the noise does
outside the two possible entries says nothing more: for every x, |x − S| − |x| = S − 2·x̂ with
x̂ = clamp(x, 0, S), and the posterior depends on these differences only. So x̂ is drawn directly: one
word an entry, from weights w(0) … w(S) for the entry 0, and w(S) … w(0) for the entry 1. For any
weights, w(o)/w(S − o) ≤ r ≤ e^(ε/2) for all o makes one entry (ε/2)-DP; a substituted label
changes two entries (Theorem 10 in docs/privacy.md).
"""

import math
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
from jaxtyping import Bool, Float64, Int, Int32, Int64, UInt8, UInt64
from labeldp_verify.analysis import exp_lower

from labeldp_compile.toolkit import random_words

WORD_BITS = 62
STEPS = 128  # S; even, and a noisy entry fits uint8
_PRECISE = Context(prec=60)
_CHUNK = 1 << 22  # numbers that are drawn or looked at together


def exact(epsilon: float) -> Fraction:
    """The decimal that ε is written as, in the config and in the statement: 1/10 for 0.1."""
    return Fraction(repr(epsilon))


def epsilon_up(epsilon: Fraction) -> float:
    """The least float that, as it is written, is at least ε: a statement promises no less."""
    nearest = float(epsilon)
    return nearest if exact(nearest) >= epsilon else math.nextafter(nearest, math.inf)


class RRWithRowPriors:
    """ε-DP randomized response over the likeliest of K classes.

    Attributes:
        base: b for each number m ≥ 1 of kept labels; base[0] is 0.
    """

    def __init__(self, classes: int, epsilon: Fraction, word_bits: int = WORD_BITS) -> None:
        """Raises ValueError if ε is so small that words of ``word_bits`` cannot tell labels apart.

        Tests enumerate short words.
        """
        self._words, self._shift = 1 << word_bits, np.uint64(64 - word_bits)
        self.ratio = exp_lower(epsilon)
        kept = range(1, classes + 1)
        base = [math.ceil(self._words / (self.ratio + m - 1)) for m in kept]
        base[0] = self._words  # a constant says nothing
        if any(m * b > self._words for m, b in zip(kept, base, strict=True)):
            raise ValueError(f"ε = {float(epsilon):g} is too small for {classes:,} classes")
        self.base: Int64[np.ndarray, " K+1"] = np.array([0, *base], np.int64)

    def choose_k(self, prior: Float64[np.ndarray, "n K"]) -> Int64[np.ndarray, " n"]:
        """How many labels to keep for priors, heaviest class first (Algorithm 2).

        The k of largest e^ε/(e^ε + k − 1)·Σ (k largest weights), the least k if there are several.
        """
        cost = float(self.ratio) + np.arange(prior.shape[1])
        weights = np.cumsum(prior, axis=1) / cost[None, :]
        return np.argmax(weights, axis=1) + 1

    def answers(
        self,
        order: Int[np.ndarray, "n K"],
        kept: Int[np.ndarray, " n"],
        labels: Int[np.ndarray, " n"],
        words: UInt64[np.ndarray, " n"],
    ) -> Int32[np.ndarray, " n"]:
        """Private labels.

        Args:
            order: all classes of each row; the first ``kept`` of them may be the answer.
            kept: m, 1 … K.
            labels: true classes.
            words: uniform, one a label and never used again.
        """
        u = (words >> self._shift).astype(np.int64)
        m, b = kept.astype(np.int64), self.base[kept]
        place = np.argmax(np.equal(order, labels[:, None]), axis=1)
        rest = np.maximum(u - m * b, 0)
        own = np.where(place < m, place, dealt(rest, self._words - m * b, m))
        answer = np.where(u < m * b, u // b, own)
        chosen = np.take_along_axis(order, answer[:, None].astype(np.int64), axis=1)[:, 0]
        return chosen.astype(np.int32)

    def randomize(
        self, labels: Int[np.ndarray, " n"], prior: Float64[np.ndarray, "n K"] | None = None
    ) -> Int32[np.ndarray, " n"]:
        """Private labels for true classes, with fresh secure random bits.

        Rows of ``prior`` need not sum to 1; those with a NaN, and all if it is None, are
        uniform: plain randomized response.
        """
        classes = len(self.base) - 1
        step = max(_CHUNK // classes, 1)
        words = random_words(len(labels))
        parts = [np.empty(0, np.int32)]
        for start in range(0, len(labels), step):
            rows = slice(start, start + step)
            count = len(labels[rows])
            order = np.broadcast_to(np.arange(classes), (count, classes))
            kept = np.full(count, classes)
            if prior is not None:
                usable = np.logical_and.reduce(np.isfinite(prior[rows]), axis=1)
                clean = np.where(usable[:, None], prior[rows], 0.0)
                order = np.argsort(-clean, axis=1, kind="stable")
                best = self.choose_k(np.take_along_axis(clean, order, axis=1))
                kept = np.where(usable, best, classes)
            parts.append(self.answers(order, kept, labels[rows], words[rows]))
        return np.concatenate(parts)


def dealt(
    index: Int[np.ndarray, " n"], total: Int[np.ndarray, " n"], hands: Int[np.ndarray, " n"]
) -> Int[np.ndarray, " n"]:
    """Whom ``index`` of 0 … total − 1 goes to, if ``total`` are dealt evenly to 0 … hands − 1.

    Each hand gets ⌊total/hands⌋ consecutive ones, the first total mod hands one more.
    """
    share, more = total // hands, total % hands
    large = more * (share + 1)
    behind = more + (index - large) // np.maximum(share, 1)
    return np.where(index < large, index // (share + 1), behind)


class NoisyOneHot:
    """The ε-DP randomizer of one-hot labels.

    Attributes:
        weights: [S + 1] positive integers w with the sum 2^B.
    """

    def __init__(self, epsilon: Fraction, steps: int = STEPS, word_bits: int = WORD_BITS) -> None:
        """Raises ValueError if words of ``word_bits`` are too short; tests take short ones."""
        self.weights = _weights(epsilon, steps, 1 << word_bits)
        self._shift = np.uint64(64 - word_bits)
        ends = np.cumsum(np.array(self.weights, np.uint64), dtype=np.uint64)[:-1]
        flipped = np.cumsum(np.array(self.weights[::-1], np.uint64), dtype=np.uint64)[:-1]
        self._ends = ends, flipped

    def entries(
        self, ones: Bool[np.ndarray, "*shape"], words: UInt64[np.ndarray, "*shape"]
    ) -> UInt8[np.ndarray, "*shape"]:
        """Noisy entries 0 … S for exact ones, and as many uniform words."""
        u = words >> self._shift
        zero, one = (np.searchsorted(ends, u, side="right") for ends in self._ends)
        return np.where(ones, one, zero).astype(np.uint8)

    def randomize(self, labels: Int32[np.ndarray, " n"], classes: int) -> UInt8[np.ndarray, "n K"]:
        """Noisy one-hot labels for true classes, with fresh secure random bits."""
        step = max(_CHUNK // classes, 1)
        parts = [np.empty((0, classes), np.uint8)]
        for start in range(0, len(labels), step):
            ones = labels[start : start + step, None] == np.arange(classes)[None, :]
            parts.append(self.entries(ones, random_words(*ones.shape)))
        return np.concatenate(parts)


def _weights(epsilon: Fraction, steps: int, words: int) -> tuple[int, ...]:
    """The clamped noise of an entry 0 in whole counts; what rounding leaves goes to the middle.

    The middle is as likely for an entry 1, so it may take any weight.
    """
    if steps % 2 or not 2 <= steps <= 254:
        raise ValueError("the lattice has an even number of steps, 2 … 254")
    half, ratio = steps // 2, exp_lower(epsilon / 2)
    step = -Decimal(epsilon.numerator) / _PRECISE.multiply(
        Decimal(epsilon.denominator), Decimal(2 * steps)
    )
    decay = step.exp(_PRECISE)  # α: Pr[n] = α^|n|·(1 − α)/(1 + α)
    unit = Fraction(words) / (1 + Fraction(decay))
    weights = [0] * (steps + 1)
    for o in range(half):
        inside = 1 - Fraction(decay) if o else Fraction(1)  # the ends hold whole tails
        small = math.ceil(unit * Fraction(_PRECISE.power(decay, steps - o)) * inside)
        large = math.floor(unit * Fraction(_PRECISE.power(decay, o)) * inside)
        weights[o] = max(min(large, math.floor(ratio * small)), small)
        weights[steps - o] = small
    weights[half] = words - sum(weights)
    if weights[half] < 1:
        raise ValueError(f"words are too short for noise at ε = {float(epsilon):g}")
    return tuple(weights)
