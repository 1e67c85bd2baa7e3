"""Training on a cluster that loses an executor, or that runs a speculative copy of a task.

A program, since a process has only one Spark: ``python -m tests.training.spark_runs FOLDER NAME
(lost | speculative)`` trains FOLDER/NAME.yaml. It prints a JSON object: the number of results of
each job, and how the attempts of one job ended, by partition.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from labeldp_trainer import load_config, train
from labeldp_trainer.methods import staged_release
from labeldp_trainer.one_release import plan
from labeldp_trainer.spark import SparkTable
from labeldp_trainer.staged_release.draw import Draws

from runtime.tests.engines.cluster import QUICK_JVM, Cluster, cluster, session, wait_for

TWICE = 1  # the partition that waits for a speculative copy


def marked(task: Callable[[Any], Any], folder: str, event: str) -> Callable[[Any], Any]:
    """The task, which leaves a mark for each attempt that has computed its sums.

    Then it waits for the event: in all partitions but the first, or in one.
    """

    def held(batches: Any) -> Any:
        import time
        from pathlib import Path

        from pyspark import TaskContext

        place, found, context = Path(folder), list(task(batches)), TaskContext.get()
        partition = context.partitionId()
        (place / f"summed-{partition}-{context.taskAttemptId()}").touch()
        waits = partition > 0 if event == "lost" else partition == TWICE
        end = time.monotonic() + 240
        while waits and not (place / "end").exists() and time.monotonic() < end:
            time.sleep(0.05)
        yield from found

    return held


def lose_executor(it: Cluster, folder: Path) -> None:
    """Kill one of two executors that hold sums."""
    wait_for(lambda: len(list(folder.glob("summed-*"))) > 2, "sums that wait on both executors")
    lost = it.kill_executor()
    wait_for(lambda: lost not in (now := it.executors()) and len(now) == 2, "a new executor")
    (folder / "end").touch()


def send_twice(it: Cluster, folder: Path, driver: int) -> None:
    """Let a task and its speculative copy end while the driver, a process, is stopped.

    Otherwise it would kill one of them as soon as it has the result of the other one.
    """

    def sent() -> bool:
        logs = "".join(log.read_text() for log in it.folder.glob("work*/*/*/stderr"))
        ends = [f"(TID {mark.name.split('-')[2]}). " for mark in folder.glob(f"summed-{TWICE}-*")]
        return all(end in logs for end in ends)

    wait_for(lambda: len(list(folder.glob(f"summed-{TWICE}-*"))) == 2, "sums of a copy")
    os.kill(driver, signal.SIGSTOP)
    try:
        (folder / "end").touch()
        wait_for(sent, "two results")
        time.sleep(1)  # executors log a result just before they send it
    finally:
        os.kill(driver, signal.SIGCONT)


def run(it: Cluster, spark: Any, folder: Path, name: str, event: str) -> list[int]:
    """Train with the noise of the test; the event is in the first sums. The results of each job."""
    loaded, original = load_config(folder.parent / f"{name}.yaml"), SparkTable.results
    marked_job = int(loaded.config.method.kind == "staged_release")  # after a histogram
    folder.mkdir()
    counts: list[int] = []

    def results(self: SparkTable, task: Any, *, labelled: bool) -> Any:
        own = marked(task, str(folder), event) if len(counts) == marked_job else task
        found = original(self, own, labelled=labelled)
        counts.append(len(found))
        return found

    SparkTable.results = results  # type: ignore[method-assign]
    job = threading.Thread(target=lambda: train(loaded, folder / "run", spark=spark), daemon=True)
    job.start()
    if event == "lost":
        lose_executor(it, folder)
    else:
        send_twice(it, folder, spark.sparkContext._gateway.proc.pid)
    job.join()
    SparkTable.results = original  # type: ignore[method-assign]
    return counts


def ends(events: Path, folder: Path) -> dict[str, list[str]]:
    """How the marked attempts ended, by partition, as Spark's log of events says."""
    found, lines = defaultdict(list), "".join(log.read_text() for log in events.rglob("events_*"))
    for event in map(json.loads, lines.splitlines()):
        if event["Event"] == "SparkListenerTaskEnd":
            info, end = event["Task Info"], event["Task End Reason"]
            if (folder / f"summed-{info['Partition ID']}-{info['Task ID']}").exists():
                found[info["Partition ID"]].append(end.get("Kill Reason", end["Reason"]))
    return found


def main(place: Path, name: str, event: str) -> None:
    """Print what came of the run."""
    plan.noisy = lambda total, sigma: total  # type: ignore[assignment]
    add = lambda exact, sigma: exact + sigma // 3  # noqa: E731
    staged_release.Draws = partial(Draws, add_noise=add)  # type: ignore[misc, assignment]
    (events := place / "events").mkdir()
    with cluster(place) as it:
        settings = {
            "spark.sql.files.maxPartitionBytes": "32k",
            "spark.speculation": str(event == "speculative").lower(),
            "spark.speculation.multiplier": "1.1",
            "spark.log.level": "INFO",
            "spark.executor.extraJavaOptions": f"{QUICK_JVM} {it.logging()}",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": str(events),
            "spark.eventLog.compress": "false",
        }
        spark = session(it, **settings)
        counts = run(it, spark, place / event, name, event)
        spark.stop()
    print(json.dumps({"results": counts, "ends": ends(events, place / event)}))  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
