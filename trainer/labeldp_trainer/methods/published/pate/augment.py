"""Random shifts and mirror images: what shows the same thing to a network.

Strongly changed images show it, too, but are harder to tell: brighter or darker, moved further, and
with a square cut out (Cutout, DeVries and Taylor 2017).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.config.model import Refine
from labeldp_trainer.data import FeatureShape

DEFAULT_SHIFT = 2  # pixels
_GAIN = 0.4  # of a strong change: brightness 1 ± 0.4
Images = Float[Array, "b h w c"]
Augment = Callable[[PRNGKeyArray, Images], Images]


@dataclass(frozen=True)
class Augmentations:
    """Images of the same size that show the same thing.

    Attributes:
        weak: None: as they are.
        strong: to be told alike by consistency.
    """

    weak: Augment | None
    strong: Augment


def augmentation(loaded: LoadedConfig, refine: Refine, shape: FeatureShape) -> Augmentations | None:
    """As the part ``refine`` of a config says; None of what is no image.

    Raises ConfigError if that part does not fit the data.
    """
    if shape.image is None:
        for key in ("shift", "flip", "sure"):
            if getattr(refine, key):
                raise loaded.error((key,), "is for images [n, height, width, channels]")
        return None
    shift, flip = DEFAULT_SHIFT if refine.shift is None else refine.shift, refine.flip
    if refine.shift is not None and shift >= min(shape.image[:2]):
        raise loaded.error(("shift",), f"{shift:,} pixels leave nothing of an image")
    most = min(shape.image[:2]) - 1
    shift = min(shift, most)
    further = min(2 * shift, most)

    def moved(key: PRNGKeyArray, images: Images, most: int) -> Images:
        shift_key, flip_key = jax.random.split(key)
        found = shifted(shift_key, images, most)
        return flipped(flip_key, found) if flip else found

    def strong(key: PRNGKeyArray, images: Images) -> Images:
        move_key, gain_key, cut_key = jax.random.split(key, 3)
        gain = jax.random.uniform(
            gain_key, (len(images), 1, 1, 1), minval=1 - _GAIN, maxval=1 + _GAIN
        )
        return cut(cut_key, gain * moved(move_key, images, further))

    def weak(key: PRNGKeyArray, images: Images) -> Images:
        return moved(key, images, shift)

    return Augmentations(weak if shift or flip else None, strong)


def shifted(key: PRNGKeyArray, images: Images, most: int) -> Images:
    """Each image moved by up to ``most`` pixels both ways; its edge goes on outside."""
    b, height, width, channels = images.shape
    around = ((0, 0), (most, most), (most, most), (0, 0))
    starts = jax.random.randint(key, (b, 2), 0, 2 * most + 1)

    def one(image: Float[Array, "H W c"], start: Array) -> Float[Array, "h w c"]:
        place = (start[0], start[1], jnp.int32(0))
        return jax.lax.dynamic_slice(image, place, (height, width, channels))

    return jax.vmap(one)(jnp.pad(images, around, "edge"), starts)


def flipped(key: PRNGKeyArray, images: Images) -> Images:
    """Every other image, on average, mirrored left to right."""
    mirrored = jax.random.bernoulli(key, 0.5, (len(images), 1, 1, 1))
    return jnp.where(mirrored, images[:, :, ::-1], images)


def cut(key: PRNGKeyArray, images: Images) -> Images:
    """Each image with a square of half its shorter side, anywhere, in its mean colour."""
    b, height, width, _ = images.shape
    half = max(min(height, width) // 4, 1)
    row_key, column_key = jax.random.split(key)

    def near(key: PRNGKeyArray, size: int) -> Bool[Array, "b s"]:
        centre = jax.random.randint(key, (b, 1), 0, size)
        inside: Array = jnp.abs(jnp.arange(size)[None, :] - centre) < half
        return inside

    hole = near(row_key, height)[:, :, None, None] & near(column_key, width)[:, None, :, None]
    return jnp.where(hole, images.mean(axis=(1, 2), keepdims=True), images)
