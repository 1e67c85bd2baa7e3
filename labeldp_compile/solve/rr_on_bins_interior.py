"""Interior-point method for the multipliers of RR-on-Bins on a grid of outputs.

Find multipliers a [n] of labels, in a box and with given sums over bins, and the smallest t with

    Σ_y max(a_y − cost(v, y), 0) ≤ room(v) + t·scale(v)   at every output v of a grid.

As a linear program it has a variable s ≥ max(a_y − cost, 0) for each pair of output and label that
can be positive. Mehrotra's predictor-corrector method ("On the implementation of a primal-dual
interior point method", 1992) stays away from the faces of the optimal set, so that its answer does
well between the outputs, too. All s are eliminated: one step solves a system in a and t only.

It is here because it is faster than a library. Whole proofs for 60 to 401 labels, one thread, in
one run (``benchmarks/rr_on_bins.py --against``): Clarabel took 1.1 to 7.1 times as long, over all
eight problems four times (1.9 s against 10.7 s, and 1.8 s against 12.7 s, for the hardest two);
HiGHS 1.5 to 20 times, up to 200 labels. The proofs are as good with either.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from labeldp_compile.solve.range_moments import Floats, Ints

_STEPS = 60  # at most
_PROMISING = 1e-6  # t from which iterates are tried
_PER_PAIR = 3000  # multiplications of a matrix product that take as long as one pair
_CLOSED = 1e-15  # mean complementarity at which t is as good as it gets
_LOWEST = 2.0  # −t stays below this
_CENTRINGS = 3  # of the start
_BACK = 0.995  # of the way to the boundary
_RIDGES = (1e-15, 1e-13, 1e-11)  # relative, on the diagonal of the system


@dataclass(frozen=True, eq=False)
class GridProgram:
    """The program above; multipliers, costs, rooms and scales are in one unit, about 1 in size.

    Attributes:
        cost: [m, n] cost(v, y) of m outputs for n labels.
        room: [m]. scale: [m], positive.
        low, high: [n] the box, low < high.
        bin_of: [n] bin of each label, 0 … d − 1, each taken.
        totals: [d] sum of the multipliers in each bin.
        start: [n] multipliers strictly inside the box, with these sums.
    """

    cost: Floats
    room: Floats
    scale: Floats
    low: Floats
    high: Floats
    bin_of: Ints
    totals: Floats
    start: Floats


def solve_grid_program(
    program: GridProgram, good_enough: Callable[[Floats], bool], work: float
) -> tuple[Floats, float]:
    """Find the multipliers [n] at the smallest t, or the first that are ``good_enough``.

    Args:
        program: what to solve.
        good_enough: is asked about every iterate whose t could do, strictly inside the box.
        work: multiplications after which to give up; a count, so that answers do not hang on time.

    Returns:
        The multipliers, and the work done.
    """
    state = _State(program)
    done = 0.0
    for _ in range(_STEPS):
        if state.t < _PROMISING and good_enough(state.a):
            break
        if done > work or state.gap() < _CLOSED or not state.advance():
            break
        done += state.work
    return state.a, done


@dataclass(frozen=True, eq=False)
class _Direction:
    a: Floats
    t: float
    s: Floats
    slacks: list[Floats]
    duals: list[Floats]
    sums: Floats


class _State:
    """A point strictly inside all inequalities, with their multipliers.

    Slacks, in this order: s; s − a + cost; room + scale·t − Σ s; a − low; high − a; t + lowest.
    """

    def __init__(self, program: GridProgram) -> None:
        self._program = program
        # Below the box a difference is never negative, above it never positive: no s is needed.
        sure = program.cost <= program.low
        self._sure = sure.astype(np.float64)
        self._room = program.room + (program.cost * self._sure).sum(axis=1)
        self._output, self._label = np.nonzero(~sure & (program.cost < program.high))
        size = program.cost.shape[1]
        self.work = float(program.cost.size * size + _PER_PAIR * self._output.size + size**3)
        self._cost = program.cost[self._output, self._label]
        self._outputs, self._labels = program.cost.shape
        self._member = np.zeros((program.totals.size, self._labels))
        self._member[program.bin_of, np.arange(self._labels)] = 1.0
        self.a = program.start.copy()
        above = self.a[self._label] - self._cost
        free = self._room - self._sure @ self.a - self._by_output(np.maximum(above, 0.0))
        self.t = float(max((-free / program.scale).max(), 0.0)) + 1.0
        free += program.scale * self.t
        # All products of slack and multiplier are the same, and s is dual feasible, if u₃ = μ/δ,
        # δ = z₃ and s = ½(above + 2δ + √(above² + 4δ²)), which is δ … 2δ more than it has to be.
        number = 2.0 * self._by_output(np.ones_like(above)) + 1.0
        delta = free / number
        for _ in range(_CENTRINGS):
            wide = delta[self._output]
            self._s = 0.5 * (above + np.hypot(above, 2.0 * wide)) + wide
            self._slacks = self._all_slacks()
            fair = delta
            delta = delta + (self._slacks[2] - delta) / number
        centre = 1.0 / float((program.scale / fair).sum() + 1.0 / self._slacks[5][0])
        self._duals = [centre / z for z in self._slacks]
        self._duals[2] = centre / fair
        # At the analytic centre of the box these cancel its multipliers.
        pull = self._duals[3] - self._duals[4]
        width = program.high - program.low
        self._sums = self._member @ (pull * width) / (self._member @ width)

    def gap(self) -> float:
        """Mean product of slack and multiplier."""
        total = sum(float(z @ u) for z, u in zip(self._slacks, self._duals, strict=True))
        return total / sum(z.size for z in self._slacks)

    def advance(self) -> bool:
        """One predictor-corrector step; False if rounding stops it."""
        try:
            with np.errstate(all="ignore"):
                return self._advance()
        except (np.linalg.LinAlgError, ValueError):
            return False

    def _advance(self) -> bool:
        mean = self.gap()
        solve = self._system()
        pure = [-z * u for z, u in zip(self._slacks, self._duals, strict=True)]
        first = solve(pure)
        reach_z, reach_u = _reach(self._slacks, first.slacks), _reach(self._duals, first.duals)
        moved = zip(self._slacks, first.slacks, self._duals, first.duals, strict=True)
        ahead = sum(float((z + reach_z * dz) @ (u + reach_u * du)) for z, dz, u, du in moved) / sum(
            z.size for z in self._slacks
        )
        centre = mean * min(max(ahead / mean, 0.0) ** 3, 1.0)
        products = zip(pure, first.slacks, first.duals, strict=True)
        # A short predictor says little of the curvature (Colombo and Gondzio, 2008).
        trust = min(reach_z, 1.0) * min(reach_u, 1.0)
        step = solve([target + centre - trust * dz * du for target, dz, du in products])
        if not np.isfinite(step.a).all() or not np.isfinite(step.t):
            return False
        reach_z = min(1.0, _BACK * _reach(self._slacks, step.slacks))
        reach_u = min(1.0, _BACK * _reach(self._duals, step.duals))
        self.a = self.a + reach_z * step.a
        self.t += reach_z * step.t
        self._s = self._s + reach_z * step.s
        self._slacks = [z + reach_z * dz for z, dz in zip(self._slacks, step.slacks, strict=True)]
        self._duals = [u + reach_u * du for u, du in zip(self._duals, step.duals, strict=True)]
        self._sums = self._sums + reach_u * step.sums
        return reach_z > 1e-9 or reach_u > 1e-9

    def _system(self) -> Callable[[list[Floats]], _Direction]:
        """Factor Newton's equations; the function solves them for given complementarities."""
        z1, z2, z3, z4, z5, z6 = self._slacks
        u1, u2, u3, u4, u5, u6 = self._duals
        program, member = self._program, self._member
        d1, d2, d4, d5, d6 = u1 / z1, u2 / z2, u4 / z4, u5 / z5, u6 / z6
        both = d1 + d2
        part = d2 / both
        kappa = 1.0 / (z3 / u3 + self._by_output(1.0 / both))
        # Rows [outputs, labels + 1]: how the multiplier of an output answers to a and t.
        rows = np.zeros((self._outputs, self._labels + 1))
        rows[:, :-1] = self._sure
        rows[self._output, self._label] = part
        rows[:, -1] = -program.scale
        weighted = rows * np.sqrt(kappa)[:, None]
        matrix = weighted.T @ weighted
        diagonal = np.concatenate([self._by_label(d1 * part) + d4 + d5, d6])
        matrix[np.diag_indices_from(matrix)] += diagonal
        factored = _factored(matrix)
        wide = np.concatenate([member, np.zeros((member.shape[0], 1))], axis=1)
        across = factored(wide.T)
        schur = wide @ across
        r_s = u3[self._output] - u1 - u2
        r_a = self._by_label(u2) + self._sure.T @ u3 - u4 + u5 + member.T @ self._sums
        r_t = 1.0 - program.scale @ u3 - u6[0]
        r_sum = program.totals - member @ self.a

        def solve(target: list[Floats]) -> _Direction:
            c1, c2, c3, c4, c5, c6 = target
            g = c1 / z1 + c2 / z2 - r_s
            constant = c3 / u3 + self._by_output(g / both)
            right = np.concatenate(
                [
                    -r_a - self._by_label(c2 / z2 - part * g) + c4 / z4 - c5 / z5,
                    [-r_t + c6[0] / z6[0]],
                ]
            )
            right -= rows.T @ (kappa * constant)
            plain = factored(right)
            sums = np.asarray(np.linalg.solve(schur, wide @ plain - r_sum), dtype=np.float64)
            x = plain - across @ sums
            a, t = x[:-1], float(x[-1])
            du3 = kappa * (constant + rows @ x)
            s = (d2 * a[self._label] + g - du3[self._output]) / both
            slacks = [
                s,
                s - a[self._label],
                program.scale * t - self._by_output(s) - self._sure @ a,
                a,
                -a,
                np.array([t]),
            ]
            duals = [
                (c - u * dz) / z
                for c, u, dz, z in zip(target, self._duals, slacks, self._slacks, strict=True)
            ]
            duals[2] = du3
            return _Direction(a, t, s, slacks, duals, sums)

        return solve

    def _all_slacks(self) -> list[Floats]:
        program = self._program
        return [
            self._s,
            self._s - self.a[self._label] + self._cost,
            self._room + program.scale * self.t - self._by_output(self._s) - self._sure @ self.a,
            self.a - program.low,
            program.high - self.a,
            np.array([self.t + _LOWEST]),
        ]

    def _by_output(self, values: Floats) -> Floats:
        return np.asarray(np.bincount(self._output, values, self._outputs), dtype=np.float64)

    def _by_label(self, values: Floats) -> Floats:
        return np.asarray(np.bincount(self._label, values, self._labels), dtype=np.float64)


def _factored(matrix: Floats) -> Callable[[Floats], Floats]:
    """Solve systems in a positive definite matrix, with a ridge as small as rounding allows."""
    root = 1.0 / np.sqrt(np.diagonal(matrix))
    scaled = matrix * root * root[:, None]
    for ridge in _RIDGES:
        try:
            factor = cho_factor(scaled + ridge * np.eye(root.size))
        except np.linalg.LinAlgError:
            continue
        return lambda right: (cho_solve(factor, (right.T * root).T).T * root).T
    raise np.linalg.LinAlgError("not positive definite")


def _reach(values: list[Floats], steps: list[Floats]) -> float:
    """The longest step, at most about 1, that keeps all values from being negative."""
    worst = 1.0 / _BACK
    for value, step in zip(values, steps, strict=True):
        down = step < 0
        if down.any():
            worst = min(worst, float((-value[down] / step[down]).min()))
    return worst
