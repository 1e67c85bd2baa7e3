"""Labels a second with fresh words in every language: Python, C++, Node and headless Chromium.

One thread each, a million labels a call; medians of 15 calls with the range; prints a markdown
table. Languages that are not installed (see tests/languages/install) are left out.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from labeldp_runtime import Randomizer

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.other_languages import harness  # noqa: E402
from benchmarks.shared.compiled import compile_text  # noqa: E402

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


def cell(seconds):
    """Median and range of million labels a second."""
    rates = [LABELS / s / 1e6 for s in seconds[1:]]
    return f"{statistics.median(rates):.1f} ({min(rates):.1f}–{max(rates):.1f})"


def with_python(path, labels):
    randomizer, seconds = Randomizer.load(path), []
    for _ in range(RUNS):
        start = time.perf_counter()
        randomizer(labels)
        seconds.append(time.perf_counter() - start)
    return seconds


def main():
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
        for language in ("cpp", "node", "web"):
            if reason := harness.missing(language):
                print(f"{language} is left out: {reason}", file=sys.stderr)
                continue
            answers, _ = harness.answers(language, cases, directory)
            columns[language] = [answer["seconds"] for answer in answers]
    titles = {"python": "Python", "cpp": "C++", "node": "Node", "web": "Chromium"}
    print("million labels a second with fresh words: median (least–most)\n")
    print(f"| labels | {' | '.join(titles[language] for language in columns)} |")
    print("|---" * (len(columns) + 1) + "|")
    for i, (name, *_) in enumerate(rows):
        print(f"| {name} | {' | '.join(cell(seconds[i]) for seconds in columns.values())} |")


if __name__ == "__main__":
    main()
