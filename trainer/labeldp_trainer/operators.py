"""Operators of models in closed form: the same text for numpy's arrays and for JAX's.

JAX is imported when the first of its arrays comes along. ``export.onnx`` registers each operator's
form for tensors, so that a model made of them can be exported as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int32

if TYPE_CHECKING:
    from functools import _SingleDispatchCallable

POISSON_FLOOR = 1e-3  # f − y·log f has no lower bound for the negative y of unbiased randomizers
LEAST_OVER_FLOOR = 1e-3  # how far a positive prediction is above the floor, at least
LEAST_SOFTPLUS = -30.0


def dispatched(of_arrays: Callable[..., Any]) -> _SingleDispatchCallable[Any]:
    """A function of arrays; ``export.onnx`` registers its form for tensors."""
    return singledispatch(of_arrays)


def namespace(x: Any) -> Any:
    """The module with the functions of an array: ``numpy`` or ``jax.numpy``."""
    if isinstance(x, np.ndarray | np.generic):
        return np
    import jax.numpy as jnp  # noqa: PLC0415

    return jnp


@dispatched
def clip(x: Float[Any, "*shape"], low: Any, high: Any) -> Float[Any, "*shape"]:
    """Numbers moved into [low, high]."""
    return namespace(x).clip(x, low, high)


@dispatched
def flat(x: Float[Any, "b ..."]) -> Float[Any, "b d"]:
    """All numbers of an example in one row."""
    return x.reshape(x.shape[0], -1)


@dispatched
def joined(first: Float[Any, "b d"], *others: Float[Any, "b ..."]) -> Float[Any, "b width"]:
    """Columns side by side."""
    return namespace(first).concatenate([first, *others], axis=1)


@dispatched
def matmul(x: Float[Any, "... d"], w: Float[Any, "d k"]) -> Float[Any, "... k"]:
    """The product in full float32 precision, also on a GPU."""
    if isinstance(x, np.ndarray):
        return x @ w
    return namespace(x).matmul(x, w, precision="highest")


@dispatched
def softplus_of_log(x: Float[Any, "*shape"], floor: float) -> Float[Any, "*shape"]:
    """softplus⁻¹(y) = y + ln(1 − e^(−y)) of y = e^x − floor, or of ``LEAST_OVER_FLOOR`` if y is
    smaller."""
    xp = namespace(x)
    y = xp.maximum(xp.exp(x) - floor, LEAST_OVER_FLOOR)
    return y + xp.log(-xp.expm1(-y))


@dispatched
def log(x: Float[Any, "*shape"]) -> Float[Any, "*shape"]:
    """The natural logarithm."""
    return namespace(x).log(x)


@dispatched
def log_softplus(x: Float[Any, "*shape"]) -> Float[Any, "*shape"]:
    """ln ln(1 + e^x); below LEAST_SOFTPLUS as there."""
    xp = namespace(x)
    return xp.log(softplus(xp.maximum(x, LEAST_SOFTPLUS)))


@dispatched
def binned(x: Float[Any, " b"], edges: Float[Any, " e"]) -> Int32[Any, " b"]:
    """How many edges are at most x; e + 1 for NaN."""
    xp = namespace(x)
    below = (x[:, None] >= edges[None, :]).sum(axis=1, dtype=np.int32)
    return xp.where(xp.isnan(x), np.int32(edges.shape[0] + 1), below)


def softplus(x: Float[Any, "*shape"]) -> Float[Any, "*shape"]:
    """ln(1 + e^x)."""
    return namespace(x).logaddexp(x, np.zeros((), x.dtype))


def log_softmax(logits: Float[Any, "b k"]) -> Float[Any, "b k"]:
    """Logarithms of the probabilities of classes."""
    if isinstance(logits, np.ndarray):
        import scipy.special  # noqa: PLC0415

        return scipy.special.log_softmax(logits, axis=-1)
    import jax  # noqa: PLC0415

    return jax.nn.log_softmax(logits, axis=-1)
