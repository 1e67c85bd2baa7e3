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
from the operating system, so a repetition gives other figures. All representations of a data set
are learned together, each part once, and stay in ``--folder``. ``seconds_learn`` is the time of all
parts that a representation is made from; ``gigabytes`` is the most memory of the process that
learned them all. ``cpu_seconds`` are those of the processor; on a busy machine, only they mean
something. There, set OPENBLAS_NUM_THREADS=1: threads that wait for each other can take 20 times
as long.

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
from labeldp_trainer.methods import open_method
from labeldp_trainer.representations import PartsLearner, represented, save
from labeldp_trainer.training import read
from training_studies.features import PART
from training_studies.hardware import hardware
from training_studies.run_or_show import run_or_show
from training_studies.sets import KINDS, RESPONSE, SETS, SPEC

from labeldp_compile import compile_spec

RESULTS = Path(__file__).parent / "results" / "images_geometry.jsonl"
DELTA = "1e-5"
EPSILONS = ("0.05", "0.1", "0.2", "0.5", "1", "2", "4", "8")
TASKS = ("mnist", "fashion-mnist")
GRAPH = "{kind: graph, of: [patches, scattering]%s}"
JOINED = "{kind: joined, of: [patches, {kind: graph, of: [patches, scattering]}]%s}"
TESTED = ", unlabelled: [test]"
INDUCTIVE = {
    "patches": "{kind: patches}",
    "scattering": "{kind: scattering}",
    "graph": GRAPH % "",
    "joined": JOINED % "",
}
TRANSDUCTIVE = {
    "graph, with test features": GRAPH % TESTED,
    "joined, with test features": JOINED % TESTED,
}
REPRESENTATIONS = INDUCTIVE | TRANSDUCTIVE
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


class Timed(PartsLearner):
    """Learns each part once for several representations, and takes the time of each."""

    def __init__(self, *given):
        """Without any part."""
        super().__init__(*given)
        self.seconds = {}

    def learnt(self, config, shape):
        """The same, whichever rows the outer representation is learned from."""
        config = config.model_copy(update={"unlabelled": ()})
        key = config.model_dump_json()
        if key in self.seconds:
            return super().learnt(config, shape)
        for one in config.members:
            self.learnt(one, shape)
        began = clocks()
        found = super().learnt(config, shape)
        self.seconds[key] = [now - then for now, then in zip(clocks(), began, strict=True)]
        return found

    def spent(self, config):
        """Seconds, and seconds of the processor, of all parts of a representation."""
        parts, todo = {}, [config.model_copy(update={"unlabelled": ()})]
        while todo:
            one = todo.pop()
            parts[key] = self.seconds[key := one.model_dump_json()]
            todo += one.members
        return [round(sum(each), 1) for each in zip(*parts.values(), strict=True)]


def clocks():
    """Of the wall and of the processor."""
    return time.monotonic(), time.process_time()


def learn(directory, data, representations, pipe):
    """Learn all, each into a run folder of its own; send what they took."""
    shared, spent = [], {}

    def learner(*given):
        shared.append(Timed(*given)) if not shared else None
        return shared[0]

    for name, text in representations.items():
        config = CONFIG.format(data=data, representation=text, method="{kind: none}")
        loaded = parse_config(config, "config", directory)
        builder = open_method(loaded, None, None)
        original = read(loaded, builder, (loaded.config.data.label,))[0]
        folder = directory / folder_name(name)
        dataset, representation = represented(loaded, original, folder, learner=learner)
        folder.mkdir(exist_ok=True)
        save(folder, representation, dataset)
        spent[name] = shared[0].spent(loaded.config.representation)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    pipe.send({name: [*took, round(peak, 2)] for name, took in spent.items()})


def folder_name(representation):
    """Of a run that holds the representation."""
    return representation.replace(", ", "-").replace(" ", "-")


def learn_first(directory, data, representations):
    """In a process of its own, as the most memory is that of a process; once for a folder."""
    facts = directory / f"{folder_name(list(representations)[-1])}.json"
    if facts.exists():
        return json.loads(facts.read_text())
    directory.mkdir(exist_ok=True)
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    given = (directory, data, representations, sender)
    process = context.Process(target=learn, args=given)
    process.start()
    sender.close()
    try:
        found = receiver.recv()
    except EOFError:
        sys.exit("a representation could not be learned; see above")
    finally:
        process.join()
    facts.write_text(json.dumps(found))
    return found


def run(options, directory):
    """All cells that are not there yet."""
    results = Results(options.results)
    directory.mkdir(exist_ok=True)
    for task, representation, method, epsilon, seed in cells(options):
        key = (task, representation, method, epsilon, seed, options.rows)
        if key in results.found:
            continue
        folder = options.data.absolute() / task
        train_part, test_part = (PART.format(folder, part) for part in ("train", "t10k"))
        rows = "" if options.rows is None else f", rows: {options.rows}"
        data = f"{{kind: idx, train: {train_part}, test: {test_part}, classes: 10{rows}}}"
        place = directory / f"{task}-{options.rows or 'all'}"
        alike = INDUCTIVE if representation in INDUCTIVE else TRANSDUCTIVE
        learnt = learn_first(place, data, alike)[representation]
        if method in KINDS:
            spec = place / "spec.yaml"
            text = SPEC.format(last=9, epsilon=epsilon, mechanism=KINDS[method])
            spec.write_text(text, encoding="utf-8")
            compile_spec(spec).write(place, overwrite=True)
        text = CONFIG.format(
            data=data,
            representation=REPRESENTATIONS[representation],
            method=METHODS[method].format(epsilon=epsilon),
        )
        shutil.rmtree(place / "run", ignore_errors=True)
        began, spent = clocks()
        found = train(parse_config(text, "config", place), place / "run").metrics
        line = dict(zip(KEYS, key, strict=True))
        line |= {
            "accuracy": round(100 * float(found["test_accuracy"]), 2),
            "log_loss": round(float(found["test_loss"]), 4),
            "seconds": round(time.monotonic() - began, 1),
            "cpu_seconds": round(time.process_time() - spent, 1),
            "seconds_learn": learnt[0],
            "cpu_seconds_learn": learnt[1],
            "gigabytes": learnt[2],
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
