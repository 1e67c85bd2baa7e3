"""Layers as pairs of pure functions. Weights have at least two dimensions, biases one.

A function that takes the previous layer's values first is also registered for the tensors of
``export.onnx``. A model made of such functions and of operators can be exported as it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float, Int32, PRNGKeyArray

from labeldp_trainer.operators import dispatched

Layer = dict[str, Float[Array, "..."]]
_PATCHES = 1 << 24  # numbers in all patches that memory holds at a time
_DIMENSIONS = ("NHWC", "HWIO", "NHWC")


def dense_init(key: PRNGKeyArray, inputs: int, outputs: int) -> Layer:
    """Weights of variance 2/inputs (He et al. 2015), biases 0."""
    w = jax.random.normal(key, (inputs, outputs)) * math.sqrt(2 / max(inputs, 1))
    return {"w": w, "b": jnp.zeros(outputs)}


def dense(x: Float[Array, "b inputs"], layer: Layer) -> Float[Array, "b outputs"]:
    """An affine function of each example."""
    return x @ layer["w"] + layer["b"][None, :]


def stack_init(key: PRNGKeyArray, widths: Sequence[int]) -> list[Layer]:
    """Dense layers between neighbouring widths."""
    keys = jax.random.split(key, len(widths) - 1)
    return [dense_init(k, widths[i], widths[i + 1]) for i, k in enumerate(keys)]


def stack(x: Float[Array, "b inputs"], layers: Sequence[Layer]) -> Float[Array, "b outputs"]:
    """Dense layers with ReLU between them."""
    for layer in layers[:-1]:
        x = relu(dense(x, layer))
    return dense(x, layers[-1])


relu, cos, sqrt, cube_root, softmax = map(
    dispatched, (jax.nn.relu, jnp.cos, jnp.sqrt, jnp.cbrt, jax.nn.softmax)
)


@dispatched
def top_k(x: Float[Array, "b n"], count: int) -> tuple[Float[Array, "b k"], Int32[Array, "b k"]]:
    """The largest numbers of each row, largest first, and where they are."""
    b, n = x.shape
    parts = math.isqrt(n)
    if parts < count:
        return lax.top_k(x, count)
    # The largest of all are in the parts with the largest maxima: several times faster on a CPU.
    size = -(-n // parts)
    low = float("-inf")
    split = jnp.pad(x, ((0, 0), (0, parts * size - n)), constant_values=low)
    split = split.reshape(b, parts, size)
    chosen = lax.top_k(split.max(axis=2), count)[1]
    few = jnp.take_along_axis(split, chosen[:, :, None], axis=1).reshape(b, count * size)
    values, places = lax.top_k(few, count)
    part = jnp.take_along_axis(chosen, places // size, axis=1)
    return values, part * size + places % size


def conv_init(
    key: PRNGKeyArray, size: int, inputs: int, outputs: int, *, bias: bool = True
) -> Layer:
    """A square kernel [size, size, inputs, outputs] of variance 2/fan-in."""
    shape = (size, size, inputs, outputs)
    w = jax.random.normal(key, shape) * math.sqrt(2 / (size * size * inputs))
    return {"w": w, "b": jnp.zeros(outputs)} if bias else {"w": w}


@dispatched
def conv(
    x: Float[Array, "b h w inputs"], layer: Layer, stride: int = 1
) -> Float[Array, "b -(-h//{stride}) -(-w//{stride}) outputs"]:
    """A convolution, padded to the same size."""
    if x.shape[0] == 1:
        # One example, under vmap, when per-example gradients are clipped: the gradient of lax's
        # convolution would be a grouped one, many times slower than a matrix product.
        y = _conv_as_product(layer["w"], x, stride)
    elif jax.default_backend() == "cpu":
        # Steps run inside a loop, where XLA's convolutions are 5 to 20 times slower on a CPU.
        y = _conv_by_pieces(layer["w"], x, stride)
    else:
        y = lax.conv_general_dilated(
            x, layer["w"], (stride, stride), "SAME", dimension_numbers=_DIMENSIONS
        )
    return y + layer["b"][None, None, None, :] if "b" in layer else y


def _conv_by_pieces(w: Array, x: Array, stride: int) -> Array:
    """The convolution, a few examples at a time; patches are not kept for the gradient."""
    size, inputs = w.shape[0], w.shape[2]
    patches = size * size * inputs * math.prod(-(-side // stride) for side in x.shape[1:3])
    one = jax.checkpoint(partial(_conv_as_product, stride=stride))
    rows = max(_PATCHES // patches, 1)
    few = len(x) <= rows
    return one(w, x) if few else lax.map(lambda z: one(w, z[None])[0], x, batch_size=rows)


def _conv_as_product(w: Array, x: Array, stride: int) -> Array:
    """The convolution as a product of the image's patches with the kernel."""
    size, sides = w.shape[0], x.shape[1:3]
    outputs = [-(-side // stride) for side in sides]
    missing = [
        max((n - 1) * stride + size - side, 0) for n, side in zip(outputs, sides, strict=True)
    ]
    around = [(m // 2, m - m // 2) for m in missing]
    padded = jnp.pad(x, [(0, 0), *around, (0, 0)])
    spans = [(n - 1) * stride + 1 for n in outputs]
    # First along rows, then along columns: the gradient adds up 2·size slices, not size².
    wide = [padded[:, :, j : j + spans[1] : stride] for j in range(size)]
    rows = jnp.concatenate(wide, axis=-1)
    patches = [rows[:, i : i + spans[0] : stride] for i in range(size)]
    return jnp.concatenate(patches, axis=-1) @ w.reshape(-1, w.shape[-1])


@dispatched
def pool_average(x: Float[Array, "b h w c"]) -> Float[Array, "b h//2 w//2 c"]:
    """Means of 2 × 2 blocks; an odd last row or column is dropped."""
    return _blocks(x).mean(axis=(2, 4))


@dispatched
def pool_max(x: Float[Array, "b h w c"]) -> Float[Array, "b h//2 w//2 c"]:
    """Maxima of 2 × 2 blocks; an odd last row or column is dropped."""
    return _blocks(x).max(axis=(2, 4))


def _blocks(x: Array) -> Array:
    b, height, width, channels = x.shape
    even = x[:, : height // 2 * 2, : width // 2 * 2]
    return even.reshape(b, height // 2, 2, width // 2, 2, channels)


def dropout(
    x: Float[Array, "*shape"], rate: float, key: PRNGKeyArray | None
) -> Float[Array, "*shape"]:
    """Zeros with probability ``rate`` and the rest scaled up; the identity without a key."""
    if key is None:
        return x
    kept = jax.random.bernoulli(key, 1 - rate, x.shape)
    return jnp.where(kept, x / (1 - rate), jnp.zeros_like(x))


def norm_init(channels: int) -> Layer:
    """The scale and shift of a group norm."""
    return {"scale": jnp.ones(channels), "shift": jnp.zeros(channels)}


@dispatched
def group_norm(x: Float[Array, "b h w c"], layer: Layer, groups: int) -> Float[Array, "b h w c"]:
    """Normalizes groups of channels of each example (Wu and He 2018)."""
    b, h, w, c = x.shape
    y = x.reshape(b, h * w, groups, c // groups)
    mean = y.mean(axis=(1, 3), keepdims=True)
    variance = jnp.square(y - mean).mean(axis=(1, 3), keepdims=True)
    y = ((y - mean) * lax.rsqrt(variance + 1e-5)).reshape(b, h, w, c)
    return y * layer["scale"][None, None, None, :] + layer["shift"][None, None, None, :]
