"""Labels a second through ``labeldp serve``, beside the bare runtime, on one machine.

    python -m benchmarks.service --seconds 10

The service and the load (wrk, which must be installed) share the machine's cores, over the
loopback address, without TLS. For 1, 16 and 256 connections, and 1 or 1,000 labels a request: how
many labels a second, the median of the latency and its 99th percentile. The bare runtime gets the
same lists of Python numbers in one process, before and after. Prints markdown.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from labeldp_runtime import Key, Randomizer

from tests.fixtures.compiled import compile_text, integer_spec

CONNECTIONS, SIZES = (1, 16, 256), (1, 1000)
SCRIPT = """wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = [==[{body}]==]
"""


def main():
    """A line for each way, number of connections and size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=10)
    options = parser.parse_args()
    print("| | labels a request | connections | labels a second | median | 99th percentile |")
    print("|---|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        path = compile_text(integer_spec(52, "rr_on_bins")).write(folder)
        Key.create(folder / "labels.key")
        for way, arguments in (
            ("unkeyed", ["--unkeyed"]),
            ("keyed", ["--key", folder / "labels.key"]),
        ):
            for size in SIZES:
                bare(way, path, folder, size, options.seconds)
                with served(path, arguments) as (address, name):
                    for connections in CONNECTIONS:
                        load(way, address, name, folder, size, connections, options.seconds)
                bare(way, path, folder, size, options.seconds)


def request(way, size):
    """Labels, and ids where there is a key."""
    labels = [i % 52 for i in range(size)]
    return labels, list(range(size)) if way == "keyed" else None


def bare(way, path, folder, size, seconds):
    """The runtime alone, in this process."""
    key = folder / "labels.key" if way == "keyed" else None
    randomize = Randomizer.load(path, key=key, context=key and "y")
    labels, ids = request(way, size)
    times, began = [], time.perf_counter()
    while time.perf_counter() - began < seconds:
        start = time.perf_counter()
        randomize(labels, ids=ids)
        times.append(time.perf_counter() - start)
    times.sort()
    rate = size * len(times) / sum(times)
    middle, late = times[len(times) // 2], times[int(0.99 * len(times))]
    print(f"| {way}, bare runtime | {size:,} | – | {rate:,.0f} | {milli(middle)} | {milli(late)} |")


@contextmanager
def served(path, arguments):
    """The address of a service, and the name of its artifact."""
    command = [sys.executable, "-m", "labeldp_compile.cli", "serve", path, *arguments]
    with subprocess.Popen(
        [*map(str, command), "--port", "0"], stderr=subprocess.PIPE, text=True
    ) as process:
        address, _, name = process.stderr.readline().split(" at ")[1].strip().partition(": ")
        drain = subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)
        try:
            yield address, name
        finally:
            process.terminate()
            process.wait()
            drain.wait()


def load(way, address, name, folder, size, connections, seconds):
    """One run of wrk."""
    labels, ids = request(way, size)
    body = {"columns": {"y": labels}} | ({} if ids is None else {"ids": ids})
    script = folder / "request.lua"
    script.write_text(SCRIPT.format(body=json.dumps(body)))
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", str(script)]
    url = f"{address}/v1/artifacts/{name}/randomize"
    text = subprocess.run([*command, url], capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in text:
        sys.exit(text)
    rate = size * float(re.search(r"Requests/sec:\s+([0-9.]+)", text)[1])
    found = [re.search(rf"^ +{share}% +(\S+)", text, re.M)[1] for share in (50, 99)]
    print(
        f"| {way} | {size:,} | {connections} | {rate:,.0f} | {found[0]} | {found[1]} |", flush=True
    )


def milli(seconds):
    """As wrk writes it."""
    return f"{1e3 * seconds:.2f}ms"


if __name__ == "__main__":
    main()
