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
import itertools
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from labeldp_trainer import load_config
from labeldp_trainer.data import load_data
from labeldp_trainer.representations import represented
from tables_models import Results, cell
from training_studies.run_or_show import run_or_show
from training_studies.six_models import METHODS, ONE, RELEASED, STAGED, Runner, Trained
from training_studies.six_tables import TASKS

RESULTS = Path(__file__).parent / "results" / "tables_graph.jsonl"
EPSILONS = ("0.1", "0.2", "0.5")
GRAPH = "{{kind: graph, of: splines, seed: 0}}"
JOINED = f"{{{{kind: joined, of: [{{{{kind: splines, seed: 0}}}}, {GRAPH}]}}}}"
RELEASE = RELEASED % "one_release"
COORDINATES = 10
GRAPHS, WIDER = "one release, graph", "staged release, coordinates"
COMPARED = {
    ONE: METHODS[ONE],
    GRAPHS: Trained(f"{RELEASE}representation: {GRAPH}\n"),
    "one release, splines and graph": Trained(f"{RELEASE}representation: {JOINED}\n"),
    STAGED: METHODS[STAGED],
    WIDER: METHODS[STAGED],
}


def wider(name, source, folder):
    """A runner whose table has the coordinates as further numbers: the graph is learned here."""
    runner = Runner(name, source, folder / "wider")
    data, place = runner.data, runner.folder
    config = place / "graph.yaml"
    config.write_text(runner.config(COMPARED[GRAPHS], "1", 0, None), encoding="utf-8")
    loaded = load_config(config)
    found, _ = represented(loaded, load_data(loaded, (), ()), place / "graph")
    names = [f"coordinate_{number}" for number in range(COORDINATES)]
    for part, vectors in zip(("train", "test"), found.parts, strict=True):
        table = data.parts[part]
        for number, column in enumerate(names):
            table = table.append_column(column, pa.array(vectors.features[:, number]))
        pq.write_table(table, place / f"{part}.parquet")
    data.numeric = [*data.numeric, *names]
    return runner


def run(arguments, folder):
    """All cells that are not there yet."""
    results, runners = Results(arguments.results), {}
    cells = itertools.product(
        range(arguments.seeds), arguments.tables, arguments.only, arguments.epsilons
    )
    for seed, table, name, epsilon in cells:
        if (table, name, epsilon, seed) in results.found:
            continue
        made = (table, name == WIDER)
        if made not in runners:
            runners[made] = (wider if name == WIDER else Runner)(table, arguments.data, folder)
        results.add(runners[made].finished(table, name, COMPARED[name], epsilon, seed))


def show(arguments):
    """A markdown table of what is there."""
    results = Results(arguments.results)
    print("| table (loss) | method | " + " | ".join(f"ε = {e}" for e in arguments.epsilons) + " |")
    print("|---|---" + "|---:" * len(arguments.epsilons) + "|")
    for table, name in itertools.product(arguments.tables, arguments.only):
        task = TASKS[table]
        cells = [
            cell([run["metrics"][task.metrics[0]] for run in results.runs(table, name, epsilon)])
            for epsilon in arguments.epsilons
        ]
        print(f"| {task.title} ({task.metrics[0]}) | {name} | " + " | ".join(cells) + " |")


def main():
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=COMPARED, default=list(COMPARED))
    parser.add_argument("--tables", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--epsilons", nargs="+", default=EPSILONS)
    parser.add_argument("--seeds", type=int, default=2, help="how many; finished ones count")
    run_or_show(parser, RESULTS, run, show)


if __name__ == "__main__":
    main()
