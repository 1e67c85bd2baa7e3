"""Settings of all tests: behaviour is tested, never wall time, and the same cases in every run."""

import signal
from itertools import count

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "labeldp",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],  # it looks at the clock
)
settings.load_profile("labeldp")


def pytest_configure() -> None:
    """A shell that starts the tests in the background has them ignore ^C, and their children."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


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
