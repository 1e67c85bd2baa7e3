"""A rigorous lower bound for any convex loss, from dual values, without a solver.

With h_y(v) = p_y·ℓ(v, y) − α_y, F(v) = Σ_y h_y(v) + (e^ε − 1)·Σ_y min(h_y(v), 0) must not be
negative for any real v. ``lower_bound.py`` has the proof that Σα is then a bound.

Beyond the labels F does not fall towards either infinity: every ℓ(·, y) is convex with its minimum
at y, so above the highest label each h_y rises, and min(h_y, 0) with it; below the lowest label
likewise. So the range of the labels must be checked. It is cut into intervals. On each interval,
ℓ(·, y) is at least its tangent at a point near the middle, so F is at least the same sum of lines
and of minima of lines with 0. That sum is concave, and its least value is at an end. If it is
negative there, the interval is halved. A tangent errs by the square of the width, so few intervals
are needed wherever F is well above 0.

A tangent may be that of any point and remains below its convex loss. So floats may choose the
point; the line itself, and all that follows, are integers.
"""

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from math import gcd, lcm

import numpy as np

from labeldp_verify.analysis.lower_bound import Duals
from labeldp_verify.budget import charge
from labeldp_verify.forms.exact_numbers import Whole, log_bounds, whole

Lines = tuple[Whole, Whole, int]
"""Slopes [k], constants [k] and a scale: scale·ℓ(v, y) ≥ slope·v + constant for all real v."""
Tangents = Callable[[int, Whole, int], Lines]
"""Lines near a point u, for labels [k]; u, v and the labels are multiples of 1/unit."""

_FINEST = 45  # bits of the range of the labels: the narrowest interval
_MOST_PAIRS = 4_000_000  # of intervals and labels
_PAIR = 4e-6  # seconds
_POINT_BITS = 30  # of the root of a tangent's point
_LOG_BITS = 80


def convex_holds(duals: Duals, tangents: Tangents, multiple: int = 1) -> bool:
    """Whether F ≥ 0 everywhere is proved; False, too, if that would take too many intervals.

    The unit of the lattice of points is a multiple of ``multiple``.
    """
    labels, weights, alpha, _, growth = duals
    common = gcd(*weights)
    w = whole([weight // common for weight in weights])
    unit = lcm(labels.unit, multiple)
    width = int(labels.over(unit)[-1] - labels.over(unit)[0])
    unit <<= max(_FINEST - width.bit_length(), 1)
    y = labels.over(unit)
    # h is w·ℓ − fall, times the sum of the weights.
    fall, weight = alpha.numerators * int(w.sum()), w * alpha.unit
    one, extra = growth.denominator, growth.numerator
    ends = y.tolist()
    left = list(pairwise(ends)) or [(ends[0], ends[0])]
    pairs = 0
    while left:
        low, high = left.pop()
        middle = (low + high) // 2
        pairs += len(y)
        charge(f"a bound for {len(y):,} labels", seconds=len(y) * _PAIR)
        slopes, constants, scale = tangents(middle, y, unit)
        rise, level = weight * slopes, weight * constants - fall * scale

        def is_negative(v: int, rise: Whole = rise, level: Whole = level) -> bool:
            h = rise * v + level
            return bool(one * h.sum() + extra * np.minimum(h, 0).sum() < 0)

        if not (is_negative(low) or is_negative(high)):
            continue
        if high - low < 2 or pairs > _MOST_PAIRS or is_negative(middle):
            return False
        left += [(low, middle), (middle, high)]
    return True


def huber_tangents(delta: Fraction, u: int, y: Whole, unit: int) -> Lines:
    """ℓ = ½d² up to |d| = δ, then δ·(|d| − ½δ): at least s·d − ½s² for any slope |s| ≤ δ.

    ``unit`` is a multiple of the denominator of δ.
    """
    most = int(delta * unit)
    slopes = np.clip(u - y, -most, most)
    return 2 * slopes, -slopes * (2 * y + slopes), 2 * unit**2


def power_tangents(power: Fraction, u: int, y: Whole, unit: int) -> Lines:
    """ℓ = |d|^p/p with p = a/b: at |d| = t^b the slope is t^(a − b), all rational if t is.

    So ℓ ≥ t^(a − b)·|d| − t^a·(a − b)/a for every t ≥ 0.
    """
    a, b = power.numerator, power.denominator
    d = u - y
    roots = np.array([abs(n) / unit for n in d.tolist()]) ** (1 / b)
    bits = max(_POINT_BITS - int(np.frexp(roots.max())[1]), 0)
    t = whole([int(root) for root in np.rint(np.ldexp(roots, bits)).tolist()])
    slopes = np.sign(d) * t ** (a - b) * (a << (bits * b))
    return slopes, -slopes * y - t**a * ((a - b) * unit), (unit * a) << (bits * a)


def poisson_tangents(u: int, y: Whole, unit: int) -> Lines:
    """ℓ = v − y·ln v: at u the line is v·(1 − y/u) + y·(1 − ln u), with ln u rounded up."""
    log = log_bounds(Fraction(u, unit))[1]
    above = -((-log.numerator << _LOG_BITS) // log.denominator)
    return (u - y) << _LOG_BITS, y * (u * ((1 << _LOG_BITS) - above)), (unit * u) << _LOG_BITS
