"""Settings of all tests: behaviour is tested, never wall time, and the same cases in every run."""

import ctypes
import os
import signal
import sys
from itertools import count
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, settings

from tests.copied_process import CopyingProcess

settings.register_profile(
    "labeldp",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],  # it looks at the clock
)
settings.load_profile("labeldp")

# One JVM for these files: they share a worker of pytest-xdist, and so the session of Spark.
SPARK = tuple(f"tests/engines/test_spark{name}.py" for name in ("", "_secrets", "_connect"))
# One site for these: it is built once.
SITE = tuple(f"tests/docs/test_{name}.py" for name in ("examples", "links", "site"))
# The longest come first, that no worker waits for the other in the end.
FIRST = (
    *SPARK,
    "tests/engines/test_spark_cluster.py",
    "tests/test_wheels.py",
    "tests/trainer/test_train.py",
    "tests/trainer/test_step.py",
    "tests/trainer/test_central_resume.py",
    "tests/trainer/test_central_runs.py",
    "tests/trainer/test_projection.py",
    "tests/trainer/test_lp_mst.py",
)


_STATE = TemporaryDirectory()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    rank = {file: place for place, file in enumerate(FIRST)}
    items.sort(key=lambda item: rank.get(item.nodeid.split("::")[0], len(FIRST)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """With ``--dist loadfile``: in the order above, and files that share something dear as one."""
    from xdist.scheduler import LoadFileScheduling

    class Together(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            return next((group[0] for group in (SPARK, SITE) if file in group), file)

    if config.option.dist != "loadfile":
        return None
    config.option.loadscopereorder = False  # by the number of tests, which says little
    return Together(config, log)


def pytest_configure() -> None:
    """A shell that starts the tests in the background has them ignore ^C, and their children."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # The key that marks what a user's labeldp wrote is the tests' own, and that of their children.
    os.environ["XDG_STATE_HOME"] = _STATE.name


@pytest.fixture(scope="module", autouse=True)
def memory_is_given_back():
    """What a file's tests freed, so that budgets of memory do not depend on what ran before."""
    yield
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)  # of glibc; musl has none


@pytest.fixture(scope="session")
def copying_process(tmp_path_factory):
    return CopyingProcess(tmp_path_factory.mktemp("copied_process"))


@pytest.fixture(scope="session", autouse=True)
def _no_configuration_of_the_user(tmp_path_factory):
    """Tests, and the processes that they start, make no key in the home of who runs them."""
    config = tmp_path_factory.mktemp("configuration") / "config.toml"
    config.touch(mode=0o600)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LABELDP_CONFIG", str(config))
        yield


@pytest.fixture
def known_noise(monkeypatch):
    """Noise of private priors that is the same in every run, so that solvers meet none by chance.

    tests/prior tries the noise itself, and the demo and the tutorial compile with it.
    """
    from labeldp_compile.prior import discrete_laplace, obtain, obtain_groups

    seeds = count()

    def noisy(counts, epsilon):
        return discrete_laplace.seeded_histogram(counts, epsilon, next(seeds))

    for module in (discrete_laplace, obtain, obtain_groups):
        monkeypatch.setattr(module, "noisy_histogram", noisy)
