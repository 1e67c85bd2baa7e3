"""Clipped gradients as integers: what is summed, and what gets the noise (Theorem 7 i).

A clipped vector becomes a vector of integers. Its squared length is computed in integers and
compared with the bound; a vector that is too long becomes zero. Sums and noise are 64-bit integers,
so the order of summation does not matter. JAX has these only where `jax.enable_x64` is on. Only
this file turns it on, so models keep their types.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Bool, Int32, Int64, PyTree, UInt32

from labeldp_trainer.dp_gradient.tree import clip, flat, unflat

LONGEST = (1 << 26) - 1
"""L: no unit's integer vector is longer."""
STEPS = LONGEST - (LONGEST >> 10)
"""Lattice steps that make up C: 0.1% below L, so that rounding does not exceed it."""
_SQUARES = 1 << 10  # the sum of this many squares of entries up to L fits int64
_ENOUGH = 1 << 52  # larger sums of squares exceed every bound
_FINEST, _COARSEST = 2.0**-20, 2.0**25


class Halves(NamedTuple):
    """64-bit integers in two halves, to move them to a device whose integers have 32 bits."""

    high: Int32[Array, " d"]
    low: UInt32[Array, " d"]


@dataclass(frozen=True)
class NoiseLattice:
    """The integers of one run.

    Attributes:
        clip_norm: C.
        noise_multiplier: σ from the accounting: the scale of the noise, divided by the largest
            length of one unit's vector.

    Raises ValueError unless both are positive and σ is between 2^-20 and 2^25.
    """

    clip_norm: float
    noise_multiplier: float

    def __post_init__(self) -> None:
        """Check the numbers."""
        if not (self.clip_norm > 0 and self.noise_multiplier > 0):
            raise ValueError("clip_norm and noise_multiplier must be positive")
        if not _FINEST <= self.noise_multiplier <= _COARSEST:
            raise ValueError(
                f"noise_multiplier must be between {_FINEST:g} and {_COARSEST:g}; "
                f"it is {self.noise_multiplier:g}"
            )

    @property
    def sigma(self) -> int:
        """The least integer that is at least σ·L: the scale of the noise on each coordinate."""
        return math.ceil(Fraction(self.noise_multiplier) * LONGEST)

    def integers(self, tree: PyTree) -> Int32[Array, " d"]:
        """Clip one unit's vector to C and round it to lattice steps, all leaves side by side.

        Its length is at most L for any ``tree``; this is checked in integers.
        """
        clipped = flat(clip(tree, self.clip_norm))
        steps = jnp.round(clipped * jnp.asarray(STEPS / self.clip_norm, clipped.dtype))
        whole = jnp.clip(steps.astype(jnp.int32), -LONGEST, LONGEST)
        return jnp.where(no_longer(whole, LONGEST), whole, jnp.zeros_like(whole))

    def noisy_mean(
        self, total: Int64[Array, " d"], noise: Halves, like: PyTree, units: int
    ) -> PyTree:
        """Return (total + noise)/units as a gradient like ``like``, from their sum alone."""
        dtype = jax.eval_shape(flat, like).dtype
        with jax.enable_x64(True):
            value = (total + _numbers(noise)).astype(dtype)
        return unflat(value * jnp.asarray(self.clip_norm / STEPS / units, dtype), like)


def no_longer(vector: Int32[Array, " d"], bound: int) -> Bool[Array, ""]:
    """Return whether a vector of entries below 2^26 is at most ``bound`` < 2^26 long, exactly.

    A sum of squares that exceeds every bound is cut to a constant, so that no sum overflows.
    """
    with jax.enable_x64(True):
        wide = _wide(vector)
        sums = wide * wide
        while sums.size > 1:
            count = -(-sums.size // _SQUARES)
            rows = -(-sums.size // count)
            padded = jnp.pad(sums, (0, rows * count - sums.size)).reshape(rows, count)
            sums = jnp.minimum(jnp.sum(padded, axis=0), _ENOUGH)
        return sums.reshape(()) <= bound * bound


def zeros(params: PyTree) -> Int64[Array, " d"]:
    """Return a sum of no vectors."""
    with jax.enable_x64(True):
        return jnp.zeros(sum(leaf.size for leaf in jax.tree.leaves(params)), jnp.int64)


def add_rows(
    total: Int64[Array, " d"], rows: Int32[Array, "b d"], mask: Bool[Array, " b"]
) -> Int64[Array, " d"]:
    """Return ``total`` plus the rows whose mask is true."""
    kept = jnp.where(mask[:, None], rows, jnp.zeros_like(rows))
    with jax.enable_x64(True):
        return total + jnp.sum(_wide(kept), axis=0)


def halves_of(numbers: Int64[np.ndarray, " d"]) -> Halves:
    """Return the halves of integers of the host."""
    low, high = numbers.astype("<i8").view("<u4").reshape(-1, 2).T
    parts: Any = np.ascontiguousarray(high).view("<i4"), np.ascontiguousarray(low)
    return Halves(*parts)


def _numbers(halves: Halves) -> Int64[Array, " d"]:
    return _wide(halves.high) * (1 << 32) + _wide(halves.low)


def _wide(numbers: Array) -> Int64[Array, "*shape"]:
    wide = lax.convert_element_type(numbers, jnp.int64)
    if wide.dtype != jnp.int64:  # 32 bits would wrap, without a message
        raise AssertionError("64-bit integers are off")
    return wide
