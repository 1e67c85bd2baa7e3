"""ALIBI, LP-MST, PATE and forward correction beside variants, on small real data; any JAX device.

    LABELDP_DATA=folder python benchmarks/published.py alibi
    LABELDP_DATA=folder python benchmarks/published.py forward
    LABELDP_DATA=folder python benchmarks/published.py stages
    LABELDP_DATA=folder python benchmarks/published.py votes

``alibi``: training with each prior, and with the gradients of the paper, in 3 and in 40 epochs.
``forward``: the same of ``privatized`` with the forward-corrected loss.
``stages``: LP-MST with a warm start, with a prior that is mixed with a uniform one, and without
rows that the model finds impossible. ``votes``: PATE with Confident-GNMax (Papernot et al. 2018): a
noisy threshold on the most votes decides which rows the student sees, and gets a share of the
budget whether or not a row passes. The figures are test accuracy, mean ± sd over seeds; a seed
chooses rows, parameters and private labels. No setting was chosen on these rows.
"""

import argparse
import os
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from math import sqrt
from pathlib import Path
from statistics import mean, stdev
from unittest.mock import patch

import numpy as np
import pyarrow.parquet as pq
from labeldp_trainer import parse_config, train
from labeldp_trainer.data.arrays import read_idx
from labeldp_trainer.discrete_gaussian.noise import with_float
from labeldp_trainer.losses import predict
from labeldp_trainer.methods import privatized, stepped
from labeldp_trainer.methods.published import label_noise, pate
from labeldp_trainer.methods.published.label_noise import LpMstBuilder

from labeldp_compile import compile_spec

CONFIG = """
version: 1
name: published
data: {{kind: npz, train: train.npz, test: test.npz, classes: {classes}}}
loss: cross_entropy
method: {method}
"""
STEPS = """
model: {model}
optimizer: {{{optimizer}, schedule: cosine}}
training: {{epochs: {epochs}, batch_size: 100, seed: {seed}, checkpoint_every: 1000}}
"""
VECTORS = """
representation: {{kind: pca, components: 50, seed: {seed}}}
"""
LINEAR, NETWORK = "{kind: linear}", "{kind: mlp, hidden: [128]}"
NAMES = {LINEAR: "linear", NETWORK: "128 units"}
SGD, ADAM = "kind: sgd, learning_rate: 0.05", "kind: adam, learning_rate: 0.001"


def write(folder, data, task, rows, seed):
    """Rows to train on, and at most 5,000 to test on; the number of classes."""
    if task == "digits":
        table = pq.read_table(data / "digits.parquet").to_pandas()
        y = table.pop("target").to_numpy()
        x = table.to_numpy() / 16
    elif task == "income":
        table = pq.read_table(data / "adult_train.parquet").drop_columns(["fnlwgt"]).to_pandas()
        y = table.pop("income_over_50k").to_numpy().astype(int)
        numbers = table.select_dtypes("number")
        kinds = table.drop(columns=numbers.columns).astype(str)
        scaled = ((numbers - numbers.mean()) / numbers.std()).to_numpy()
        codes = [kinds[name].factorize()[0] for name in kinds]
        one_hot = [np.eye(1 + column.max())[column] for column in codes]
        x = np.concatenate([scaled, *one_hot], axis=1)
    else:
        x = read_idx(data / task / "train-images-idx3-ubyte.gz").reshape(-1, 784) / 255
        y = read_idx(data / task / "train-labels-idx1-ubyte.gz")
    order = np.random.default_rng(seed).permutation(len(y))
    for name, chosen in (("train", order[:rows]), ("test", order[rows : rows + 5000])):
        np.savez(folder / f"{name}.npz", x=x[chosen].astype(np.float32), y=y[chosen])
    return int(y.max()) + 1


def accuracies(options, task, rows, *, more=STEPS, **config):
    """Test accuracy in percent, one a seed."""
    found = []
    for seed in range(options.first, options.first + options.seeds):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            classes = write(folder, options.data, task, rows, seed)
            text = (CONFIG + more).format(**config, classes=classes, seed=seed)
            result = train(parse_config(text, "config", folder), folder / "run")
        found.append(100 * float(result.metrics["test_accuracy"]))
    return found


def show(name, cells):
    """A line of a table: mean ± sd of each cell."""
    spreads = [f" ± {stdev(cell):.1f}" if len(cell) > 1 else "" for cell in cells]
    texts = [f"{mean(cell):.1f}{spread}" for cell, spread in zip(cells, spreads, strict=True)]
    print(f"| {name} | " + " | ".join(texts) + " |", flush=True)


def lines(options, every):
    """The lines of a table that were asked for."""
    return every if options.lines is None else [every[int(n)] for n in options.lines.split(",")]


# ALIBI.

ALIBI = (
    ("fashion-mnist", 5000, 1, LINEAR),
    ("fashion-mnist", 5000, 1, NETWORK),
    ("income", 10_000, 0.5, LINEAR),
)


def alibi(options):
    """The table of ALIBI."""
    print("| data, model, ε | epochs | the paper's gradients | the default | `uniform` |")
    print("|---|---:|---:|---:|---:|")
    for task, rows, epsilon, model in lines(options, ALIBI):
        for epochs in (3, 40):
            config = {"model": model, "optimizer": options.optimizer, "epochs": epochs}
            method = f"{{kind: alibi, epsilon: {epsilon}, prior: %s}}"
            with patch.object(label_noise, "information", lambda epsilon: 1.0):
                cells = [accuracies(options, task, rows, method=method % "model", **config)]
            for prior in ("model", "uniform"):
                cells.append(accuracies(options, task, rows, method=method % prior, **config))
            show(f"{task}, {NAMES[model]}, {epsilon} | {epochs}", cells)


# Forward correction.

SPEC = """
version: 1
name: artifact
label: {{column: y, domain: {{kind: integer, min: 0, max: {last}}}}}
loss: zero_one
privacy: {{epsilon: {epsilon}}}
prior: {{kind: uniform}}
mechanism: {{kind: {mechanism}}}
"""
FORWARD = (
    ("fashion-mnist", 5000, 10, 1, LINEAR, "randomized_response"),
    ("fashion-mnist", 5000, 10, 1, LINEAR, "subset_selection"),
    ("fashion-mnist", 5000, 10, 1, NETWORK, "randomized_response"),
    ("fashion-mnist", 5000, 10, 0.3, LINEAR, "randomized_response"),
    ("income", 10_000, 2, 0.5, LINEAR, "randomized_response"),
)


def forward(options):
    """The table of the forward-corrected loss."""
    print("| data, model, ε, mechanism | epochs | undivided gradients | the default |")
    print("|---|---:|---:|---:|")
    for task, rows, classes, epsilon, model, mechanism in lines(options, FORWARD):
        for epochs in (3, 40):
            config = {"model": model, "optimizer": options.optimizer, "epochs": epochs}
            with tempfile.TemporaryDirectory() as name:
                spec = Path(name) / "artifact.yaml"
                text = SPEC.format(last=classes - 1, epsilon=epsilon, mechanism=mechanism)
                spec.write_text(text, encoding="utf-8")
                compile_spec(spec).write(Path(name))
                config["method"] = f"{{kind: privatized, artifact: {name}/artifact.onnx}}"
                with patch.object(privatized, "kept_information", lambda matrix: 1.0):
                    cells = [accuracies(options, task, rows, **config)]
                cells.append(accuracies(options, task, rows, **config))
            show(f"{task}, {NAMES[model]}, {epsilon}, {mechanism} | {epochs}", cells)


@contextmanager
def nothing():
    """The product as it is."""
    yield


# LP-MST.


@contextmanager
def warm_start():
    """A stage begins with the parameters of the last one."""
    later, last = LpMstBuilder._later, []

    def remember(self, before, params, stored):
        last.append(params)
        return later(self, before, params, stored)

    with (
        patch.object(LpMstBuilder, "_later", remember),
        patch.object(stepped, "fresh_params", lambda *a: last[-1]),
    ):
        yield


@contextmanager
def mixed(share):
    """Priors are mixed with a uniform one."""
    softmax = label_noise.softmax

    def flatter(logits, temperature):
        found = softmax(logits, temperature)
        return (1 - share) * found + share / found.shape[1]

    with patch.object(label_noise, "softmax", flatter):
        yield


@contextmanager
def without_impossible():
    """Rows of earlier stages are left out if the last model does not have their label among its
    k likeliest, with k the mean number of labels that the new stage keeps."""
    later, choose, kept = LpMstBuilder._later, label_noise.RRWithRowPriors.choose_k, []

    def counted(self, prior):
        kept.append(choose(self, prior))
        return kept[-1]

    def filtered(self, before, params, stored):
        rows = np.flatnonzero(before.private >= 0)
        logits = predict(before.setting.model, params, before.setting.dataset.train.take(rows))
        kept.clear()
        trained_on = self._trained_on

        def fewer(stage, keep):
            k = int(np.concatenate(kept).mean())
            own = np.take_along_axis(logits, before.private[rows][:, None], axis=1)
            out = rows[(logits > own).sum(axis=1) >= k]
            stage_of = stage.stage_of.copy()
            stage_of[out] = 255
            return trained_on(replace(stage, stage_of=stage_of), keep)

        self._trained_on = fewer
        try:
            return later(self, before, params, stored)
        finally:
            del self._trained_on

    with (
        patch.object(LpMstBuilder, "_later", filtered),
        patch.object(label_noise.RRWithRowPriors, "choose_k", counted),
    ):
        yield


STAGES = (
    ("fashion-mnist", 5000, 1, NETWORK, 15),
    ("mnist", 5000, 1, LINEAR, 15),
)
WAYS = {
    "the paper's": nothing,
    "warm start": warm_start,
    "uniform mixed in, 1/10": lambda: mixed(0.1),
    "impossible rows left out": without_impossible,
}


def stages(options):
    """The table of LP-MST."""
    print("| data, model, ε | one stage | " + " | ".join(WAYS) + " |")
    print("|---" + "|---:" * (len(WAYS) + 1) + "|")
    for task, rows, epsilon, model, epochs in lines(options, STAGES):
        config = {"model": model, "optimizer": ADAM, "epochs": epochs}
        more = f", fractions: [0.7, 0.3], temperature: {options.temperature}"
        method = f"{{kind: lp_mst, epsilon: {epsilon}%s}}"
        cells = [accuracies(options, task, rows, method=method % ", stages: 1", **config)]
        for way in WAYS.values():
            with way():
                cells.append(accuracies(options, task, rows, method=method % more, **config))
        show(f"{task}, {NAMES[model]}, {epsilon}", cells)


# PATE.


@contextmanager
def confident(share, least):
    """Confident-GNMax with ``share`` of the budget for its threshold, ``least`` of all votes."""
    noisy, fitted, passed = pate.noisy, pate.fitted_votes, []

    def both(counts, sigma):
        # A vote moves the largest count by at most 1, and the counts of a row by at most √2.
        sigmas = [with_float(int(sigma / root)) for root in (sqrt(2 * share), sqrt(1 - share))]
        most = noisy(counts.max(axis=1, keepdims=True), sigmas[0])
        passed[:] = [np.flatnonzero(most[:, 0] >= least * counts.sum(axis=1))]
        return noisy(counts, sigmas[1])

    def fewer(public, points, queries, voted, seed, head):
        return fitted(public, points, queries[passed[0]], voted[passed[0]], seed, head)

    probabilities = pate.probabilities

    def wider(counts, deviation, teachers):
        return probabilities(counts, deviation / sqrt(1 - share), teachers)

    with (
        patch.object(pate, "noisy", both),
        patch.object(pate, "fitted_votes", fewer),
        patch.object(pate, "probabilities", wider),
    ):
        yield


def votes(options):
    """The table of PATE."""
    ways = ((0.1, 0.6), (0.3, 0.6), (0.3, 0.8))
    heads = (f"{share:.0%} for a threshold of {least:.0%}" for share, least in ways)
    print("| data, ε | no threshold | " + " | ".join(heads) + " |")
    print("|---" + "|---:" * (len(ways) + 1) + "|")
    for task, rows, epsilon in lines(options, (("income", 3000, 1), ("income", 3000, 4))):
        config = {"more": VECTORS, "method": f"{{kind: pate, epsilon: {epsilon}, delta: 1e-5}}"}
        cells = [accuracies(options, task, rows, **config)]
        for way in ways:
            with confident(*way):
                cells.append(accuracies(options, task, rows, **config))
        show(f"{task}, {epsilon}", cells)


STUDIES = {"alibi": alibi, "forward": forward, "stages": stages, "votes": votes}


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("studies", nargs="*", help=f"of {', '.join(STUDIES)}; default: all")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--lines", help="of the table, such as 0,2; default: all")
    parser.add_argument("--optimizer", default=SGD, help="of ALIBI and forward correction")
    parser.add_argument("--temperature", type=float, default=1.0, help="of LP-MST")
    parser.add_argument("--data", type=Path, default=os.environ.get("LABELDP_DATA"))
    options = parser.parse_args()
    if options.data is None:
        parser.exit(message="benchmarks/published.py: LABELDP_DATA names no folder\n")
    for name in options.studies or STUDIES:
        STUDIES[name](options)


if __name__ == "__main__":
    main()
