"""The exact analysis in the terms of the tests."""

import numpy as np
from labeldp_verify.analysis import analyse, expected_loss
from labeldp_verify.analysis.losses import losses_by_row


def realised_ratio(randomizer):
    return analyse(randomizer).worst_ratio()


def output_rounding(randomizer):
    return analyse(randomizer).output_rounding()


def biases(randomizer, labels, strays=None):
    return analyse(randomizer).biases(labels, strays)


def variances(randomizer):
    return analyse(randomizer).variances()


def losses_by_label(randomizer, labels, weights, loss):
    """[k] bounds of the expected loss of each label; zeros where the weight is 0."""
    rows = np.flatnonzero(weights)
    bounds = losses_by_row(analyse(randomizer), rows, [labels[i] for i in rows], loss)
    of_row = dict(zip(rows.tolist(), zip(*bounds, strict=True), strict=True))
    return [of_row.get(i, (0, 0)) for i in range(len(weights))]


def noisy_label_loss(randomizer, labels, weights, loss, strays=None):
    return expected_loss(analyse(randomizer), labels, weights, loss, strays)
