"""A standalone Spark cluster on the loopback address: a master and two workers.

Executors are processes of their own that can be killed while a job runs. Everything is gone after
the ``with`` block, whatever happens inside it.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

ROOT = Path(__file__).parents[3]
SECONDS = 300  # for anything that is waited for, on a busy machine
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # starts sooner, with one thread the less
NO_JAVA = "there is no Java: install a JRE, 17 or newer (openjdk-17-jre-headless)"
LOG = """rootLogger.level = info
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %m%n
"""


class ClusterError(Exception):
    """A part of the cluster did not do what was waited for."""


def missing(*modules: str) -> str | None:
    """What this machine lacks for a Spark of one's own, or None."""
    for name in ("pyspark", *modules):
        if importlib.util.find_spec(name) is None:
            return f"there is no {name}: pip install 'pyspark[connect]'"
    if java() is None:
        return NO_JAVA
    if not Path("/proc/self/task").is_dir():
        return "there is no /proc, in which executors are found"
    return None


def java() -> str | None:
    """The command of Java."""
    if "JAVA_HOME" in os.environ:
        return str(Path(os.environ["JAVA_HOME"]) / "bin/java")
    return shutil.which("java")


def wait_for(condition: Callable[[], Any], what: str, seconds: float = SECONDS) -> Any:
    """The first true answer. Raises ClusterError after so many seconds."""
    end = time.monotonic() + seconds
    while not (answer := condition()):
        if time.monotonic() > end:
            raise ClusterError(f"waited {seconds:.0f} s in vain for {what}")
        time.sleep(0.05)
    return answer


def children(pid: int) -> dict[int, str]:
    """Child processes of a process, with their command lines."""
    found = {}
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in _text(task).split():
            found[int(child)] = _text(Path(f"/proc/{child}/cmdline")).replace("\0", " ")
    return found


def _die_with_parent() -> None:
    """Between fork and exec: if this process is killed, so is the daemon."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:  # the process is gone
        return ""


@dataclass
class Cluster:
    """A running cluster.

    Attributes:
        url: of the master, for ``SparkSession.builder.master``.
    """

    folder: Path
    url: str = ""
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str, *arguments: str) -> None:
        """Start a daemon of the cluster, whose ports the system chooses."""
        kind = name.rstrip("0123456789")
        ports = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        self.start_class(name, f"org.apache.spark.deploy.{kind.lower()}.{kind}", *ports, *arguments)

    def start_class(self, name: str, *command: str, memory: str = "256m") -> None:
        """Start a program of Spark's jars, as its own scripts do; it writes to NAME.log."""
        import pyspark

        home = Path(pyspark.__file__).parent
        options = f"{QUICK_JVM} {self.logging()} -Dspark.master.rest.enabled=false"
        of_daemons = {"SPARK_DAEMON_MEMORY": memory, "SPARK_DAEMON_JAVA_OPTS": options}
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                ["bash", str(home / "bin/spark-class"), *command],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env={**environment(), **of_daemons, "SPARK_HOME": str(home)},
                start_new_session=True,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 — no thread runs yet
            )

    def logging(self) -> str:
        """The option of Java under which a program says which ports it was given."""
        file = self.folder / "daemons.properties"
        file.write_text(LOG)
        return f"-Dlog4j2.configurationFile={file}"

    def said(self, name: str, pattern: str) -> list[str]:
        """What a daemon's log says. Raises ClusterError if the daemon ended."""
        log = _text(self.folder / f"{name}.log")
        if self.processes[name].poll() is not None:
            raise ClusterError(f"{name} ended:\n{log[-2000:]}")
        return re.findall(pattern, log)

    def executors(self) -> list[int]:
        """Process ids of the executors that run now, whoever of our children started them."""
        return list(_executors(os.getpid()))

    def kill_executor(self, which: int = 0) -> int:
        """Kill one of the executors; returns its process id."""
        running = self.executors()
        pid = running[which % len(running)]
        os.kill(pid, signal.SIGKILL)
        return pid

    def stop(self) -> None:
        """Kill all that was started, executors and Python workers too."""
        for process in self.processes.values():
            for pid, _ in [*_descendants(process.pid), (process.pid, "")]:
                _kill(pid)
            process.wait()


def _descendants(pid: int) -> Iterator[tuple[int, str]]:
    for child, line in children(pid).items():
        yield from _descendants(child)
        yield child, line


def _executors(pid: int) -> Iterator[int]:
    for child, line in children(pid).items():
        if "ExecutorBackend" in line:
            yield child  # what it starts, such as chmod, is for a moment a copy of it
        else:
            yield from _executors(child)


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def environment() -> dict[str, str]:
    """Variables under which executors find this checkout, and nothing looks up the host's name."""
    paths = [str(ROOT), str(ROOT / "runtime"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "OMP_NUM_THREADS": "1",
    }


@contextmanager
def cluster(folder: Path, *, cores: int = 1, workers: int = 2) -> Iterator[Cluster]:
    """A master and workers with this many cores each, with room for executors of 600 MB.

    Each worker has an address of its own: Spark starts no speculative copy on the same host.
    """
    it = Cluster(folder)
    try:
        it.start("Master")
        it.url = wait_for(
            lambda: it.said("Master", r"Starting Spark master at (spark://127\.0\.0\.1:\d+)"),
            "the master",
        )[0]
        for number in range(1, workers + 1):
            work = ["-c", str(cores), "-m", "1g", "-d", str(folder / f"work{number}")]
            it.start(f"Worker{number}", "--host", f"127.0.0.{number}", *work, it.url)
        wait_for(lambda: len(it.said("Master", "Registering worker")) == workers, "the workers")
        yield it
    finally:
        it.stop()


def session(it: Cluster, **settings: str) -> Any:
    """A SparkSession on the cluster, with one executor a worker and lost executors soon noticed.

    Changes this process's environment: for programs that do nothing else.
    """
    from pyspark.sql import SparkSession

    os.environ.update(environment())
    quiet = it.folder / "driver.properties"
    quiet.write_text("rootLogger.level = off\n")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.driver.extraJavaOptions": f"{QUICK_JVM} -Dlog4j2.configurationFile={quiet}",
        "spark.executor.extraJavaOptions": QUICK_JVM,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "600m",
        "spark.executor.memory": "600m",
        "spark.executor.cores": "1",
        "spark.python.authenticate.socketTimeout": "300s",  # of 15, on a busy machine
        "spark.network.timeout": "1200s",
        # As if each worker were a machine of its own: its disk is gone with its executor.
        "spark.shuffle.readHostLocalDisk": "false",
        "spark.shuffle.io.maxRetries": "1",
        "spark.shuffle.io.retryWait": "100ms",
        "spark.sql.warehouse.dir": str(it.folder / "warehouse"),
        **settings,
    }
    builder = SparkSession.builder.master(it.url).appName("labeldp on a cluster")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def outcome(folder: Path) -> dict[str, Any]:
    """What was written: rows, distinct ids, ids with two draws; and the labels by id."""
    table = pq.read_table(folder)
    ids, labels = (table.column(name).to_numpy() for name in ("id", "y"))
    pairs = np.unique(np.stack([ids, labels]), axis=1)
    distinct = len(np.unique(ids))
    order = np.argsort(ids, kind="stable")
    return {
        "rows": len(ids),
        "distinct": distinct,
        "two_draws": pairs.shape[1] - distinct,
        "labels": labels[order],
    }
