"""Artifacts of tests/golden, private labels drawn from them with a seed, and artifacts of our
own that no file holds."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from labeldp_verify.analysis import matrix, value
from labeldp_verify.forms import CategoricalDomain, RealDomain, TableRandomizer
from labeldp_verify.opening import open_artifact

FILES = Path(__file__).parents[2] / "tests/golden"
NUMBERS, RESPONSE = FILES / "plain/optimal-unbiased.onnx", FILES / "plain/rr-with-prior-codes.onnx"
SETS, JOINT = FILES / "sets/subsets.onnx", FILES / "joint/response.onnx"
GROUPS = FILES / "groups/real.onnx"


def drawn(artifact, labels, seed=0, tables=None):
    """[n] private labels as they are in a column, for the places of true labels; of a label of
    several columns, a mapping of columns. ``tables`` [n] are the tables of the rows."""
    generator = np.random.default_rng([seed, 1])  # not that of the labels
    labels = np.asarray(labels)
    tables = np.zeros(len(labels), int) if tables is None else tables
    found = np.empty(len(labels), object)
    for i in np.unique(tables):
        randomizer, rows = artifact.tables[i], np.flatnonzero(tables == i)
        ends = matrix(randomizer, range(artifact.label.size)).cumsum(axis=1)[:, :-1]
        places = (ends[labels[rows]] < generator.random((len(rows), 1))).sum(axis=1)
        outputs = [value(randomizer, o) for o in range(randomizer.outputs)]
        found[rows] = [outputs[place] for place in places]
    if artifact.label.kind == "joint" and not artifact.answers_with_sets:
        rows = [artifact.label.combination(int(number)) for number in found]
        names = artifact.certificate.label_columns
        return {
            name: np.array(column)
            for name, column in zip(names, zip(*rows, strict=True), strict=True)
        }
    return np.array(found.tolist())


def with_table(artifact, domain, counts, values):
    """The artifact with another label and table, whose counts are 2^B in each row."""
    bits = int(sum(counts[0])).bit_length() - 1
    table = TableRandomizer(bits, tuple(map(tuple, counts)), tuple(values))
    stated = artifact.certificate
    prior = replace(stated.prior, weights=[1] * domain.size)
    utility = replace(stated.utility, largest_bias=0.0)
    claims = replace(stated, prior=prior, utility=utility)
    return replace(artifact, label=domain, tables=(table,), certificate=claims)


def response(classes, rare=2000):
    """Randomized response over these classes; every other class comes with a chance of 1/rare."""
    k, low = len(classes), 2**32 // rare
    counts = [[2**32 - (k - 1) * low if i == j else low for j in range(k)] for i in range(k)]
    domain = CategoricalDomain(tuple(classes), classes[0])
    return with_table(open_artifact(RESPONSE), domain, counts, classes)


def numbers(values):
    """Two labels −t and t, and these outputs, which are unbiased and are their own targets.

    Pr[v | ±t] = b_v·(1 ± c·v), where b has the mean 0: then E[v | ±t] = ±c·Σ b·v² = ±t, and values
    of least variance are linear in the likelihood ratio, so in v.
    """
    values = np.array(sorted(values))
    base = 1 - values.mean() * (values - values.mean()) / values.var()
    assert (base > 0).all()
    base /= base.sum()
    tilt = 0.1 / np.abs(values).max()
    counts = [[int(x) for x in base * (1 + sign * tilt * values) * 2**52] for sign in (-1, 1)]
    for row in counts:
        row[0] += 2**52 - sum(row)
    end = float(tilt * (base @ values**2))
    domain = RealDomain(-end, end, 2)
    return with_table(open_artifact(NUMBERS), domain, counts, values.tolist())
