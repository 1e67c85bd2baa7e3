"""Training on a cluster that loses an executor, and on one that runs a task twice at a time.

A program, since a process has only one Spark: ``python -m tests.training.spark_runs FOLDER``
trains FOLDER/train.yaml both ways and prints a JSON object for each run.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from labeldp_trainer import load_config, train
from labeldp_trainer.one_release import plan
from labeldp_trainer.spark import SparkTable

from runtime.tests.engines.cluster import Cluster, session, wait_for

CLUSTER = "local-cluster[2,1,1024]"
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.01",
    "spark.speculation.quantile": "0.2",
    "spark.speculation.minTaskRuntime": "1ms",
    "spark.sql.files.maxPartitionBytes": "32k",
}


def marked(task: Callable[[Any], Any], folder: str, *, lose: bool) -> Callable[[Any], Any]:
    """The task, which leaves a mark for each attempt that has computed its sums.

    Then it waits: all but partition 0 until an executor was killed; or that of partition 1 until
    another attempt has computed the same sums, so that both have a result.
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
        while time.monotonic() < end and (
            partition > 0 and not (place / "killed").exists()
            if lose
            else partition == 1 and len(list(place.glob("summed-1-*"))) < 2
        ):
            time.sleep(0.05)
        yield from found

    return held


def run(it: Cluster, spark: Any, folder: Path, *, lose: bool) -> dict[str, Any]:
    """Train without noise, meanwhile kill an executor, and count attempts."""
    loaded, original = load_config(folder.parent / "train.yaml"), SparkTable.results
    folder.mkdir()
    counts: list[int] = []

    def results(self: SparkTable, task: Any, *, labelled: bool) -> Any:
        found = original(self, marked(task, str(folder), lose=lose), labelled=labelled)
        counts.append(len(found))
        return found

    SparkTable.results = results  # type: ignore[method-assign]
    job = threading.Thread(target=lambda: train(loaded, folder / "run", spark=spark), daemon=True)
    job.start()
    if lose:
        wait_for(lambda: len(list(folder.glob("summed-*"))) > 2, "sums that wait on both executors")
        lost = it.kill_executor()
        wait_for(lambda: lost not in (now := it.executors()) and len(now) == 2, "a new executor")
        (folder / "killed").touch()
    job.join()
    SparkTable.results = original  # type: ignore[method-assign]
    return {"results": counts, "attempts": len(list(folder.glob("summed-*")))}


def main(place: Path) -> None:
    """Print what came of both runs."""
    plan.noisy = lambda total, sigma: total  # type: ignore[assignment]
    it = Cluster(place, CLUSTER)
    spark = session(it, **SPECULATION)
    print(json.dumps(run(it, spark, place / "lost", lose=True)), flush=True)  # noqa: T201
    print(json.dumps(run(it, spark, place / "twice", lose=False)), flush=True)  # noqa: T201
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
