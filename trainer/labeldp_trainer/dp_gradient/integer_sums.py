"""Sums of per-example vectors, each clipped and rounded to integers (Theorem 7).

Labels are used for nothing else. A unit is what one substitution changes: an example, or a user.
"""

import functools
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Bool, Float, Int32, Int64, PyTree, Real, Shaped, UInt32

# Vectors that are pytrees: norms and clipping that survive huge, infinite and NaN entries.
#
# And the loss of a user, whose examples' gradients are averaged.

Loss = Callable[[PyTree, PyTree, Real[Array, "..."]], Float[Array, ""]]
"""`loss(params, x, y)` of one example: x a pytree of features, y its label."""


def total(values: list[Float[Array, "*shape"]]) -> Float[Array, "*shape"]:
    """Sum a list of arrays."""
    return functools.reduce(operator.add, values)


def dot(a: PyTree, b: PyTree) -> Float[Array, ""]:
    """Return the inner product of two pytrees of one structure."""
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return total([jnp.sum(p * q) for p, q in pairs])


def all_finite(tree: PyTree) -> Bool[Array, ""]:
    """Return whether every entry is finite."""
    return jnp.isfinite(_peak(tree))


def norm(tree: PyTree) -> Float[Array, ""]:
    """Return the Euclidean norm over the whole pytree: NaN or infinite if an entry is.

    It does not overflow before its result does, nor lose entries whose squares underflow.
    """
    peak = _peak(tree)
    _, root = _directions(tree, peak)
    return jnp.where(jnp.isfinite(peak), peak * root, peak)


def clip(tree: PyTree, bound: Float[Array, ""] | float) -> PyTree:
    """Scale `tree` to norm at most `bound`; a tree with an infinite or NaN entry becomes zero.

    Returning zero keeps the promise for any label: the norm of the result is at most `bound`.
    float16 and bfloat16 leaves come back as float32.
    """
    tree = jax.tree.map(at_least_float32, tree)
    peak = _peak(tree)
    units, root = _directions(tree, peak)
    # Entries of `units` are at most 1, and `root` is their norm. So this product has norm at most
    # `bound`, even if the arithmetic that led to `units` were wrong.
    size = jnp.minimum(peak, bound / jnp.maximum(root, 0.5))
    usable = jnp.isfinite(peak) & (root >= 0.5)
    return jax.tree.map(
        lambda unit: jnp.where(usable, unit * size.astype(unit.dtype), jnp.zeros_like(unit)),
        units,
    )


def at_least_float32(leaf: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Return `leaf` in float32, or unchanged if it is float64."""
    return leaf.astype(jnp.float32) if leaf.dtype.itemsize < 4 else leaf


def flat(tree: PyTree) -> Float[Array, " d"]:
    """Return all leaves side by side, in their widest type, at least float32."""
    leaves = [at_least_float32(leaf) for leaf in jax.tree.leaves(tree)]
    dtype = max((leaf.dtype for leaf in leaves), key=lambda dtype: dtype.itemsize)
    return jnp.concatenate([leaf.reshape(-1).astype(dtype) for leaf in leaves])


def unflat(vector: Float[Array, " d"], like: PyTree) -> PyTree:
    """Return the pytree like `like` whose leaves are side by side in `vector`, all in float32 or
    float64."""
    leaves, structure = jax.tree.flatten(like)
    ends = list(accumulate(leaf.size for leaf in leaves))
    shaped = [
        part.reshape(leaf.shape).astype(at_least_float32(leaf).dtype)
        for part, leaf in zip(jnp.split(vector, ends[:-1]), leaves, strict=True)
    ]
    return jax.tree.unflatten(structure, shaped)


def tiny(dtype: jnp.dtype) -> float:
    """Return the least normal number of `dtype`, against divisions by zero."""
    return float(np.finfo(dtype).tiny)


def zeros_like_sum(params: PyTree) -> PyTree:
    """Return zeros in which gradients of `params` are summed."""
    return jax.tree.map(lambda p: jnp.zeros_like(at_least_float32(p)), params)


def _peak(tree: PyTree) -> Array:
    """Return the largest absolute entry; NaN if there is one."""
    peaks = [jnp.max(jnp.abs(leaf), initial=0.0) for leaf in jax.tree.leaves(tree)]
    dtype = jnp.result_type(*(peak.dtype for peak in peaks)) if len(peaks) > 1 else peaks[0].dtype
    return functools.reduce(jnp.maximum, [peak.astype(dtype) for peak in peaks])


def _directions(tree: PyTree, peak: Array) -> tuple[PyTree, Array]:
    """Return `tree` divided by its largest absolute entry `peak`, and the norm of that, at least 1.

    For a tree of zeros (or subnormal numbers, which may be read as zeros) both are zero. A quotient
    may be computed as a product with a reciprocal, and the reciprocal of 1e38 flushes to zero in
    float32; so the exponent is brought near zero first, by a power of two.
    """
    far = 2.0**70 if peak.dtype.itemsize == 4 else 2.0**600
    edge = far**0.75
    if peak.dtype.itemsize < 4:
        far = edge = 1.0
    one = jnp.ones_like(peak)
    shift = jnp.where(peak > edge, one / far, jnp.where(peak < 1 / edge, one * far, one))
    near = jnp.where(jnp.isfinite(peak) & (peak * shift > 0), peak * shift, one)
    usable = jnp.isfinite(peak)

    def unit(leaf: Array) -> Array:
        moved = leaf * shift.astype(leaf.dtype) / near.astype(leaf.dtype)
        return jnp.where(usable, moved, jnp.zeros_like(moved))

    units = jax.tree.map(unit, tree)
    squares = [jnp.sum(jnp.square(leaf)).astype(peak.dtype) for leaf in jax.tree.leaves(units)]
    return units, jnp.sqrt(total(squares))


# A user as the unit: all of a user's labels may change at once, so a user's gradient is clipped.
#
# A user's data are `(xs, present)` with xs a pytree of [examples, …] and present [examples], and
# labels [examples]; `examples` is a static maximum. Pad with copies of the user's own rows,
# whose gradients are as finite as theirs, not with zeros that a model might divide by.


def per_user(loss: Loss) -> Loss:
    """Turn a loss of one example into a loss of one user: the mean over the examples present.

    A user without any has loss zero.
    """

    def user_loss(params: PyTree, x: PyTree, y: Array) -> Array:
        xs, present = x
        return user_mean(jax.vmap(loss, (None, 0, 0))(params, xs, y), present)

    return user_loss


def user_mean(values: Float[Array, "e ..."], present: Bool[Array, " e"]) -> Float[Array, "..."]:
    """Return the mean of a user's values over the examples that are present, zero without any."""
    kept = present.reshape(-1, *[1] * (values.ndim - 1))
    count = jnp.maximum(jnp.sum(present.astype(values.dtype)), jnp.ones((), values.dtype))
    return jnp.sum(jnp.where(kept, values, jnp.zeros_like(values)), axis=0) / count


# Clipped gradients as integers: what is summed, and what gets the noise (Theorem 7 i).
#
# A clipped vector becomes a vector of integers. Its squared length is computed in integers and
# compared with the bound; a vector that is too long becomes zero. Sums and noise are 64-bit
# integers, so the order of summation does not matter. JAX has these only where `jax.enable_x64`
# is on. Only this file turns it on, so models keep their types.

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


Split = Callable[[PyTree], PyTree]
"""Inside jit: spreads the rows of arrays [rows, …] over devices, without changing a value."""
UnitVector = Callable[[PyTree, PyTree, Real[Array, "..."]], PyTree]
"""`vector(params, x, y)` of one unit, a pytree like params: `jax.grad(loss)`, for instance."""


def whole(tree: PyTree) -> PyTree:
    """Leave rows where they are."""
    return tree


def clipped_sum(
    vector: UnitVector,
    params: PyTree,
    x: PyTree[Shaped[Array, "b ..."]],
    y: Real[Array, "b ..."],
    mask: Bool[Array, " b"],
    *,
    lattice: NoiseLattice,
    microbatch: int,
    split: Split = whole,
) -> Int64[Array, " d"]:
    """Return Σ over masked rows of `vector(params, x_i, y_i)`, each clipped to C and rounded to the
    lattice (Algorithm 1, line 4): integers of length at most L for any vector.

    The norm is over the whole pytree. A vector with an infinite or NaN entry counts as zero. Rows
    are processed `microbatch` at a time, each microbatch `split` over the devices. So memory holds
    `microbatch` gradients. The number of microbatches does not depend on the mask: a step takes the
    same time for every batch.
    """

    def body(total: Array, part: tuple[PyTree, Array, Array]) -> tuple[Array, None]:
        xs, ys, kept = split(part)
        rows = jax.vmap(lambda xi, yi: lattice.integers(vector(params, xi, yi)))(xs, ys)
        return add_rows(total, rows, kept), None

    parts = in_microbatches((x, y, mask), mask.shape[0], microbatch)
    total: Array = lax.scan(body, zeros(params), parts)[0]
    return total


def in_microbatches(
    tree: PyTree[Shaped[Array, "b ..."]], rows: int, microbatch: int
) -> PyTree[Shaped[Array, "parts size ..."]]:
    """Cut the `rows` of every leaf into parts of at most `microbatch`.

    Copies of the first row fill up the last part. A boolean leaf is a mask; it is false for these
    copies.
    """
    size = min(microbatch, rows)
    missing = -rows % size

    def split(leaf: Array) -> Array:
        filler = jnp.broadcast_to(leaf[:1], (missing, *leaf.shape[1:]))
        if leaf.dtype == jnp.bool_:
            filler = jnp.zeros_like(filler)
        # Not -1, which fails if a leaf is empty.
        parts = (rows + missing) // size
        return jnp.concatenate([leaf, filler]).reshape(parts, size, *leaf.shape[1:])

    return jax.tree.map(split, tree)
