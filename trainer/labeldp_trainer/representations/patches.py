"""Images by a dictionary of patches.

Coates, Lee and Ng 2011, An analysis of single-layer networks in unsupervised feature learning.

Patches p of training images are normalized, (p − mean)/√(var + c), whitened (ZCA) and clustered by
spherical k-means. A place of an image answers to each centre with ReLU; answers are pooled in
pool × pool regions, and the square root makes their scales alike. Whitening and centring are part
of the kernels, so that one product of matrices does all of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float32
from numpy.typing import NDArray
from pydantic import Field, StrictInt

from labeldp_trainer.config.representation import MOST_COLUMNS, FeatureSource, LearnedKind, Learnt
from labeldp_trainer.operators import dispatched

Floats = NDArray[np.float32]

_DRAWN, _ITERATIONS = 200_000, 12  # patches to learn from, and rounds of k-means over them
_CONTRAST = 10 / 255**2  # c, for pixels in [0, 1]
_RIDGE = 0.1  # added to the variances that ZCA divides by
_BLOCK = 4096  # patches at a time: their answers fit the cache
_WORD = "dictionary"


class Patches(LearnedKind):
    """Images: pooled responses to a dictionary of whitened patches (Coates, Lee and Ng 2011)."""

    kind: Literal["patches"]
    chunk: ClassVar[int] = 16
    needs: ClassVar[Literal["images", "table"] | None] = "images"
    patches: StrictInt = Field(300, ge=2, le=MOST_COLUMNS, description="patches in the dictionary")
    size: StrictInt = Field(6, ge=2, le=64, description="side of a patch in pixels")
    pool: StrictInt = Field(3, ge=1, le=64, description="pool × pool means of the responses")

    def rules(self) -> Iterator[tuple[bool, str]]:
        """The vectors are not too long."""
        width = self.patches * self.pool**2
        reason = f"patches × pool²: gives {width:,} columns; at most {MOST_COLUMNS:,} are allowed"
        yield width > MOST_COLUMNS, reason

    def learn(self, source: FeatureSource) -> Learnt:
        """A dictionary. Raises ConfigError for images that are too small."""
        return _learn(self, source)

    @staticmethod
    def raw(x: Any, arrays: Mapping[str, Any]) -> Float32[Any, "b w"]:
        """[b, pool²·patches]."""
        return answers(x, arrays)


def _learn(config: Patches, source: FeatureSource) -> Learnt:
    """kernel [size, size, channels, patches], bias [patches], pooling [places, pool²], contrast.

    Raises ConfigError if images are smaller than a patch or have too few places.
    """
    shape = source.shape.image
    source.require(shape is not None, "patches needs images [n, height, width, channels]", "kind")
    assert shape is not None
    height, width, channels = shape
    reason = f"{config.size} is more than a side of the images, {height} × {width}"
    source.require(config.size <= min(height, width), reason, "size")
    places = height - config.size + 1, width - config.size + 1
    reason = f"{config.pool} is more than the {min(places)} places of a patch along a side"
    source.require(config.pool <= min(places), reason, "pool")
    random = np.random.default_rng(source.seed)
    contrast = np.float32(_CONTRAST * unit(source) ** 2)
    drawn = _normalised(_drawn(source, config.size, random), contrast)
    mean, whitening = _zca(drawn)
    whitened = ((drawn - mean[None, :]) @ whitening).astype(np.float32)
    answers = whitening @ _centres(whitened, config.patches, random, source).T
    kernel = answers - answers.mean(axis=0, keepdims=True)  # p − mean(p) is part of it
    return Learnt(
        {
            "kernel": kernel.astype(np.float32).reshape(config.size, config.size, channels, -1),
            "bias": (-(mean @ answers)).astype(np.float32),
            "pooling": _pooling(places, config.pool),
            "contrast": np.array(contrast),
        }
    )


@dispatched
def answers(images: Float32[Any, "b h w c"], arrays: Mapping[str, Any]) -> Any:
    """[b, pool²·patches]: √ of the mean answers of each region, region by region."""
    import jax  # noqa: PLC0415
    import jax.numpy as jnp  # noqa: PLC0415
    from jax import lax  # noqa: PLC0415

    kernel, pooling = arrays["kernel"], arrays["pooling"]
    size, _, channels, count = kernel.shape
    b, rows, columns = images.shape[0], images.shape[1] - size + 1, images.shape[2] - size + 1
    patches = jnp.concatenate(
        [images[:, i : i + rows, j : j + columns] for i in range(size) for j in range(size)], axis=3
    ).reshape(b * rows * columns, size * size * channels)
    mean = patches.mean(axis=1)
    variance = jnp.square(patches).mean(axis=1) - jnp.square(mean)
    scale = lax.rsqrt(jnp.maximum(variance, 0) + arrays["contrast"])
    patches = patches * scale[:, None]
    flat = kernel.reshape(-1, count)
    similarities = jnp.matmul(flat.T, patches.T, precision=lax.Precision.HIGHEST)
    similarities = jax.nn.relu(similarities + arrays["bias"][:, None])
    pooled = jnp.matmul(
        similarities.reshape(count * b, rows * columns), pooling, precision=lax.Precision.HIGHEST
    )
    by_image = pooled.reshape(count, b, pooling.shape[1]).transpose(1, 2, 0)
    return jnp.sqrt(by_image.reshape(b, -1))


def unit(source: FeatureSource) -> float:
    """The range of pixels: 1 for what lies in [0, 1]."""
    low = min(float(np.min(part)) for part in source.features)
    high = max(float(np.max(part)) for part in source.features)
    return 1.0 if low >= 0 and high <= 1 else high - low


def _drawn(source: FeatureSource, size: int, random: np.random.Generator) -> Floats:
    """[n, size²·channels]: patches of random images at random places."""
    assert source.shape.image is not None
    height, width, channels = source.shape.image
    down, across = height - size + 1, width - size + 1
    bounds = np.cumsum([0, *(part.rows for part in source.parts)])
    count = int(min(_DRAWN, bounds[-1] * down * across))
    image = random.integers(bounds[-1], size=count)
    top = random.integers(down, size=count)
    left = random.integers(across, size=count)
    patches = np.empty((count, size, size, channels), np.float32)
    steps = np.arange(size)
    for part, start, end in zip(source.features, bounds[:-1], bounds[1:], strict=True):
        here = np.flatnonzero((image >= start) & (image < end))
        patches[here] = part[
            (image[here] - start)[:, None, None],
            top[here][:, None, None] + steps[None, :, None],
            left[here][:, None, None] + steps[None, None, :],
        ]
    return patches.reshape(count, -1)


def _normalised(patches: Floats, contrast: np.float32) -> Floats:
    patches = patches - patches.mean(axis=1, keepdims=True)
    normalised: Floats = patches / np.sqrt(patches.var(axis=1, keepdims=True) + contrast)
    return normalised


def _zca(patches: Floats) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The mean [d], and the whitening [d, d] that turns patches as little as possible."""
    mean = patches.mean(axis=0, dtype=np.float64)
    centred = patches - mean[None, :]
    variances, directions = np.linalg.eigh(centred.T @ centred / len(patches))
    scaled = directions / np.sqrt(np.maximum(variances, 0) + _RIDGE)[None, :]
    return mean, scaled @ directions.T


def _centres(
    points: Floats, count: int, random: np.random.Generator, source: FeatureSource
) -> NDArray[np.float64]:
    """[count, d] of length 1, by spherical k-means: a centre is the weighted sum of its points.

    A centre without points starts afresh at one of them.
    """
    from scipy import sparse  # noqa: PLC0415

    lengths = np.einsum("nd,nd->n", points, points)
    usable = points[lengths > 1e-3 * max(float(lengths.mean()), 1e-6)]  # not the flat ones
    source.require(len(usable) > 0, "no image has any contrast")
    centres = _unit_rows(random.standard_normal((count, points.shape[1])))
    for done in range(_ITERATIONS):
        source.steps(_WORD, done, _ITERATIONS)
        sums = np.zeros_like(centres)
        for start in range(0, len(usable), _BLOCK):
            block = usable[start : start + _BLOCK]
            answers = block @ centres.astype(np.float32).T
            nearest, places = answers.argmax(axis=1), np.arange(len(block))
            weights = answers[places, nearest], (nearest, places)
            sums += sparse.csr_matrix(weights, shape=(count, len(block))) @ block
        empty = np.flatnonzero(np.linalg.norm(sums, axis=1) < 1e-6)
        sums[empty] = usable[random.integers(len(usable), size=len(empty))]
        centres = _unit_rows(sums)
    source.steps(_WORD, _ITERATIONS, _ITERATIONS)
    return centres


def _unit_rows(points: NDArray[np.float64]) -> NDArray[np.float64]:
    rows: NDArray[np.float64] = points / np.linalg.norm(points, axis=1, keepdims=True)
    return rows


def _pooling(places: tuple[int, int], pool: int) -> Floats:
    """[rows·columns, pool²]: the mean of each region of places."""
    along = []
    for count in places:
        edges = np.linspace(0, count, pool + 1).round().astype(int)
        one = np.zeros((count, pool), np.float32)
        for region in range(pool):
            one[edges[region] : edges[region + 1], region] = 1 / np.diff(edges)[region]
        along.append(one)
    both: Floats = np.einsum("ri,cj->rcij", *along).reshape(-1, pool * pool)
    return both
