"""Spark loses executors at random moments: what is written with a key and without one.

A standalone cluster on the loopback address, two workers with one executor each. Every run
randomizes a table, sends the rows by their private label and writes them; meanwhile one or two
executors are killed, at moments drawn from a seeded generator. Prints a markdown table.

--unchecked lets unkeyed jobs run on Sparks that labeldp refuses, to show why: install another
PySpark (pip install --target FOLDER pyspark==4.1.4), put FOLDER first in PYTHONPATH.
"""

import argparse
import random
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
from labeldp_runtime import EngineError, Key, Randomizer, ReplayWarning
from labeldp_runtime.engines.spark import randomize

sys.path.insert(0, str(Path(__file__).parents[1]))

from runtime.tests.engines.cluster import cluster, outcome, session, wait_for
from tests.fixtures.compiled import RESPONSE_SPEC, compile_text

MAP_TASKS, REDUCE_TASKS = 8, 16
HEADER = """\
| Spark | words | runs | executors killed | job failed | complete | incomplete, and no error \
| most ids lost | most ids with two draws | labels of one process |
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|"""


class Study:
    """A cluster with a session, an artifact and a key, on which jobs run and lose executors."""

    def __init__(self, it, rows, seed):
        """Open the session; find the keyed labels that one process gives."""
        self.it, self.rows, self.random = it, rows, random.Random(seed)
        self.spark, self.runs = session(it), 0
        self.artifact = it.folder / "x.onnx"
        self.artifact.write_bytes(compile_text(RESPONSE_SPEC).model)
        self.key = Key.create(it.folder / "labels.key")
        ids = np.arange(rows)
        self.expected = Randomizer.load(self.artifact, key=self.key, context="y")(ids % 10, ids=ids)

    def write(self, folder, keyed, errors):
        """The job; its error goes to a list."""
        options = {"key": self.key, "id_column": "id", "check_duplicates": False} if keyed else {}
        df = self.spark.range(0, self.rows, 1, MAP_TASKS).selectExpr("id", "id % 10 AS y")
        try:
            private = randomize(df, "y", self.artifact, **options)
            private.repartition(REDUCE_TASKS, "y").write.parquet(str(folder))
        except Exception as error:  # any error of the job
            errors.append(error)

    def run(self, keyed, kills=0, seconds=0.0):
        """One run with `kills` kills in its first seconds. Raises the EngineError of a refusal."""
        self.runs += 1
        folder, errors, killed = self.it.folder / f"out{self.runs}", [], 0
        wait_for(lambda: len(self.it.executors()) == 2, "two executors")
        thread = threading.Thread(target=self.write, args=(folder, keyed, errors), daemon=True)
        start = time.monotonic()
        thread.start()
        for moment in sorted(self.random.uniform(0, seconds) for _ in range(kills)):
            thread.join(max(0.0, start + moment - time.monotonic()))
            if thread.is_alive() and self.it.executors():
                self.it.kill_executor(self.random.randrange(2))
                killed += 1
        thread.join()
        found = {"killed": killed, "seconds": time.monotonic() - start, "failed": bool(errors)}
        if errors:
            if isinstance(errors[0], EngineError):
                raise errors[0]
            return {**found, "why": str(errors[0])[:200]}
        written = outcome(folder)
        labels = written.pop("labels")
        whole = written["rows"] == written["distinct"] == self.rows and not written["two_draws"]
        return {**found, **written, "whole": whole, "same": np.array_equal(labels, self.expected)}

    def line(self, keyed, runs):
        """A line of the table, from several runs with kills."""
        self.run(keyed)  # Python's workers start, and import
        quiet = self.run(keyed)
        assert quiet["whole"], quiet
        results = []
        for number in range(runs):
            results.append(self.run(keyed, 1 + number % 2, quiet["seconds"]))
            print(keyed, number, results[-1], file=sys.stderr, flush=True)
        done = [each for each in results if not each["failed"]]
        broken = [each for each in done if not each["whole"]]
        lost = max((self.rows - each["distinct"] for each in broken), default=0)
        twice = max((each["two_draws"] for each in broken), default=0)
        return (
            f"| {self.spark.version} | {'keyed' if keyed else 'fresh'} | {runs} "
            f"| {sum(each['killed'] for each in results)} | {runs - len(done)} "
            f"| {len(done) - len(broken)} | {len(broken)} | {lost:,} | {twice:,} "
            f"| {sum(each['same'] for each in done) if keyed else '—'} |"
        )


def main(rows, runs, seed):
    with tempfile.TemporaryDirectory() as place, cluster(Path(place)) as it:
        study = Study(it, rows, seed)
        print(HEADER, flush=True)
        for keyed in (True, False):
            try:
                print(study.line(keyed, runs), flush=True)
            except EngineError as error:
                print(f"\nSpark {study.spark.version}, fresh: refused: {error}")
        study.spark.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--unchecked", action="store_true")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", ReplayWarning)
    warnings.simplefilter("ignore", FutureWarning)
    module = sys.modules[randomize.__module__]
    real = module.refuse_without_rollback
    check = (lambda spark: None) if chosen.unchecked else real
    with mock.patch.object(module, "refuse_without_rollback", check):
        main(chosen.rows, chosen.runs, chosen.seed)
