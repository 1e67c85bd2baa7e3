"""Labels a second with fresh words in every language: Python, C++, Node and headless Chromium.

One thread each, a million labels a call; medians of 15 calls with the range; prints markdown
tables. Languages that are not installed (see tests/languages/install) are left out. ``--groups``
compares 44 tables by group with one for all, in rounds that alternate.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from labeldp_runtime import Randomizer

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from labeldp_verify.forms import GroupColumn, Groups  # noqa: E402

from benchmarks import groups as by_group  # noqa: E402
from labeldp_compile.build.pipeline import assemble  # noqa: E402
from labeldp_compile.prior.obtain import estimate_prior  # noqa: E402
from tests.fixtures.compiled import compile_text  # noqa: E402
from tests.languages import harness  # noqa: E402

SPEC = """
version: 1
name: example
label: {{column: y, domain: {domain}}}
loss: squared
privacy: {{epsilon: 1}}
prior: {{kind: uniform}}
mechanism: {{kind: rr_on_bins}}
"""
INTEGERS = "{{kind: integer, min: 0, max: {last}}}"
REALS = "{{kind: real, min: 0.0, max: {last}.0, points: {k}, rounding: unbiased}}"
LABELS, RUNS, DISTINCT = 1_000_000, 16, 1000  # the first run warms up
TITLES = {"python": "Python", "cpp": "C++", "node": "Node", "web": "Chromium"}

GROUPED = [("randomized_response", 52, 1), ("rr_on_bins", 52, 2)]
ROUNDS, CALLS, CALLS_OF_TEXT = 5, 9, 4  # the first two calls of a round warm up
WORK = tuple(f"class of worker {i}" for i in range(11))
AGES = GroupColumn("age", bands=(18.0, 25.0, 55.0))
# The same 44 tables; what differs is where their groups come from.
SHAPES = {
    "numbers 0 … 43": Groups.of(range(44)),
    "other integers": Groups.of(range(3, 311, 7)),
    "4 bands × 11 integers": Groups.each(AGES, GroupColumn("work", tuple(range(3, 80, 7)))),
    "4 bands × 11 texts": Groups.each(AGES, GroupColumn("work", WORK)),
}


def cell(seconds):
    """Median and range of million labels a second."""
    rates = [LABELS / s / 1e6 for s in seconds[1:]]
    return f"{statistics.median(rates):.1f} ({min(rates):.1f}–{max(rates):.1f})"


def with_python(path, labels, runs=RUNS, **options):
    randomizer, seconds = Randomizer.load(path), []
    for _ in range(runs):
        start = time.perf_counter()
        randomizer(labels, **options)
        seconds.append(time.perf_counter() - start)
    return seconds


def answers(cases, directory):
    """The answers of the languages that are there."""
    found = {}
    for language in ("cpp", "node", "web"):
        if reason := harness.missing(language):
            print(f"{language} is left out: {reason}", file=sys.stderr)
        else:
            found[language] = harness.answers(language, cases, directory)[0]
    return found


def plain():
    rows = [
        (f"{name}, k = {k}", SPEC.format(domain=domain.format(last=k - 1, k=k)), k, kind)
        for name, domain, kind in [
            ("integers, one word", INTEGERS, "int64"),
            ("reals, two words", REALS, "float64"),
        ]
        for k in (52, 401)
    ]
    generator = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        directory, cases, columns = Path(folder), [], {"python": []}
        for i, (_, text, k, kind) in enumerate(rows):
            path = directory / f"{i}.onnx"
            path.write_bytes(compile_text(text).model)
            if i == 0:
                (directory / harness.DEMO_ARTIFACT).write_bytes(path.read_bytes())
            integers, reals = generator.integers(0, k, DISTINCT), generator.uniform(0, k, DISTINCT)
            labels = integers if kind == "int64" else reals
            case = {"file": path.name, "type": kind, "labels": [str(v) for v in labels.tolist()]}
            cases.append(case | {"repeat": LABELS // DISTINCT, "calls": RUNS, "timed": True})
            columns["python"].append(with_python(path, np.tile(labels, LABELS // DISTINCT)))
        for language, given in answers(cases, directory).items():
            columns[language] = [answer["seconds"] for answer in given]
    print("million labels a second with fresh words: median (least–most)\n")
    print(f"| labels | {' | '.join(TITLES[language] for language in columns)} |")
    print("|---" * (len(columns) + 1) + "|")
    for i, (name, *_) in enumerate(rows):
        print(f"| {name} | {' | '.join(cell(seconds[i]) for seconds in columns.values())} |")


def columns_of(groups, generator):
    """Rows of random groups: as the drivers read them, and [n] as Python takes them."""
    stated, columns = {}, {}
    for column in groups.columns:
        if column.bands:
            kind, values = "float64", generator.integers(0, 90, DISTINCT).astype(float)
        else:
            kind = "string" if column.is_text else "int64"
            listed = np.array(column.values, dtype=object if column.is_text else np.int64)
            values = listed[generator.integers(0, column.size, DISTINCT)]
        stated[column.name] = {"type": kind, "values": [str(v) for v in values.tolist()]}
        columns[column.name] = np.tile(values, LABELS // DISTINCT)
    return stated, columns


def ratio_cell(seconds, plain):
    """Median of million labels a second; and of its ratios to one table in each round, with range.

    Both are [rounds][calls], in seconds.
    """
    rate = LABELS / statistics.median(s for calls in seconds for s in calls[2:]) / 1e6
    ratios = sorted(
        statistics.median(before[2:]) / statistics.median(calls[2:])
        for calls, before in zip(seconds, plain, strict=True)
    )
    middle = statistics.median(ratios)
    return f"{rate:.1f}: {middle:.2f} ({ratios[0]:.2f}–{ratios[-1]:.2f})"


def grouped():
    generator = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        directory, names, cases, calls = Path(folder), [], [], []
        for mechanism, k, epsilon in GROUPED:
            spec = by_group.spec_of(mechanism, k, epsilon)
            weights = list(by_group.priors(k, generator))
            models = {"one table": assemble(spec, estimate_prior(spec, None), "0" * 64).model}
            for name, groups in SHAPES.items():
                models[name] = by_group.grouped(spec, weights, groups).model
            labels = generator.integers(0, k, DISTINCT)
            for name, model in models.items():
                path = directory / f"{len(cases)}.onnx"
                path.write_bytes(model)
                case = {"file": path.name, "type": "int64", "labels": [str(v) for v in labels]}
                runs = CALLS_OF_TEXT if "texts" in name else CALLS
                case |= {"repeat": LABELS // DISTINCT, "calls": runs, "timed": True}
                options = {}
                if name in SHAPES:
                    case["columns"], columns = columns_of(SHAPES[name], generator)
                    options["columns"] = columns
                names.append((f"{mechanism}, k = {k}, ε = {epsilon}", name))
                cases.append(case)
                calls.append((path, np.tile(labels, LABELS // DISTINCT), runs, options))
        demo = compile_text(SPEC.format(domain=INTEGERS.format(last=51, k=52))).model
        (directory / harness.DEMO_ARTIFACT).write_bytes(demo)
        found = {"python": []}
        for _ in range(ROUNDS):
            for path, labels, runs, options in calls:
                found["python"].append(with_python(path, labels, runs, **options))
        for language, given in answers(cases * ROUNDS, directory).items():
            found[language] = [answer["seconds"] for answer in given]
    print("million labels a second with fresh words: median, and its ratio to one table\n")
    print(f"| randomizer | groups | {' | '.join(TITLES[language] for language in found)} |")
    print("|---" * (len(found) + 2) + "|")
    for i, (randomizer, name) in enumerate(names):
        first = i - i % (len(SHAPES) + 1)
        cells = [
            ratio_cell(seconds[i :: len(cases)], seconds[first :: len(cases)])
            for seconds in found.values()
        ]
        print(f"| {randomizer} | {name} | {' | '.join(cells)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--groups", action="store_true", help="tables by group, and one for all")
    if parser.parse_args().groups:
        grouped()
    else:
        plain()


if __name__ == "__main__":
    main()
