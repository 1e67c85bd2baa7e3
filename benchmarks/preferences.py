"""Which of two answers is preferred: accuracy on held-out pairs.

Pairs are made from real tables: which of two houses costs more, which of two persons worked more
weeks, which of two studied longer, and which of two digits is larger. Test answers are in no
training pair.

* ``one release``: the product, ``data: {kind: pairs}``, on differences of public vectors;
* ``one release, scores by boosting``: its score of each answer, learned by boosting from the
  features of the answer (post-processing);
* ``randomized response``: each preference randomized, pure ε; linear scores with the unbiased and
  with the forward loss of Bradley–Terry, and with the loss of IPO (a square, unbiased), the penalty
  chosen on held-out private labels;
* ``DP-SGD``: 100 steps of a tenth of the pairs on rows of length 1, the best of three rates,
  *chosen on the test pairs*;
* ``no privacy``: logistic regression, the penalty chosen on held-out pairs.

    LABELDP_DATA=folder python benchmarks/preferences.py --seeds 5 > table.md
"""

import argparse
import functools
import json
import os
import random
import statistics
import tempfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.privacy_accountant import NeighboringRelation
from labeldp_trainer import parse_config
from labeldp_trainer.data.arrays import read_idx
from labeldp_trainer.training import train
from scipy.optimize import brentq, minimize
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingRegressor

DELTA, PAIRS, TESTED = 1e-5, 20_000, 5_000
EPSILONS = (0.25, 1.0, 4.0)
PENALTIES = (0.1, 1.0, 10.0, 100.0, 1000.0)
STEPS, SHARE, RATES = 100, 0.1, (0.5, 2.0, 8.0)
CONFIG = """
version: 1
name: pairs
data: {{kind: pairs, train: train.npz, test: test.npz, first: a, second: b}}
loss: cross_entropy
method: {{kind: one_release, epsilon: {epsilon}, delta: {delta}}}
"""


def table(name, columns, label):
    """[n, p] numbers and indicators of categories, and the label [n]."""
    found = pq.read_table(Path(os.environ["LABELDP_DATA"]) / name)
    sides = []
    for column in columns:
        values = found[column].to_pandas()
        if values.dtype.kind in "biuf":
            sides.append(values.fillna(values.median()).to_numpy(float)[:, None])
        else:
            known = values.value_counts()
            kept = known.index[known >= len(values) / 1000]
            sides.append((values.to_numpy()[:, None] == kept.to_numpy()[None, :]).astype(float))
    return np.concatenate(sides, axis=1), found[label].to_numpy().astype(float)


def vectors(x, random_, width=300):
    """[n, p] ranks of numbers, and random cosines of them: public vectors of answers."""
    ranks = np.stack([np.searchsorted(np.sort(c), c) / len(c) for c in x.T], axis=1)
    ranks = ranks / max(np.linalg.norm(ranks.std(axis=0)), 1e-9)
    turned = ranks @ random_.normal(size=(x.shape[1], width)) + random_.uniform(0, 6.3, width)
    return np.concatenate([ranks, np.cos(turned) * np.sqrt(2 / width)], axis=1)


HOUSES = ("longitude", "latitude", "housing_median_age", "total_rooms", "population",
          "households", "median_income", "ocean_proximity")  # fmt: skip
WORK = ("age", "wage_per_hour", "capital_gains", "dividends_from_stocks",
        "num_persons_worked_for_employer", "class_of_worker", "education", "marital_stat",
        "major_occupation_code", "sex", "full_or_part_time_employment_stat")  # fmt: skip
STUDY = ("age", "hours_per_week", "capital_gain", "workclass", "occupation", "marital_status",
         "sex", "income_over_50k")  # fmt: skip


def images(random_):
    """[n, p] principal components of digits through random ramps, and the digits."""
    folder = Path(os.environ["LABELDP_DATA"]) / "mnist"
    x = read_idx(folder / "train-images-idx3-ubyte.gz")[:32_000].reshape(-1, 784) / 255.0
    y = read_idx(folder / "train-labels-idx1-ubyte.gz")[:32_000].astype(float)
    x = x - x.mean(axis=0)
    values, turn = np.linalg.eigh(x.T @ x / len(x))
    p = x @ turn[:, ::-1][:, :60] / np.sqrt(values[::-1][:60] + 0.1)
    return p, np.maximum(p @ random_.normal(size=(60, 300)) / 60**0.5, 0), y


def answers(name, random_):
    """Features, vectors and values of answers."""
    if name == "digits":
        return images(random_)
    files = {
        "houses": ("california_housing.parquet", HOUSES, "median_house_value"),
        "weeks": ("census_kdd_train.parquet", WORK, "weeks_worked_in_year"),
        "study": ("adult_train.parquet", STUDY, "education_num"),
    }
    x, y = table(*files[name])
    some = random_.permutation(len(y))[:32_000]
    return x[some], vectors(x[some], random_), y[some]


class Study:
    """Pairs of one table and seed."""

    def __init__(self, name, seed, folder):
        """Write train.npz and test.npz."""
        self.random = np.random.default_rng([seed, 77])
        self.folder, self.name, self.seed = folder, name, seed
        self.x, self.phi, self.y = answers(name, self.random)
        known = self.random.random(len(self.y)) < 0.75
        self.parts = []
        for part, pool, count in (("train", known, PAIRS), ("test", ~known, TESTED)):
            ids = self.random.choice(np.flatnonzero(pool), (2, 3 * count))
            ids = ids[:, self.y[ids[0]] != self.y[ids[1]]][:, :count]
            first = self.y[ids[0]] > self.y[ids[1]]
            said = np.where(first, "first", "second")
            a, b = (self.phi[own].astype(np.float32) for own in ids)
            np.savez(folder / f"{part}.npz", a=a, b=b, preferred=said)
            self.parts.append((ids, first))
        (ids, self.first), (tested, self.truth) = self.parts
        d, e = (self.phi[own[0]] - self.phi[own[1]] for own in (ids, tested))
        values, turn = np.linalg.eigh(d.T @ d / len(d))
        kept = values > 1e-6 * values[-1]
        self.scale = np.sqrt(values[kept])
        self.z, self.test = (v @ turn[:, kept] / self.scale for v in (d, e))

    def right(self, scores):
        """The share of test pairs in which the preferred answer has the larger score."""
        return float(((scores > 0) == self.truth).mean())

    def released(self, epsilon):
        """One release, and boosting of its scores."""
        text = CONFIG.format(epsilon=epsilon, delta=DELTA)
        run = self.folder / f"run{random.random()}"
        result = train(parse_config(text, directory=self.folder), run)
        arrays = np.load(run / "representation" / "learnt.npz")
        score = self.phi.astype(np.float32) @ arrays["projection"] @ result.params["w"]
        score = score[:, 0] - score[:, 1]
        known = np.unique(self.parts[0][0])
        boosted = HistGradientBoostingRegressor(random_state=0)
        found = boosted.fit(self.x[known], score[known]).predict(self.x)
        own = self.parts[1][0]
        return result.test.model["accuracy"], self.right(found[own[0]] - found[own[1]])

    def fitted(self, labels, loss):
        """Scores of linear models; the penalty has the least loss on a fifth of the pairs."""
        held = len(labels) * 4 // 5
        z = (self.z * self.scale).astype(np.float32)  # strong directions cost less

        def fit(rows, penalty, start):
            x, t = z[rows], labels[rows]

            def both(w):
                values, slopes = loss((x @ w.astype(np.float32)).astype(float), t)
                slope = (x.T @ slopes.astype(np.float32)).astype(float)
                return values.sum() + penalty / 2 * w @ w, slope + penalty * w

            return minimize(both, start, jac=True, method="L-BFGS-B", options={"maxiter": 80}).x

        tried, w = {}, np.zeros(z.shape[1])
        for penalty in sorted(PENALTIES, reverse=True):
            w = fit(slice(held), penalty, w)
            tried[loss(z[held:] @ w, labels[held:])[0].mean()] = penalty, w
        return self.test @ (fit(slice(None), *tried[min(tried)]) * self.scale)

    def randomized(self, epsilon):
        """Randomized response with the unbiased and forward loss of Bradley–Terry, and with IPO."""
        flip = expit(-epsilon)
        private = self.first ^ (self.random.random(PAIRS) < flip)
        targets = (private - flip) / (1 - 2 * flip)
        unbiased, square = self.fitted(targets, logistic), self.fitted(targets, squared)
        forward = self.fitted(private.astype(float), functools.partial(forward_loss, flip))
        return self.right(unbiased), self.right(forward), self.right(square)

    def sgd(self, epsilon):
        """The best of three rates on the test pairs."""
        sigma, found = sgd_noise(epsilon), []
        x = (self.z * self.scale**0.7).astype(np.float32)  # as one release expects signals
        x = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)  # answers may be equal
        for rate in RATES:
            w, mean = np.zeros((2, x.shape[1]))
            for step in range(STEPS):
                rows = np.flatnonzero(self.random.random(PAIRS) < SHARE)
                some = x[rows]
                slope = some.T @ (expit(some @ w.astype(np.float32)) - self.first[rows])
                noisy = slope + sigma * self.random.normal(size=len(w))
                w = w - rate * len(w) / 8 / (SHARE * PAIRS) * noisy
                mean += w * (step >= STEPS // 2)
            found.append(self.right(self.test * self.scale**0.7 @ mean))
        return max(found)


def logistic(scores, targets):
    """Values and slopes; linear in targets, which may be unbiased."""
    return np.logaddexp(0, scores) - targets * scores, expit(scores) - targets


def squared(scores, targets):
    """Values and slopes of IPO, whose scores end at −½ and ½."""
    gap = scores - targets + 0.5
    return gap**2 / 2, gap


def forward_loss(flip, scores, private):
    """−log Pr[private] and its slope."""
    p = expit(scores)
    seen = flip + (1 - 2 * flip) * p
    chance = np.where(private > 0, seen, 1 - seen)
    slope = np.where(private > 0, -1, 1) * (1 - 2 * flip) * p * (1 - p) / chance
    return -np.log(chance), slope


@functools.cache
def sgd_noise(epsilon):
    """For gradients of length 1, of which one is replaced."""

    def spent(sigma):
        loss = pld.from_gaussian_mechanism(
            sigma, sampling_prob=SHARE, neighboring_relation=NeighboringRelation.REPLACE_ONE,
            value_discretization_interval=1e-3,
        )  # fmt: skip
        return loss.self_compose(STEPS).get_epsilon_for_delta(DELTA) - epsilon

    return brentq(spent, 0.3, 60 / min(epsilon, 1), xtol=5e-3)


def main():
    """Print a table for each set of pairs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--tables", default="houses,weeks,study,digits")
    parser.add_argument("--results", type=Path, help="JSON lines: what is there is not run again")
    given = parser.parse_args()
    found = {}
    if given.results and given.results.exists():
        for line in given.results.read_text(encoding="utf-8").splitlines():
            one = json.loads(line)
            found[one["table"], one["seed"]] = one["right"]
    for seed in range(given.seeds):
        for name in given.tables.split(","):
            if (name, seed) in found:
                continue
            with tempfile.TemporaryDirectory() as folder:
                right = measured(Study(name, seed, Path(folder)))
            found[name, seed] = right
            if given.results:
                with given.results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"table": name, "seed": seed, "right": right}) + "\n")
    for name in given.tables.split(","):
        show(name, [right for (each, _), right in found.items() if each == name])


def measured(study):
    """Accuracies by method: a list over EPSILONS, or one number."""
    released, randomized = [], []
    for epsilon in EPSILONS:
        released.append(study.released(epsilon))
        randomized.append(study.randomized(epsilon))
    return {
        "one release": [one for one, _ in released],
        "one release, scores by boosting": [other for _, other in released],
        "randomized response, unbiased": [each[0] for each in randomized],
        "randomized response, forward": [each[1] for each in randomized],
        "randomized response, IPO": [each[2] for each in randomized],
        "DP-SGD": [study.sgd(epsilon) for epsilon in EPSILONS],
        "no privacy": study.right(study.fitted(study.first.astype(float), logistic)),
    }


def show(name, runs):
    """A markdown table of means and standard deviations in percent."""
    print(f"### {name}\n")
    print("| method | " + " | ".join(f"ε = {e:g}" for e in EPSILONS) + " |")
    print("|---|" + "---:|" * len(EPSILONS))
    for method in runs[0]:
        each = [run[method] for run in runs]
        rows = zip(*each, strict=True) if isinstance(each[0], list) else [each] * len(EPSILONS)
        print(f"| {method} | " + " | ".join(map(cell, rows)) + " |")
    print()


def cell(values):
    """Mean ± deviation, in percent."""
    spread = f" ± {100 * statistics.stdev(values):.2g}" if len(values) > 1 else ""
    return f"{100 * statistics.mean(values):.1f}{spread}"


if __name__ == "__main__":
    main()
