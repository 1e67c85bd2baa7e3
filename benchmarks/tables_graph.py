"""Does a graph of rows help on tables where ε is small?

    LABELDP_DATA=folder python benchmarks/tables_graph.py --seeds 2

The six tables, losses and splits of tables_models.py, test losses, ε of one label, δ = 1e-5.

* ``one release``: splines; ``graph``: where a row is in the graph of rows that are alike, by their
  splines (standardized numbers and one-hot categories); ``splines and graph``: joined.
* ``staged release``: its default. ``staged release, coordinates``: the same with ten further
  numbers of each row, its coordinates in that graph.

The graph is of training rows and learned without labels, by the defaults of ``representation``.
No run chooses anything on test rows. A table has one graph (seed 0); a seed draws noise, which
comes from the operating system. Every finished run is a line of ``--results``, and is not run
again.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev

import pyarrow as pa
import pyarrow.parquet as pq
from labeldp_trainer import load_config
from labeldp_trainer.data import load_data
from labeldp_trainer.representation.build import represented
from training_studies.hardware import hardware
from training_studies.six_models import METHODS, ONE, RELEASED, STAGED, Runner, Trained
from training_studies.six_tables import TASKS

RESULTS = Path(__file__).parent / "results" / "tables_graph.jsonl"
EPSILONS = ("0.1", "0.2", "0.5")
GRAPH = "{{kind: graph, of: splines, seed: 0}}"
JOINED = f"{{{{kind: joined, of: [{{{{kind: splines, seed: 0}}}}, {GRAPH}]}}}}"
RELEASE = RELEASED % "one_release"
COORDINATES = 10
COMPARED = {
    ONE: METHODS[ONE],
    "one release, graph": Trained(f"{RELEASE}representation: {GRAPH}\n"),
    "one release, splines and graph": Trained(f"{RELEASE}representation: {JOINED}\n"),
    STAGED: METHODS[STAGED],
    "staged release, coordinates": replace(METHODS[STAGED]),
}
WIDER = "staged release, coordinates"


class Wider:
    """A runner whose table has the coordinates as further numbers."""

    def __init__(self, name, source, folder):
        """Learn the graph from the training rows."""
        self.runner = Runner(name, source, folder / "wider")
        data, place = self.runner.data, self.runner.folder
        config = place / "graph.yaml"
        method = COMPARED["one release, graph"]
        config.write_text(self.runner.config(method, "1", 0, None), encoding="utf-8")
        loaded = load_config(config)
        found, _ = represented(loaded, load_data(loaded, (), ()), place / "graph")
        names = [f"coordinate_{number}" for number in range(COORDINATES)]
        for part, vectors in zip(("train", "test"), found.parts, strict=True):
            table = data.parts[part]
            for number, column in enumerate(names):
                table = table.append_column(column, pa.array(vectors.features[:, number]))
            pq.write_table(table, place / f"{part}.parquet")
        data.numeric = [*data.numeric, *names]


def run(arguments, folder):
    """All cells that are not there yet."""
    found, runners = finished(arguments.results), {}
    for seed in range(arguments.seeds):
        for table in arguments.tables:
            for name in arguments.only:
                for epsilon in arguments.epsilons:
                    if (table, name, epsilon, seed) in found:
                        continue
                    kind = Wider if name == WIDER else Runner
                    if (table, kind) not in runners:
                        runners[table, kind] = kind(table, arguments.data, folder)
                    runner = runners[table, kind]
                    runner = runner.runner if kind is Wider else runner
                    began = time.monotonic()
                    metrics, _ = runner.metrics(COMPARED[name], epsilon, seed)
                    line = {"table": table, "method": name, "epsilon": epsilon, "seed": seed}
                    line |= {"metrics": metrics, "seconds": round(time.monotonic() - began, 1)}
                    line |= {"rows": runner.data.rows, "hardware": hardware()}
                    with arguments.results.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(line, ensure_ascii=False) + "\n")
                    print(f"  {json.dumps(line, ensure_ascii=False)}", file=sys.stderr, flush=True)


def finished(path):
    """The lines of finished runs, by cell and seed."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    runs = [json.loads(line) for line in lines]
    return {(r["table"], r["method"], r["epsilon"], r["seed"]): r for r in runs}


def show(arguments):
    """A markdown table of what is there."""
    found = finished(arguments.results)
    print("| table (loss) | method | " + " | ".join(f"ε = {e}" for e in arguments.epsilons) + " |")
    print("|---|---" + "|---:" * len(arguments.epsilons) + "|")
    for table in arguments.tables:
        metric = TASKS[table].metrics[0]
        for name in arguments.only:
            cells = []
            for epsilon in arguments.epsilons:
                runs = [run for key, run in found.items() if key[:3] == (table, name, epsilon)]
                values = [run["metrics"][metric] for run in runs]
                spread = f" ± {stdev(values) / len(values) ** 0.5:.2g}" if len(values) > 1 else ""
                cells.append(f"{mean(values):.4g}{spread} ({len(values)})" if values else "–")
            print(f"| {TASKS[table].title} ({metric}) | {name} | " + " | ".join(cells) + " |")


def main():
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=os.environ.get("LABELDP_DATA"))
    parser.add_argument("--only", type=lambda text: text.split(";"), default=list(COMPARED))
    parser.add_argument("--tables", type=lambda text: text.split(","), default=list(TASKS))
    parser.add_argument("--epsilons", type=lambda text: text.split(","), default=list(EPSILONS))
    parser.add_argument("--seeds", type=int, default=2, help="how many; finished ones count")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--show", action="store_true", help="run nothing")
    arguments = parser.parse_args()
    if not arguments.show:
        arguments.data = Path(arguments.data).absolute()
        with tempfile.TemporaryDirectory() as folder:
            run(arguments, Path(folder).absolute())
    show(arguments)


if __name__ == "__main__":
    main()
