"""Jobs on a cluster that loses an executor between two reduce tasks: one with a key, one without.

A program, since a process has only one Spark: ``python -m runtime.tests.engines.cluster_runs``
prints a JSON object for each run of x.onnx in the folder that is its argument.
"""

from __future__ import annotations

import json
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from labeldp_runtime import Key, Randomizer, ReplayWarning

from runtime.tests.engines.cluster import Cluster, outcome, session, wait_for

# A master and two workers of one core and 1 GB in the driver's JVM; executors are processes.
CLUSTER = "local-cluster[2,1,1024]"
ROWS, MAP_TASKS, REDUCE_TASKS = 20_000, 4, 16
BEFORE = 2  # reduce tasks with rows that end before the executor is killed
Batches = Iterator[Any]


def meet(folder: str) -> Callable[[Batches], Batches]:
    """Map tasks that wait for one another until two executors take part, and leave a mark each."""

    def held(batches: Batches) -> Batches:
        import os
        import time
        from pathlib import Path

        place = Path(folder)
        (place / f"executor-{os.getppid()}").touch()  # Python's daemon: one for each executor
        (place / f"map-{os.urandom(8).hex()}").touch()
        end = time.monotonic() + 240
        while len(list(place.glob("executor-*"))) < 2 and time.monotonic() < end:
            time.sleep(0.05)
        yield from batches

    return held


def hold(folder: str) -> Callable[[Batches], Batches]:
    """Reduce tasks of which those after the first ones wait until the executor is killed."""

    def held(batches: Batches) -> Batches:
        import os
        import time
        from pathlib import Path

        place, rows = Path(folder), 0
        end = time.monotonic() + 240
        while (
            len(list(place.glob("done-*"))) >= BEFORE
            and not (place / "killed").exists()
            and time.monotonic() < end
        ):
            time.sleep(0.05)
        for batch in batches:
            rows += batch.num_rows
            yield batch
        if rows:
            (place / f"done-{os.urandom(8).hex()}").touch()

    return held


def run(it: Cluster, spark: Any, folder: Path, **options: Any) -> dict[str, Any]:
    """Randomize, send the rows by their private label, write; and kill an executor meanwhile."""
    from labeldp_runtime.engines.spark import randomize

    folder.mkdir()
    rows = spark.range(0, ROWS, 1, MAP_TASKS).selectExpr("id", "id % 10 AS y")
    rows = rows.mapInArrow(meet(str(folder)), rows.schema)
    private = randomize(rows, "y", folder.parent / "x.onnx", **options)
    sent = private.repartition(REDUCE_TASKS, "y").mapInArrow(hold(str(folder)), private.schema)
    errors: list[str] = []

    def write() -> None:
        try:
            sent.write.parquet(str(folder / "out"))
        except Exception as error:  # whatever the job says
            errors.append(str(error))

    job = threading.Thread(target=write, daemon=True)
    wait_for(lambda: len(it.executors()) == 2, "two executors")
    job.start()
    wait_for(
        lambda: not job.is_alive() or len(list(folder.glob("done-*"))) >= BEFORE,
        "the first reduce tasks",
    )
    killed = job.is_alive()
    if killed:
        lost = it.kill_executor()
        wait_for(lambda: lost not in (now := it.executors()) and len(now) == 2, "a new executor")
    (folder / "killed").touch()
    job.join()
    again = len(list(folder.glob("map-*"))) - MAP_TASKS
    found = {"error": errors[0]} if errors else outcome(folder / "out")
    return {"killed": killed, "computed_again": again, **found}


def main(place: Path) -> None:
    """Print the outcome of both runs; for the keyed one, whether its labels are the right ones."""
    key = Key.create(place / "labels.key")
    it = Cluster(place, CLUSTER)
    spark = session(it)
    keyed = run(it, spark, place / "keyed", key=key, id_column="id", check_duplicates=False)
    alone = Randomizer.load(place / "x.onnx", key=key, context="y")
    ids = np.arange(ROWS)
    keyed["same"] = np.array_equal(keyed.pop("labels", None), alone(ids % 10, ids=ids))
    print(json.dumps(keyed), flush=True)  # noqa: T201
    warnings.simplefilter("ignore", ReplayWarning)
    fresh = run(it, spark, place / "fresh")
    fresh.pop("labels", None)
    print(json.dumps(fresh), flush=True)  # noqa: T201
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
