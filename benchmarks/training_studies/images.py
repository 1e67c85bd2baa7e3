"""Test accuracy on images of every method of classification, over ε.

The network of Table 10 (a) of LabelDP-Pro, or a linear model. Every method has its own learning
rate, which falls to 0 as a cosine, or with ``--schedule constant`` does not: each rate is tried
with the first seed, and the best goes on to the others. As in the paper that is a choice made on
test labels, the same way for all methods. ε of the central methods (δ = 1e-5) is that of label DP:
REPLACE_ONE. With ``--accounting add_remove`` the noise is that which add/remove accounting would
choose for ε, as in the paper; the true ε stands beside it.

``--split held`` chooses without test labels: the last tenth of the training rows is left out, and
accuracy is that on it. Every finished run is a line of ``--results``, and is not run again:
interrupt and go on at will.
"""

import argparse
import gzip
import json
import os
import struct
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev

import jax
from labeldp_trainer import TrainerError, parse_config, train
from labeldp_trainer.data.arrays import read_idx
from labeldp_trainer.dp_gradient.accounting import (
    NoisePlan,
    epsilon,
    padded_batch,
)
from training_studies.add_remove import add_remove_noise_for_comparison_only
from training_studies.hardware import hardware
from training_studies.listed import listed

from labeldp_compile import compile_spec

DELTA = 1e-5
ROWS, HELD = 60_000, 6_000
BATCH = 1024
PRIVATE_RATES = (0.5, 1.0, 2.0, 4.0, 8.0)
RATES = (0.02, 0.1, 0.5)


@dataclass(frozen=True)
class MethodChoice:
    """The method of a config, with {epsilon} and {delta} to fill in, and its learning rates."""

    config: str
    rates: tuple[float, ...]

    @property
    def central(self):
        """Whether ε is that of a noisy gradient."""
        return "delta" in self.config


def central(kind, choices=""):
    """A method with noisy gradients."""
    text = f"{{{{kind: {kind}, epsilon: {{epsilon}}, delta: {{delta}}, clip_norm: {{clip}}"
    text += f", microbatch: {{microbatch}}{choices}}}}}"
    return MethodChoice(text, PRIVATE_RATES)


METHODS = {
    "RR": MethodChoice("{{kind: privatized, artifact: {artifact}, correction: none}}", RATES),
    "RR-Debiased": MethodChoice(
        "{{kind: privatized, artifact: {artifact}, correction: backward}}", RATES
    ),
    "LP-2ST": MethodChoice(
        "{{kind: lp_mst, epsilon: {epsilon}, stages: 2, fractions: [0.4, 0.6]}}", RATES
    ),
    "ALIBI": MethodChoice("{{kind: alibi, epsilon: {epsilon}}}", RATES),
    "ALIBI (uniform)": MethodChoice("{{kind: alibi, epsilon: {epsilon}, prior: uniform}}", RATES),
    "DP-SGD": central("dp_sgd"),
    "LabelDP-Pro, self_span": central("labeldp_pro", ", denoiser: self_span"),
    "LabelDP-Pro, self_conv": central("labeldp_pro", ", denoiser: self_conv, smoothing: 0.75"),
    **{
        f"LabelDP-Pro, alt_conv, λ = {smoothing:g}": central(
            "labeldp_pro",
            f", denoiser: alt_conv, hull_units: {{hull}}, smoothing: {smoothing}",
        )
        for smoothing in (1.0, 0.85, 0.75, 0.7)
    },
}

SPEC = """
version: 1
name: rr
label: {{column: label, domain: {{kind: integer, min: 0, max: 9}}}}
loss: zero_one
privacy: {{epsilon: {epsilon}}}
prior: {{kind: uniform}}
mechanism: {{kind: randomized_response}}
"""

CONFIG = """
version: 1
name: images
data:
  kind: idx
  train: {{images: {folder}/train-{images}, labels: {folder}/train-{labels}}}
  test: {{images: {folder}/t10k-{images}, labels: {folder}/t10k-{labels}}}
  classes: 10
model: {model}
loss: cross_entropy
method: {method}
optimizer: {{kind: {optimizer}, learning_rate: {rate}, schedule: {schedule}}}
training: {{epochs: {epochs}, batch_size: {batch}, seed: {seed}, checkpoint_every: 1000}}
"""

RESULTS = Path(__file__).parents[1] / "results" / "training_images.jsonl"
MODELS = {"cnn": "{kind: cnn, variant: mnist}", "linear": "{kind: linear}"}


class Runs:
    """Finished runs, remembered in a file, and the means to make more."""

    def __init__(self, arguments, directory):
        """Read what has been run before."""
        self.arguments, self.directory = arguments, directory
        self.done = {}
        if arguments.results.exists():
            for line in arguments.results.read_text(encoding="utf-8").splitlines():
                run = json.loads(line)
                self.done[key(run)] = run

    def accuracy(self, name, target, rate, seed):
        """The test accuracy of one run, in percent; 0 if it diverged."""
        a = self.arguments
        noisy = METHODS[name].central
        run = {"data": a.data_set, "model": a.model, "method": name, "epsilon": target}
        run |= {"accounting": a.accounting if noisy else "label", "epochs": a.epochs}
        run |= {"batch": a.batch, "optimizer": a.optimizer, "rate": rate, "seed": seed}
        run |= {"split": a.split}
        run |= {"schedule": a.schedule} if a.schedule != "cosine" else {}
        run |= {"clip": a.clip} if noisy else {}
        run |= {"hull": a.hull} if "alt_conv" in name else {}
        if key(run) not in self.done:
            began = time.monotonic()
            spent = self._spent(name, target)
            run |= {"true_epsilon": round(spent, 4)}
            run["accuracy"] = self._train(name, spent, rate, seed)
            run |= {"seconds": round(time.monotonic() - began), "hardware": hardware()}
            run |= {"microbatch": a.microbatch} if noisy else {}
            with a.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(run, ensure_ascii=False) + "\n")
            print(f"  {json.dumps(run, ensure_ascii=False)}", file=sys.stderr, flush=True)
            self.done[key(run)] = run
        return self.done[key(run)]["accuracy"]

    def cell(self, name, target):
        """The accuracies over the seeds at the best rate, and that rate."""
        rates = self.arguments.rates or METHODS[name].rates
        best = max(rates, key=lambda rate: self.accuracy(name, target, rate, 0))
        seeds = range(self.arguments.seeds)
        return [self.accuracy(name, target, best, seed) for seed in seeds], best

    def _spent(self, name, target):
        a = self.arguments
        if METHODS[name].central and a.accounting == "add_remove":
            return honest_epsilon(target, a)
        return target

    def _train(self, name, spent, rate, seed):
        a = self.arguments
        method = METHODS[name].config.format(
            epsilon=spent,
            delta=DELTA,
            hull=a.hull,
            clip=a.clip,
            artifact="artifact.onnx",
            microbatch=a.microbatch,
        )
        if "artifact" in method:
            spec = self.directory / "spec.yaml"
            spec.write_text(SPEC.format(epsilon=spent), encoding="utf-8")
            compile_spec(spec).write(self.directory, overwrite=True)
            (self.directory / "rr.onnx").replace(self.directory / "artifact.onnx")
        config = CONFIG.format(
            folder=self._data(),
            images="images-idx3-ubyte.gz",
            labels="labels-idx1-ubyte.gz",
            model=MODELS[self.arguments.model],
            method=method,
            optimizer=self.arguments.optimizer,
            schedule=self.arguments.schedule,
            rate=rate,
            epochs=self.arguments.epochs,
            batch=self.arguments.batch,
            seed=seed,
        )
        with tempfile.TemporaryDirectory(dir=self.directory) as folder:
            try:
                result = train(parse_config(config, "config", self.directory), Path(folder) / "run")
            except TrainerError as error:
                if "diverged" not in str(error):
                    raise
                return 0.0
        return round(100 * float(result.metrics["test_accuracy"]), 2)

    def _data(self):
        """The folder with the rows to train on and those to test on."""
        folder = (self.arguments.data / self.arguments.data_set).absolute()
        if self.arguments.split == "test":
            return folder
        held = self.directory / "held"
        if not held.exists():
            held.mkdir()
            for kind in ("images-idx3-ubyte.gz", "labels-idx1-ubyte.gz"):
                array = read_idx(folder / f"train-{kind}")
                write_idx(held / f"train-{kind}", array[: ROWS - HELD])
                write_idx(held / f"t10k-{kind}", array[ROWS - HELD :])
        return held


def write_idx(path, array):
    """Write bytes [n, ...] as an idx file, gzipped."""
    head = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    path.write_bytes(gzip.compress(head + array.tobytes(), 1))


def key(run):
    """What tells runs apart."""
    return json.dumps({k: v for k, v in run.items() if k not in MEASURED}, sort_keys=True)


MEASURED = ("true_epsilon", "accuracy", "seconds", "hardware", "microbatch")


def honest_epsilon(target, arguments):
    """The ε of label DP of the noise that add/remove accounting chooses for ``target``."""
    rows, batch = ROWS - HELD * (arguments.split == "held"), arguments.batch
    steps = arguments.epochs * round(rows / batch)  # those of the trainer
    plan = NoisePlan(
        rows, batch, steps, padded_batch(rows, batch, steps, DELTA, arguments.microbatch)
    )
    return epsilon(add_remove_noise_for_comparison_only(target, plan, DELTA), plan, DELTA)


def show(runs, arguments):
    """Run what is missing, and print the table."""
    columns = []
    for target in arguments.epsilons:
        column = {name: runs.cell(name, target) for name in arguments.methods}
        columns.append((target, column))
    title = f"{arguments.data_set}, {arguments.model}, {arguments.epochs} epochs"
    title += f" of batches of {arguments.batch:,}, {arguments.optimizer}, {arguments.schedule}"
    title += f", hull {arguments.hull}, C = {arguments.clip:g}"
    seeds = f"mean ± sd over {arguments.seeds} seeds (rate)"
    print(f"{title}: {arguments.split} accuracy in percent, {seeds}.")
    print(f"{hardware()}.\n")
    heads = []
    for target in arguments.epsilons:
        head = f"ε = {target:g}"
        if arguments.accounting == "add_remove":
            spent = honest_epsilon(target, arguments)
            head += f" (add/remove; in truth {spent:.3g})"
        heads.append(head)
    print("| method | " + " | ".join(heads) + " |")
    print("|---" + "|---:" * len(heads) + "|")
    for name in arguments.methods:
        cells = []
        for _, column in columns:
            found, rate = column[name]
            best = max(mean(other) for other, _ in column.values())
            number = f"{mean(found):.1f}"
            number = f"**{number}**" if mean(found) == best else number
            spread = f" ± {stdev(found):.1f}" if len(found) > 1 else ""
            cells.append(f"{number}{spread} ({rate:g})")
        print(f"| {name} | " + " | ".join(cells) + " |")
    print()


def numbers(text):
    """Numbers with commas between."""
    return [float(part) for part in text.split(",")]


def main(arguments=None):
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="training.py images",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("data_set", nargs="?", default="fashion-mnist", help="or mnist")
    parser.add_argument("--data", type=Path, default=os.environ.get("LABELDP_DATA"))
    parser.add_argument("--model", choices=MODELS, default="cnn")
    parser.add_argument("--epsilons", type=numbers, default=[0.1, 0.2, 0.5, 1.0, 2.0])
    parser.add_argument("--methods", type=listed(METHODS), default=list(METHODS))
    parser.add_argument("--rates", type=numbers, help="instead of each method's own")
    parser.add_argument("--optimizer", choices=["sgd", "momentum", "adam"], default="sgd")
    parser.add_argument("--schedule", choices=["cosine", "constant"], default="cosine")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument("--hull", type=int, default=64, help="examples of alt_conv's hull")
    parser.add_argument("--clip", type=float, default=1.0, help="norm of a clipped gradient")
    parser.add_argument("--microbatch", type=int, default=32, help="more is faster on a GPU")
    parser.add_argument("--split", choices=["test", "held"], default="test")
    parser.add_argument("--accounting", choices=["label", "add_remove"], default="label")
    parser.add_argument("--results", type=Path, default=RESULTS)
    found = parser.parse_args(arguments)
    if found.data is None:
        parser.error("say --data, or set LABELDP_DATA")
    with tempfile.TemporaryDirectory() as folder:
        jax.config.update("jax_compilation_cache_dir", str(Path(folder) / "compiled"))
        show(Runs(found, Path(folder)), found)
