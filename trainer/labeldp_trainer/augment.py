"""Random shifts and mirror images: what shows the same thing to a network."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.data import FeatureShape

DEFAULT_SHIFT = 2  # pixels
Images = Float[Array, "b h w c"]
Augment = Callable[[PRNGKeyArray, Images], Images]


def augmentation(loaded: LoadedConfig, shape: FeatureShape) -> Augment | None:
    """(key, images) → images of the same size, as the part ``refine`` says; None: as they are.

    Raises ConfigError if that part does not fit the data.
    """
    refine = loaded.config.refine
    assert refine is not None
    if shape.image is None:
        for key, given in (("shift", refine.shift), ("flip", refine.flip)):
            if given:
                raise loaded.error((key,), "is for images [n, height, width, channels]")
        return None
    shift, flip = DEFAULT_SHIFT if refine.shift is None else refine.shift, refine.flip
    if refine.shift is not None and shift >= min(shape.image[:2]):
        raise loaded.error(("shift",), f"{shift:,} pixels leave nothing of an image")
    shift = min(shift, min(shape.image[:2]) - 1)
    if not (shift or flip):
        return None

    def augment(key: PRNGKeyArray, images: Images) -> Images:
        shift_key, flip_key = jax.random.split(key)
        moved = shifted(shift_key, images, shift)
        return flipped(flip_key, moved) if flip else moved

    return augment


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
