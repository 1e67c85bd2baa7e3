"""Labels a second through an artifact, beside other ways to draw the same labels, in one run.

One thread unless it says otherwise; medians of several runs with the range; prints markdown. What
is compared runs in turns, and a ratio is the median of those of all rounds, with its quartiles.
``--cpu`` counts the processor's time instead of the clock's, for a machine that is shared. numpy's
line draws with PCG64, which is not secure, and searches cumulative counts: it is here for scale.
OpenDP and diffprivlib draw one label a call; diffprivlib is left out where it cannot be imported.
"""

import argparse
import json
import ssl
import statistics
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import opendp.prelude as dp
import pandas as pd
import polars as pl
import pyarrow as pa
from labeldp_runtime import Randomizer
from labeldp_runtime.entropy import random_words

from tests.fixtures.compiled import compile_text, integer_spec

try:
    import diffprivlib.mechanisms as diffprivlib
except ImportError:
    diffprivlib = None

CASES = [
    ("rr_on_bins", 52, 1),
    ("rr_on_bins", 401, 1),
    ("randomized_response", 52, 1),
    ("randomized_response", 401, 4),
    ("optimal_unbiased", 52, 1),
    ("exponential", 52, 1),
    ("exponential", 401, 1),
    ("laplace", 52, 1),
]
TEXT_SPEC = """
version: 1
name: benchmark
label:
  column: y
  domain: {{kind: categorical, values: {values}}}
  out_of_domain: {{default: {one}}}
loss: zero_one
privacy: {{epsilon: 1}}
prior: {{kind: uniform}}
mechanism: {{kind: randomized_response}}
"""
BATCH, RUNS, FEW = 65_536, 101, 2_000
CATEGORIES, TEXT_RUNS, WORD_RUNS = 52, 21, 9


CLOCK = {"now": time.perf_counter}


def seconds(function, runs):
    return list(in_turns([function], runs)[0])


def in_turns(functions, runs, clock=None):
    """Seconds of each function, [runs] each, one after the other in every round."""
    clock = clock or CLOCK["now"]
    for function in functions:
        function()
    rounds = []
    for _ in range(runs):
        times = []
        for function in functions:
            start = clock()
            function()
            times.append(clock() - start)
        rounds.append(times)
    return list(zip(*rounds, strict=True))


def as_rate(times, labels=BATCH):
    """Median and range of million labels a second."""
    rates = [labels / t / 1e6 for t in times]
    return f"{statistics.median(rates):.4g} ({min(rates):.3g}–{max(rates):.3g})"


def as_ratio(times, anchor):
    """Median and quartiles of how many times as fast as the anchor, round by round."""
    ratios = sorted(b / a for a, b in zip(times, anchor, strict=True))
    low, middle, high = statistics.quantiles(ratios, n=4)
    return f"{middle:.2f} ({low:.2f}–{high:.2f})"


def rates(function, labels=BATCH, runs=RUNS):
    """Median and range of million labels a second."""
    return as_rate(seconds(function, runs), labels)


def build(mechanism, k, epsilon):
    return compile_text(integer_spec(k, mechanism, epsilon=epsilon))


def with_numpy(randomizer, labels, generator):
    """The same distribution by numpy's searchsorted, for a window."""
    r = randomizer
    ends = np.array(r.boundaries()[1:])
    owners, values = np.array(r.segment_outputs()), np.array(r.values)
    offsets = np.array(r.offsets)

    def draw():
        u = generator.integers(0, r.words, len(labels))
        t = np.where(u >= r.base_total, u + offsets[labels], u)
        return values[owners[np.searchsorted(ends, t, side="right")]]

    return draw


def graphs(generator):
    print("| randomizer | graph | with fresh words | words | numpy searchsorted |")
    print("|---|---|---|---|---|")
    for mechanism, k, epsilon in CASES:
        artifact = build(mechanism, k, epsilon)
        randomizer = Randomizer(artifact.model)
        labels = generator.integers(0, k, BATCH)
        shape = (BATCH, 2)[: artifact.randomizer.words_per_label]
        words = random_words(*shape)
        session = randomizer._session
        feed = {"label": labels, "entropy": words}
        graph, call, words_alone = in_turns(
            [
                lambda s=session, f=feed: s.run(None, f),
                lambda r=randomizer, y=labels: r(y),
                lambda s=shape: random_words(*s),
            ],
            RUNS,
        )
        cells = [as_rate(graph), as_rate(call), as_rate(words_alone), "–"]
        if artifact.randomizer.form == "window":
            cells[3] = rates(with_numpy(artifact.randomizer, labels, generator))
        print(f"| {mechanism}, k = {k}, ε = {epsilon} | {' | '.join(cells)} |", flush=True)


def texts(generator):
    """Columns of text, beside integers: randomized response on 52 categories, ε = 1."""
    names = [f"category {i}" for i in range(CATEGORIES)]

    def of(values):
        listed = json.dumps(values)
        text = TEXT_SPEC.format(values=listed, one=json.dumps(values[0]))
        return Randomizer(compile_text(text).model)

    of_text, of_codes = of(names), of(list(range(CATEGORIES)))
    codes = generator.integers(0, CATEGORIES, BATCH)
    text = np.array(names, dtype=object)[codes]
    series = pd.Series(text)
    columns = {
        "integers, numpy": (of_codes, codes),
        "integers, Arrow": (of_codes, pa.array(codes)),
        "dictionary, Arrow": (of_text, pa.array(text).dictionary_encode()),
        "dictionary, pandas Categorical": (of_text, series.astype("category")),
        "dictionary, Polars Categorical": (of_text, pl.Series(text.tolist(), dtype=pl.Categorical)),
        "text, Arrow": (of_text, pa.array(text)),
        "text, pandas": (of_text, series.astype("str")),
        "text, Polars": (of_text, pl.Series(text.tolist())),
        "text, numpy objects": (of_text, text),
        "text, list": (of_text, text.tolist()),
    }
    calls = [lambda r=r, y=y: r(y) for r, y in columns.values()]
    times = dict(zip(columns, in_turns(calls, TEXT_RUNS), strict=True))
    anchor = times["integers, numpy"]
    print("\n| 52 categories | million labels a second | as fast as integers |\n|---|---|---|")
    for name, own in times.items():
        print(f"| {name} | {as_rate(own)} | {as_ratio(own, anchor)} |", flush=True)


def words_in_threads():
    """Words a second of one thread and of two, beside Python's own call, which holds the lock."""

    def drawn_by(draw, workers):
        def work():
            for _ in range(100):
                draw()

        def run():
            own = [threading.Thread(target=work) for _ in range(workers)]
            for worker in own:
                worker.start()
            for worker in own:
                worker.join()

        return run

    count = 1 << 15
    ways = {
        "random_words": lambda: random_words(count),
        "ssl.RAND_bytes": lambda: ssl.RAND_bytes(8 * count),
    }
    runs = [drawn_by(draw, workers) for draw in ways.values() for workers in (1, 2)]
    times = in_turns(runs, WORD_RUNS, time.perf_counter)
    print("\n| million words a second | one thread | two | two beside one |\n|---|---|---|---|")
    for i, name in enumerate(ways):
        one, two = times[2 * i], times[2 * i + 1]
        halved = [t / 2 for t in two]
        cells = [as_rate(one, 100 * count), as_rate(halved, 100 * count), as_ratio(halved, one)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def others(generator):
    """Randomized response on 52 labels, by libraries that draw one label a call."""
    k, epsilon = 52, 1.0
    labels = generator.integers(0, k, FEW)
    randomizer = Randomizer(build("randomized_response", k, 1).model)
    many = generator.integers(0, k, BATCH)
    keep = np.exp(epsilon) / (np.exp(epsilon) + k - 1)
    with_opendp = dp.m.make_randomized_response(list(range(k)), keep)
    rows = {
        "labeldp, 65,536 a call": rates(lambda: randomizer(many)),
        "labeldp, one a call": rates(
            lambda: [randomizer(labels[i : i + 1]) for i in range(FEW)], FEW, 7
        ),
        "OpenDP, one a call": rates(lambda: [with_opendp(int(y)) for y in labels], FEW, 7),
    }
    if diffprivlib is not None:
        rivals = [[str(a), str(b), 1] for a in range(k) for b in range(a)]
        mechanism = diffprivlib.ExponentialCategorical(epsilon=2 * epsilon, utility_list=rivals)
        texts = [str(y) for y in labels]
        rows["diffprivlib (exponential, categorical), one a call"] = rates(
            lambda: [mechanism.randomise(y) for y in texts], FEW, 7
        )
    print("\n| randomized response, k = 52, ε = 1 | million labels a second |\n|---|---|")
    for name, cell in rows.items():
        print(f"| {name} | {cell} |", flush=True)
    one = labels[:1]
    times = [t * 1e6 for t in seconds(lambda: randomizer(one), 2001)]
    quartiles = statistics.quantiles(times, n=4)
    print(
        f"\nA batch of one: {statistics.median(times):.1f} µs "
        f"(quartiles {quartiles[0]:.1f}–{quartiles[2]:.1f})."
    )


LOADED = []  # the randomizer of this process


def load(path):
    LOADED.append(Randomizer.load(path))


def work(size, calls):
    labels = np.arange(size) % 52
    for _ in range(calls):
        LOADED[0](labels)


def workers():
    """Two threads, and two processes, beside one thread: how many times its labels a second."""
    print("\n| labels a call | two threads | two processes |\n|---:|---|---|")
    with TemporaryDirectory() as folder:
        path = build("randomized_response", 52, 1).write(Path(folder))
        load(path)
        spawn = {"mp_context": get_context("spawn"), "initializer": load, "initargs": (path,)}
        with ThreadPoolExecutor(2) as threads, ProcessPoolExecutor(2, **spawn) as processes:
            for size, calls in ((1, 1_000), (1_000, 500), (8_192, 150), (BATCH, 25)):

                def both(pool, task=(work, size, calls)):
                    wait([pool.submit(*task), pool.submit(*task)])

                runs = [lambda s=size, c=calls: work(s, c), lambda: both(threads)]
                one, *pairs = in_turns([*runs, lambda: both(processes)], 15, time.perf_counter)
                cells = [as_ratio([t / 2 for t in pair], one) for pair in pairs]
                print(f"| {size:,} | {' | '.join(cells)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cpu", action="store_true", help="count the processor's time")
    arguments = parser.parse_args()
    if arguments.cpu:
        CLOCK["now"] = time.process_time
    generator = np.random.default_rng(0)
    dp.enable_features("contrib")
    print("million labels a second: median (least–most)\n")
    graphs(generator)
    texts(generator)
    words_in_threads()
    others(generator)
    workers()


if __name__ == "__main__":
    main()
