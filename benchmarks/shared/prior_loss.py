"""The noisy label loss under the true labels of what a noisy prior leads to, computed exactly."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from labeldp_verify.analysis.probabilities import matrix

from labeldp_compile.mechanisms.problem import Problem
from labeldp_compile.prior.discrete_laplace import (
    coarse,
    project_to_total,
    seeded_histogram,
    shrunk_weights,
)
from labeldp_compile.prior.split import PriorPlan, plan_prior
from labeldp_compile.spec import parse_spec

SPEC = """
version: 1
name: study
goal: {goal}
label: {label}
loss: {loss}
privacy: {{epsilon: {epsilon}, split: {split}}}
prior: {{kind: private, data: labels.parquet}}
mechanism: {{kind: auto}}
"""


def noisy_weights(counts, plan, seed):
    """Integer weights [k] from true counts [k], as a compile with this plan finds them."""
    if plan.is_uniform:
        return [1] * len(counts)
    rows = int(counts.sum())
    cells = counts if plan.cells is None else coarse(counts, plan.cells)
    noisy = seeded_histogram(cells, plan.epsilon_prior, seed)
    if plan.shrunk:
        return shrunk_weights(noisy, rows, len(counts))
    return project_to_total(noisy.counts, rows)


def label_losses(spec, weights, epsilon):
    """[k] the expected loss of each label 0 … k − 1, squared or zero-one, of a spec's mechanism."""
    problem = Problem(spec.domain, weights, epsilon, spec.loss)
    randomizer = spec.named_mechanism.build(problem).randomizer
    labels, outputs = np.arange(len(weights)), np.array(randomizer.values, dtype=float)
    away = outputs[None, :] - labels[:, None]
    errors = (away != 0) if spec.loss == "zero_one" else 0.5 * away**2
    return (matrix(randomizer, range(len(weights))) * errors).sum(axis=1)


@dataclass(frozen=True)
class Study:
    """Labels 0 … k − 1, numbers or categories, of which the true counts [k] are known."""

    counts: np.ndarray
    goal: str
    epsilon: str
    categories: bool = False

    def spec(self, split):
        """The spec of a user who leaves all else to the compiler."""
        k = len(self.counts)
        label = f"{{column: y, domain: {{kind: integer, min: 0, max: {k - 1}}}}}"
        if self.categories:
            values = ", ".join(map(str, range(k)))
            label = (
                f"{{column: y, domain: {{kind: categorical, values: [{values}]}}, "
                "out_of_domain: {default: 0}}"
            )
        return parse_spec(
            SPEC.format(
                goal=self.goal,
                label=label,
                loss="zero_one" if self.categories else "squared",
                epsilon=self.epsilon,
                split=split,
            )
        )

    def plan(self, split):
        """What that spec would spend; BudgetError where paper's split cannot."""
        return plan_prior(self.spec(split), int(self.counts.sum()))

    def uniform(self):
        """The plan that asks no label."""
        return PriorPlan(Fraction(0), Fraction(self.epsilon))

    def loss(self, plan, seed=None):
        """The loss under the true counts of the randomizer that one draw of the noise leads to."""
        weights = noisy_weights(self.counts, plan, seed)
        return self.loss_under(self.spec("auto"), weights, plan.epsilon_label)

    def loss_under(self, spec, weights, epsilon):
        """The same for integer weights of the labels, and an ε of the label."""
        losses = label_losses(spec, weights, epsilon)
        return float((self.counts / self.counts.sum()) @ losses)

    def mean_loss(self, plan, draws):
        """Over draws of the noise, the same seeds for every plan; one where there is no noise."""
        return float(np.mean([self.loss(plan, s) for s in range(1 if plan.is_uniform else draws)]))
