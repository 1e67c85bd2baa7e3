"""Fuzzed specs, pairs of batches that differ in one label, and CSV with faults.

    python benchmarks/fuzz.py [specs] [pairs] [csv] [--specs 10000] [--pairs 100000]
        [--file-pairs 2000] [--csv 10000] [--seed 1]

Specs: no traceback, no hang, one message. Pairs: with the same words
every other row is the same, and so are exit code, messages and schema. CSV: no byte of a label is
in the output. Prints what became of the
cases. Exit code 1 if something happened that must not; the first case of each kind is shown, and
kept in the folder ``--keep``.
"""

import argparse
import hashlib
import re
import resource
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path
from random import Random

from hypothesis import HealthCheck, Phase, given, seed, settings

sys.path.insert(0, str(Path(__file__).parents[1]))

from shared.run_specs import try_spec, write_tables
from shared.spec_cases import spec_files

from tests.fuzz.guard import FoundError
from tests.fuzz.run_csv import try_csv
from tests.fuzz.run_pairs import try_file_pair, try_pair


def fuzz(name, cases, run, count, first_seed, keep):
    """Run N cases, print the outcomes; returns the number that must not happen."""
    became, found, slowest, start = Counter(), Counter(), 0.0, time.perf_counter()
    distinct = set()

    @seed(first_seed)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(cases)
    def every(case):
        nonlocal slowest
        distinct.add(hashlib.sha256(case).digest())
        began = time.process_time()
        try:
            became[run(case)] += 1
        except FoundError as error:
            became["FOUND"] += 1
            text = re.sub("[0-9]+", "0", str(error))[-160:]
            found[text] += 1
            if found[text] == 1:
                print(f"{error}\n    {case!r:.1500}", file=sys.stderr, flush=True)
                if keep is not None:
                    (keep / f"{name}-{len(found)}").write_bytes(case)
        slowest = max(slowest, time.process_time() - began)

    every()
    words = ", ".join(f"{key}: {value:,}" for key, value in became.most_common())
    seconds = time.perf_counter() - start
    counts = f"{became.total():,} | {len(distinct):,}"
    print(f"| {name} | {counts} | {words} | {slowest:.1f} | {seconds:.0f} |", flush=True)
    return became["FOUND"]


def pairs(name, run, count, first_seed):
    """The same for pairs, which a seed and a number determine."""
    became, slowest, start = Counter(), 0.0, time.perf_counter()
    for number in range(count):
        began = time.process_time()
        try:
            became[run(Random(f"{first_seed}-{name}-{number}"))] += 1
        except FoundError as error:
            became["FOUND"] += 1
            if became["FOUND"] <= 10:
                print(f"{name} {number}: {error}", file=sys.stderr, flush=True)
        slowest = max(slowest, time.process_time() - began)
    words = ", ".join(f"{key}: {value:,}" for key, value in became.most_common())
    seconds = time.perf_counter() - start
    print(
        f"| {name} | {count:,} | {count:,} | {words} | {slowest:.1f} | {seconds:.0f} |", flush=True
    )
    return became["FOUND"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kinds", nargs="*", metavar="specs | pairs | csv (default: all)")
    parser.add_argument("--specs", type=int, default=10_000)
    parser.add_argument("--pairs", type=int, default=100_000, help="through Python")
    parser.add_argument("--file-pairs", type=int, default=2_000, help="through labeldp randomize")
    parser.add_argument("--csv", type=int, default=10_000, help="CSV files with faults")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="folder for what must not happen")
    options = parser.parse_args()
    kinds = options.kinds or ["specs", "pairs", "csv"]
    if set(kinds) - {"specs", "pairs", "csv"}:
        parser.error("say specs, pairs or csv")
    print("| | cases | distinct | what became of them | slowest (s of processor time) | seconds |")
    print("|---|---:|---:|---|---:|---:|", flush=True)
    found = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tables(folder)
        if "specs" in kinds:
            each = partial(_in_folder, try_spec, folder)
            found += fuzz("specs", spec_files(), each, options.specs, options.seed, options.keep)
        if "pairs" in kinds:
            through_files = partial(_in_folder, try_file_pair, folder)
            found += pairs("pairs", try_pair, options.pairs, options.seed)
            found += pairs("pairs of files", through_files, options.file_pairs, options.seed)
        if "csv" in kinds:
            found += pairs("CSV", partial(_in_folder, try_csv, folder), options.csv, options.seed)
    print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")
    sys.exit(1 if found else 0)


def _in_folder(run, folder, case):
    return run(case, folder)


if __name__ == "__main__":
    main()
