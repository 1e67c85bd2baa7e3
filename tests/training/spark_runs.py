"""Training on a cluster that loses an executor.

A program, since a process has only one Spark: ``python -m tests.training.spark_runs FOLDER NAME``
trains FOLDER/NAME.yaml, and prints how many results and attempts there were as a JSON object.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from labeldp_trainer import load_config, train
from labeldp_trainer.methods import staged_release
from labeldp_trainer.one_release import plan
from labeldp_trainer.spark import SparkTable
from labeldp_trainer.staged_release.draw import Draws

from runtime.tests.engines.cluster import Cluster, session, wait_for

CLUSTER = "local-cluster[2,1,1024]"


def marked(task: Callable[[Any], Any], folder: str) -> Callable[[Any], Any]:
    """The task, which leaves a mark for each attempt that has computed its sums.

    Then it waits, of all partitions but the first, until an executor was killed.
    """

    def held(batches: Any) -> Any:
        import os
        import time
        from pathlib import Path

        from pyspark import TaskContext

        place, found = Path(folder), list(task(batches))
        partition = TaskContext.get().partitionId()
        (place / f"summed-{partition}-{os.urandom(8).hex()}").touch()
        end = time.monotonic() + 240
        while partition and not (place / "killed").exists() and time.monotonic() < end:
            time.sleep(0.05)
        yield from found

    return held


def run(it: Cluster, spark: Any, folder: Path, name: str) -> dict[str, Any]:
    """Train with the noise of the test, kill an executor in the first sums, and count attempts."""
    loaded, original = load_config(folder.parent / f"{name}.yaml"), SparkTable.results
    killed_in = int(loaded.config.method.kind == "staged_release")  # after a histogram
    folder.mkdir()
    counts: list[int] = []

    def results(self: SparkTable, task: Any, *, labelled: bool) -> Any:
        own = marked(task, str(folder)) if len(counts) == killed_in else task
        found = original(self, own, labelled=labelled)
        counts.append(len(found))
        return found

    SparkTable.results = results  # type: ignore[method-assign]
    job = threading.Thread(target=lambda: train(loaded, folder / "run", spark=spark), daemon=True)
    job.start()
    wait_for(lambda: len(list(folder.glob("summed-*"))) > 2, "sums that wait on both executors")
    lost = it.kill_executor()
    wait_for(lambda: lost not in (now := it.executors()) and len(now) == 2, "a new executor")
    (folder / "killed").touch()
    job.join()
    SparkTable.results = original  # type: ignore[method-assign]
    return {"results": counts, "attempts": len(list(folder.glob("summed-*")))}


def main(place: Path, name: str) -> None:
    """Print what came of the run."""
    plan.noisy = lambda total, sigma: total  # type: ignore[assignment]
    add = lambda exact, sigma: exact + sigma // 3  # noqa: E731
    staged_release.Draws = partial(Draws, add_noise=add)  # type: ignore[misc, assignment]
    it = Cluster(place, CLUSTER)
    spark = session(it, **{"spark.sql.files.maxPartitionBytes": "32k"})
    print(json.dumps(run(it, spark, place / "lost", name)), flush=True)  # noqa: T201
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
