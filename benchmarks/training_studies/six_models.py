"""Methods that are compared on six tables, and how one run of each is made and measured."""

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from labeldp_runtime import Randomizer
from labeldp_trainer.discrete_gaussian.noise import greatest_ratio
from training_studies.boosting import LIBRARIES, Problem, tuned
from training_studies.hardware import hardware
from training_studies.own_tables import OWN_TABLES
from training_studies.six_tables import CLASSES, NUMBERS, SETS, TASKS, Data

DELTA = "1e-5"
LEAST_RATE = 1e-3  # of counts, that a private constant predicts
SPLINES = "representation: {{kind: splines, seed: {seed}}}\n"
INTERACTIONS = "model: {{kind: interactions}}\n"
PRIVATIZED = "method: {{kind: privatized, artifact: {artifact}}}\n"


@dataclass(frozen=True)
class Trained:
    """A config for ``labeldp train``; ``missing``: whether it takes missing numbers."""

    text: str
    private: bool = True
    missing: bool = False

    @property
    def artifact(self):
        """Whether somebody randomizes the labels for it."""
        return "{artifact}" in self.text


@dataclass(frozen=True)
class Boosted:
    """A library for gradient boosting."""

    library: str
    private: bool


@dataclass(frozen=True)
class Constant:
    """One prediction for all rows: all of ε is for it, if it is private."""

    private: bool


@dataclass(frozen=True)
class Earlier:
    """Measured with code that is no longer there: results are shown, not made."""

    private: bool = True


STAGED, ONE, BEST = "staged release", "one release", "boosting, no privacy"
FIRST = "staged release, first edition"
NOISELESS = "no privacy, same model"
RELEASED = "method: {{kind: %s, epsilon: {epsilon}, delta: {delta}{ends}}}\n"
RANGE = ", label_range: [%d, %d]"
WIDE = ", range ten times too wide"
METHODS = {
    STAGED: Trained(RELEASED % "staged_release", missing=True),
    FIRST: Earlier(),
    ONE: Trained(RELEASED % "one_release" + SPLINES),
    STAGED + WIDE: Trained((RELEASED % "staged_release").replace("{ends}", "{wide}"), missing=True),
    ONE + WIDE: Trained((RELEASED % "one_release").replace("{ends}", "{wide}") + SPLINES),
    "private labels, same model": Trained(PRIVATIZED + INTERACTIONS, missing=True),
    "private labels, splines": Trained(PRIVATIZED + SPLINES),
    **{f"boosting, private labels, {name}": Boosted(name, True) for name in LIBRARIES},
    NOISELESS: Trained("method: {{kind: none}}\n" + INTERACTIONS, False, True),
    "no privacy, splines": Trained("method: {{kind: none}}\n" + SPLINES, False),
    **{f"{BEST}, {name}": Boosted(name, False) for name in LIBRARIES},
    "private constant": Constant(True),
    "constant": Constant(False),
}


class RunError(Exception):
    """A run that gave no result, with what the command said."""


class Runner:
    """Runs cells of one table."""

    def __init__(self, name, source, folder):
        """Write the data."""
        self.name, self.task, self.folder = name, (TASKS | OWN_TABLES)[name], folder / name
        self.data = Data(self.task, source, self.folder)

    def metrics(self, method, epsilon, seed):
        """Test metrics, and what was chosen."""
        if isinstance(method, Trained):
            return self._trained(method, epsilon, seed), None
        if isinstance(method, Constant):
            return self._constant(epsilon if method.private else None, seed), None
        return self._boosted(method, epsilon, seed)

    def finished(self, table, name, method, epsilon, seed):
        """The line of a run: its cell, metrics, seconds, and what it ran on."""
        began = time.monotonic()
        metrics, chosen = self.metrics(method, epsilon, seed)
        line = {"table": table, "method": name, "epsilon": epsilon, "seed": seed}
        line |= {"metrics": metrics, "seconds": round(time.monotonic() - began, 1)}
        line |= {"rows": self.data.rows, "hardware": hardware()}
        return line if chosen is None else line | {"chosen": chosen}

    def config(self, method, epsilon, seed, artifact):
        """The text of a config."""
        ends = self.task.ends
        text = method.text.format(
            epsilon=epsilon,
            delta=DELTA,
            seed=seed,
            artifact=artifact,
            ends="" if ends is None else RANGE % ends,
            wide="" if ends is None else RANGE % (ends[0], ends[0] + 10 * (ends[1] - ends[0])),
        )
        data = self.data.config(method.missing, classes=not method.artifact)
        return f"version: 1\nname: run\ndata: {data}\nloss: {self.task.loss}\n{text}"

    def _trained(self, method, epsilon, seed):
        artifact = None
        if method.artifact:
            mechanism = NUMBERS if self.data.classes is None else SETS
            artifact = self.data.artifact(mechanism, epsilon, seed)
        config = self.folder / "config.yaml"
        config.write_text(self.config(method, epsilon, seed, artifact), encoding="utf-8")
        output = self.folder / f"run-{time.time_ns()}"
        _command("train", config, "-o", output)
        test = json.loads((output / "result.json").read_text(encoding="utf-8"))["test"]
        found = {
            "MSE": test.get("mse"),
            "Poisson loss": test["loss"],
            "log loss": test["loss"],
            "accuracy": test.get("accuracy"),
        }
        if "AUC" in self.task.metrics:
            predicted = output / "predicted.parquet"
            _command(
                "predict",
                output,
                self.folder / "test.parquet",
                "-o",
                predicted,
                "--probabilities",
            )
            found["AUC"] = area(pq.read_table(predicted)["probability_1"].to_numpy(), self._truth())
        return {name: found[name] for name in self.task.metrics}

    def _boosted(self, method, epsilon, seed):
        data = self.data
        labels, kept = data.labels("train"), None
        if method.private:
            mechanism = NUMBERS if data.classes is None else CLASSES
            labels = Randomizer.load(data.artifact(mechanism, epsilon, seed))(labels)
            if data.classes is not None:  # the file's probabilities differ by less than 2^-30
                kept = np.expm1(float(epsilon)) / (np.expm1(float(epsilon)) + len(data.classes))
        problem = Problem(
            data.features["train"],
            data.coded,
            data.codes(labels),
            self.task.loss,
            None if data.classes is None else len(data.classes),
            kept,
            self.task.ends,
            method.private,
            self.task.block,
        )
        predict, chosen = tuned(method.library, problem, seed)
        return self._measured(predict(data.features["test"])), chosen

    def _constant(self, epsilon, seed):
        """The mean or the shares, which are best; with Gaussian noise if they are private."""
        labels, n = self.data.codes(self.data.labels("train")), self.data.rows
        noise, random = 0.0, np.random.default_rng(seed)
        if epsilon is not None:
            noise = 1 / float(greatest_ratio(Fraction(epsilon), Fraction(DELTA))) ** 0.5 / n
        if self.data.classes is None:
            low, high = self.task.ends
            mean = labels.mean() + (high - low) * noise * random.normal()
            least = LEAST_RATE if self.task.loss == "poisson" else low
            return self._measured(np.full(self._truth().shape, np.clip(mean, least, high)))
        shares = np.bincount(labels, minlength=len(self.data.classes)) / n
        shares = np.maximum(shares + 2**0.5 * noise * random.normal(size=shares.shape), 1 / n)
        return self._measured(np.tile(shares / shares.sum(), (len(self._truth()), 1)))

    def _truth(self):
        return self.data.codes(self.data.labels("test"))

    def _measured(self, found):
        """The metrics of predictions [n] or [n, k], as the trainer defines them."""
        y = self._truth()
        if self.task.loss == "squared":
            return {"MSE": float(np.mean((found - y) ** 2))}
        if self.task.loss == "poisson":
            return {"Poisson loss": float(np.mean(found - y * np.log(found)))}
        chosen = found[np.arange(len(y)), y]
        values = {"log loss": float(-np.log(np.maximum(chosen, 1e-12)).mean())}
        if "AUC" in self.task.metrics:
            return values | {"AUC": area(found[:, 1], y)}
        return values | {"accuracy": float(np.mean(found.argmax(axis=1) == y))}


def _command(*words):
    """Run a command of labeldp in a process of its own."""
    command = [sys.executable, "-m", "labeldp_compile.cli", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RunError(done.stderr.strip())


def area(scores, truth):
    """The area under the ROC curve: how often a row of the class has the larger score."""
    ranks = pc.rank(scores, tiebreaker="min").to_numpy().astype(float)
    most = pc.rank(scores, tiebreaker="max").to_numpy()
    middle = (ranks + most) / 2
    positive = int(truth.sum())
    least = positive * (positive + 1) / 2
    return float((middle[truth == 1].sum() - least) / positive / (len(truth) - positive))
