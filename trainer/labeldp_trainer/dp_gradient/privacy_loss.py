"""Privacy losses of Poisson-sampled steps, in floating point where each rounding raises δ.

A *pair* is (1 − q)N(0, 1) + qN(s, 1) against (1 − q)N(0, 1) + qN(−s, 1), s = 1/σ: the mirror image
of the one in docs/privacy.md, Theorem 7 (b). If a probability mass grows, or moves to a higher
loss, δ does not fall, before or after composition. Theorem 7 (h) says by how much each float may be
wrong, and every bound here leaves room for that. Masses are kept as logarithms. They are composed
after a tilt (Esscher) that makes losses near ε the common ones, so a δ of 1e-200 is resolved as
well as one of 1e-2.
"""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64
from numpy.typing import NDArray
from scipy import fft, optimize, special

Floats = NDArray[np.float64]

ROUNDING = 2.0**-40
"""The relative error that Theorem 7 (h) allows exp, log1p and erfcx: 4,096 units."""
_HALF_LOG_TAU = 0.5 * math.log(2.0 * math.pi)
_IGNORED = 1e-9  # the share of δ that tails may take
_TAIL_LOG = 32.0  # −log of the tilted mass outside the window of a composition
_LOWEST = 9.0  # standard deviations; losses further below are moved up
_CELLS = 24.0  # lattice points per standard deviation of one step's loss, at least
_MOST_POINTS = 1 << 20
_ROUGH: Any = {"method": "bounded", "options": {"xatol": 0.02}}  # any point gives a bound


@dataclass(frozen=True)
class Pair:
    """One pair of a step; a step's losses are a mixture of those of its pairs, by weight.

    Attributes:
        rate: q, 0 < q <= 1. shift: s = 1/σ > 0. weight: the probability of this pair.
    """

    rate: float
    shift: float
    weight: float = 1.0


@dataclass(frozen=True, eq=False)
class StepLosses:
    """The losses of one step: mass ``exp(logs[i])`` at (first + i)·step + excess, rest at infinity.

    Attributes:
        step: distance of the lattice's points. first: index of the first one.
        excess: how far all losses lie above the lattice.
        logs: logarithms of the masses. infinite: logarithm of the mass at infinity.
    """

    step: float
    first: int
    excess: float
    logs: Float64[np.ndarray, " n"]
    infinite: float

    def log_moment(self, tilt: float) -> float:
        """Return log Σ mass·e^(tilt·lattice point)."""
        logs = self.logs + tilt * self.points
        most = float(logs.max())
        return most + math.log(float(np.exp(logs - most).sum()))

    @functools.cached_property
    def points(self) -> Float64[np.ndarray, " n"]:
        """The lattice points, without the excess."""
        return np.arange(self.first, self.first + self.logs.size) * np.float64(self.step)


def composed_epsilon(pairs: Sequence[Pair], steps: int, delta: float, interval: float) -> float:
    """Return an ε at which ``steps`` steps are (ε, δ)-private; infinity if none was found.

    Args:
        pairs: of one step. steps: how many. delta: 1e-300 <= δ < 1.
        interval: the largest spacing of the lattice; ε is too large by about its square.
    """
    interval = min(interval, _deviation(pairs) / _CELLS)
    while True:
        losses = step_losses(pairs, interval, delta / steps)
        if losses is not None:
            composition = _compose(losses, steps, delta)
            if composition is not None:
                return composition.epsilon()
        interval *= 2.0
        if interval > 1e3:
            return math.inf


def step_losses(pairs: Sequence[Pair], interval: float, delta: float) -> StepLosses | None:
    """Return losses that dominate those of one step, or None if the lattice would be too long.

    Args:
        pairs: whose weights sum to 1. interval: of the lattice.
        delta: what one step may add to δ; tails with far less mass are moved to infinity.
    """
    high = math.sqrt(2.0 * -math.log(_IGNORED * delta))
    parts = []
    for pair in pairs:
        part = _pair_losses(pair, interval, high + pair.shift)
        if part is None:
            return None
        parts.append(part)
    first = min(part.first for part in parts)
    logs = np.full(max(part.first + part.logs.size for part in parts) - first, -np.inf)
    infinite = -np.inf
    for part in parts:
        at = slice(part.first - first, part.first - first + part.logs.size)
        logs[at] = np.logaddexp(logs[at], part.logs)
        infinite = np.logaddexp(infinite, part.infinite)
    return StepLosses(interval, first, max(p.excess for p in parts), logs, float(infinite))


def gaussian_log_delta(mu: Float64[np.ndarray, " n"], epsilon: float) -> Float64[np.ndarray, " n"]:
    """Return upper bounds of log δ(ε) of Gaussian mechanisms; ``mu`` is sensitivity over σ.

    δ = Φ(−a) − e^ε·Φ(−b), a = ε/μ − μ/2, b = ε/μ + μ/2 (Balle and Wang 2018, Theorem 8). The
    density at a is e^ε times that at b.
    """
    a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    # a and b may be wrong by four units; ROUNDING covers the effect.
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        far = _log_density(a) + np.log(
            _mills(np.maximum(a, 0.0)) * (1 + ROUNDING) - _mills(b) * (1 - ROUNDING)
        )
        near = special.ndtr(-a) * (1 + ROUNDING)
        near = np.log(near - np.exp(_log_density(a)) * _mills(b) * (1 - ROUNDING))
        found = np.where(a > 0, far, near) + 2 * ROUNDING
    return np.where(np.isnan(found), -np.inf, np.minimum(found, 0.0))


def least_epsilon(share: Callable[[float], float], low: float, high: float) -> float:
    """Return nearly the least ε in [low, high] with δ(ε)/δ ≤ 1, which must hold at ``high``.

    ``share`` bounds δ(ε)/δ and must fall as ε rises.
    """
    if share(low) <= 1.0:
        return low
    while high - low > 1e-7 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if share(middle) <= 1.0 else (middle, high)
    return high


def _deviation(pairs: Sequence[Pair]) -> float:
    """Return roughly the standard deviation of one step's loss; no bound depends on it."""
    first = second = 0.0
    for pair in pairs:
        z = np.linspace(-_LOWEST, _LOWEST + pair.shift, 4001)
        loss = _loss(z, pair)
        density = (1 - pair.rate) * np.exp(_log_density(z))
        density += pair.rate * np.exp(_log_density(z - pair.shift))
        density *= pair.weight * (z[1] - z[0])
        first += float(density @ loss)
        second += float(density @ loss**2)
    return math.sqrt(max(second - first**2, 1e-16 * second, 1e-300))


def _pair_losses(pair: Pair, interval: float, high: float) -> StepLosses | None:
    """Return losses that dominate those of one pair, its weight included.

    Outcomes are cut into cells where the loss is a multiple of ``interval``. All outcomes of a cell
    are replaced by two, at the losses of its ends. Together these have the probabilities of the
    cell under both distributions: they are the extreme points.
    """
    ends = _loss(np.array([-_LOWEST, high]), pair) / interval
    if not np.all(np.abs(ends) < _MOST_POINTS):
        return None
    first, last = math.floor(ends[0]), math.ceil(ends[1]) + 1
    if last - first > _MOST_POINTS:
        return None
    lattice = np.arange(first, last + 1) * interval
    # Any increasing cuts would do: ``excess`` measures how far true losses exceed the lattice.
    cut = np.maximum.accumulate(_outcome(lattice, pair))
    excess = float(np.abs(_loss(cut, pair) - lattice).max()) + _loss_error(cut, pair)
    _, p_high = _mixture_masses(cut, pair, pair.shift)
    q_low, _ = _mixture_masses(cut, pair, -pair.shift)
    with np.errstate(divide="ignore", invalid="ignore"):
        # The share at the upper end, (p − q·A)/(p·(1 − A/B)), A and B the ratios at the ends.
        ratio = q_low - p_high + lattice[:-1] - excess - ROUNDING
        share = np.expm1(ratio) / np.expm1(-interval - 2 * excess)
        share = np.clip(np.where(np.isnan(share), 1.0, share) + 2.0**-50, 0.0, 1.0)
        logs = np.full(lattice.size, -np.inf)
        logs[:-1] = p_high + np.log1p(-share)
        logs[1:] = np.logaddexp(logs[1:], p_high + np.log(share))
    logs[0] = np.logaddexp(logs[0], _mixture_tail(-cut[0], pair, -pair.shift))
    weight = math.log(pair.weight) + 4 * ROUNDING
    infinite = _mixture_tail(cut[-1], pair, pair.shift) + weight
    return StepLosses(interval, first, excess, logs + weight, infinite)


def _loss(z: Floats, pair: Pair) -> Floats:
    """Return the losses of outcomes z, an increasing, odd function."""
    q, s = pair.rate, pair.shift
    if q == 1.0:
        return 2.0 * s * z
    rest, part = math.log1p(-q), math.log(q) - s * s / 2
    return np.asarray(np.logaddexp(rest, part + s * z) - np.logaddexp(rest, part - s * z))


def _loss_error(z: Floats, pair: Pair) -> float:
    """Return a bound of the rounding errors of ``_loss`` and of the lattice's points."""
    s, reach = pair.shift, float(np.abs(z).max())
    return 2.0**-48 * (1.0 + 2 * s * reach + s * s + abs(math.log(pair.rate)))


def _outcome(loss: Floats, pair: Pair) -> Floats:
    """Return approximately the outcomes that have these losses.

    With t = e^(sz) and c = q·e^(−s²/2)/(1 − q), (1 + ct)/(1 + c/t) = e^loss is quadratic in t.
    """
    q, s = pair.rate, pair.shift
    if q == 1.0:
        return loss / (2.0 * s)
    size = np.abs(loss)
    log_c = math.log(q) - s * s / 2 - math.log1p(-q)
    grown = -np.expm1(-size)
    with np.errstate(divide="ignore"):
        root = np.sqrt(grown**2 + 4.0 * np.exp(2.0 * log_c - size))
        t = size + np.log((grown + root) / 2.0) - log_c
    return np.sign(loss) * np.where(size > 0, np.maximum(t, 0.0), 0.0) / s


def _mixture_masses(cut: Floats, pair: Pair, shift: float) -> tuple[Floats, Floats]:
    """Return bounds, as logarithms, of (1 − q)N(0, 1) + qN(shift, 1) between cuts."""
    ends = [cut, cut - shift]
    (low, high), moved = (_log_masses(end[:-1], end[1:]) for end in ends)
    if pair.rate == 1.0:
        return moved
    rest, part = math.log1p(-pair.rate), math.log(pair.rate)
    return (
        np.logaddexp(low + rest, moved[0] + part) - ROUNDING,
        np.logaddexp(high + rest, moved[1] + part) + ROUNDING,
    )


def _mixture_tail(z: float, pair: Pair, shift: float) -> float:
    """Return an upper bound, as a logarithm, of the mixture above z > 0, z > shift."""
    ends, rates = np.array([z, z - shift]), np.array([1.0 - pair.rate, pair.rate])
    _, logs = _log_masses(ends, np.full(2, np.inf))
    with np.errstate(divide="ignore"):
        logs = np.log(rates) + logs
    return float(np.logaddexp(logs[0], logs[1])) + ROUNDING


def _log_masses(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return lower and upper bounds, as logarithms, of N(0, 1) on [a, b].

    The ends are assumed to be rounded numbers.
    """
    low_end, high_end = np.where(b <= 0, -b, a), np.where(b <= 0, -a, b)
    near = np.maximum(low_end, 0.0)
    moved = 2.0**-50 * (1.0 + float(np.abs(a).max()))  # effect of rounded ends, over the density
    decay = np.exp(-(high_end - near) * (high_end + near) / 2)
    here, there = _mills(near), _mills(high_end) * decay
    upper = here * (1 + ROUNDING) - there * (1 - ROUNDING) + moved
    lower = here * (1 - ROUNDING) - there * (1 + ROUNDING) - moved
    across = low_end < 0  # zero lies between
    both = 0.5 * (special.erf(-low_end / _ROOT) + special.erf(high_end / _ROOT))
    scale = np.where(across, 0.0, _log_density(near))
    slack = 4 * ROUNDING + 2.0**-50 * np.abs(scale)
    with np.errstate(divide="ignore"):
        low = np.log(np.maximum(np.where(across, both - moved, lower), 0.0))
        high = np.log(np.where(across, both + moved, upper))
    return low + scale - slack, high + scale + slack


_ROOT = math.sqrt(2.0)


def _mills(x: Floats) -> Floats:
    """Return the tail of N(0, 1) above x >= 0, over its density there."""
    return math.sqrt(math.pi / 2) * np.asarray(special.erfcx(x / _ROOT))


def _log_density(x: Floats) -> Floats:
    return -x * x / 2 - _HALF_LOG_TAU


@dataclass(frozen=True, eq=False)
class _Composition:
    """Tilted masses of the sum of all steps' losses, within a window.

    Attributes:
        losses: [n] increasing, the excess included. masses: [n] tilted. Each may be too small;
            ``error`` bounds the Euclidean norm of what is missing.
        tilt: λ. log_scale: δ = e^(log_scale − λε)·Σ mass·e^(−λ(loss − ε))·(1 − e^(ε − loss)).
        above: the most tilted mass above the window. target: log δ.
        infinite: share of δ that losses at infinity take.
    """

    losses: Floats
    masses: Floats
    error: float
    tilt: float
    log_scale: float
    above: float
    target: float
    infinite: float

    def share(self, epsilon: float) -> float:
        """Return a bound of δ(ε), divided by the wanted δ."""
        start = int(np.searchsorted(self.losses, epsilon, side="right"))
        beyond = self.losses[start:] - epsilon
        kept = np.exp(-self.tilt * beyond) * -np.expm1(-beyond)
        total = float((kept * self.masses[start:]).sum())
        total += self.error * math.sqrt(float((kept * kept).sum()))
        total += self.above * math.exp(-self.tilt * max(self.losses[-1] - epsilon, 0.0))
        exponent = self.log_scale - self.tilt * epsilon - self.target
        return math.exp(min(exponent, 700.0)) * total * (1 + _IGNORED) + self.infinite

    def epsilon(self) -> float:
        """Return nearly the least ε with δ(ε) <= δ; infinity if the window has none."""
        # Below the window, ``share`` is not a bound: losses from there count as larger ones.
        low, high = max(0.0, float(self.losses[0])), max(float(self.losses[-1]), 1e-300)
        return math.inf if self.share(high) > 1.0 else least_epsilon(self.share, low, high)


def _compose(losses: StepLosses, steps: int, delta: float) -> _Composition | None:
    """Return the sum of ``steps`` losses near the ε that δ needs; None if the lattice is too fine.

    Indices are taken modulo the length of a Fourier transform. So mass outside the window is added
    inside it, which only raises δ; mass above the window is counted once more.
    """
    target = math.log(delta)

    def chernoff(log_tilt: float) -> float:
        tilt = math.exp(log_tilt)
        return (steps * losses.log_moment(tilt) - target) / tilt

    found = optimize.minimize_scalar(
        chernoff, bounds=(math.log(1e-3), math.log(1e3 / losses.step)), **_ROUGH
    )
    tilt = math.exp(float(found.x))
    log_norm = losses.log_moment(tilt)

    def reach(sign: float) -> float:
        """An upper or lower bound of the sum, beyond which there is almost no tilted mass."""

        def at(log_more: float) -> float:
            more = math.exp(log_more)
            moved = steps * (losses.log_moment(tilt + sign * more) - log_norm)
            return (moved + _TAIL_LOG) / more

        least = optimize.minimize_scalar(
            at, bounds=(math.log(tilt) - 12.0, math.log(tilt) + 12.0), **_ROUGH
        )
        return sign * float(least.fun)

    bottom, top = reach(-1.0), reach(1.0)
    if not (math.isfinite(bottom) and math.isfinite(top)):
        return None
    start, stop = math.floor(bottom / losses.step), math.ceil(top / losses.step) + 1
    size = 1 << max(stop - start, 2).bit_length()
    if size > _MOST_POINTS:
        return None
    tilted = np.exp(losses.logs + tilt * losses.points - log_norm) * (1 + 8 * ROUNDING)
    wrapped = np.zeros(size)
    np.add.at(wrapped, np.arange(tilted.size) % size, tilted)
    total = float(wrapped.sum()) * (1 + ROUNDING)
    summed = wrapped if steps == 1 else fft.irfft(_power(fft.rfft(wrapped), steps), size)
    units = 16.0 * math.log2(size) + 16.0
    error = 2.0 * (steps + 1) * units * 2.0**-53 * float(np.linalg.norm(wrapped)) * total**steps
    masses = np.maximum(np.roll(summed, steps * losses.first - start), 0.0)
    indices = np.arange(start, start + size, dtype=np.float64)
    return _Composition(
        indices * losses.step + steps * losses.excess,
        masses,
        error if steps > 1 else 0.0,
        tilt,
        steps * (log_norm + tilt * losses.excess),
        2.0 * math.exp(-_TAIL_LOG),
        target,
        steps * math.exp(losses.infinite - target),
    )


def _power(base: NDArray[np.complex128], exponent: int) -> NDArray[np.complex128]:
    """Return base^exponent by squaring; its error is known: exponent times that of a product."""
    result = None
    while True:
        if exponent & 1:
            result = base if result is None else result * base
        exponent >>= 1
        if not exponent:
            assert result is not None
            return result
        base = base * base
