"""Tests of the trainer need JAX, which the compiler does not.

Strict promotion: no silent broadcasting of ranks or widening of types.
"""

import os
from importlib.util import find_spec

import pytest

from trainer.tests.compilation import quick_flags

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")  # for the children of tests, too
os.environ.setdefault("XLA_FLAGS", quick_flags())

_MISSING = [name for name in ("jax", "dp_accounting", "labeldp_trainer") if find_spec(name) is None]
if _MISSING:
    collect_ignore_glob = ["test_*.py"]
else:
    import jax


def pytest_report_header():
    if _MISSING:
        return f"trainer: NOT tested, missing {', '.join(_MISSING)}"
    return None


@pytest.fixture(autouse=True)
def strict_dtypes_and_quick_compilation(request):
    """Most of the time is compilation. Clipping is tested as optimized as it runs in training."""
    optimized = request.module.__name__.endswith("test_clipped_sum")
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", not optimized)
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        yield
    jax.config.update("jax_disable_most_optimizations", before)


_PICTURE = []


@pytest.fixture(scope="module", autouse=True)
def one_learning_curve():
    """The first that is drawn serves all runs; test_metrics.py draws its own."""
    from labeldp_trainer.methods import stepped

    draw = stepped.draw_curve

    def drawn(path, lines):
        if not _PICTURE:
            draw(path, lines)
            _PICTURE.append(path.read_bytes())
        path.write_bytes(_PICTURE[0])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stepped, "draw_curve", drawn)
        yield


@pytest.fixture
def x64():
    """Float64 for comparisons to 1e-5 and better."""
    with jax.enable_x64(True):
        yield


@pytest.fixture
def undrawn():
    """No release and no vote may be drawn in the test."""
    from trainer.tests.noise import nothing_is_drawn

    with nothing_is_drawn():
        yield


@pytest.fixture
def noiseless():
    """Releases and votes without noise; the votes."""
    from trainer.tests.noise import no_noise

    with no_noise() as votes:
        yield votes


@pytest.fixture
def drawn():
    """How many words were drawn each time; seeded, so that nothing is left to chance."""
    import numpy as np

    from trainer.tests.noise import words_from

    sizes, generator = [], np.random.default_rng(5)

    def words(*shape):
        sizes.append(shape)
        return generator.integers(0, 2**64, shape, dtype=np.uint64)

    with words_from(words):
        yield sizes
