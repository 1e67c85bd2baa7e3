"""Settings of all tests: behaviour is tested, never wall time, and the same cases in every run."""

import ctypes
import gc
import importlib.util
import os
import random
import signal
import sys
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "labeldp",
    deadline=None,
    derandomize=True,
    max_examples=50,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],  # it looks at the clock
)
settings.load_profile("labeldp")

# One JVM for these files: they share a worker of pytest-xdist, and so the session of Spark.
SPARK = (
    *(
        f"runtime/tests/engines/test_{name}.py"
        for name in ("contract", "spark", "spark_secrets", "spark_connect")
    ),
    "tests/sql/test_spark_sql.py",
    "tests/training/test_spark_training.py",
)
# One site for these: it is built once.
SITE = tuple(f"tests/docs/test_{name}.py" for name in ("examples", "links", "site"))
# The same pages are drawn once for these.
PAGES = tuple(f"tests/report/test_{name}.py" for name in ("decision", "numbers", "page", "verdict"))
# The longest come first, that no worker waits for the other in the end.
FIRST = (
    *SPARK,
    "runtime/tests/engines/test_spark_cluster.py",
    "tests/test_wheels.py",
    "trainer/tests/test_projection.py",
    "trainer/tests/test_train.py",
    "trainer/tests/test_no_label_is_refused.py",
    "trainer/tests/interactions/test_runs.py",
    "trainer/tests/staged_release/test_altered.py",
    "trainer/tests/test_coefficients.py",
    "trainer/tests/test_models.py",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--tools",
        choices=("without", "only"),
        help="tests that need more than Python's packages: PostgreSQL, Spark, Node, Chromium, C++, "
        "MLflow, Beam, Coq (make tools); without: leave them out",
    )


def _needs_a_tool(item: pytest.Item) -> bool:
    if {"languages", "proofs", "boosters", "mlflow", "beam"} & {*item.path.parts}:
        return True
    if item.path.name.startswith(("test_spark", "test_postgres")):
        return True
    params = item.callspec.params if hasattr(item, "callspec") else {}
    return (
        "server" in item.fixturenames
        or params.get("store") == "postgres"
        or params.get("engine") == "spark"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if wanted := config.option.tools:
        left_out = [item for item in items if _needs_a_tool(item) != (wanted == "only")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in {*left_out}]
    rank = {file: place for place, file in enumerate(FIRST)}
    items.sort(key=lambda item: rank.get(item.nodeid.split("::")[0], len(FIRST)))


def pytest_collection_finish() -> None:
    """Modules and tests stay: to look for garbage among them again and again takes a twentieth."""
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """With ``--dist loadfile``: in the order above, and files that share something dear as one."""
    from xdist.scheduler import LoadFileScheduling

    class Together(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            return next((group[0] for group in (SPARK, SITE, PAGES) if file in group), file)

    if config.option.dist != "loadfile":
        return None
    config.option.loadscopereorder = False  # by the number of tests, which says little
    return Together(config, log)


def pytest_configure() -> None:
    """A shell that starts the tests in the background has them ignore ^C, and their children."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


class Seeded:
    """Bytes in the place of the kernel's: other ones in every call, but the same in every run.

    All privacy noise of a process is drawn from ``labeldp_runtime.entropy``, which asks the kernel.
    A forked child has bytes of its own; a process that is started anew asks its kernel. How often a
    test would fail by chance is seen with other values of LABELDP_SEED.
    """

    def __init__(self) -> None:
        self._source = random.Random(0)
        self._child = b""
        os.register_at_fork(before=self._before_a_fork, after_in_child=self._in_a_child)

    def __call__(self, count: int) -> bytes:
        return self._source.randbytes(count)

    def begin(self, name: str) -> random.Random:
        """Start the bytes of a test or a fixture; returns the source before."""
        name = os.environ.get("LABELDP_SEED", "") + name
        before, self._source = self._source, random.Random(name)
        random.seed(name)
        np.random.seed(crc32(name.encode()))
        return before

    def generator(self, seed: Any = None) -> np.random.Generator:
        """Numpy's generator of a seed; where the kernel would give one, it is of these bytes."""
        return _GENERATOR(int.from_bytes(self(16)) if seed is None else seed)

    def go_on(self, source: random.Random) -> None:
        self._source = source

    def _before_a_fork(self) -> None:
        self._child = self(16)

    def _in_a_child(self) -> None:
        self._source = random.Random(self._child)


_GENERATOR, _SEEDED = np.random.default_rng, Seeded()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    _SEEDED.begin(item.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    """What tests share is the same, whichever of them asks for it first."""
    if fixturedef.scope == "function":
        return (yield)
    index = getattr(request, "param_index", 0)
    before = _SEEDED.begin(f"{fixturedef.baseid}::{fixturedef.argname}[{index}]")
    try:
        return (yield)
    finally:
        _SEEDED.go_on(before)


@pytest.fixture(scope="session", autouse=True)
def _noise_is_seeded():
    """No test fails by chance. Yields what draws from the kernel."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np.random, "default_rng", _SEEDED.generator)
        if not importlib.util.find_spec("labeldp_runtime"):
            yield
            return
        entropy = importlib.import_module("labeldp_runtime.entropy")
        own = entropy._of_kernel
        patch.setattr(entropy, "_of_kernel", _SEEDED)
        yield own


@pytest.fixture
def secure_noise(_noise_is_seeded, monkeypatch):
    """Bytes of the kernel, for tests of how they are drawn: they may fail once in 10^9 runs."""
    monkeypatch.setattr("labeldp_runtime.entropy._of_kernel", _noise_is_seeded)


@pytest.fixture(scope="module", autouse=True)
def memory_is_given_back():
    """What a file's tests freed, so that budgets of memory do not depend on what ran before."""
    yield
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)  # of glibc; musl has none


@pytest.fixture(scope="session", autouse=True)
def _no_power_cut():
    """What tests write need not outlive one, so none waits for the disk."""

    def written(file: Any) -> None:
        os.fstat(file if isinstance(file, int) else file.fileno())  # it must be open

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", written)
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_configuration_of_the_user(tmp_path_factory):
    """Tests, and the processes that they start, make no key in the home of who runs them."""
    config = tmp_path_factory.mktemp("configuration") / "config.toml"
    config.touch(mode=0o600)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LABELDP_CONFIG", str(config))
        yield


@pytest.fixture
def limit(monkeypatch):
    """``limit(module, name, number)``: a limit of the code, where a test can reach it."""

    def reachable(module, name, number):
        assert isinstance(getattr(module, name), int | float), f"{name} is no number"
        monkeypatch.setattr(module, name, number)

    return reachable


@pytest.fixture
def environment(monkeypatch):
    """``environment(NAME=value)``: variables of the environment; without a value they are gone."""

    def changed(**variables):
        for name, value in variables.items():
            if value is None:
                monkeypatch.delenv(name, raising=False)
            else:
                monkeypatch.setenv(name, str(value))

    return changed


@pytest.fixture
def inside(monkeypatch):
    """``inside(folder)``: the folder that relative paths start from."""
    return monkeypatch.chdir


@pytest.fixture
def without(monkeypatch):
    """``without(*libraries)``: as if they were not installed."""

    def gone(*libraries):
        find = importlib.util.find_spec
        monkeypatch.setattr(
            "importlib.util.find_spec",
            lambda name, *rest: None if name.split(".")[0] in libraries else find(name, *rest),
        )
        for library in libraries:
            monkeypatch.setitem(sys.modules, library, None)

    return gone
