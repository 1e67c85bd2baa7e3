"""Prefix sums of 1, n and n² over the noise of an additive randomizer, in whole numbers."""

from __future__ import annotations

from itertools import accumulate

from labeldp_compile.randomizer.additive import AdditiveRandomizer

Sums = tuple[int, int, int]


class NoiseSums:
    """Σ w(n), Σ n·w(n) and Σ n²·w(n) over the noises below a point, w(n) = 2^(2B)·Pr[n].

    Sums over whole blocks and inside a shape are kept apart, so that memory is O(D + J) and a
    point costs a few products.
    """

    def __init__(self, randomizer: AdditiveRandomizer) -> None:
        """Takes O(D + J) products."""
        r, D = randomizer, randomizer.period
        self._period, self._reach, self._blocks = D, r.reach, r.blocks
        self._inside = tuple(_power_sums(shape) for shape in r.shapes)
        totals = [(s[0][-1], s[1][-1], s[2][-1]) for s in self._inside]
        whole = [
            _block(weight, b * D, totals[b >= 0]) for b, weight in enumerate(r.blocks, -r.reach - 1)
        ]
        self._whole = [[*accumulate(sums, initial=0)] for sums in zip(*whole, strict=True)]

    def below(self, point: int) -> Sums:
        """The three sums over n < point; a point outside all blocks is moved to the nearest."""
        b, i = divmod(point, self._period)
        index = b + self._reach + 1
        if index < 0:
            return 0, 0, 0
        if index >= len(self._blocks):
            return self._whole[0][-1], self._whole[1][-1], self._whole[2][-1]
        inside = self._inside[b >= 0]
        part = _block(
            self._blocks[index], b * self._period, (inside[0][i], inside[1][i], inside[2][i])
        )
        zeroth, first, second = self._whole
        return zeroth[index] + part[0], first[index] + part[1], second[index] + part[2]


def _power_sums(shape: tuple[int, ...]) -> tuple[list[int], list[int], list[int]]:
    """([D + 1] each) Σ v, Σ i·v and Σ i²·v over prefixes of a shape."""
    return (
        [*accumulate(shape, initial=0)],
        [*accumulate((i * v for i, v in enumerate(shape)), initial=0)],
        [*accumulate((i * i * v for i, v in enumerate(shape)), initial=0)],
    )


def _block(weight: int, start: int, sums: Sums) -> Sums:
    """The sums of n = start + i from those of i, times the weight of the block."""
    zeroth, first, second = sums
    return (
        weight * zeroth,
        weight * (start * zeroth + first),
        weight * (start * (start * zeroth + 2 * first) + second),
    )
