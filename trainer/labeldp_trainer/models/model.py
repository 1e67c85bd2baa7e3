"""What a model is."""

from __future__ import annotations

from typing import Any, Protocol

import jax

Params = Any  # a pytree of float32 arrays


class Model(Protocol):
    """Any object with these two functions; both are pure.

    ``apply`` treats every example on its own: nothing like batch norm, which mixes examples and
    would carry one label into another's gradient.
    """

    def init(self, key: jax.Array) -> Params:
        """Fresh parameters."""
        ...

    def apply(self, params: Params, x: Any, key: jax.Array | None = None) -> jax.Array:
        """Outputs [b, k] for features with leading axis b: logits, or one number (k = 1).

        ``key`` is given in training only, for dropout.
        """
        ...
