"""What several tests of the compiler ask for by name."""

from contextlib import chdir
from itertools import count

import pytest

from runtime.tests.copied_process import CopyingProcess


@pytest.fixture(scope="session")
def copying_process(tmp_path_factory):
    return CopyingProcess(tmp_path_factory.mktemp("copied_process"))


@pytest.fixture
def here(tmp_path):
    """A new folder in which commands are given."""
    with chdir(tmp_path):
        yield tmp_path


@pytest.fixture
def known_noise(monkeypatch):
    """Noise of private priors that is the same in every run, so that solvers meet none by chance.

    tests/prior tries the noise itself, and the demo and the tutorial compile with it.
    """
    from labeldp_compile.prior import discrete_laplace, obtain

    seeds = count()

    def noisy(counts, epsilon):
        return discrete_laplace.seeded_histogram(counts, epsilon, next(seeds))

    for module in (discrete_laplace, obtain):
        monkeypatch.setattr(module, "noisy_histogram", noisy)


@pytest.fixture
def once(monkeypatch):
    """``once(module, name, before)``: something happens before the next call of a function."""

    def arranged(module, name, before):
        real = getattr(module, name)

        def called(*arguments, **options):
            monkeypatch.setattr(module, name, real)
            before()
            return real(*arguments, **options)

        monkeypatch.setattr(module, name, called)

    return arranged
