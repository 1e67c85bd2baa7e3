"""What replays disclose with fresh words and with keyed ones, and what keyed words cost.

Prints three markdown tables: the averaging attack (2,000 labels, each released r times), labels
that change under the same version, and rows a second for every kind of id (a million rows, one
thread, medians of 7 runs with the range).
"""

import os
import statistics
import time
import uuid

import numpy as np
import pyarrow as pa
from labeldp_runtime import Key, Randomizer
from labeldp_runtime.columns import read_ids
from labeldp_runtime.ids import refuse_duplicates
from labeldp_runtime.randomizer import CHUNK

from tests.fixtures.compiled import compile_text, integer_spec

PEOPLE, REPLAYS = 2_000, (1, 2, 4, 16, 64, 256, 1024)
ROWS, RUNS = 1_000_000, 7


def compiled(mechanism, last, epsilon):
    return compile_text(integer_spec(last + 1, mechanism, epsilon=epsilon)).model


def most_frequent(outputs, last):
    """The guess of somebody who counts: the most frequent output of each person."""
    counts = np.stack([(outputs == value).sum(axis=0) for value in range(last + 1)])
    return counts.argmax(axis=0)


def nearest_mean(outputs, last):
    """The guess of somebody who averages: the mean output, rounded into the domain."""
    return np.clip(np.rint(outputs.mean(axis=0)), 0, last).astype(int)


def attack():
    cases = [
        ("randomized_response", 9, 1, most_frequent),
        ("optimal_unbiased", 9, 1, nearest_mean),
    ]
    print("| replays r | ε spent, fresh | RR, fresh | RR, keyed | unbiased, fresh | keyed |")
    print("|---:|---:|---:|---:|---:|---:|")
    columns = []
    for mechanism, last, epsilon, guess in cases:
        model = compiled(mechanism, last, epsilon)
        labels = np.random.default_rng(0).integers(0, last + 1, PEOPLE)
        ids = np.arange(PEOPLE)
        fresh = Randomizer(model)
        keyed = Randomizer(model, key=Key(os.urandom(32)), context="y")
        for randomize, options in ((fresh, {}), (keyed, {"ids": ids})):
            outputs = np.stack([randomize(labels, **options) for _ in range(max(REPLAYS))])
            hits = [(guess(outputs[:r], last) == labels).mean() for r in REPLAYS]
            columns.append([f"{100 * share:.1f} %" for share in hits])
    for row, replays in enumerate(REPLAYS):
        print(f"| {replays:,} | {replays:,} | {' | '.join(c[row] for c in columns)} |")


def changes():
    print("\n| labels that changed | outputs that changed |")
    print("|---|---:|")
    randomizer = Randomizer(
        compiled("randomized_response", 9, 1), key=Key(os.urandom(32)), context="y"
    )
    generator, ids = np.random.default_rng(0), np.arange(100_000)
    before = generator.integers(0, 10, len(ids))
    changed = generator.random(len(ids)) < 0.5
    after = np.where(changed, (before + generator.integers(1, 10, len(ids))) % 10, before)
    first = randomizer(before, ids=ids)
    for version, words in ((0, "same version"), (1, "new version")):
        differs = randomizer(after, ids=ids, version=version) != first
        print(f"| none of these ({words}) | {100 * differs[~changed].mean():.1f} % |")
        print(f"| all of these ({words}) | {100 * differs[changed].mean():.1f} % |")


def rate(function):
    """Median and range of million rows a second."""
    function()
    rates = []
    for _ in range(RUNS):
        start = time.perf_counter()
        function()
        rates.append(ROWS / (time.perf_counter() - start) / 1e6)
    return f"{statistics.median(rates):.1f} ({min(rates):.1f}–{max(rates):.1f})"


def speed():
    print("\n| ids | words | words, from the column | search for duplicates | whole call |")
    print("|---|---|---|---|---|")
    shuffled = np.random.default_rng(0).permutation(ROWS) + 10**12
    names = [f"user-{i}" for i in shuffled.tolist()]
    mixed = ["x" * (i % 20) + str(i) for i in shuffled.tolist()]
    cases = {
        "int64, increasing": np.sort(shuffled),
        "int64, shuffled": shuffled,
        "uint64, shuffled": shuffled.astype(np.uint64),
        "UUID, 16 bytes, Arrow": pa.array([os.urandom(16) for _ in range(ROWS)], pa.binary(16)),
        "text of 18 bytes, Arrow": pa.array(names),
        "text of 13 to 32 bytes, Arrow": pa.array(mixed),
        "UUID as text, Arrow": pa.array([str(uuid.uuid4()) for _ in range(ROWS)]),
        "text of 13 to 32 bytes, list": mixed,
    }
    randomizer = Randomizer(compiled("rr_on_bins", 51, 1), key=Key(os.urandom(32)), context="y")
    labels = np.random.default_rng(1).integers(0, 52, ROWS)

    canonical = randomizer._canonical

    def words(ids):
        for start in range(0, ROWS, CHUNK):
            part = labels[start : start + CHUNK]
            randomizer._keyed(ids[start : start + CHUNK], canonical({"label": part}), 0)

    for name, column in cases.items():
        ids = read_ids(column)
        cells = [
            rate(lambda ids=ids: words(ids)),
            rate(lambda column=column: words(read_ids(column))),
            rate(lambda ids=ids: refuse_duplicates(ids)),
            rate(lambda column=column: randomizer(labels, ids=column)),
        ]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    attack()
    changes()
    speed()
