"""Tests of the private trainer: they need JAX, which the compiler does not."""

from importlib.util import find_spec

import pytest

_MISSING = [name for name in ("jax", "dp_accounting", "labeldp_trainer") if find_spec(name) is None]
if _MISSING:
    collect_ignore_glob = ["test_*.py"]
else:
    import jax

    jax.config.update("jax_numpy_rank_promotion", "raise")


def pytest_report_header():
    if _MISSING:
        return f"private trainer: NOT tested, missing {', '.join(_MISSING)}"
    return None


@pytest.fixture(autouse=True)
def strict_dtypes():
    if _MISSING:
        yield
        return
    with jax.numpy_dtype_promotion("strict"):
        yield


@pytest.fixture
def x64():
    """Float64 for comparisons to 1e-5 and better."""
    with jax.enable_x64(True):
        yield
