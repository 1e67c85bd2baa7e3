"""What it costs that every call is keyed by the kernel: beside words of OpenSSL's own generator.

OpenSSL's generator is kept between calls, and repeats in a copy of the process: it is here for
scale. Both ways draw in turns, in one process; medians and quartiles by the clock, or with
``--cpu`` by the processor's time. Prints markdown.
"""

import _ssl
import argparse
import ctypes
import math
import ssl
import statistics
import time

import numpy as np
from labeldp_runtime import Randomizer, randomizer
from labeldp_runtime.entropy import random_words

from tests.fixtures.compiled import compile_text, integer_spec

CASES = [("randomized_response", 52, 1), ("rr_on_bins", 401, 1), ("laplace", 52, 1)]
ROUNDS = {1: 4001, 1024: 1001, 65_536: 401}
CALLS = {1: 20, 1024: 5, 65_536: 1}  # a round: more than the clock's own time
_fill = ctypes.CDLL(_ssl.__file__).RAND_bytes
_fill.argtypes = (ctypes.c_void_p, ctypes.c_int)


def openssl_words(*shape):
    """As the runtime drew them before: ``ssl`` for few, the function behind it for many."""
    count = math.prod(shape)
    if count < 1 << 12:
        return np.frombuffer(ssl.RAND_bytes(8 * count), dtype=np.uint64).reshape(shape)
    words = np.empty(shape, dtype=np.uint64)
    assert _fill(words.ctypes.data, words.nbytes) == 1
    return words


def in_turns(run, clock, count):
    """Microseconds a call with each way, [rounds] each."""
    times = {openssl_words: [], random_words: []}
    calls = CALLS[count]
    for _ in range(ROUNDS[count]):
        for way, taken in times.items():
            randomizer.random_words = way
            start = clock()
            for _ in range(calls):
                run(way)
            taken.append((clock() - start) * 1e6 / calls)
    return times.values()


def middle(values):
    low, half, high = statistics.quantiles(values, n=4)
    return half, f"{half:.4g} ({low:.4g}–{high:.4g})"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cpu", action="store_true", help="the processor's time")
    clock = time.process_time if parser.parse_args().cpu else time.perf_counter
    print("| | labels | OpenSSL's own, µs | keyed by the kernel, µs | times as long |")
    print("|---|---|---|---|---|")
    rows = {"words alone": lambda count: lambda way: way(count)}
    for mechanism, k, epsilon in CASES:
        own = Randomizer(compile_text(integer_spec(k, mechanism, epsilon=epsilon)).model)
        labels = np.random.default_rng(0).integers(0, k, max(ROUNDS))
        rows[f"{mechanism}, k = {k}"] = lambda count, own=own, y=labels: lambda _: own(y[:count])
    for name, of_count in rows.items():
        for count in ROUNDS:
            before, after = in_turns(of_count(count), clock, count)
            ratio = middle([b / a for a, b in zip(before, after, strict=True)])[1]
            print(f"| {name} | {count:,} | {middle(before)[1]} | {middle(after)[1]} | {ratio} |")


if __name__ == "__main__":
    main()
