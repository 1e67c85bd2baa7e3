"""Losses of one's own: how near the least possible they come, and how long it takes; as markdown.

    python benchmarks/losses.py --labels 20,100,200 --many 100,1000
    python benchmarks/losses.py --many ""  # costs alone

Each file is compiled and verified from a spec with a public prior that is drawn with a fixed seed.
*Gap* is the certified one, relative to the bound that the file proves. One compile with its checks
takes these seconds of processor time. For costs, the last columns say how many times the loss of
least_cost each other mechanism has. Costs: *random* from 0 to 125 with a diagonal of 0; *tree*,
edges between labels in groups of 5 in groups of 4; *ordered*, where each step above the label costs
3 and each below costs 1.
"""

import argparse
import json
import tempfile
from pathlib import Path
from time import process_time

import numpy as np

from tests.fixtures.specs import compile_anew, spec

NUMBERS = ("{quantile: 0.9}", "{under: 3, over: 1}", "{huber: 5}", "{power: 1.5}", "poisson")
OTHERS = ("rr_with_prior", "randomized_response", "exponential")
ROUNDS = 10**6


def weights_of(k):
    """A prior with a few common labels."""
    shares = np.random.default_rng(k).dirichlet(np.full(k, 0.5))
    return np.rint(shares * ROUNDS).astype(int).tolist()


def costs_of(kind, k):
    """[k, k]: a row for each label, a column for each output."""
    i = np.arange(k)
    if kind == "random":
        costs = np.random.default_rng(k).integers(0, 1000, (k, k)) / 8
        return costs * (1 - np.eye(k))
    if kind == "ordered":
        above = i[None, :] - i[:, None]
        return np.maximum(3.0 * above, -above)
    parts = (i, i // 5, i // 20)
    return sum(2.0 * (part[:, None] != part[None, :]) for part in parts)


def measured(text, folder=Path()):
    """Seconds, loss, gap and number of outputs of a spec."""
    start = process_time()
    made = compile_anew(text, folder=folder)
    use = made.certificate.utility
    seconds = process_time() - start
    return seconds, use.noisy_label_loss, use.certified_gap, made.certificate.outputs


def shown(gap):
    """A gap in a cell."""
    return "–" if gap is None else f"{gap:.0e}"


def numbers(sizes, epsilons):
    """Losses with numbers of one's own, with RR-on-Bins."""
    print("| loss | labels | ε | seconds | gap | outputs |\n|---|---:|---:|---:|---:|---:|")
    for loss in NUMBERS:
        for k in sizes:
            for epsilon in epsilons:
                domain = {"kind": "integer", "min": 1, "max": k}
                chosen = {"loss": loss, "epsilon": epsilon, "domain": domain}
                found = measured(spec(weights=weights_of(k), mechanism="rr_on_bins", **chosen))
                cells = loss.strip("{}"), k, epsilon, f"{found[0]:.1f}", shown(found[2]), found[3]
                print(f"| {' | '.join(map(str, cells))} |", flush=True)


def costs(sizes, epsilons):
    """Costs of one's own, with least_cost and others."""
    print(f"\n| costs | labels | ε | seconds | gap | outputs | {' | '.join(OTHERS)} |")
    print(f"|---|---:|---:|---:|---:|---:|{'---:|' * len(OTHERS)}")
    for kind in ("random", "tree", "ordered"):
        for k in sizes:
            with tempfile.TemporaryDirectory() as place:
                names = [f"c{i}" for i in range(k)]
                rows = zip(names, costs_of(kind, k).tolist(), strict=True)
                lines = [["", *names], *([name, *map(json.dumps, row)] for name, row in rows)]
                Path(place, "costs.csv").write_text("\n".join(map(",".join, lines)))
                prior = {"kind": "public", "weights": weights_of(k)}
                for epsilon in epsilons:
                    chosen = {"loss": "{matrix: costs.csv}", "epsilon": epsilon, "prior": prior}
                    seconds, loss, gap, outputs = measured(
                        spec(values=names, mechanism="least_cost", **chosen), Path(place)
                    )
                    more = [
                        measured(spec(values=names, mechanism=other, **chosen), Path(place))[1]
                        for other in OTHERS
                    ]
                    cells = kind, k, epsilon, f"{seconds:.1f}", shown(gap), outputs
                    times = (f"{other / loss:.2f}" for other in more)
                    print(f"| {' | '.join(map(str, [*cells, *times]))} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("labels", "20,100,200"), ("many", "100,1000"), ("epsilons", "0.5,2,6")):
        parser.add_argument(f"--{name}", default=default)
    given = parser.parse_args()
    labels, many = ([int(n) for n in text.split(",") if n] for text in (given.labels, given.many))
    epsilons = given.epsilons.split(",")
    numbers(many, epsilons)
    costs(labels, epsilons)


if __name__ == "__main__":
    main()
