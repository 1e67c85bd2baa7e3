"""Coverage of ``labeldp estimate`` for several artifacts, and for intervals that hold at once.

Labels 0 … 9 are drawn from a distribution that falls from 35 % to 1 %; with ``--target rows``, the
second artifact's labels have it in reverse. Prints two markdown tables: how often intervals of the
mean and of shares cover when two artifacts are combined, and how often all intervals of all groups
cover at once.

    python benchmarks/estimate_together.py [RELEASES]
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from labeldp_learn.estimation import SHARES, Estimation, GroupCounts
from labeldp_learn.intervals import ALONE, Confidence

from tests.estimate.drawing import Drawn

K = 10
FALLING = np.array([0.35, 0.2, 0.15, 0.1, 0.07, 0.05, 0.03, 0.02, 0.02, 0.01])
MECHANISMS = [("randomized_response", 1), ("randomized_response", 3)]
MECHANISMS += [("optimal_unbiased", 2), ("laplace", 1)]
PAIRS = [(0, 1), (0, 2), (3, 1)]
TARGETS = ("rows", "population")


class Case:
    """Some artifacts, and groups of rows with a number of rows of each artifact."""

    def __init__(self, drawn, sizes, target, *, at_once):
        """``sizes`` [groups][artifacts]."""
        self.drawn, self.sizes, self.target, self.at_once = drawn, sizes, target, at_once
        artifacts = [one.artifact for one in drawn]
        self.estimation = Estimation.of(*artifacts, tables=range(len(artifacts)))

    def release(self, generator):
        """Whether the mean covers, the share of labels that are covered, and whether all is."""
        groups, truths = [], []
        for place, sizes in enumerate(self.sizes):
            strata, true = {}, np.zeros(K)
            for table, (one, size) in enumerate(zip(self.drawn, sizes, strict=True)):
                backwards = self.target == "rows" and table == 1
                shares = FALLING[::-1] if backwards else FALLING
                labels = one.labels(shares, size, self.target, generator)
                strata[table] = one.outputs(labels, generator)
                true += labels
            groups.append(GroupCounts((place,), strata))
            truths.append(true / sum(sizes) if self.target == "rows" else FALLING)
        together = Confidence(self.estimation.intervals(groups)) if self.at_once else ALONE
        found = self.estimation(groups, self.target, confidence=together)
        return np.mean([covered(*one) for one in zip(found, truths, strict=True)], axis=0)


def covered(found, truth):
    """Of one group."""
    mean, places = truth @ np.arange(K), truth.cumsum()
    of_mean = found.mean.low[0] <= mean <= found.mean.high[0]
    shares = (found.histogram.low <= truth + 1e-12) & (truth - 1e-12 <= found.histogram.high)
    true = [int(np.searchsorted(places, q - 1e-9)) for q in SHARES]
    quantiles = [
        q.interval[0] <= y <= q.interval[1] for q, y in zip(found.quantiles, true, strict=True)
    ]
    return of_mean, shares.mean(), of_mean and shares.all() and all(quantiles)


def main(releases):
    """Print the tables."""
    drawn = [Drawn(mechanism, epsilon, K) for mechanism, epsilon in MECHANISMS]
    print("| artifacts | rows of each | target | mean | shares |\n|---|---:|---|---:|---:|")
    for pair in PAIRS:
        names = " and ".join(f"{MECHANISMS[i][0]} at {MECHANISMS[i][1]}" for i in pair)
        for sizes in ((1_500, 500), (60, 40), (8, 40)):
            for target in TARGETS:
                case = Case([drawn[i] for i in pair], [sizes], target, at_once=False)
                generator = np.random.default_rng(7)
                found = [case.release(generator) for _ in range(releases)]
                mean, shares, _ = 100 * np.mean(found, axis=0)
                print(f"| {names} | {sizes} | {target} | {mean:.1f} | {shares:.1f} |", flush=True)
    print("\n| artifact | groups | target | intervals | all at once |\n|---|---|---|---:|---:|")
    for i, (mechanism, epsilon) in enumerate(MECHANISMS):
        for groups in ([2_000], [40], [400] * 5):
            for target in TARGETS:
                case = Case([drawn[i]], [[n] for n in groups], target, at_once=True)
                generator = np.random.default_rng(7)
                found = [case.release(generator)[2] == 1 for _ in range(releases)]
                text = " + ".join(map(str, groups))
                print(
                    f"| {mechanism} at {epsilon} | {text} | {target} | {16 * len(groups)} "
                    f"| {100 * np.mean(found):.1f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)
