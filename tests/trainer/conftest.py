"""Strict promotion: no silent broadcasting of ranks or widening of types in the trainer."""

import os

import pytest

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault(
    "JAX_DISABLE_MOST_OPTIMIZATIONS", "1"
)  # what is tested is small: compile fast


@pytest.fixture(autouse=True)
def _strict():
    import jax

    with jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict"):
        yield
