"""Radii that prove RR-on-Bins close to the best ε-DP randomizer, for any number of labels.

A label y has a radius r_y instead of a multiplier: α_y = p_y·g(r_y) with the loss g(r) of an output
that is r below its label, ½r² or u·r. F ≥ 0 (see `rr_on_bins`) proves a loss of at least Σα. The
radii lie on lines between few labels, so they fit into a file (``radii_of`` of the verifier). Above
its label, an output is as far away as one below it that loses as much.

By complementary slackness, r_y is between the distances to the nearest and to the second nearest
output. One share of this way per bin gives every bin its sum of α. The radii are then lines between
outputs, edges of bins and the middles (by loss) between next but one outputs. Up to ε = 1 this is
mostly optimal. If not, α/p is moved as little as possible on a grid of nodes (a least-distance
program). The constraints are that Σα is just below the optimum, and that no minimum of F found so
far is negative. This is a level method with a known optimum. It works on merged labels. Then the
radii are shrunk until F ≥ 0 for the labels themselves.
"""

from dataclasses import dataclass

import numpy as np
from labeldp_verify.analysis import Loss
from numpy.typing import NDArray
from scipy import sparse

from labeldp_compile.solve.bin_costs import Floats, Ints
from labeldp_compile.solve.losses import LOSSES
from labeldp_compile.solve.optimal_unbiased.dual import nearest
from labeldp_compile.solve.rr_on_bins import BinsSolution

_MERGED = 8192  # of labels, at most, while radii are looked for
_MOST_BINS = 1024  # beyond, merged labels are too coarse
_NODES = 800  # about, and 16 between neighbouring bends at most
_FINER = 4  # knots for each node: the radius is a root of a function that is linear between nodes
_TARGET = 2e-4  # how far Σα is below the optimum, relatively, which leaves F some room
_ENOUGH = 5e-4  # gap at which the search ends
_ROUNDS = 20
_NEW_CUTS, _CUTS = 300, 600  # a round, and in all
_HIGHEST = 200.0  # ε; beyond, e^ε is out of range
_BISECTIONS = 60
_SHRINKS = 12
_STILL = 1e-10  # relative change of α at which shrinking ends


@dataclass(frozen=True, eq=False)
class Radii:
    """Radii on lines between knots.

    Attributes:
        knots: [n] numbers of labels, increasing, the first and the last among them.
        radii: [n] in units of the labels, not negative.
        bound: about what they prove.
    """

    knots: Ints
    radii: Floats
    bound: float


def radii_of_rr_on_bins(
    labels: Floats, prior: Floats, epsilon: float, loss: Loss, solution: BinsSolution
) -> Radii | None:
    """Find radii that prove a bound close to the loss of RR-on-Bins; None if there are none.

    Args:
        labels: [k] increasing, k ≥ 2. prior: [k] finite, not negative, not all 0; normalized here.
        epsilon: ε ≥ 0 of the randomizer. loss: one that radii prove a bound of.
        solution: the answer of `solve_rr_on_bins` to the same problem.

    Returns:
        Radii with F ≥ 0 up to rounding. Σα bounds the loss of every ε-DP randomizer from below,
        even if ``solution`` is not the best.
    """
    held = np.flatnonzero(prior > prior.max() * np.finfo(np.float64).tiny)
    if epsilon > _HIGHEST or solution.values.size > _MOST_BINS or held.size < 2:
        return None
    y, p = labels[held], prior[held] / prior[held].sum()
    middle = y[p.argmax()]
    unit = float(y[-1] - y[0])
    scaled = (y - middle) / unit
    values = (solution.values - middle) / unit
    found = _Search(*_merged(scaled, p), epsilon, loss, values, solution.loss).run()
    everywhere = (labels - middle) / unit
    above = np.minimum(np.searchsorted(everywhere, found.places), labels.size - 1)
    knots = np.union1d(above, [0, *np.maximum(above - 1, 0).tolist(), labels.size - 1])
    radii = np.interp(everywhere[knots], found.places, found.radii)
    # In a file, the lines are linear in the number of the label.
    radii, bound = _Problem(scaled, p, epsilon, loss).shrunk(held, knots, radii)
    size = unit**2 if LOSSES[loss].degree == 2 else unit
    return Radii(knots, radii * unit, bound * size) if bound > 0.0 else None


def _merged(y: Floats, p: Floats) -> tuple[Floats, Floats]:
    """Neighbouring labels as one, at their mean.

    Half of the resolution follows the root of the prior. By number alone, a few likely labels of
    very many would be one label, and the bound far off.
    """
    if y.size <= _MERGED:
        return y, p
    root = np.sqrt(p)
    before = np.cumsum(root / root.sum() + 1.0 / y.size) / 2.0
    _, owner = np.unique(np.floor(before * _MERGED), return_inverse=True)
    mass: Floats = np.bincount(owner, p).astype(np.float64)
    return np.bincount(owner, p * y) / mass, mass


@dataclass(frozen=True, eq=False)
class _Line:
    """Radii [n] at places [n], on lines between."""

    places: Floats
    radii: Floats


@dataclass(frozen=True, eq=False)
class _Problem:
    """Labels y [k] with prior p [k], ε and the loss: the minima of F and their places."""

    y: Floats
    p: Floats
    epsilon: float
    loss: Loss

    @property
    def is_squared(self) -> bool:
        """Whether g(r) is ½r², and not r."""
        return LOSSES[self.loss].degree == 2

    @property
    def slopes(self) -> tuple[float, float]:
        """u and o, of a loss with two slopes; equal ones otherwise."""
        return LOSSES[self.loss].slopes or (1.0, 1.0)

    @property
    def growth(self) -> float:
        """E = e^ε − 1."""
        return float(np.expm1(self.epsilon))

    def loss_at(self, radii: Floats) -> Floats:
        """g(r)."""
        return LOSSES[self.loss].of(-radii, np.zeros_like(radii))

    def distance(self, v: Floats, y: Floats) -> Floats:
        """From outputs to labels, those above their labels as radii count them."""
        under, over = self.slopes
        return np.maximum(y - v, (v - y) * (over / under))

    def between(self, low: Floats, high: Floats) -> Floats:
        """The labels for which two outputs on both sides are as good as each other."""
        under, over = self.slopes
        return (under * low + over * high) / (under + over)

    def minima(self, r: Floats) -> tuple[Floats, Floats, Floats]:
        """F at its local minima, their places, and Σα + E·(Σα of the negative h) there."""
        y, p, growth = self.y, self.p, self.growth
        alpha = p * self.loss_at(r)
        under, over = self.slopes
        low, high = y - r, y + r * (under / over)
        if self.is_squared:
            ends = np.concatenate([low, high])
            order = np.argsort(ends, kind="stable")
            ends = ends[order]
            a, b, c, price = (
                term.sum() + growth * np.cumsum(np.concatenate([term, -term])[order])[:-1]
                for term in (p, p * y, p * low * high, alpha)
            )
            least = (a * ends[:-1] <= b) & (b <= a * ends[1:])
            at = b[least] / a[least]
            return 0.5 * (c[least] - at * b[least]), at, price[least]
        places = np.concatenate([low, y, high])
        order = np.argsort(places, kind="stable")
        places = places[order]
        parts = -growth * under * p, (1.0 + growth) * (under + over) * p, -growth * over * p
        bends = np.concatenate(parts)[order]
        slope = np.cumsum(bends) - under * p.sum()
        value = slope * places + under * (p @ y) - alpha.sum() - np.cumsum(bends * places)
        price = np.cumsum(np.concatenate([alpha, 0.0 * alpha, -alpha])[order])
        before = np.concatenate([[-1.0], slope[:-1]])
        least = (before <= 0.0) & (slope >= 0.0)
        return value[least], places[least], alpha.sum() + growth * price[least]

    def shrunk(
        self, at: Floats | Ints, places: Floats | Ints, radii: Floats
    ) -> tuple[Floats, float]:
        """Radii at places, made smaller until F ≥ 0 up to rounding, and Σα then.

        ``at`` [k] is where the labels lie among the places.
        """
        for _ in range(_SHRINKS):
            value, _, price = self.minima(np.interp(at, places, radii))
            # F falls by a share of the price where α grows by that share: Newton's step.
            share = float(np.max(-value / price, initial=0.0)) if price.all() else 1.0
            share = min(max(share, 0.0), 1.0)
            radii = radii * (np.sqrt(1.0 - share) if self.is_squared else 1.0 - share)
            if share < _STILL:
                break
        else:
            radii = np.zeros_like(radii)
        return radii, float(self.p @ self.loss_at(np.interp(at, places, radii)))


class _Search:
    """The best radii so far, for labels in units of their range."""

    def __init__(
        self, y: Floats, p: Floats, epsilon: float, loss: Loss, values: Floats, least: float
    ) -> None:
        self._problem = _Problem(y, p, epsilon, loss)
        self._values = values
        self._middles = self._problem.between(values[:-1], values[1:])
        self._nodes = self._all_nodes(y)
        self._hats = _hats(y, self._nodes)
        self._mass = np.asarray(self._hats.T @ p)
        self._optimum = 0.0
        self._best, self._bound = _Line(self._nodes, np.zeros_like(self._nodes)), 0.0

    def run(self) -> _Line:
        """Radii at places."""
        problem = self._problem
        own, far, bins = self._distances(self._nodes)
        shares = self._shares()
        radii = own + shares[bins] * (far - own)
        self._try(_Line(self._nodes, radii))
        if self._values.size == 1 or self._tight():
            return self._best
        low, high = problem.loss_at(own), problem.loss_at(far)
        # A node may move as far as its range.
        reach = (high - low + 1e-3 * high) / np.sqrt(np.maximum(self._mass, 1e-3 / low.size))
        height = problem.loss_at(radii)
        cuts, most = np.zeros((0, low.size)), np.zeros(0)
        for _ in range(_ROUNDS):
            line = self._line(height)
            self._try(line)
            if self._tight():
                break
            more, limit = self._cuts(line)
            cuts, most = np.concatenate([cuts, more]), np.concatenate([most, limit])
            moved = self._moved(height, reach, cuts, most)
            if moved is None:
                break
            height, used = moved
            cuts, most = cuts[used], most[used]
        return self._best

    def _all_nodes(self, y: Floats) -> Floats:
        v = self._values
        second = self._problem.between(v[:-2], v[2:])
        bends = np.concatenate([y[[0, -1]], v, self._middles, second])
        bends = np.unique(np.clip(bends, y[0], y[-1]))
        number = min(max(_NODES // bends.size, 1), 16)
        return _divided(bends, number)

    def _distances(self, places: Floats) -> tuple[Floats, Floats, Ints]:
        """Distances to the nearest and to the second nearest output, and the bin."""
        v, last, apart = self._values, self._values.size - 1, self._problem.distance
        bins = np.searchsorted(self._middles, places)
        own = apart(v[bins], places)
        below = np.where(bins > 0, apart(v[np.maximum(bins - 1, 0)], places), np.inf)
        above = np.where(bins < last, apart(v[np.minimum(bins + 1, last)], places), np.inf)
        far = np.minimum(below, above)
        return own, np.where(np.isfinite(far), np.maximum(far, own), own), bins

    def _shares(self) -> Floats:
        """Per bin the share θ at which its α has the sum that complementary slackness demands."""
        problem, d = self._problem, self._values.size
        y, p, growth = problem.y, problem.p, problem.growth
        own, far, bins = self._distances(y)
        every = np.array([p @ LOSSES[problem.loss].of(v, y) for v in self._values])
        costs = every + growth * np.bincount(bins, p * problem.loss_at(own), d)
        self._optimum = float(costs.sum() / (d + growth))
        if growth == 0.0:
            return np.zeros(d)
        totals = (costs - self._optimum) / growth
        low, high = np.zeros(d), np.ones(d)
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            sums = np.bincount(bins, p * problem.loss_at(own + middle[bins] * (far - own)), d)
            low, high = np.where(sums < totals, middle, low), np.where(sums < totals, high, middle)
        return low

    def _line(self, height: Floats) -> _Line:
        """Radii whose g is linear between the nodes, nearly."""
        if not self._problem.is_squared:
            return _Line(self._nodes, height / self._problem.slopes[0])
        places = _divided(self._nodes, _FINER)
        return _Line(places, np.sqrt(2.0 * np.interp(places, self._nodes, height)))

    def _try(self, line: _Line) -> None:
        radii, bound = self._problem.shrunk(self._problem.y, line.places, line.radii)
        if bound > self._bound:
            self._best, self._bound = _Line(line.places, radii), bound

    def _tight(self) -> bool:
        return self._bound >= self._optimum * (1.0 - _ENOUGH)

    def _cuts(self, line: _Line) -> tuple[Floats, Floats]:
        """F ≥ 0 at its negative minima as cut·height ≤ limit, for the labels negative there now."""
        problem = self._problem
        y, p, growth = problem.y, problem.p, problem.growth
        radii = np.interp(y, line.places, line.radii)
        value, places, _ = problem.minima(radii)
        order = np.argsort(value, kind="stable")[: np.count_nonzero(value < 0.0)]
        # One for each stretch between nodes, the lowest: valleys of F may have many minima.
        _, first = np.unique(np.searchsorted(self._nodes, places[order]), return_index=True)
        places = places[order][np.sort(first)[:_NEW_CUTS]]
        distance = problem.distance(places[:, None], y)
        weights = p * (1.0 + growth * (distance < radii))
        return np.asarray((self._hats.T @ weights.T).T), np.sum(
            weights * problem.loss_at(distance), axis=1
        )

    def _moved(
        self, height: Floats, reach: Floats, cuts: Floats, most: Floats
    ) -> tuple[Floats, NDArray[np.bool_]] | None:
        """The nearest heights that meet all cuts with a sum near the optimum; cuts to keep."""
        total = (1.0 - _TARGET) * self._optimum
        keep = _CUTS - _NEW_CUTS
        return nearest(height, reach, (cuts, most), (self._mass, total), keep, 0.0)


def _divided(bends: Floats, number: int) -> Floats:
    """Each stretch between neighbouring bends, divided into ``number`` parts."""
    steps = np.arange(number) / number
    return np.append((bends[:-1, None] + np.diff(bends)[:, None] * steps).ravel(), bends[-1])


def _hats(y: Floats, nodes: Floats) -> sparse.csr_matrix:
    """[k, n] the linear map from the heights of the nodes to those of the labels."""
    left = np.clip(np.searchsorted(nodes, y, side="right") - 1, 0, nodes.size - 2)
    share = (y - nodes[left]) / (nodes[left + 1] - nodes[left])
    rows = np.arange(y.size)
    return sparse.csr_matrix(
        (
            np.concatenate([1.0 - share, share]),
            (np.concatenate([rows, rows]), np.concatenate([left, left + 1])),
        ),
        (y.size, nodes.size),
    )
