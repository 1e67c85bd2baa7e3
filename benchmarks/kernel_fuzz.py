"""Does the kernel ever accept an altered file that is less private than it says?

    python benchmarks/kernel_fuzz.py --seconds 600 --seed 1 --only portable

Small files of every form, domain and graph are changed at one place: a node's operator, inputs,
attributes or output, a constant's number, type or shape, an input, an output, the versions, or a
byte. The kernel must refuse the file; or onnxruntime does not load it; or its ratio, from every
word and labels in range and outside, is within the kernel's bound. One process; it stops with exit
code 1 at the first file that contradicts the kernel, and prints how to make it again.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from labeldp_verify import kernel
from shared.alterations import KINDS, altered, seeded

from verifier.tests.kernel.enumerated import Fails, opened, real_ratio
from verifier.tests.kernel.small_files import small_files

MOST_BITS = 7


def judged(data, rng):
    """``refused``, ``not loaded``, ``too many words``, ``private`` or what is wrong.

    A file that the kernel accepts is run with every word, within the bound that the kernel gave.
    """
    try:
        integers = kernel.integers_of(data)
        ratio = integers.ratio()
    except kernel.Refused:
        return "refused"
    session = opened(data)
    if session is None:
        return "not loaded"
    bits = max(table.bits for table in integers.tables)
    words = 2 if isinstance(integers.tables[0], kernel.Noise) else 1
    if bits * words > MOST_BITS + 3 or any(table.bits < 1 for table in integers.tables):
        return "too many words"
    try:
        real = real_ratio(session, bits, words, rng)
    except Fails as failure:
        return f"WRONG: {failure}"
    if real is None:
        return "too many words"
    return "private" if real <= ratio else f"WRONG: {real} is more than {ratio}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="files with this in their names")
    options = parser.parse_args()
    files = [(name, data) for name, data in small_files() if options.only in name]
    pick = seeded("which", options.seed)
    began, case, found = time.monotonic(), 0, Counter[tuple[str, str]]()
    while time.monotonic() - began < options.seconds:
        (name, data), kind = pick.choice(files), pick.choice([*KINDS, "bytes"])
        case += 1
        rng = seeded(kind, name, options.seed, case)
        try:
            changed = altered(data, kind, rng)
        except Exception:  # such a change is impossible there
            continue
        if changed == data:
            continue
        verdict = judged(changed, rng)
        if verdict.startswith("WRONG"):
            sys.exit(f"{name}, {kind}, seed {options.seed}, case {case}: {verdict}")
        found[kind, verdict] += 1
    verdicts = sorted({verdict for _, verdict in found})
    print(f"{'change':20}" + "".join(f"{verdict:>16}" for verdict in verdicts))
    for kind in [*KINDS, "bytes"]:
        print(f"{kind:20}" + "".join(f"{found[kind, verdict]:16,}" for verdict in verdicts))
    totals = [sum(n for (_, v), n in found.items() if v == verdict) for verdict in verdicts]
    print(f"{'all':20}" + "".join(f"{total:16,}" for total in totals))


if __name__ == "__main__":
    main()
