"""Gaussian noise on a sum of clipped gradients, and the secret key that it comes from.

Limits, which no test can remove: the noise is made of float32 numbers by inverting an error
function on 2^23 uniform values, so its support is finite and its tails end near 5.4 standard
deviations; sums round; JAX's default generator (Threefry, a 64-bit key) is a counter-based
generator with good statistics and no claim to be cryptographic. Use `secret_key`, never a small
seed: whoever guesses it can subtract the noise.
"""

import secrets

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, PRNGKeyArray, PyTree, UInt32


def secret_words() -> UInt32[np.ndarray, "2"]:
    """Return the 64 bits of a key from the operating system.

    Store them as secretly as the labels.
    """
    return np.array([secrets.randbits(32), secrets.randbits(32)], dtype=np.uint32)


def key_of(words: UInt32[Array, "2"]) -> PRNGKeyArray:
    """Return the JAX key made of `words`; works inside jit."""
    key: PRNGKeyArray = jax.random.wrap_key_data(words, impl="threefry2x32")
    return key


def secret_key() -> PRNGKeyArray:
    """Return a fresh secret key."""
    return key_of(jnp.asarray(secret_words()))


def add_noise(
    key: PRNGKeyArray, tree: PyTree, standard_deviation: Float[Array, ""] | float
) -> PyTree:
    """Add independent N(0, `standard_deviation`²) to every entry of `tree`.

    `standard_deviation` is σ·C for a sum of gradients clipped to C. A key must be used once only.
    """
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    noisy = [
        leaf
        + jax.random.normal(k, leaf.shape, leaf.dtype) * jnp.asarray(standard_deviation, leaf.dtype)
        for k, leaf in zip(keys, leaves, strict=True)
    ]
    return jax.tree.unflatten(structure, noisy)
