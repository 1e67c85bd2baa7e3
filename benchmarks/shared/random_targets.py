"""Random demands on private labels, and the error of a randomizer as a simulation has it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from labeldp_verify.analysis.inversion import least_variance_inverse
from labeldp_verify.analysis.probabilities import matrix, value

from benchmarks.shared.compiled import compile_text
from labeldp_compile.assembly import Artifact

NUMBERS = ("mean_error", "label_error")
CATEGORIES = ("share_error", "label_error")
_LOSSES = ("squared", "squared", "absolute")
_NORMAL = 1.959964


@dataclass(frozen=True)
class Demand:
    """A spec without ε and mechanism, and what is asked of them.

    ``weights`` [k] are the prior's.
    """

    text: str
    kind: str
    most: float
    rows: int | None
    weights: list[int]
    categories: bool

    @property
    def asked(self) -> dict[str, float | int]:
        """For ``choose``."""
        return {self.kind: self.most} | ({} if self.rows is None else {"rows": self.rows})


def random_demand(draw: np.random.Generator) -> Demand:
    """Two to twelve labels, a prior that is uniform or not, either goal, an error within reach."""
    labels = int(draw.integers(2, 13))
    weights = [1] * labels
    if draw.random() < 0.7:
        weights = [int(weight) for weight in draw.integers(1, 100, labels)]
    goal = "training" if draw.random() < 0.6 else "labels"
    categories = bool(draw.random() < 0.4)
    rows = int(10 ** draw.uniform(2, 6))
    if categories:
        values = ", ".join(f"c{i}" for i in range(labels))
        domain = f"{{kind: categorical, values: [{values}]}}, out_of_domain: {{default: c0}}"
        loss, kind = "zero_one", str(draw.choice(CATEGORIES))
        scale, single = 1.0, (labels - 1) / labels
    else:
        low = int(draw.integers(-5, 6))
        domain = f"{{kind: integer, min: {low}, max: {low + labels - 1}}}"
        loss, kind = str(draw.choice(_LOSSES)), str(draw.choice(NUMBERS))
        scale, single = labels - 1.0, labels - 1.0
    if kind == "label_error":
        most, asked_rows = single * draw.uniform(0.05, 0.7), None
    else:
        most, asked_rows = scale * 10 ** draw.uniform(-0.7, 1.3) / math.sqrt(rows), rows
        if categories:
            most = min(most, 0.9)
    text = f"""
version: 1
name: asked
goal: {goal}
label: {{column: y, domain: {domain}}}
loss: {loss}
privacy: {{epsilon: 1}}
prior: {{kind: public, weights: {weights}}}
mechanism: {{kind: randomized_response}}
"""
    return Demand(text, kind, float(f"{most:.6g}"), asked_rows, weights, categories)


def compiled(demand: Demand, lines: list[str]) -> Artifact:
    """The artifact of the demand's spec with the lines that ``choose`` gives."""
    kept = [
        line for line in demand.text.splitlines() if not line.startswith(("privacy", "mechanism"))
    ]
    return compile_text("\n".join([*kept, *lines]) + "\n")


def simulated_error(
    demand: Demand, artifact: Artifact, draw: np.random.Generator, repetitions: int
) -> float:
    """The figure that was asked for, from draws of the exact table; nothing of its formula is used.

    Tables of ``rows`` rows are drawn ``repetitions`` times: true labels from the prior, outputs of
    each label from its row. Half the width of 95 % is 1.96 standard deviations of the estimates'
    errors. Of single labels 10^8 are drawn.
    """
    table = matrix(artifact.randomizer, range(len(demand.weights)))
    table /= table.sum(axis=1, keepdims=True)
    prior = np.array(demand.weights) / sum(demand.weights)
    values = [value(artifact.randomizer, output) for output in range(table.shape[1])]
    labels = np.arange(len(prior), dtype=float)
    if not demand.categories:
        labels += artifact.certificate.label.domain["min"]
    if demand.rows is None:
        joint = draw.multinomial(10**8, (prior[:, None] * table).ravel()).reshape(table.shape)
        if demand.categories:
            same = np.array([[f"c{y}" == value for value in values] for y in range(len(prior))])
            return float(joint[~same].sum() / joint.sum())
        error = (np.array(values, dtype=float) - labels[:, None]) ** 2
        return math.sqrt(float((joint * error).sum() / joint.sum()))
    if demand.categories:
        weights, truth = least_variance_inverse(table), np.eye(len(prior))
    elif artifact.certificate.utility.largest_bias < 1e-9 * len(prior):
        weights, truth = np.array(values, dtype=float)[:, None], labels[:, None]
    else:
        weights, truth = least_variance_inverse(table) @ labels[:, None], labels[:, None]
    errors = []
    for count in _portions(repetitions, table.shape[1]):
        true = draw.multinomial(demand.rows, prior, count)
        outputs = sum(draw.multinomial(true[:, y], table[y]) for y in range(len(prior)))
        errors.append((outputs @ weights - true @ truth) / demand.rows)
    return float(_NORMAL * np.concatenate(errors).std(axis=0).max())


def _portions(repetitions: int, outputs: int) -> list[int]:
    """Of so many repetitions, each with room for a million counts."""
    most = max(10**6 // outputs, 1)
    return [min(most, repetitions - done) for done in range(0, repetitions, most)]
