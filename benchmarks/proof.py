"""How long Coq takes for ``labeldp export --to coq``, by the artifact's number of labels.

    python benchmarks/proof.py

Each is an ``optimal_unbiased`` artifact of k integers at ε = 1 with a uniform prior. Seconds are of
coqc alone, medians of three, for the file as it is written, with the theory in it; the first row is
the theory without any integers. Needs coqc.
"""

import statistics
import time

from labeldp_verify.kernel import integers_of

from labeldp_compile.export.coq import modules, proof_of, run_coq, size_of
from tests.fixtures.compiled import compile_text

SPEC = """
version: 1
name: proof
label: {{column: y, domain: {{kind: integer, min: 0, max: {last}}}}}
loss: squared
privacy: {{epsilon: 1}}
prior: {{kind: uniform}}
mechanism: {{kind: optimal_unbiased}}
"""
SIZES = (25, 401)
TIMES = 3


def seconds(text, theorems):
    """Seconds of coqc, sorted."""
    found = []
    for _ in range(TIMES):
        start = time.perf_counter()
        answer = run_coq(text, theorems)
        found.append(time.perf_counter() - start)
        assert answer.accepted, answer.why
    return sorted(found)


def show(name, integers, taken):
    middle = statistics.median(taken)
    print(f"{name:>8} {integers:>10,} {middle:8.1f}  {taken[0]:.1f} to {taken[-1]:.1f}")


def main():
    print(f"{'labels':>8} {'integers':>10} {'seconds':>8}  least and most of {TIMES}")
    files = ("Windows", "Mixtures", "Epsilon")
    show("theory", 0, seconds(modules(files), 0))
    for k in SIZES:
        artifact = compile_text(SPEC.format(last=k - 1))
        decoded = artifact.only
        read = integers_of(artifact.model)
        proof = proof_of(decoded, read)
        show(f"{k:,}", size_of(read), seconds(proof.text, len(proof.theorems)))


if __name__ == "__main__":
    main()
