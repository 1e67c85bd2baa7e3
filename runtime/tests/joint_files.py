"""Artifacts whose label has several columns, for tests of the runtime and of engines."""

import itertools
import json
from fractions import Fraction

from runtime.tests.helpers import file, metadata


def model(name):
    """The bytes of one of them."""
    return file(f"joint, {name}")


def labels_of(domain):
    """The labels of one column, in their order."""
    if domain["kind"] == "categorical":
        return domain["values"]
    if domain["kind"] == "integer":
        return list(range(domain["min"], domain["max"] + 1))
    low, high, last = Fraction(domain["min"]), Fraction(domain["max"]), domain["points"] - 1
    return [float(low + i * (high - low) / last) for i in range(last + 1)]


def combinations(name):
    """All labels, as tuples, in the order of their numbers."""
    stated = json.loads(metadata(model(name))["labeldp.certificate"])
    return list(itertools.product(*map(labels_of, stated["label"]["domain"]["columns"])))


def everything(name):
    """A label for each combination, as columns by their names, in the order of their numbers."""
    columns = map(list, zip(*combinations(name), strict=True))
    return dict(zip(NAMES[name], columns, strict=True))


def number(name, places):
    """The number of the combination of labels at these places, one a column."""
    stated = json.loads(metadata(model(name))["labeldp.certificate"])
    found = 0
    for domain, place in zip(stated["label"]["domain"]["columns"], places, strict=True):
        found = found * len(labels_of(domain)) + place
    return found


NAMES = {
    "mixed": ["price", "code", "n"],
    "text": ["converted", "value"],
    "sets": ["converted", "value"],
    "response": ["converted", "value"],
    "large ε": ["converted", "value"],
    "large ε, grid": ["converted", "value", "share"],
}
# Rows that the artifact cannot tell from others: the labels, and the combination that each is.
ODD = {
    "mixed": (
        {
            "price": [None, float("nan"), 99.0, -1e300, 0.1, 2.2500001],
            "code": [None, 8, 12, 7, -3, 2**62],
            "n": [None, 4, -3, 3, -2, float("nan")],
        },
        [(0, 1, 3), (0, 1, 3), (7, 2, 3), (0, 0, 5), (2, 1, 0), (7, 1, 3)],
    ),
    "text": (
        {
            "converted": [None, "ne\u0301", "yes", "", "yes ", "né"],
            "value": [None, 7, 99, -(2**63), 2.5, 3.5],
        },
        [(0, 0), (0, 4), (1, 4), (0, 0), (0, 2), (0, 4)],
    ),
    "sets": (
        {"converted": [None, "NO", "yes", "yes", 7, "no"], "value": [None, 7, 99, -5, "1", 2]},
        [(0, 0), (0, 4), (1, 4), (1, 0), (0, 0), (0, 2)],
    ),
}
