"""Representations of images for private labels: patches, wavelets, a graph of images, and joined.

    LABELDP_DATA=folder python benchmarks/images_geometry.py --seeds 5
    python benchmarks/images_geometry.py --show

MNIST and Fashion-MNIST, all training rows (or ``--rows``), test accuracy and log loss on the test
file. Representations learn from training features alone; ``with test features`` says that the test
features are part of the graph, which no other line sees.

* ``one release``: (ε, δ) with δ = 1e-5, for one label; the default softmax head, or ridge.
* ``sets`` and ``randomized response``: pure ε, private labels in closed form.
* ``no privacy``: true labels in closed form. One run: no seed changes it.

No run chooses anything on test rows. All constants were fixed on training rows that were held out.
One representation (seed 0) serves all runs: a seed draws noise and private labels anew, which come
from the operating system, so a repetition gives other figures. ``seconds_learn`` is the time for
the representation, where it was learned; ``gigabytes`` is the most memory of that process.

Every finished run is a line of ``--results``, and is not run again: interrupt and go on at will.
"""

import argparse
import json
import multiprocessing
import resource
import shutil
import sys
import time
from pathlib import Path
from statistics import mean, stdev

from labeldp_trainer import parse_config, train
from training_studies.features import PART
from training_studies.hardware import hardware
from training_studies.run_or_show import run_or_show
from training_studies.sets import KINDS, RESPONSE, SETS, SPEC

from labeldp_compile.pipeline import compile_spec

RESULTS = Path(__file__).parent / "results" / "images_geometry.jsonl"
DELTA = "1e-5"
EPSILONS = ("0.05", "0.1", "0.2", "0.5", "1", "2", "4", "8")
TASKS = ("mnist", "fashion-mnist")
GRAPH = "{kind: graph, of: [patches, scattering]%s}"
JOINED = "{kind: joined, of: [patches, {kind: graph, of: [patches, scattering]}]%s}"
TESTED = ", unlabelled: [test]"
REPRESENTATIONS = {
    "patches": "{kind: patches, seed: 0}",
    "scattering": "{kind: scattering, seed: 0}",
    "graph": GRAPH % ", seed: 0",
    "joined": JOINED % ", seed: 0",
    "graph, with test features": GRAPH % (", seed: 0" + TESTED),
    "joined, with test features": JOINED % (", seed: 0" + TESTED),
}
RELEASE, RIDGE, NONE = "one release", "one release, ridge", "no privacy"
METHODS = {
    RELEASE: f"{{{{kind: one_release, epsilon: {{epsilon}}, delta: {DELTA}}}}}",
    RIDGE: f"{{{{kind: one_release, epsilon: {{epsilon}}, delta: {DELTA}, head: ridge}}}}",
    SETS: "{{kind: privatized, artifact: artifact.onnx}}",
    RESPONSE: "{{kind: privatized, artifact: artifact.onnx}}",
    NONE: "{{kind: none}}",
}
CONFIG = """
version: 1
name: images
data: {data}
representation: {representation}
loss: cross_entropy
method: {method}
"""
KEYS = ("task", "representation", "method", "epsilon", "seed", "rows")


class Results:
    """The lines of finished runs."""

    def __init__(self, path):
        """Read what has been run before."""
        self.path, self.found = path, {}
        if path.exists():
            for text in path.read_text(encoding="utf-8").splitlines():
                line = json.loads(text)
                self.found[tuple(line[key] for key in KEYS)] = line

    def add(self, line):
        """Append a line."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
        self.found[tuple(line[key] for key in KEYS)] = line


def cells(options):
    """(seed, task, representation, method, ε): first one seed of everything."""
    for seed in range(options.seeds):
        for task in options.tasks:
            for representation in options.representations:
                for method in options.methods:
                    if method == NONE and seed:
                        continue
                    for epsilon in (None,) if method == NONE else options.epsilons:
                        yield task, representation, method, epsilon, seed


def learned(text, directory, output, pipe):
    """Time and memory of a run that learns a representation; the run stays for the others."""
    began = time.monotonic()
    train(parse_config(text, "config", directory), output)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    pipe.send((round(time.monotonic() - began, 1), round(peak, 2)))


def learn_first(text, directory, output):
    """In a process of its own, as the most memory is that of a process."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=learned, args=(text, directory, output, sender))
    process.start()
    sender.close()
    try:
        return receiver.recv()
    except EOFError:
        sys.exit("a representation could not be learned; see above")
    finally:
        process.join()


def run(options, directory):
    """All cells that are not there yet. Representations stay while their runs follow each other."""
    results, learnt = Results(options.results), {}
    for task, representation, method, epsilon, seed in cells(options):
        key = (task, representation, method, epsilon, seed, options.rows)
        if key in results.found:
            continue
        folder = options.data.absolute() / task
        train_part, test_part = (PART.format(folder, part) for part in ("train", "t10k"))
        rows = "" if options.rows is None else f", rows: {options.rows}"
        data = f"{{kind: idx, train: {train_part}, test: {test_part}, classes: 10{rows}}}"
        known = {"data": data, "representation": REPRESENTATIONS[representation]}
        place = directory / f"{task}-{representation}".replace(", ", "-").replace(" ", "-")
        if place not in learnt:
            place.mkdir(exist_ok=True)
            text = CONFIG.format(**known, method="{kind: one_release, epsilon: 8, delta: 1e-5}")
            shutil.rmtree(place / "learned", ignore_errors=True)
            learnt[place] = learn_first(text, directory, place / "learned")
        if method in KINDS:
            spec = directory / "spec.yaml"
            text = SPEC.format(last=9, epsilon=epsilon, mechanism=KINDS[method])
            spec.write_text(text, encoding="utf-8")
            compile_spec(spec).write(directory, overwrite=True)
        text = CONFIG.format(**known, method=METHODS[method].format(epsilon=epsilon))
        began = time.monotonic()
        found = train(parse_config(text, "config", directory), place / "run").metrics
        shutil.rmtree(place / "run")
        line = dict(zip(KEYS, key, strict=True))
        line |= {
            "accuracy": round(100 * float(found["test_accuracy"]), 2),
            "log_loss": round(float(found["test_loss"]), 4),
            "seconds": round(time.monotonic() - began, 1),
            "seconds_learn": learnt[place][0],
            "gigabytes": learnt[place][1],
            "hardware": hardware(),
        }
        results.add(line)
        print(f"  {json.dumps(line, ensure_ascii=False)}", file=sys.stderr, flush=True)


def show(options):
    """Markdown tables of what is there."""
    found = Results(options.results).found.values()
    for task in options.tasks:
        for measure, better in (("accuracy", "larger"), ("log_loss", "smaller")):
            print(f"\n{task}: {measure} ({better} is better), mean ± standard error (seeds):\n")
            print("| representation | method | " + " | ".join(options.epsilons) + " |")
            print("|---|---" + "|---:" * len(options.epsilons) + "|")
            for representation in options.representations:
                for method in options.methods:
                    cells_ = []
                    for epsilon in options.epsilons:
                        wanted = (task, representation, method)
                        wanted += (None if method == NONE else epsilon,)
                        cells_.append(
                            [
                                line[measure]
                                for line in found
                                if tuple(line[key] for key in KEYS[:4]) == wanted
                                and line["rows"] == options.rows
                            ]
                        )
                    if any(cells_):
                        print(
                            f"| {representation} | {method} | "
                            + " | ".join(map(cell, cells_))
                            + " |"
                        )


def cell(values):
    """Mean and standard error."""
    if not values:
        return "–"
    if len(values) == 1:
        return f"{values[0]:.4g} (1)"
    return f"{mean(values):.4g} ± {stdev(values) / len(values) ** 0.5:.2g} ({len(values)})"


def main():
    """Run or show."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, help="of the training file; default: all")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument("--epsilons", nargs="+", default=EPSILONS)
    parser.add_argument(
        "--representations", nargs="+", choices=REPRESENTATIONS, default=tuple(REPRESENTATIONS)
    )
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=tuple(METHODS))
    run_or_show(parser, RESULTS, run, show)


if __name__ == "__main__":
    main()
